"""Back up, export, import and restore a memory.

`tables` has one object for each table of the store, with all that these acts must know of it. A
table that it does not name fails a test.
"""
