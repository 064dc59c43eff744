"""Define what backups, exports, imports, erases and retention report."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from smara.core.clock import to_ms
from smara.core.escape import to_storable
from smara.core.startup.record import asdict, dataclass, field
from smara.errors import InvalidInputError
from smara.privacy.tables import BY_NAME

ExportFormat = Literal["zip", "json", "markdown", "claude-md", "agents-md"]
FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
_SHORTEST_TEXT = 4


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A backup that was written and checked."""

    path: str
    kind: Literal["sqlite", "archive"]
    size_bytes: int
    sha256: str
    counts: Mapping[str, int]
    """Rows by table."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """An archive that was written."""

    path: str
    size_bytes: int
    sha256: str
    projects: tuple[str, ...]
    counts: Mapping[str, int]
    """Rows by table, of all projects together."""


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """An archive that was read into the store."""

    projects: tuple[str, ...]
    added: Mapping[str, int]
    """New rows by table."""
    present: Mapping[str, int]
    """Rows by table that the store had already."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Rows by table that were erased here, name a row that is nowhere, or sum up a conversation
    that went on here.
    """


@dataclass(slots=True)
class ForeignReport:
    """The records of another tool that were imported, or would be.

    ``records`` equals all the other counts together, ``threads`` apart.
    """

    path: str
    format: str
    title: str
    """The tool's name for people."""
    is_dry_run: bool = False
    records: int = 0
    added: int = 0
    """New memories, which wait for review."""
    ended: int = 0
    """Facts that no longer hold there: stored as superseded, or made so now."""
    updated: int = 0
    """Facts whose words changed there since the last import."""
    merged: int = 0
    """Facts that a memory here says already."""
    present: int = 0
    """Facts that were imported before."""
    messages: int = 0
    messages_present: int = 0
    """Messages that were imported before."""
    threads: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """Records that were not imported, by the reason."""

    def lines(self) -> list[str]:
        """Return what became of the records, for people."""
        verb = "Would import" if self.is_dry_run else "Imported"
        new = self.added + self.updated
        memories = f"{new:,} {'memory' if new == 1 else 'memories'}"
        messages = f"{self.messages:,} message{'' if self.messages == 1 else 's'}"
        counts = {
            "No longer in force there, stored as superseded": self.ended,
            "Changed there since the last import": self.updated,
            "Said by a memory here already": self.merged,
            "Imported before": self.present + self.messages_present,
        } | {f"Skipped, {reason}": count for reason, count in self.skipped.items()}
        review = ["Review them with `smara memories review`."]
        return [
            f"{verb} {memories} and {messages} from {self.title} ({self.path}).",
            *(f"  {what}: {count:,}" for what, count in counts.items() if count),
            *(review if new and not self.is_dry_run else ()),
        ]


@dataclass(frozen=True, slots=True)
class MarkdownConflict:
    """An edited entry that was changed in the store since the export."""

    id: str
    here: str
    file: str


@dataclass(slots=True)
class MarkdownReport:
    """The edits of a Markdown export, applied or planned."""

    path: str
    is_dry_run: bool = False
    updated: list[str] = field(default_factory=list)
    """The short ids of memories and tasks that were changed."""
    added: list[str] = field(default_factory=list)
    conflicts: list[MarkdownConflict] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Entries that are gone from the file; they stay here."""
    refused: list[tuple[int, str, str]] = field(default_factory=list)
    """Entries that were not taken: line, name, reason."""
    unchanged: int = 0
    is_refreshed: bool = False
    """True if the marks in the file were brought up to date."""

    def lines(self) -> list[str]:
        """Return what became of the entries, for people."""
        updated, added = ("Would update", "would add") if self.is_dry_run else ("Updated", "added")
        names = " ".join(self.updated)
        found = [
            f"{updated} {len(self.updated):,}{f' ({names})' if names else ''}, {added}"
            f" {len(self.added):,}; {self.unchanged:,} unchanged."
        ]
        if self.is_refreshed:
            found.append("The marks in the file are up to date; you can go on editing it.")
        for each in self.conflicts:
            found += [f"Not changed: {each.id} was changed here since the export."]
            found += [f"  here: {each.here}", f"  file: {each.file}"]
        found += [f"Not taken, line {line} ({name}): {why}" for line, name, why in self.refused]
        if self.missing:
            found.append(
                f"Not in the file, and still here: {' '.join(self.missing)}. `smara memories"
                " forget` and `smara tasks close` put them aside."
            )
        return found


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """A backup or an archive that was restored."""

    path: str
    kind: Literal["sqlite", "archive"]
    saved_as: str | None
    """The backup of what was there before."""
    counts: Mapping[str, int]
    undone_erases: int = 0
    """Erases that were made after the backup: what they removed is back."""


@dataclass(frozen=True, slots=True)
class EraseTarget:
    """The things to erase; several are erased together."""

    messages: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    """Threads and sessions, by id."""
    memories: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    person: str | None = None
    path: str | None = None
    """Every record that names this file, or a file in this folder."""
    text: str | None = None
    """Every record that holds this text."""
    since_ms: int | None = None
    until_ms: int | None = None
    is_project: bool = False
    is_everything: bool = False

    @property
    def is_whole(self) -> bool:
        """True if nothing of a project stays."""
        return self.is_project or self.is_everything

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of what is given; never its content."""
        return tuple(
            name for name in self.__slots__ if getattr(self, name) not in (None, (), False)
        )


