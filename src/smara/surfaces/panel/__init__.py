"""Show a memory in a browser, and let people correct it."""
