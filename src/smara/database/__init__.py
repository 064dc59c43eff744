"""The seam between the rooms and the two databases.

Rooms write SQL that both databases read, with ``?`` for values. What differs (opening,
locking, text search) lives here and nowhere else.
"""
