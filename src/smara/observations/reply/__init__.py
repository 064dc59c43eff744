"""Read what a model wrote, as leniently as possible without guessing."""
