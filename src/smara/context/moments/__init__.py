"""What an agent is told unasked, at four points of its work: little, rarely, on strong evidence,
with receipts.
"""
