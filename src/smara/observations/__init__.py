"""What was noticed: dated observations of long conversations, and reflections that condense
them.
"""
