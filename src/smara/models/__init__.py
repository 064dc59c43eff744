"""What thinks: chat models behind one small protocol, with deadlines, retries, a budget and a
switch.
"""
