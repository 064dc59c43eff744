"""Read transcripts: one module for each format, loaded on demand."""
