"""Memory as sections of a context, and as injections into sessions."""
