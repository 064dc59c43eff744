"""One ranked answer: gather, fetch, rank, present."""
from __future__ import annotations
class Search:
    def __init__(self, store, clock, settings): pass
