"""Typed statements with evidence and trust, their lifecycle and review."""
