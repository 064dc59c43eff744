"""Index code as a graph of files and symbols."""
