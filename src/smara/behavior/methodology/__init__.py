"""Adapt learning to how a methodology divides its work."""
