"""What a model wrote, read as leniently as can be done without guessing."""
