"""Tell operators what a process does: log lines, traces and metrics."""
