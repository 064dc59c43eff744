"""What was said: threads and messages, kept verbatim, compacted only for showing."""
