"""Count things by key in bounded ledgers, one record a key.

A step is one tool call; a field that ends in ``_step`` is 0 for never. An entry is stored as the
list of its values, the names of the fields once a ledger: renaming one needs a line in
``scratchpad._OLD_NAMES``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic, TypeVar

from smara.core.startup.record import dataclass, field


@dataclass(slots=True)
class Entry:
    """The count of a key, and its first and last step."""

    count: int = 0
    last_step: int = 0
    first_step: int = 0


@dataclass(slots=True)
class DurationEntry(Entry):
    """The run times of a command."""

    most_seconds: float = 0.0
    least_seconds: float = 0.0
    is_work: bool = False
    """Whether it takes as long as its work takes, such as a test."""
    timeouts: int = 0


@dataclass(slots=True)
class ImportEntry(Entry):
    """The longest chain of imports that was read from a file on."""

    chain: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ReferenceEntry(Entry):
    """A web page, and the modules that were worked on."""

    modules: list[str] = field(default_factory=list)


@dataclass(slots=True)
class OutputEntry(Entry):
    """The tokens that reading a module took."""

    tokens: int = 0
    peak_tokens: int = 0
    peak_file: str = ""
    spikes: int = 0


@dataclass(slots=True)
class GlobEntry(Entry):
    """A search for files, and the file opened instead."""

    opened: str = ""


@dataclass(slots=True)
class BacktrackEntry(Entry):
    """A file whose change was reverted, with the failure before."""

    quote: str = ""
    since_step: int = 0
    command: str = ""
    line: str = ""


@dataclass(slots=True)
class SequenceEntry(Entry):
    """Commands and edits in their order."""

    steps: list[str] = field(default_factory=list)


@dataclass(slots=True)
class SearchEntry(Entry):
    """A searched pattern; how often each file was the answer."""

    answers: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class TestEntry(Entry):
    """A test that failed, and what changed until it passed."""

    __test__ = False  # not a test, whatever its name says

    red_step: int = 0
    green_step: int = 0
    reason: str = ""
    command: str = ""
    file: str = ""
    is_own: bool = False
    """Whether the session has written it: such a test fails first by design."""
    files: list[str] = field(default_factory=list)


@dataclass(slots=True)
class E2eEntry(Entry):
    """An action on a running program, and what it met."""

    kind: str = ""
    tool: str = ""
    action: str = ""
    first: str = ""
    """The action that had to come first."""
    quote: str = ""


@dataclass(slots=True)
class CommitEntry(Entry):
    """A commit: its message on one line, and its files."""

    message: str = ""
    files: list[str] = field(default_factory=list)
    at_ms: int = 0
    """When it was made; 0 once the session has replaced or dropped it."""


@dataclass(slots=True)
class DeadEndEntry(Entry):
    """A sentence that abandons an approach, with the failure before."""

    quote: str = ""
    file: str = ""
    command: str = ""
    line: str = ""
    edited: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ErrorEntry(Entry):
    """An error of a command, and what resolved it."""

    tool: str = ""
    command: str = ""
    line: str = ""
    is_environment: bool = False
    how: str = ""
    """What resolved it: another ``command``, one run ``first``, an ``edit``, another ``path``."""
    resolved_step: int = 0
    fix: str = ""
    files: list[str] = field(default_factory=list)


@dataclass(slots=True)
class CorrectionEntry(Entry):
    """A sentence in which the agent corrects a belief."""

    quote: str = ""
    file: str = ""
    wrong: str = ""
    right: str = ""
    language: str = ""


@dataclass(slots=True)
class PairEntry(Entry):
    """Two files touched close in time."""

    apart_ms: int = 0
    lead: int = 0
    """Above 0 if the first by name was mostly touched first."""
    edits: int = 0


@dataclass(slots=True)
class FileLedgerEntry(Entry):
    """The reads and edits of a file, by step and by time."""

    reads: int = 0
    edits: int = 0
    refusals: int = 0
    """Edits refused because another agent had changed the file."""
    first_at: int = 0
    last_at: int = 0
    first_edit_step: int = 0
    first_edit_at: int = 0
    last_edit_at: int = 0
    last_edit_step: int = 0
    standing: int = 0
    """Edits that were not taken back."""
    spikes: int = 0
    """Readings of very many tokens at once."""


EntryT = TypeVar("EntryT", bound=Entry, covariant=True)
Stored = Mapping[str, Any]
"""An entry or the facts as JSON has them."""
Changes = tuple[list[str] | None, Mapping[str, tuple[Any, ...]], tuple[str, ...]]
LONGEST_KEY = 300
_ENTRY_BYTES = 1_100
"""An entry of up to a dozen numbers, with its slot in the ledger."""
_LEFT_BYTES = 4 * LONGEST_KEY + 300
"""The key of an entry that has left, with the slots where changes are noted."""
_CHANCES = 6
LARGE = 1_000
"""From so many entries on, it is worth knowing which of them changed."""


class Ledger(Generic[EntryT]):
    """Counts by key.

    A caller that changes an entry of a large ledger gets it from :meth:`count` or :meth:`find`:
    only these note the change.
    """

    __slots__ = (
        "_changed", "_entry_type", "_is_large", "_is_new", "_left", "_values", "entries",
        "entry_bytes", "fields", "most",
    )  # fmt: skip

    def __init__(self, entry_type: type[EntryT], most: int, text_characters: int = 0) -> None:
        self.entries: OrderedDict[str, EntryT] = OrderedDict()
        self.most = most
        # The most that an entry takes. A character of a Python text takes up to four bytes; of an
        # entry that has left, the key stays for a while.
        self.entry_bytes = _ENTRY_BYTES + 4 * (LONGEST_KEY + text_characters) + _LEFT_BYTES
        self.fields = entry_type.__match_args__
        self._entry_type = entry_type
        self._values = attrgetter(*self.fields)
        self._is_large = most >= LARGE
        self._is_new = True
        self._changed: dict[str, None] = {}
        self._left: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[tuple[str, EntryT]]:
        return iter(self.entries.items())

    def find(self, key: str) -> EntryT | None:
        key = key[:LONGEST_KEY]
        entry = self.entries.get(key)
        if entry is not None:
            self._changed[key] = None
        return entry

    def count(self, key: str, step: int) -> EntryT:
        """Count a key once more and return its entry."""
        if len(key) > LONGEST_KEY:
            key = key[:LONGEST_KEY]
        entries = self.entries
        entry = entries.get(key)
        if entry is not None:
            entry.count += 1
            entry.last_step = step
        else:
            if len(entries) >= self.most:
                self._evict_one()
            entry = entries[key] = self._entry_type(1, step, step)
        self._changed[key] = None
        return entry

    def mark_stored(self) -> None:
        """Note that the store has it as it is."""
        self._is_new = False
        self._changed.clear()
        self._left.clear()

    def changes(self, is_whole: bool = False) -> Changes:
        """Return the changes since the last save, or everything.

        Returns:
            The keys that have left, or None when all have; the values of the entries that came
            or changed, in their order; the names of the values.
        """
        entries, values = self.entries, self._values
        if is_whole or self._is_new or not self._is_large:
            return None, {key: values(entry) for key, entry in entries.items()}, self.fields
        return list(self._left), {key: values(entries[key]) for key in self._changed}, self.fields

    def apply(
        self, left: Sequence[str] | None, entries: Mapping[str, Any], fields: Sequence[str] = ()
    ) -> None:
        """Apply the stored changes of an equal ledger; ignore unknown fields.

        Args:
            left: The keys that have left, or None when all have.
            entries: The values by key; before version 4, mappings by the names of the fields.
            fields: The names of the values.
        """
        if left is None:
            self.entries.clear()
        for key in left or ():
            self.entries.pop(key, None)
        make, names = self._entry_type, self.fields
        is_same = tuple(fields) == names
        for key, values in entries.items():
            if is_same:
                self.entries[key] = make(*values)
            else:
                stored = dict(zip(fields, values, strict=True)) if fields else values
                self.entries[key] = make(**{each: stored[each] for each in names if each in stored})

    def _evict_one(self) -> None:
        """Of the few entries that came longest ago, the one that was counted least goes."""
        entries, changed, left = self.entries, self._changed, self._left
        chances = _CHANCES
        key, entry = entries.popitem(last=False)
        while entry.count > 1 and chances:
            entries[key] = entry  # behind all others
            left[key] = None
            changed.pop(key, None)
            changed[key] = None
            key, entry = entries.popitem(last=False)
            chances -= 1
        left[key] = None
        changed.pop(key, None)
        if len(left) > self.most:  # more has changed than has not
            self._is_new = True
            left.clear()
