"""The seventeen signals, one file each: its row of the table, how it is detected, and the memory it
makes.

Every module has ``SIGNAL`` (the row), ``detect(pads)`` (the findings in the scratchpads of one
session) and ``draft(finding, seen)`` (the memory, composed from the evidence, or ``None`` when it
would say too little).
"""
