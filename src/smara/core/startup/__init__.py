"""Keep the start of a process short: compile classes and patterns at their first use."""
