"""Faults: killed processes, full disks, paused holders, strange queries, giants, damaged indexes.

One suite in two sizes: small in ``make test``, large (``SMARA_FAULTS=large``) in ``make faults``.
"""
