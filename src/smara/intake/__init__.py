"""What hosts told, taken in exactly once: the keys of events, when each host was last heard, and
what is to be done.

Events wait in a spool of files and may be told twice, by two hooks or after a crash. The
key of every event that was taken in is kept here for a while, written in the transaction
that ends its taking in.
"""
