"""Keep a small page per resource and thread, with history."""
