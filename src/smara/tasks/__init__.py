"""Keep tasks with dependencies, claims, and a history."""
