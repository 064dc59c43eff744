"""Memory behind one small interface, chosen by name."""
