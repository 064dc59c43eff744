"""What is held in mind: a small page per resource and per thread, always at hand, with its
history.
"""
