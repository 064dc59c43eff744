"""Adapters for agent frameworks; each needs the extra of its framework."""
