"""Keep what agent frameworks hand over, unchanged."""
