"""Read what other memory tools keep or export."""
