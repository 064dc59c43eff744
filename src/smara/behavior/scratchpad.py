"""Hold bounded counts of one session while it runs.

A Pad has several ledgers, and facts. Each ledger is limited in entries and in the bytes of each,
so that a pad stays below 50 MB, and drops the least informative entry first. Text is redacted
before it is shortened and stored.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from smara.behavior.ledger import (
    BacktrackEntry,
    Changes,
    CommitEntry,
    CorrectionEntry,
    DeadEndEntry,
    DurationEntry,
    E2eEntry,
    Entry,
    ErrorEntry,
    FileLedgerEntry,
    GlobEntry,
    ImportEntry,
    Ledger,
    OutputEntry,
    PairEntry,
    ReferenceEntry,
    SearchEntry,
    SequenceEntry,
    Stored,
    TestEntry,
)
from smara.core.extract import shorten
from smara.core.startup.record import dataclass, field
from smara.secrets import redact

_MARGIN = 240
"""So many characters beyond the cut are examined, so that a secret across it is seen whole."""


def quote(text: str, longest: int) -> str:
    """Return a text's beginning as one bounded line."""
    return _quoted(text[: longest + _MARGIN], longest)


@lru_cache(maxsize=256)
def _quoted(text: str, longest: int) -> str:
    """The same errors come again and again; looking for secrets is what costs."""
    return shorten(" ".join(redact(text).text.split()), longest)


def code(text: str) -> str:
    """A text between backticks, whatever is in it."""
    return f"`{text.replace('`', chr(39))}`"


class PlanSize(NamedTuple):
    """The number of a plan's items, at first and in the end."""

    first: int
    final: int


class Todo(NamedTuple):
    """An item of the newest plan."""

    text: str
    state: str


class EventPlace(NamedTuple):
    """The place of an event: its time, then its step."""

    at_ms: int = 0
    step: int = 0


NEVER = EventPlace()


class RecentFile(NamedTuple):
    """A file that was touched a short time ago."""

    path: str
    at_ms: int
    is_edit: bool


class RecentEdit(NamedTuple):
    """An edit by the hashes of the text before and after."""

    path: str
    step: int
    before: str
    after: str


class OpenSearch(NamedTuple):
    """The last search, and the files that it named."""

    pattern: str
    step: int
    files: list[str]


class ImportChain(NamedTuple):
    """Files that import each other, and the names the last one imports."""

    files: list[str]
    names: list[str]


class OpenFailure(NamedTuple):
    """A failure that nothing has resolved yet."""

    fingerprint: str
    command: str
    step: int
    edits: list[str]
    """The files that were changed since."""
    between: list[str]
    """The commands that have worked since."""
    is_simple: bool
    is_read: bool = False
    """Whether a file was missing, and ``command`` is its path."""


class E2eFailure(NamedTuple):
    """A failed action on a running program, and the one after it."""

    action: str
    step: int
    following: str
    quote: str


