"""Share the background work of a PostgreSQL store among many processes."""
