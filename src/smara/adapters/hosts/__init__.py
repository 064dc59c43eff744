"""Agents that run elsewhere and tell us by hooks: reading what they tell, telling them what is
known.
"""