@dataclass(slots=True)
class PadFacts:
    """The single numbers, flags and short lists of a session.

    The names are those of the stored form: renaming one needs a line in ``_OLD_NAMES``.
    """

    step: int = 0
    events: int = 0
    started_at: int = 0
    """The time of the first event, in milliseconds."""
    last_at: int = 0
    """The time of the newest event, in milliseconds."""
    root: str = ""
    """The folder of the repository."""
    prompt: str = ""
    """The first words of the person."""
    prompts: int = 0
    turns: int = 0
    edits: int = 0
    runs: int = 0
    failures: int = 0
    changing_runs: int = 0
    """Commands that may have changed something."""
    edit: EventPlace = NEVER
    """The last edit, or command that took edits back."""
    code_edit: EventPlace = NEVER
    """The same, of anything but prose."""
    last_source_edit: int = 0
    first_source_edit: int = 0
    first_test_edit: int = 0
    test_runs: int = 0
    last_test: int = 0
    last_test_ok: bool | None = None
    test: EventPlace = NEVER
    test_command: str = ""
    test_counts: str = ""
    """How many tests passed and failed in the last run, as far as it said."""
    commit: EventPlace = NEVER
    green_after: list[int] = field(default_factory=list)
    """How many test runs it took until each green one."""
    green_step: int = 0
    runs_so_far: int = 0
    """Test runs since the last source edit."""
    chain: list[str] = field(default_factory=list)
    """The last commands and edits, for sequences."""
    e2e_failed: E2eFailure | None = None
    commit_step: int = 0
    """The step of the last commit whose hash git has printed."""
    reviewed: bool = False
    accepted: bool = False
    cues: list[str] = field(default_factory=list)
    """The kinds of work that the first prompts ask for."""
    plan: list[str] = field(default_factory=list)
    """The hashes of all items of the plan."""
    plan_first: int = 0
    """How many items the plan had at first."""
    plans: list[PlanSize] = field(default_factory=list)
    """The sizes of earlier plans."""
    todos: dict[str, Todo] = field(default_factory=dict)
    todos_at: int = 0
    """The number of prompts when the plan was last changed."""
    plan_task: str = ""
    request: str = ""
    """The newest words of the person."""
    open_list: str = ""
    """The agent's words on what is left to do."""
    branch: str = ""
    outside: dict[str, int] = field(default_factory=dict)
    """The step at which the web or an MCP server was first read."""
    spoke_at_step: int = 0
    """The step at which the agent last spoke."""
    work_from_step: int = 0
    """The step after which the work begins that its next words are about."""
    recent_files: list[RecentFile] = field(default_factory=list)
    open_failures: list[OpenFailure] = field(default_factory=list)
    recent_edits: list[RecentEdit] = field(default_factory=list)
    open_search: OpenSearch | None = None
    open_glob: OpenSearch | None = None
    starts: dict[str, int] = field(default_factory=dict)
    """The start times of running calls, by their ids."""
    imports: list[ImportChain] = field(default_factory=list)
    run_seconds: list[float] = field(default_factory=list)

    def stored_form(self) -> Stored:
        """Return all facts by name; records become lists in JSON."""
        return {name: getattr(self, name) for name in self.__match_args__}

    def update(self, stored: Stored) -> None:
        """Update from a stored form; ignore unknown facts."""
        for name in self.__match_args__:
            if name in stored:
                value = stored[name]
                if value and name in _RECORDS:
                    value = _RECORDS[name](*value)
                elif value and name in _RECORD_LISTS:
                    # Before version 3 an open failure was a mapping with its fields in this order.
                    value = [
                        _RECORD_LISTS[name](*(each.values() if isinstance(each, dict) else each))
                        for each in value
                    ]
                elif name == "todos":
                    value = {key: Todo(*each) for key, each in value.items()}
                setattr(self, name, value)


_RECORDS = {
    "open_search": OpenSearch, "open_glob": OpenSearch, "e2e_failed": E2eFailure,
    "edit": EventPlace, "code_edit": EventPlace, "test": EventPlace, "commit": EventPlace,
}  # fmt: skip
_RECORD_LISTS = {
    "plans": PlanSize, "recent_files": RecentFile, "recent_edits": RecentEdit,
    "open_failures": OpenFailure, "imports": ImportChain,
}  # fmt: skip

_COUNTS = {"n": "count", "s": "last_step", "f": "first_step"}
_FAILURE = {"q": "quote", "since": "since_step", "cmd": "command"}
_OLD_NAMES: Mapping[str, Mapping[str, str]] = {
    "durations": {"t": "most_seconds", "b": "least_seconds", "w": "is_work", "x": "timeouts"},
    "chases": {"c": "chain"},
    "references": {"m": "modules"},
    "outputs": {"t": "tokens", "p": "peak_tokens", "pf": "peak_file", "k": "spikes"},
    "globs": {"o": "opened"},
    "backtracks": _FAILURE,
    "searches": {"a": "answers"},
    "tests": {"red": "red_step", "green": "green_step", "why": "reason", "cmd": "command",
              "at": "file", "own": "is_own"},
    "e2e": {"q": "quote"},
    "dead_ends": _FAILURE,
    "errors": {"cmd": "command", "env": "is_environment", "done": "resolved_step"},
    "corrections": {"q": "quote", "lang": "language"},
    "pairs": {"d": "apart_ms", "l": "lead", "e": "edits"},
    "files": {"r": "reads", "e": "edits", "x": "refusals", "m": "first_at", "l": "last_at",
              "es": "first_edit_step", "em": "first_edit_at", "el": "last_edit_at"},
    "facts": {"started": "started_at", "last": "last_at", "asked": "request",
              "listed": "open_list", "green_at": "green_step", "committed_at": "commit_step"},
}  # fmt: skip
"""The names that fields had in pads before version 3."""

VERSION = 4
"""Version 1 had whole ledgers instead of changes; 1 and 2 had short names, 3 a name a value."""
_SMALL_BYTES = 4_096
"""A pad of this size is stored as a whole every time."""
RECENT = 8
"""The number of the last files that are remembered in their order."""
QUOTE = 400
"""The longest quotation, in characters."""


class PadSnapshot(NamedTuple):
    """A pad's stored form: whole (0), or numbered changes."""

    number: int
    data: bytes


