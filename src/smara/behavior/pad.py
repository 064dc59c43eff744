"""The scratchpad: what is held of one agent's session while it runs.

Counts and short quotations, never whole outputs. Every part of it is a ledger with an upper bound,
so the whole is one, too: :attr:`Pad.held_bytes` is never above the limit, whatever a session does.
When it would be, the parts whose signals are worth least give up half of what they hold. A pad is
plain data: it goes into the store and comes back as it was, first as a whole and then what changed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from smara.behavior.ledger import Changes, Ledger

LIMIT_BYTES = 50 * 1024 * 1024
VERSION = 2
"""Version 1 had no changes, but always whole ledgers."""
_SMALL_BYTES = 4_096
"""A pad of this size is kept as a whole every time."""
RECENT = 8
"""How many of the last tool calls and files are held in their order."""
QUOTE = 400
"""The longest quotation, in characters."""
_FACT_BYTES = 600_000
"""An upper bound of the facts and short lists beside the ledgers."""

LEDGERS: dict[str, tuple[int, int]] = {
    "durations": (400, 0),
    "worked": (400, 0),
    "chases": (100, 2 * 900),
    "references": (100, 900),
    "outputs": (200, 300),
    "globs": (150, 900),
    "configs": (50, 0),
    "backtracks": (60, 4 * QUOTE),
    "sequences": (400, 4 * QUOTE),
    "searches": (300, 4 * 300),
    "abandons": (100, 600),
    "tests": (200, 3 * QUOTE),
    "e2e": (60, 3 * QUOTE),
    "commits": (20, 6 * QUOTE),
    "dead_ends": (20, 4 * QUOTE),
    "errors": (150, 6 * QUOTE),
    "corrections": (30, 3 * QUOTE),
    "pairs": (3_000, 300),
    "files": (1_500, 0),
}
"""Every ledger with the most entries and the most characters beside the key; what is worth least
comes first.
"""


class Saved(NamedTuple):
    """What the store is given of a pad: the whole with the number 0, or what changed since,
    numbered from 1.
    """

    number: int
    data: bytes


class Pad:
    """What is held of a session of one agent; ``facts`` are single numbers, flags and short
    lists.
    """

    __slots__ = ("_saved", "facts", "ledgers", "limit_bytes", "may_overflow")

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self._saved: list[int] = []
        self.ledgers = {name: Ledger(most, text) for name, (most, text) in LEDGERS.items()}
        # With all ledgers full it is below the usual limit: then nobody has to look after every
        # event.
        self.may_overflow = (
            _FACT_BYTES + sum(each.most * each.entry_bytes for each in self.ledgers.values())
            > limit_bytes
        )
        self.facts: dict[str, Any] = {
            "step": 0,
            "events": 0,
            "tokens": 0,
            "started": 0,
            "last": 0,
            "root": "",
            "prompt": "",
            "prompts": 0,
            "turns": 0,
            "reads": 0,
            "edits": 0,
            "runs": 0,
            "fetches": 0,
            "failures": 0,
            "last_edit": 0,
            "last_source_edit": 0,
            "first_source_edit": 0,
            "first_test_edit": 0,
            "test_runs": 0,
            "last_test": 0,
            "last_test_ok": None,
            "last_commit": 0,
            "green_after": [],
            "green_at": 0,
            "runs_so_far": 0,
            "chain": [],
            "e2e_failed": None,
            "committed_at": 0,
            "reviewed": False,
            "accepted": False,
            "cues": [],
            "plan": [],
            "plan_first": 0,
            "plans": [],
            "todos": {},
            "todos_at": 0,
            "plan_task": "",
            "asked": "",
            "listed": "",
            "branch": "",
            "outside": {},
            "recent_files": [],
            "recent_tools": [],
            "open_failures": [],
            "recent_edits": [],
            "open_search": None,
            "open_glob": None,
            "starts": {},
            "imports": [],
            "said": [],
            "run_seconds": [],
        }

    def __getitem__(self, name: str) -> Ledger:
        return self.ledgers[name]

    @property
    def day(self) -> int:
        """The day on which it began."""
        return int(self.facts["started"]) // 86_400_000

    @property
    def step(self) -> int:
        return int(self.facts["step"])

    @property
    def held_bytes(self) -> int:
        """An upper bound of what the pad takes in memory."""
        total = _FACT_BYTES
        for ledger in (
            self.ledgers.values()
        ):  # asked after every event: a sum over properties takes three times as long
            total += len(ledger.entries) * ledger.entry_bytes
        return total

    @property
    def evicted(self) -> int:
        return sum(ledger.evicted for ledger in self.ledgers.values())

    @property
    def is_empty(self) -> bool:
        return not self.facts["events"]

    def make_room(self) -> None:
        """Give up what is worth least until the pad is within its limit."""
        while self.held_bytes > self.limit_bytes:
            fullest = next((each for each in self.ledgers.values() if len(each) > 8), None)
            if fullest is None:
                fullest = max(self.ledgers.values(), key=lambda each: each.bytes)
                if not len(fullest):
                    return
            fullest.shrink(0.5)

    def planned(self) -> tuple[int, int]:
        """The steps of all plans as they were first made, and all that were ever on them."""
        plans = [*self.facts["plans"], [self.facts["plan_first"], len(self.facts["plan"])]]
        known = [plan for plan in plans if plan[0]]
        return sum(int(plan[0]) for plan in known), sum(int(plan[1]) for plan in known)

    def save(self) -> Saved:
        """What the store has to be given now to hold the pad: what changed since the last time, or
        the whole.
        """
        number = len(self._saved)
        if number and self._saved[0] >= _SMALL_BYTES:
            data = self._packed({name: ledger.changes() for name, ledger in self.ledgers.items()})
            if sum(self._saved[1:]) + len(data) <= self._saved[0]:
                self._saved.append(len(data))
                return Saved(number, self._kept(data))
        data = self._packed(
            {
                name: (None, ledger.entries)
                for name, ledger in self.ledgers.items()
                if ledger.entries
            }
        )
        self._saved = [len(data)]
        return Saved(0, self._kept(data))

    def _packed(self, ledgers: dict[str, Changes]) -> bytes:
        whole = {"v": VERSION, "facts": self.facts, "changes": ledgers}
        return zlib.compress(json.dumps(whole, separators=(",", ":")).encode("ascii"), 1)

    def _kept(self, data: bytes) -> bytes:
        for ledger in self.ledgers.values():
            ledger.kept()
        return data

    @classmethod
    def load(cls, saved: Sequence[bytes], limit_bytes: int = LIMIT_BYTES) -> Pad:
        """A pad as it was saved; facts that this version does not know are kept, new ones begin
        anew.
        """
        pad = cls(limit_bytes)
        for data in saved:
            part = json.loads(zlib.decompress(data))
            pad.facts.update(part["facts"])
            changed = (
                part["changes"]
                if "changes" in part
                else {name: (None, each) for name, each in part["ledgers"].items()}
            )
            for name, changes in changed.items():
                if name in pad.ledgers:
                    pad.ledgers[name].apply(changes)
            pad._saved.append(len(data))
        for ledger in pad.ledgers.values():
            ledger.kept()
        pad.make_room()
        return pad
