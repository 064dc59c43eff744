"""Keep a tree's index up to date with the disk."""
