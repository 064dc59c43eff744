"""Translate the files of other programs into memories and messages."""
