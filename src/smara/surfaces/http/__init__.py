"""Serve every room over HTTP, and reach a served memory from Python."""