class Pad:
    """The scratchpad of one agent's session: ledgers, and ``facts``.

    Each ledger is made with the most entries and the most characters beside the key.
    """

    def __init__(self) -> None:
        self.durations = Ledger(DurationEntry, 400)
        self.worked = Ledger(Entry, 400)
        self.chases = Ledger(ImportEntry, 100, 2 * 900)
        self.references = Ledger(ReferenceEntry, 100, 900)
        self.outputs = Ledger(OutputEntry, 200, 300)
        self.globs = Ledger(GlobEntry, 150, 900)
        self.configs = Ledger(Entry, 50)
        self.backtracks = Ledger(BacktrackEntry, 60, 4 * QUOTE)
        self.sequences = Ledger(SequenceEntry, 400, 4 * QUOTE)
        self.searches = Ledger(SearchEntry, 300, 4 * 300)
        self.tests = Ledger(TestEntry, 200, 3 * QUOTE)
        self.e2e = Ledger(E2eEntry, 60, 3 * QUOTE)
        self.commits = Ledger(CommitEntry, 20, 6 * QUOTE)
        self.dead_ends = Ledger(DeadEndEntry, 20, 4 * QUOTE)
        self.errors = Ledger(ErrorEntry, 150, 6 * QUOTE)
        self.corrections = Ledger(CorrectionEntry, 30, 3 * QUOTE)
        self.pairs = Ledger(PairEntry, 3_000, 300)
        self.files = Ledger(FileLedgerEntry, 1_500)
        self.ledgers: dict[str, Ledger[Entry]] = dict(vars(self))
        self.facts = PadFacts()
        self._saved: list[int] = []

    @property
    def day(self) -> int:
        """The day on which it began."""
        return self.facts.started_at // 86_400_000

    @property
    def step(self) -> int:
        return self.facts.step

    def files_to_read(self) -> list[str]:
        """Return the files that were read, without those that fill a context."""
        return [path for path, each in self.files if each.reads and not each.spikes]

    def edited_files(self, after_step: int = -1) -> list[str]:
        """Return the files that were last edited after a step."""
        return [
            path for path, each in self.files if each.edits and each.last_edit_step > after_step
        ]

    def planned(self) -> PlanSize:
        """Return the planned steps, first and ever."""
        plans = [*self.facts.plans, PlanSize(self.facts.plan_first, len(self.facts.plan))]
        begun = [plan for plan in plans if plan.first]
        return PlanSize(sum(plan.first for plan in begun), sum(plan.final for plan in begun))

    def save(self) -> PadSnapshot:
        """Return what to store now: changes, or the whole."""
        number = len(self._saved) if self._saved and self._saved[0] >= _SMALL_BYTES else 0
        if number:
            data = self._pack({name: each.changes() for name, each in self.ledgers.items()})
            if sum(self._saved[1:]) + len(data) > self._saved[0]:
                number = 0
        if not number:
            ledgers = {name: each for name, each in self.ledgers.items() if len(each)}
            data = self._pack({name: each.changes(is_whole=True) for name, each in ledgers.items()})
        self._saved = [*self._saved[:number], len(data)]
        for ledger in self.ledgers.values():
            ledger.mark_stored()
        return PadSnapshot(number, data)

    def _pack(self, changes: Mapping[str, Changes]) -> bytes:
        whole = {"v": VERSION, "facts": self.facts.stored_form(), "changes": changes}
        return zlib.compress(json.dumps(whole, separators=(",", ":")).encode("ascii"), 1)

    @classmethod
    def load(cls, saved: Sequence[bytes]) -> Pad:
        """Load a saved pad; new facts have their defaults."""
        pad = cls()
        for data in saved:
            part = json.loads(zlib.decompress(data))
            if part["v"] < VERSION:
                part = _upgraded(part)
            pad.facts.update(part["facts"])
            for name, changes in part["changes"].items():
                if name in pad.ledgers:
                    pad.ledgers[name].apply(*changes)
            pad._saved.append(len(data))
        for ledger in pad.ledgers.values():
            ledger.mark_stored()
        return pad


def _upgraded(part: Stored) -> Stored:
    """Return a stored part of an earlier version with the names of this one."""
    facts = {_OLD_NAMES["facts"].get(name, name): each for name, each in part["facts"].items()}
    whole = {name: (None, entries) for name, entries in part.get("ledgers", {}).items()}
    changes = {}
    for name, (left, entries) in part.get("changes", whole).items():
        names = {**_COUNTS, **_OLD_NAMES.get(name, {})}
        changes[name] = (
            left,
            {
                key: {names.get(field, field): value for field, value in stored.items()}
                for key, stored in entries.items()
            },
        )
    return {"facts": facts, "changes": changes}
