"""Find everything that must go with what is erased.

The walk starts at chosen rows and goes forward: to rows that belong to them, by the references of
their tables, and to what was derived from them, by the rules at the end. A rule is a method named
after the table it starts from.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from smara.core.escape import from_storable, to_storable
from smara.core.scope import Scope
from smara.database.database import Database, Row, Session, marks, parts
from smara.database.session import number
from smara.messages.models import ERASED
from smara.privacy.tables import JSON_COLUMNS, RECORDS, TableSpec

TEXTS: Mapping[str, tuple[str, ...]] = {
    "messages": ("raw_content",),
    "memories": ("content", "citation"),
    "tasks": ("title", "description", "summary"),
    "observations": ("text", "details"),
    "working_memory": ("content",),
    "compactions": ("summary",),
    "moment_receipts": ("text",),
    "framework_entries": ("entry",),
    "framework_items": ("item",),
}
"""The columns with the words of each record, by which its traces are found."""
OWN = ("messages", "memories", "tasks", "working_memory", "commits")
"""Tables of what was said or written for itself."""
COPIES = ("moment_receipts",)
"""Tables whose rows repeat the words of others; one that repeats erased words goes with them."""
_FROM_REPOSITORY = ("commits", "commit_files", "commit_state")
"""Tables that are read again from the repository: they go with their project alone."""
_COUNTED: Mapping[str, tuple[str, str]] = {
    "observer_file_nodes": ("session_count", "last_accessed_at"),
    "observer_co_access_edges": ("session_count", "last_observed_at"),
    "observer_module_files": ("session_count", "last_at"),
    "observer_module_session_counts": ("count", "last_at"),
    "observer_calibrations": ("sample_count", "last_at"),
}
"""Tables of counts: the column with the number of sessions, and that of the last one's time."""
_PATHS = ("path", "file_path", "file_a", "file_b")
SHORTEST_SAMPLE = 12
_LONGEST_SAMPLE = 48
_MOST_SAMPLES = 24

Piece = Mapping[str, Any]
"""One thing that a memory rests on, as it is stored."""


class LeftSources(NamedTuple):
    """The sources of a memory that stay."""

    evidence: list[Piece]
    session_ids: list[str]
    texts: list[str]


