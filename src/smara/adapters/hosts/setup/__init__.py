"""Setting up agents: what is written into their configurations, shown first, kept apart, undone
byte for byte.
"""
