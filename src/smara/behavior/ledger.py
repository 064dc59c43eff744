"""A ledger: entries by key, at most so many of at most so many bytes; what tells least goes first.

Looking up, counting and making room cost the same however long a session is: who is to go is found
among the few that came longest ago, and who was counted again gets another chance. A large ledger
knows what changed in it since it was last kept, so that keeping it again costs what changed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

Entry = dict[str, Any]
Changes = tuple[list[str] | None, dict[str, Entry]]
"""The keys of what has left, or ``None`` when everything has, and the entries that came or changed,
in their order.
"""
LONGEST_KEY = 300
_ENTRY_BYTES = 1_100
"""A dictionary of up to a dozen numbers, with its slot in the ledger."""
_LEFT_BYTES = 4 * LONGEST_KEY + 300
"""The key of an entry that has left, with the slots where changes are noted."""
_CHANCES = 6
LARGE = 1_000
"""From so many entries on, it is worth knowing which of them changed."""


class Ledger:
    """Counts by key. ``n`` of an entry says how often, ``s`` at which step it was last seen.

    Whoever changes an entry of a large ledger has it from :meth:`count` or :meth:`find`: only these
    note the change.
    """

    __slots__ = (
        "_changed",
        "_is_large",
        "_is_new",
        "_left",
        "entries",
        "entry_bytes",
        "evicted",
        "most",
    )

    def __init__(self, most: int, text_characters: int = 0) -> None:
        self.entries: OrderedDict[str, Entry] = OrderedDict()
        self.most = most
        # A character of a Python text takes up to four bytes; of an entry that has left, the key is
        # held for a while.
        self.entry_bytes = _ENTRY_BYTES + 4 * (LONGEST_KEY + text_characters) + _LEFT_BYTES
        self.evicted = 0
        self._is_large = most >= LARGE
        self._is_new = True
        self._changed: dict[str, None] = {}
        self._left: dict[str, None] = {}

    @property
    def bytes(self) -> int:
        """An upper bound of what it holds in memory."""
        return len(self.entries) * self.entry_bytes

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[tuple[str, Entry]]:
        return iter(self.entries.items())

    def find(self, key: str) -> Entry | None:
        key = key[:LONGEST_KEY]
        entry = self.entries.get(key)
        if entry is not None:
            self._changed[key] = None
        return entry

    def count(self, key: str, step: int) -> Entry:
        """The entry of a key, counted once more; made when it is new."""
        if len(key) > LONGEST_KEY:
            key = key[:LONGEST_KEY]
        entries = self.entries
        entry = entries.get(key)
        if entry is not None:
            self._changed[key] = None
            entry["n"] += 1
            entry["s"] = step
            return entry
        if len(entries) >= self.most:
            self._evict_one()
        entry = entries[key] = {"n": 1, "s": step, "f": step}
        self._changed[key] = None
        return entry

    def shrink(self, kept_share: float) -> None:
        """Give up all but a share of the entries, those that tell least first."""
        for _ in range(len(self.entries) - int(len(self.entries) * kept_share)):
            self._evict_one()
        self._is_new = True
        self._left.clear()

    def kept(self) -> None:
        """Note that the store has it as it is."""
        self._is_new = False
        self._changed.clear()
        self._left.clear()

    def changes(self) -> Changes:
        """What changed since it was last kept; all of it where that is not known, or not worth
        knowing.
        """
        if self._is_new or not self._is_large:
            return None, self.entries
        return list(self._left), {key: self.entries[key] for key in self._changed}

    def apply(self, changes: Changes) -> None:
        """Change it as another was changed that was the same before; then they are the same
        again.
        """
        left, entries = changes
        if left is None:
            self.entries = OrderedDict(entries)
            return
        for key in left:
            self.entries.pop(key, None)
        self.entries.update(entries)

    def _evict_one(self) -> None:
        """Of the few entries that came longest ago, the one that was counted least goes."""
        entries, changed, left = self.entries, self._changed, self._left
        chances = _CHANCES
        key, entry = entries.popitem(last=False)
        while entry["n"] > 1 and chances:
            entries[key] = entry  # behind all others
            left[key] = None
            changed.pop(key, None)
            changed[key] = None
            key, entry = entries.popitem(last=False)
            chances -= 1
        left[key] = None
        changed.pop(key, None)
        self.evicted += 1
        if len(left) > self.most:  # more has changed than has not
            self._is_new = True
            left.clear()