def erase_target(**given: Any) -> EraseTarget:
    """Return what to erase, checked."""
    since, until = (to_ms(given.pop(name), name) for name in ("since", "until"))
    for name in ("messages", "threads", "memories", "tasks"):
        given[name] = tuple([to_storable(str(each)) for each in given[name]])
    for name in ("person", "path"):
        given[name] = given.get(name) and to_storable(str(given[name]))
    target = EraseTarget(**given, since_ms=since, until_ms=until)
    if not target.kinds:
        raise InvalidInputError("Name what to erase: a thread, a message, a person …")
    if target.text is not None and len(target.text.strip()) < _SHORTEST_TEXT:
        raise InvalidInputError(
            f"The text to erase has fewer than {_SHORTEST_TEXT} characters; it would be found"
            " almost everywhere. Give a longer one."
        )
    return target


@dataclass(frozen=True, slots=True)
class ErasePlan:
    """The rows that an erase removes, and those it leaves."""

    chosen: Mapping[str, int]
    """Rows by table that were asked for."""
    derived: Mapping[str, int]
    """Rows by table that belong to them or were made from them."""
    elsewhere: Mapping[str, int]
    """Rows by table that hold the same words and stay, because they are records of their own."""
    again: Mapping[str, int] = field(default_factory=dict)
    """Rows by table that rest on other sources too, and are made again from those alone."""

    @classmethod
    def joined(cls, plans: Sequence[ErasePlan]) -> ErasePlan:
        """Return the plans of several projects as one."""
        names = ("chosen", "derived", "elsewhere", "again")
        counts = (
            sum((Counter(getattr(each, name)) for each in plans), Counter()) for name in names
        )
        return cls(*map(dict, counts))

    @property
    def lines(self) -> list[tuple[int, str, str]]:
        """Counts, what is counted, and why, for a table."""
        reasons = {
            "chosen": "chosen",
            "derived": "made from it",
            "again": "again, without it",
            "elsewhere": "stays",
        }
        return [
            (count, BY_NAME[name].label, why)
            for kind, why in reasons.items()
            for name, count in getattr(self, kind).items()
        ]

    @property
    def total(self) -> int:
        """The number of rows that go."""
        return sum(self.chosen.values()) + sum(self.derived.values())


@dataclass(frozen=True, slots=True)
class EraseReceipt:
    """An erase that was done, and what was looked for afterwards."""

    id: str
    erased_at: int
    plan: ErasePlan
    samples: int
    """Pieces of erased words that were looked for in every file of the store."""
    traces: tuple[str, ...]
    """Files in which such a piece was found, though no record holds it."""
    out_of_reach: tuple[str, ...]
    """Where copies may be that Smara cannot reach."""
    held_by: tuple[str, ...] = ()
    """The processes that keep the files as they were, if a trace was found."""

    @property
    def is_clean(self) -> bool:
        """True if no trace was found."""
        return not self.traces


@dataclass(frozen=True, slots=True)
class TableCheck:
    """The rows of a table that were compared in both stores."""

    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """The rows of a table that a merge decided about."""

    added: int
    updated: int
    """The source's version was later."""
    same: int
    older: int
    """The target's version was later, and stayed."""
    erased: int
    """They were erased in the target, or what they belong to was."""
    conflicts: int
    """Both differ, and neither is later; the target's stays."""


