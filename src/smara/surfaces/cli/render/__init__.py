"""Render values as JSON and as lines of a terminal."""
