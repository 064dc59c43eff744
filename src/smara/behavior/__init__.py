"""What habits show: events of agents become signals, and signals that come again become memories
with evidence.
"""