@dataclass(frozen=True, slots=True)
class CopyReport:
    """A copy or a merge that was made and checked."""

    source: str
    target: str
    projects: Mapping[str, str]
    """The projects by name, each with its name in the target."""
    is_resumed: bool
    """True if it went on with a copy that had been interrupted."""
    tables: Mapping[str, TableCheck]
    """Rows and checksum by table, the same in both stores; none of a merge."""
    is_merge: bool = False
    """True if the target had projects."""
    merged: Mapping[str, MergeCounts] = field(default_factory=dict)
    """What a merge did, by table."""
    conflicts: tuple[str, ...] = ()
    """The first rows of the target that stayed though the source has others."""
    erased_in_source: tuple[str, ...] = ()
    """The first things that were erased in the source and are still in the target."""
    code_indexed: tuple[str, ...] = ()
    """Folders that the source had indexed, and that a merge has indexed again in the target."""
    code_left: tuple[str, ...] = ()
    """Those that it could not index: they are not here, or no grammars are installed."""

    @property
    def rows(self) -> int:
        """The number of rows that were copied, of all tables together."""
        merged = sum(each.added + each.updated for each in self.merged.values())
        return sum(each.rows for each in self.tables.values()) + merged

    @property
    def sha256(self) -> str:
        """One checksum for all tables; empty for a merge."""
        if not self.tables:
            return ""
        lines = "".join(f"{name} {each.sha256}\n" for name, each in sorted(self.tables.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    def lines(self, count: Callable[..., str]) -> list[str]:
        """Return the receipt for people.

        Args:
            count: Writes a number with its noun, given with its plural.
        """
        of = count(len(self.projects), "project")
        if not self.is_merge:
            resumed = ", from where it was interrupted" if self.is_resumed else ""
            shown = [
                count(self.tables[name].rows, noun, name)
                for name, noun in _NOUNS.items()
                if name in self.tables
            ]
            return [
                f"Copied {self.source}",
                f"to {self.target}{resumed}:",
                ", ".join([of, *shown, f"{self.rows:,} rows in all."]),
                "Every row was read in both stores and is equal. Checksum of all tables:",
                self.sha256,
            ]
        sums = Counter[str]()
        for each in self.merged.values():
            sums.update(asdict(each))
        added = [
            count(self.merged[name].added, noun, name)
            for name, noun in _NOUNS.items()
            if name in self.merged and self.merged[name].added
        ]
        found = [
            f"Merged {self.source}",
            f"into {self.target}: {of}.",
            f"Added: {', '.join([*added, count(sums['added'], 'row') + ' in all'])}.",
            f"Changed, because FROM had the later version: {count(sums['updated'], 'row')}.",
            f"The same in both: {count(sums['same'], 'row')}.",
        ]
        for name, words in _NOT_TAKEN.items():
            if sums[name]:
                found.append(f"{words}: {count(sums[name], 'row')}.")
        found += [f"- {each}" for each in self.conflicts]
        if self.erased_in_source:
            found.append("Erased in FROM and still in TO; `smara erase` removes them there too:")
        found += [f"- {each}" for each in self.erased_in_source]
        found += [f"Indexed the code of {each}." for each in self.code_indexed]
        if self.code_left:
            found.append("Code that is not indexed in TO; `smara code index` in its folder does:")
        return found + [f"- {each}" for each in self.code_left]


_NOUNS = {
    "messages": "message", "observations": "observation", "memories": "memory", "tasks": "task",
    "commits": "commit", "vectors": "vector",
}  # fmt: skip
_NOT_TAKEN = {
    "older": "Left as they are, because TO has the later version",
    "erased": "Not brought back, because they or what they belong to were erased in TO",
    "conflicts": "Left as they are in TO, though FROM differs and neither is later",
}


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """The limits of one kind; 0 is no limit."""

    days: int = 0
    rows: int = 0
    mib: int = 0

    @property
    def is_bounded(self) -> bool:
        """True if anything may go."""
        return bool(self.days or self.rows or self.mib)

    def __str__(self) -> str:
        limits = ((self.days, "days"), (self.rows, "rows"), (self.mib, "MiB"))
        return ", ".join(f"{most:,} {unit}" for most, unit in limits if most) or "for ever"


@dataclass(frozen=True, slots=True)
class KindReport:
    """One kind of record: its rule, and what is stored of it."""

    kind: str
    rule: RetentionRule
    rows: int | None
    """None if it took too long to measure."""
    size_bytes: int | None
    """The bytes of its values, without indexes and vectors."""
    oldest_at: int | None
    kept_at: int | None
    """When it was last brought down to its rule."""
    removed: int
    """How many rows went since the beginning."""

    def as_json(self) -> dict[str, Any]:
        """Return it as the status shows it."""
        return {
            "kind": self.kind,
            "rule": str(self.rule),
            "rows": self.rows,
            "bytes": self.size_bytes,
            "oldestAt": self.oldest_at,
            "keptAt": self.kept_at,
            "removed": self.removed,
        }
