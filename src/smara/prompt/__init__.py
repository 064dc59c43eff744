"""Sections, messages and shapes of the text that a model is sent."""
