"""Hold bounded counts of one session while it runs.

A Pad has several ledgers. Each ledger is limited in entries and bytes and drops the
least informative entry first. Text is redacted before it is shortened and stored.
"""

from __future__ import annotations

import json
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, NamedTuple

from smara.core.extract import shorten
from smara.secrets import redact

_MARGIN = 240
"""So much more than is kept is looked at: a secret that the cut would halve is seen whole."""


def quote(text: str, longest: int) -> str:
    """Return a text's beginning as one bounded line."""
    return _quoted(text[: longest + _MARGIN], longest)


@lru_cache(maxsize=256)
def _quoted(text: str, longest: int) -> str:
    """The same errors come again and again; looking for secrets is what costs."""
    line = " ".join(redact(text).text.split())
    return shorten(line, longest)


def code(text: str) -> str:
    """A text between backticks, whatever is in it."""
    return f"`{text.replace('`', chr(39))}`"


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
    """Counts by key.

    ``n`` of an entry says how often, ``s`` at which step it was last seen. A caller that changes an
    entry of a large ledger gets it from :meth:`count` or :meth:`find`: only these note the change.
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
        """Count a key once more and return its entry."""
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
        """Drop all but a share of the entries, least telling first."""
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
        """Return the changes since the last save, or everything."""
        if self._is_new or not self._is_large:
            return None, self.entries
        return list(self._left), {key: self.entries[key] for key in self._changed}

    def apply(self, changes: Changes) -> None:
        """Apply the changes of an equal ledger."""
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


class PadSnapshot(NamedTuple):
    """A pad's stored form: whole (0), or numbered changes."""

    number: int
    data: bytes


@dataclass(slots=True)
class PadFacts:
    """The single numbers, flags and short lists of a session.

    A step is one tool call; fields that end in a moment of the work hold its step, 0 for never.
    The names are those of the stored form: renaming one loses it for sessions that are open.
    """

    step: int = 0
    events: int = 0
    tokens: int = 0
    started: int = 0
    """The time of the first event, in milliseconds."""
    last: int = 0
    """The time of the newest event, in milliseconds."""
    root: str = ""
    """The folder of the repository."""
    prompt: str = ""
    """The first words of the person."""
    prompts: int = 0
    turns: int = 0
    reads: int = 0
    edits: int = 0
    runs: int = 0
    fetches: int = 0
    failures: int = 0
    last_edit: int = 0
    last_source_edit: int = 0
    first_source_edit: int = 0
    first_test_edit: int = 0
    test_runs: int = 0
    last_test: int = 0
    last_test_ok: bool | None = None
    last_commit: int = 0
    green_after: list[int] = field(default_factory=list)
    """How many test runs it took until each green one."""
    green_at: int = 0
    runs_so_far: int = 0
    """Test runs since the last source edit."""
    chain: list[str] = field(default_factory=list)
    """The last commands and edits, for sequences."""
    e2e_failed: Any = None
    committed_at: int = 0
    reviewed: bool = False
    accepted: bool = False
    cues: list[str] = field(default_factory=list)
    """The kinds of work that the first prompts ask for."""
    plan: list[str] = field(default_factory=list)
    """The hashes of all items of the plan."""
    plan_first: int = 0
    """How many items the plan had at first."""
    plans: list[Any] = field(default_factory=list)
    """(items at first, items in the end) of earlier plans."""
    todos: dict[str, Any] = field(default_factory=dict)
    todos_at: int = 0
    plan_task: str = ""
    asked: str = ""
    """The newest words of the person."""
    listed: str = ""
    """What the agent said is left to do."""
    branch: str = ""
    outside: dict[str, int] = field(default_factory=dict)
    """The step at which the web or an MCP server was first read."""
    recent_files: list[Any] = field(default_factory=list)
    """(path, time, whether it was edited) of the last files."""
    recent_tools: list[str] = field(default_factory=list)
    open_failures: list[Any] = field(default_factory=list)
    """Failures that nothing has ended yet."""
    recent_edits: list[Any] = field(default_factory=list)
    """(path, step, hash before, hash after) of the last edits."""
    open_search: Any = None
    """(pattern, step, files it named) of the last search."""
    open_glob: Any = None
    starts: dict[str, int] = field(default_factory=dict)
    """When each running call began, by its id."""
    imports: list[Any] = field(default_factory=list)
    """(chain of files, names that the last one imports)."""
    said: list[Any] = field(default_factory=list)
    run_seconds: list[float] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def update(self, stored: Mapping[str, Any]) -> None:
        """Update from a stored form; ignore unknown facts."""
        for each in fields(self):
            if each.name in stored:
                setattr(self, each.name, stored[each.name])


class Pad:
    """The scratchpad of one agent's session.

    ``facts`` are single numbers, flags and short lists.
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
        self.facts = PadFacts()

    def __getitem__(self, name: str) -> Ledger:
        return self.ledgers[name]

    @property
    def day(self) -> int:
        """The day on which it began."""
        return int(self.facts.started) // 86_400_000

    @property
    def step(self) -> int:
        return int(self.facts.step)

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
        return not self.facts.events

    def make_room(self) -> None:
        """Drop the least valuable entries until within the limit."""
        while self.held_bytes > self.limit_bytes:
            fullest = next((each for each in self.ledgers.values() if len(each) > 8), None)
            if fullest is None:
                fullest = max(self.ledgers.values(), key=lambda each: each.bytes)
                if not len(fullest):
                    return
            fullest.shrink(0.5)

    def planned(self) -> tuple[int, int]:
        """Return the planned steps, first and ever."""
        plans = [*self.facts.plans, [self.facts.plan_first, len(self.facts.plan)]]
        known = [plan for plan in plans if plan[0]]
        return sum(int(plan[0]) for plan in known), sum(int(plan[1]) for plan in known)

    def save(self) -> PadSnapshot:
        """Return what to store now: changes, or the whole."""
        number = len(self._saved)
        if number and self._saved[0] >= _SMALL_BYTES:
            data = self._packed({name: ledger.changes() for name, ledger in self.ledgers.items()})
            if sum(self._saved[1:]) + len(data) <= self._saved[0]:
                self._saved.append(len(data))
                return PadSnapshot(number, self._kept(data))
        data = self._packed(
            {
                name: (None, ledger.entries)
                for name, ledger in self.ledgers.items()
                if ledger.entries
            }
        )
        self._saved = [len(data)]
        return PadSnapshot(0, self._kept(data))

    def _packed(self, ledgers: dict[str, Changes]) -> bytes:
        whole = {"v": VERSION, "facts": self.facts.to_json(), "changes": ledgers}
        return zlib.compress(json.dumps(whole, separators=(",", ":")).encode("ascii"), 1)

    def _kept(self, data: bytes) -> bytes:
        for ledger in self.ledgers.values():
            ledger.kept()
        return data

    @classmethod
    def load(cls, saved: Sequence[bytes], limit_bytes: int = LIMIT_BYTES) -> Pad:
        """Load a saved pad; new facts have their defaults."""
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
