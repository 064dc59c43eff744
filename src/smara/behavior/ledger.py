"""A ledger: entries by key, at most so many of at most so many bytes; what tells least goes first.

Looking up, counting and making room cost the same however long a session is: who is to go is found among the
few that came longest ago, and who was counted again gets another chance.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

Entry = dict[str, Any]
LONGEST_KEY = 300
_ENTRY_BYTES = 1_100
"""A dictionary of up to a dozen numbers, with its slot in the ledger."""
_CHANCES = 6


class Ledger:
    """Counts by key. ``n`` of an entry says how often, ``s`` at which step it was last seen."""

    __slots__ = ("entries", "entry_bytes", "evicted", "most")

    def __init__(self, most: int, text_characters: int = 0) -> None:
        self.entries: OrderedDict[str, Entry] = OrderedDict()
        self.most = most
        # A character of a Python text takes up to four bytes.
        self.entry_bytes = _ENTRY_BYTES + 4 * (LONGEST_KEY + text_characters)
        self.evicted = 0

    @property
    def bytes(self) -> int:
        """An upper bound of what it holds in memory."""
        return len(self.entries) * self.entry_bytes

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[tuple[str, Entry]]:
        return iter(self.entries.items())

    def find(self, key: str) -> Entry | None:
        return self.entries.get(key[:LONGEST_KEY])

    def count(self, key: str, step: int) -> Entry:
        """The entry of a key, counted once more; made when it is new."""
        if len(key) > LONGEST_KEY:
            key = key[:LONGEST_KEY]
        entries = self.entries
        entry = entries.get(key)
        if entry is not None:
            entry["n"] += 1
            entry["s"] = step
            return entry
        if len(entries) >= self.most:
            self._evict_one()
        entry = entries[key] = {"n": 1, "s": step, "f": step}
        return entry

    def shrink(self, kept_share: float) -> None:
        """Give up all but a share of the entries, those that tell least first."""
        for _ in range(len(self.entries) - int(len(self.entries) * kept_share)):
            self._evict_one()

    def _evict_one(self) -> None:
        """Of the few entries that came longest ago, the one that was counted least goes."""
        entries = self.entries
        for _ in range(_CHANCES):
            key = next(iter(entries))
            if entries[key]["n"] <= 1:
                break
            entries.move_to_end(key)
        entries.popitem(last=False)
        self.evicted += 1
