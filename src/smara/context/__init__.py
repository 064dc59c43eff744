"""What the agent gets: memory as sections of a context, ordered so that prompt caches hit, with a
receipt.
"""