class Walk:
    """The rows of one project that an erase removes."""

    def __init__(self, database: Database, session: Session, scope: Scope) -> None:
        self.database = database
        self.session = session
        self.scope = scope
        self.columns = database.tables(session)
        self.rows: dict[str, set[int]] = {table.name: set() for table in RECORDS}
        """Numbers of the rows that go, by table."""
        self.loose: list[tuple[str, str, Sequence[Any]]] = []
        """Conditions for rows without numbers: table, condition on ``t``, values."""
        self.renamed: set[int] = set()
        """Threads that stay without their title and metadata."""
        self.quotes: dict[int, set[str]] = {}
        """Texts to take out of what frameworks keep beside their entries, by stream."""
        self.sessions: set[str] = set()
        self.rewound: dict[tuple[int, int], int] = {}
        """The first message to observe again, by record and thread."""
        self.generations: dict[int, int] = {}
        """The first generation of reflections that goes, by record."""
        self.touched: set[int] = set()
        """Memories that lose a source."""
        self.renewed: dict[int, LeftSources] = {}
        """Memories that stay, with the sources that are left."""
        self.partial: set[int] = set()
        """Memories that go, and may be learned again from the sources that are left."""
        self.named: set[int] = set()
        """Memories that were chosen themselves: what they replaced is not put back in force."""
        self.patterns: dict[str, dict[str, Any]] = {}
        """Error patterns that stay, as the sessions that are left show them, by column."""
        self.reread: set[int] = set()
        """Threads to read again for decisions."""
        self.chosen: Counter[str] = Counter()

    def select(self, table: str, where: str, *values: Any) -> set[int]:
        """Return the numbers of rows by a condition on ``t``."""
        statement = (
            f"SELECT t.no FROM {table} t WHERE t.project_no = {int(self.scope.project_no)}"
            f" AND {where}"
        )
        return {int(row[0]) for row in self.session.all(statement, values)}

    def among(
        self, table: str, column: str, names: Iterable[Any], columns: str = "t.no"
    ) -> list[Row]:
        """Return what rows show whose column is among some values."""
        return [
            row
            for part in parts(sorted(names))
            for row in self.session.all(
                f"SELECT {columns} FROM {table} t WHERE t.project_no ="
                f" {int(self.scope.project_no)} AND t.{column} IN ({marks(len(part))})",
                part,
            )
        ]

    def numbers(self, table: str, column: str, names: Iterable[Any]) -> set[int]:
        """Return the numbers of rows whose column is among some values."""
        return {int(row[0]) for row in self.among(table, column, names)}

    def choose(self, table: str, numbers: Iterable[int]) -> None:
        """Start at rows: they go, and all that follows from them."""
        before = set(self.rows[table])
        self.add(table, numbers)
        new = self.rows[table] - before
        self.chosen[table] += len(new)
        if table == "memories":
            # What was merged into a memory says the same.
            merged = self.among("memories", "replaced_by_no", new, "t.no, t.deprecated_because")
            self.add(table, {no for no, why in merged if why == "merged"})
            self.named |= new

    def choose_session(self, session_id: str) -> None:
        """Start at a session: its conversation and what was learned from it."""
        self.choose("threads", self.select("threads", "t.id = ?", session_id))
        self.add_sessions({session_id})

    def has_session(self, session_id: str) -> bool:
        """Return True if anything of a session is stored."""
        return any(
            table.session is not None
            and self.count(table.name, f"t.{table.session} = ?", [session_id])
            for table in RECORDS
        )

    def choose_person(self, person: str) -> None:
        """Start at what belongs to a person."""
        for table in RECORDS:
            if table.people and self.is_numbered(table):
                self.choose(table.name, self.select(table.name, f"t.{table.people[0]} = ?", person))

    def choose_text(self, text: str) -> None:
        """Start at every row that holds a text, whatever its case."""
        for table in RECORDS:
            where, values = self._holding(table, text)
            if table.name == "threads":
                self.renamed |= self.select("threads", where, *values)
            elif table.name == "framework_streams":
                self._quote(self.select(table.name, where, *values), text)
            elif table.name not in _FROM_REPOSITORY:
                self.choose_by(table, where, values)

    def choose_time(self, since_ms: int | None, until_ms: int | None) -> None:
        """Start at every row of a time."""
        since = -(2**62) if since_ms is None else since_ms
        until = 2**62 if until_ms is None else until_ms
        for table in RECORDS:
            if table.times and table.name not in _FROM_REPOSITORY:
                where = f"t.{table.times[0]} >= ? AND t.{table.times[-1]} < ?"
                where += f" AND t.raw_content <> '{ERASED}'" if table.name == "messages" else ""
                self.choose_by(table, where, [since, until])

    def choose_path(self, path: str) -> None:
        """Start at every row that names a file or folder."""
        folder = path.rstrip("/")
        for table in RECORDS:
            for column in self.columns[table.name]:
                if table.name not in _FROM_REPOSITORY and column.name in _PATHS:
                    inside = re.sub(r"([!%_])", r"!\1", folder) + "/%"
                    where = f"(t.{column.name} = ? OR t.{column.name} LIKE ? ESCAPE '!')"
                    self.choose_by(table, where, [folder, inside])
        for name, columns in (
            ("memories", "files"),
            ("observations", "files"),
            ("memories", "evidence"),
        ):
            rows = self.session.all(
                f"SELECT no, {columns} FROM {name} WHERE project_no = {int(self.scope.project_no)}"
                f" AND {columns} <> '[]'"
            )
            found = {
                no
                for no, text in rows
                for each in json.loads(text)
                if f"{each.get('path') if isinstance(each, dict) else each}/".startswith(
                    f"{folder}/"
                )
            }
            self.choose(name, found)

    def choose_project(self) -> None:
        """Start at every row."""
        for table in RECORDS:
            self.choose_by(table, "1 = 1", [])
        self.chosen = Counter({name: len(found) for name, found in self.rows.items()})
        for name, where, values in self.loose:
            self.chosen[name] = self.count(name, where, values)

    def choose_by(self, table: TableSpec, where: str, values: Sequence[Any]) -> None:
        """Start at the rows of a table by a condition on ``t``."""
        if self.is_numbered(table):
            self.choose(table.name, self.select(table.name, where, *values))
            return
        count = self.count(table.name, where, values)
        if count:
            self.loose.append((table.name, where, values))
            self.chosen[table.name] += count

    def is_numbered(self, table: TableSpec) -> bool:
        """Return True if a table numbers its rows."""
        return any(each.name == "no" for each in self.columns[table.name])

    def count(self, table: str, where: str, values: Sequence[Any]) -> int:
        """Count rows by a condition on ``t``."""
        statement = (
            f"SELECT count(*) FROM {table} t WHERE t.project_no = {int(self.scope.project_no)}"
            f" AND {where}"
        )
        return number(self.session, statement, values)

    def add(self, table: str, numbers: Iterable[int]) -> None:
        """Add rows, with what belongs to them or was derived."""
        new = set(numbers) - self.rows[table]
        if not new:
            return
        self.rows[table] |= new
        for child in filter(self.is_numbered, RECORDS):
            required = {each.name for each in self.columns[child.name] if each.is_required}
            for column, target in child.refs.items():
                is_needed = column == child.owner or column in required
                if target == table and is_needed:
                    self.add(child.name, self.numbers(child.name, column, new))
                elif not isinstance(target, str) and table in target.values():
                    found = self.among(child.name, column, new, "t.no, t.owner")
                    self.add(child.name, {no for no, owner in found if target[owner] == table})
        rule = getattr(self, f"_from_{table}", None)
        if rule is not None:
            rule(new)

    def samples(self) -> list[str]:
        """Return pieces of the words that go, to look for afterwards."""
        found: dict[str, None] = {}
        for table, columns in TEXTS.items():
            shown = ", ".join(f"t.{name}" for name in columns)
            for row in self.among(table, "no", sorted(self.rows[table])[:200], shown):
                for text in filter(None, row):
                    # A piece is looked for in files and by search: neither takes half a character.
                    for line in re.split(r"[\r\n\x00\ud800-\udfff]+", from_storable(text)):
                        piece = line.strip()[:_LONGEST_SAMPLE].strip()
                        if len(piece) >= SHORTEST_SAMPLE:
                            found[piece] = None
        step = max(1, len(found) // _MOST_SAMPLES)
        return list(found)[::step][:_MOST_SAMPLES]

    def follow_copies(self, samples: Sequence[str]) -> dict[str, int]:
        """Add copies of the samples; count by table what stays."""
        staying: dict[str, set[int]] = {table.name: set() for table in RECORDS}
        # A framework's session repeats words in entries without a message: titles, last prompts.
        gone = self.among("framework_entries", "no", self.rows["framework_entries"], "t.stream_no")
        sessions = {int(row[0]) for row in gone}
        near = self.among("framework_entries", "stream_no", sessions, "t.no, t.message_no")
        silent = {int(no) for no, message_no in near if message_no is None}
        for sample in samples:
            found = {
                table.name: self.select(table.name, *self._where(table, sample))
                for table in filter(self.is_numbered, RECORDS)
            }
            # What a copy says may have been said by others as well.
            is_own = all(found[name] <= self.rows[name] for name in OWN)
            for name, numbers in found.items():
                if name in COPIES and is_own:
                    self.add(name, numbers)
                staying[name] |= numbers
            # How an entry begins as JSON says nothing.
            if not sample.startswith('{"'):
                self._quote(found["framework_streams"] & sessions, sample)
                self.add("framework_entries", found["framework_entries"] & silent)
        # What an agent noted of it in a framework's store is the application's to delete.
        names = (*OWN, "framework_items")
        counts = {name: len(staying[name] - self.rows[name]) for name in names}
        return {name: count for name, count in counts.items() if count}

    def _quote(self, streams: Iterable[int], text: str) -> None:
        for no in streams:
            self.quotes.setdefault(no, set()).add(text.lower())

    def _where(self, table: TableSpec, text: str) -> tuple[Any, ...]:
        where, values = self._holding(table, text)
        return where, *values

    def _holding(self, table: TableSpec, text: str) -> tuple[str, list[str]]:
        """Return the condition for rows that hold a text, with its values."""
        terms, values = ["1 = 0"], []
        for column in self.columns[table.name]:
            if column.type == "string" and column.name not in table.refs:
                for form in sorted({to_storable(text.lower()), *_escaped(column.name, text)}):
                    terms.append(f"lower(t.{column.name}) LIKE ? ESCAPE '!'")
                    values.append("%" + re.sub(r"([!%_])", r"!\1", form) + "%")
        return f"({' OR '.join(terms)})", values

    # What was derived from what.

    def _from_threads(self, numbers: set[int]) -> None:
        names = {str(row[0]) for row in self.among("threads", "no", numbers, "t.id")}
        self.add("threads", self.numbers("threads", "parent_id", names))
        self.add(
            "observation_records",
            self.numbers("observation_records", "thread_no", numbers),
        )
        self.add("observations", self.numbers("observations", "thread_no", numbers))
        self.add("working_memory", self.numbers("working_memory", "thread_id", names))
        self.add_sessions(names)

    def _from_messages(self, numbers: set[int]) -> None:
        rows = self.among("messages", "no", numbers, "t.thread_no, t.seq, t.id")
        by_thread: dict[int, list[int]] = {}
        for thread_no, seq, _ in rows:
            if thread_no not in self.rows["threads"]:
                by_thread.setdefault(thread_no, []).append(seq)
        for thread_no, numbers_of in by_thread.items():
            self._unobserve(thread_no, numbers_of)
        self._from_evidence("message_id", {str(row[2]) for row in rows})
        self._add_receipts("messages", numbers)
        entries = self.numbers("framework_entries", "message_no", numbers)
        self.add("framework_entries", entries)
        # What a run's state holds cannot be read here: it goes with any message of its thread.
        self.add("framework_states", self.numbers("framework_states", "thread_no", set(by_thread)))

    def _unobserve(self, thread_no: int, seqs: Sequence[int]) -> None:
        """Add what was made of messages of a thread that stays."""
        for no, start, end in self.among(
            "compactions", "thread_no", [thread_no], "t.no, t.start_seq, t.end_seq"
        ):
            if any(start <= seq <= end for seq in seqs):
                self.add("compactions", {no})
        shown = "t.record_no, t.first_seq, t.last_seq"
        for record_no, first, last in self.among(
            "observation_batches", "thread_no", [thread_no], shown
        ):
            if any(first <= seq <= last for seq in seqs):
                key = (record_no, thread_no)
                self.rewound[key] = min(first, self.rewound.get(key, first))
        for (record_no, thread), first in list(self.rewound.items()):
            if thread == thread_no:
                # What came later is observed again too: an observer reads on from one place.
                where = "t.record_no = ? AND t.thread_no = ? AND t.first_seq >= ?"
                for table in ("observation_batches", "observations"):
                    self.add(table, self.select(table, where, record_no, thread, first))

    def _from_observations(self, numbers: set[int]) -> None:
        shown = "t.id, t.record_no, t.reflected_into"
        rows = self.among("observations", "no", numbers, shown)
        for _, record_no, generation in rows:
            if generation is not None and record_no not in self.rows["observation_records"]:
                first = min(generation, self.generations.get(record_no, generation))
                self.generations[record_no] = first
                where = "t.record_no = ? AND t.kind = 'reflection' AND t.generation >= ?"
                self.add("observations", self.select("observations", where, record_no, first))
        self._from_evidence("observation_id", {str(row[0]) for row in rows})
        self._add_receipts("observations", numbers)

    def _from_evidence(self, name: str, ids: set[str]) -> None:
        """Add memories that rest on messages or observations."""
        rows = self.session.all(
            "SELECT no, evidence FROM memories"
            f" WHERE project_no = {int(self.scope.project_no)} AND evidence <> '[]'"
        )
        self.touched |= {
            no for no, text in rows if any(each.get(name) in ids for each in json.loads(text))
        }

    def _from_memories(self, numbers: set[int]) -> None:
        found = self.among("memory_relations", "target_no", numbers, "t.memory_no, t.type")
        self.touched |= {no for no, kind in found if kind == "derived_from"}
        # A decision tells what it replaced.
        later = self.among("memories", "no", numbers, "t.replaced_by_no")
        newer = self.among("memories", "no", {row[0] for row in later} - {None}, "t.no, t.source")
        self.touched |= {no for no, source in newer if source == "said"}
        related = self.numbers("memory_relations", "target_no", numbers)
        self.add("memory_relations", related)
        self._add_receipts("memories", numbers)

    def _from_tasks(self, numbers: set[int]) -> None:
        self._add_receipts("tasks", numbers)

    def _add_receipts(self, table: str, numbers: set[int]) -> None:
        """Add what was told of rows."""
        names = {str(row[0]) for row in self.among(table, "no", numbers, "t.id")}
        items = self.among("moment_items", "item_id", names, "t.receipt_no")
        self.add("moment_receipts", {row[0] for row in items})

    def _from_behavior_sessions(self, numbers: set[int]) -> None:
        rows = self.among("behavior_findings", "session_no", numbers, "t.signal_no, t.found_at")
        found: dict[int, int] = dict(rows)
        shown = "t.no, t.memory_id, t.promoted_at"
        names = {
            str(memory_id)
            for no, memory_id, promoted_at in self.among("behavior_signals", "no", found, shown)
            # What was found later did not make it what it is.
            if memory_id is not None and found[no] <= (promoted_at or 0)
        }
        self.touched |= self.numbers("memories", "id", names)

    def add_sessions(self, names: set[str]) -> None:
        """Add what was learned from sessions, and what they were told."""
        new = names - self.sessions
        if not new:
            return
        self.sessions |= new
        for table in RECORDS:
            if table.session not in (None, "id"):
                if table.name == "memories":
                    self.touched |= self.numbers(table.name, str(table.session), new)
                elif self.is_numbered(table):
                    self.add(table.name, self.numbers(table.name, str(table.session), new))
                else:
                    where = f"t.{table.session} IN ({marks(len(new))})"
                    self.loose.append((table.name, where, sorted(new)))
        spans = "t.started_at, t.last_event_at, t.finalized_at"
        for first, *last in self.among("behavior_sessions", "session_id", new, spans):
            for name, (count, time) in _COUNTED.items():
                # What no other session touched is known from this one alone.
                where = f"t.{count} = 1 AND t.{time} BETWEEN ? AND ?"
                self.loose.append((name, where, [first, max(filter(None, last))]))
        rows = self.session.all(
            "SELECT no, session_ids FROM memories"
            f" WHERE project_no = {int(self.scope.project_no)} AND session_ids <> '[]'"
        )
        self.touched |= {no for no, text in rows if new & set(json.loads(text))}


def _escaped(column: str, text: str) -> set[str]:
    """Return how JSON may write a text."""
    if column not in JSON_COLUMNS:
        return set()
    forms = (json.dumps(text, ensure_ascii=is_ascii)[1:-1].lower() for is_ascii in (True, False))
    return set(map(to_storable, forms))
