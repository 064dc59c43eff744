"""Links between tasks, messages, memories and code."""
