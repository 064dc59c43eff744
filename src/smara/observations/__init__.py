"""Observe long conversations: dated observations, and reflections that condense them."""
