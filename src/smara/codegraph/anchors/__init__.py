"""Anchor memories and observations to code, and judge what became of it.

An anchor is made once, when something is said or verified, from the code as it was then: a
definition's place and the fingerprint of its body, some lines, or a file. Reading never
changes it. What became of it is worked out each time from the index and, where the index is
behind the disk, from the file itself; a verdict that would rest on something unread says so.
"""
