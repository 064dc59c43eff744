"""Keep threads and messages verbatim, compacted only for showing."""
