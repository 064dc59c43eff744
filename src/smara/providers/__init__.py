"""Memory behind one small interface, chosen by name: for agents that bring their own loop."""
