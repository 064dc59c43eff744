"""Resolve the names a file uses to their definitions.

Every language has its own rules for finding a module and a name in it; they stand in
``languages/``, what they share in ``rules``. A name that cannot be followed stays without an edge:
a wrong edge costs more than a missing one.
"""
