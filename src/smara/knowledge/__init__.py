"""What is known: typed statements with evidence and trust, their lifecycle, and the review of what
was learned.
"""
