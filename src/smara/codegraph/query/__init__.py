"""Answer questions from the graph in memory."""
