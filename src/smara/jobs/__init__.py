"""Record the work that goes on in the background."""
