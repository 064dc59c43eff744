"""Merge a project of one store into the same project of another.

Rows are the same if they have the same id, or the same content: a message that was imported on two
machines is one. Where both have a row and differ, the later change is taken; its journal is the
union of both, in the order of time. What cannot be decided so stays as it is in the target and is
reported. Rows go over in batches, and a merge that was cut short is called again: what is there
already is passed over.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

from smara.core.escape import from_storable
from smara.core.scope import Scope
from smara.core.startup.record import dataclass, field
from smara.core.text import words
from smara.database.database import PART, Database, Session, marks, parts
from smara.database.fulltext import IndexRow, RecordKind, RecordTerms, row_of
from smara.database.vectors import VectorKind
from smara.errors import ConflictError
from smara.messages.models import ERASED
from smara.messages.parts import pointer_in
from smara.privacy.derive import put_totals
from smara.privacy.load import COUNTED, Row, RowAdder, RowCounts
from smara.privacy.models import MergeCounts
from smara.privacy.pointers import IS_POINTER, refuse_texts, same_text
from smara.privacy.rows import RowReader
from smara.privacy.streams import message_terms, record_terms
from smara.privacy.tables import BY_NAME, RECORDS, TableSpec
from smara.privacy.vector_copy import VectorCopy

Verdict = Literal["added", "updated", "filled", "same", "kept", "conflicts"]
_PARTS_OF = frozenset(
    {
        "task_dependencies", "task_labels", "memory_keys", "memory_relations", "code_anchors",
        "code_anchored", "behavior_findings", "behavior_pads", "observation_cursors", "decisions",
    }
)  # fmt: skip
"""Rows that belong to one record and follow the verdict on it."""
_OBSERVED = frozenset({"observation_batches", "observations"})
_JOURNALS = ("task_events", "memory_events")
_NATURAL: Mapping[str, tuple[str, ...]] = {
    "working_memory": ("scope", "resource_id", "thread_id"),
    "observation_records": ("lookup_key",),
}
"""What tells rows apart whose ids each store makes for itself."""
_NOT_COMPARED: Mapping[str, frozenset[str]] = {
    "tasks": frozenset({"short_id", "key", "bare_key"}),
    "memories": frozenset({"short_id", "key", "bare_key"}),
    "working_memory": frozenset({"id", "version"}),
}
"""Columns that may differ in the target for good."""
_LEFT = frozenset({"messages", "commits", "commit_state", "decision_cursors", "memory_sessions"})
"""Tables whose rows are the same if their keys are: the target's are as good."""
_KINDS: Mapping[str, tuple[RecordKind, VectorKind | None]] = {
    "tasks": ("task", "task"),
    "observations": ("observation", "observation"),
    "memories": ("memory", "memory"),
    "working_memory": ("working", "working"),
    "commits": ("commit", None),
    "framework_items": ("item", None),
    "decisions": ("decision", None),
}
_MOST_NAMED = 20


@dataclass
class Course:
    """The findings of a merge of one project."""

    ours: set[tuple[str, int]] = field(default_factory=set)
    """Records of which the target's version stays."""
    theirs: set[tuple[str, int]] = field(default_factory=set)
    """Records of which the source's version is taken."""
    mapped: set[tuple[str, int]] = field(default_factory=set)
    """Records that are under another id in the source."""
    shifted: set[int] = field(default_factory=set)
    """Threads in which messages have other places than in the source."""
    counts: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    conflicts: list[str] = field(default_factory=list)
    later: list[tuple[str, str, int, int]] = field(default_factory=list)
    """Table, column, number and time: written when all that belongs to the rows is there."""
    loops: list[tuple[TableSpec, Row, dict[str, Any]]] = field(default_factory=list)
    journals: set[tuple[str, int]] = field(default_factory=set)
    """Records whose events may be out of order."""


class Merge:
    """Merges one project into another, batch by batch."""

    def __init__(
        self,
        source: tuple[Database, Session, Scope],
        target: tuple[Database, Scope],
    ) -> None:
        self._database, self._session, self._scope = source
        self._target, self._there = target
        self._reader = RowReader(self._database, self._session, self._scope)
        with self._target.read() as session:
            self._columns = self._target.tables(session)

    def require_no_conflict(self) -> None:
        """Refuse a target that has other words for a message.

        Raises:
            ConflictError: If it has; nothing was written then.
            InvalidInputError: If it keeps vectors only, and the source has texts.
        """
        with self._target.read() as session:
            note = "SELECT 1 FROM project_notes WHERE kind = 'vectors' AND project_no = ?"
            has_no_texts = session.one(note, (self._there.project_no,)) is not None
        if has_no_texts and self._session.one(
            f"SELECT 1 FROM messages WHERE project_no = {int(self._scope.project_no)}"
            f" AND raw_content <> '{ERASED}' AND (parts IS NULL OR NOT {IS_POINTER}) LIMIT 1"
        ):
            refuse_texts()
        rows = self._session.each(
            "SELECT m.id, m.raw_content, m.parts FROM messages m WHERE m.project_no ="
            f" {int(self._scope.project_no)} ORDER BY m.no"
        )
        while page := list(islice(rows, PART)):
            batch = {str(row[0]): same_text(row[1], row[2]) for row in page}
            with self._target.read() as session:
                found = session.all(
                    f"SELECT id, raw_content, parts, project_no FROM messages WHERE id IN"
                    f" ({marks(len(batch))})",
                    list(batch),
                )
            for name, stored, layout, project_no in found:
                text = same_text(stored, layout)
                is_erased = ERASED in (text, batch[name])
                if (text != batch[name] and not is_erased) or project_no != self._there.project_no:
                    raise ConflictError(
                        f"Message {name} is in TO with other words or in another project, so that"
                        " these are not two stores of one project. Copy to a new file or schema;"
                        " nothing was changed."
                    )

    def run(self) -> Course:
        """Add and change what is missing or older in the target."""
        course = Course()
        vectors = VectorCopy(
            self._database, self._session, self._target, (self._scope, self._there)
        )
        for table in RECORDS:
            if table.name == "working_memory_versions":
                self._merge_versions(course)
                continue
            rows = self._reader.rows(table)
            while batch := list(islice(rows, PART)):
                with self._target.write() as session:
                    part = _MergeBatch(self, session, course)
                    part.merge(table, batch, vectors)
        with self._target.write() as session:
            part = _MergeBatch(self, session, course)
            for table, row, targets in course.loops:
                part.close_loop(table, row, targets)
            for name, owner_no in sorted(course.journals):
                part.sort_events(BY_NAME[name], owner_no)
            for name, column, no, at in course.later:
                session.run(f"UPDATE {name} SET {column} = ? WHERE no = ?", (at, no))
        return course

    def _merge_versions(self, course: Course) -> None:
        """Give each page the versions of both stores, in the order of time."""
        spec = BY_NAME["working_memory_versions"]
        by_page: dict[Any, list[Row]] = {}
        for row in self._reader.rows(spec):
            by_page.setdefault(row["memory_id"], []).append(row)
        for rows in by_page.values():
            with self._target.write() as session:
                part = _MergeBatch(self, session, course)
                ready, _ = part.resolved(spec, rows)
                if ready:
                    part.merge_versions(spec, ready)


class _MergeBatch(RowAdder):
    """Merges rows within one transaction of the target."""

    def __init__(self, merge: Merge, session: Session, course: Course) -> None:
        self._merge = merge
        self._course = course
        counts = RowCounts[Counter[str]](Counter(), Counter(), Counter())
        super().__init__(merge._target, session, merge._there, merge._columns, counts)
        self._shifted = course.shifted

    def merge(self, table: TableSpec, batch: Sequence[Row], vectors: VectorCopy) -> None:
        """Decide about each row, and write what is new or later."""
        ready, loops = self.resolved(table, batch)
        counts = self._course.counts[table.name]
        counts["erased"] += len(batch) - len(ready)
        found: dict[Verdict, list[tuple[Row, Row | None]]] = defaultdict(list)
        for row, old in zip(ready, self._existing(table, ready), strict=True):
            verdict = self._verdict(table, row, old)
            found[verdict].append((row, old))
            counts[verdict] += 1
            if verdict == "conflicts":
                self._report(table, row)
        for row, old in found["updated"]:
            self._update(table, row, old or {}, is_whole=True)
        for row, old in found["filled"]:
            self._update(table, row, old or {}, is_whole=False)
        added = [row for row, _ in found["added"]]
        if table.name == "messages":
            self._place(added)
        for row in added if table.name in ("tasks", "memories") else ():
            self._name(table, row)
        self._insert(table, added)
        changed = [row for row, _ in (*found["added"], *found["updated"], *found["filled"])]
        ids = {id(row) for row in changed}
        self._course.loops += [
            (table, row, targets)
            for row, targets in loops
            if id(row) in ids or table.name in _JOURNALS
        ]
        if table.name in _JOURNALS:
            self._course.journals |= {(table.name, int(row[str(table.owner)])) for row in added}
        if table.name == "messages":
            self._index_messages(added, vectors)
        elif table.name in _KINDS and changed:
            self._index_records(table, changed, vectors)
        if table.name in ("tasks", "task_dependencies", "memories") and changed:
            put_totals(self._database, self._session, self._scope)

    def resolved(
        self, table: TableSpec, batch: Sequence[Row]
    ) -> tuple[list[Row], list[tuple[Row, dict[str, Any]]]]:
        """Return rows with the target's numbers, and their loops."""
        loops: list[tuple[Row, dict[str, Any]]] = []
        return self._resolve(table, batch, loops), loops

    def close_loop(self, table: TableSpec, row: Row, targets: Mapping[str, Any]) -> None:
        """Write the references of a row to others of its table."""
        self._close_loop(table, row, targets)

    def _unerased(self, table: TableSpec, batch: Sequence[Row]) -> list[Row]:
        left = super()._unerased(table, batch)
        if table.name != "messages" or len(left) == len(batch):
            return left
        there = {row["id"] for row in left}
        # An empty message holds the place of an erased one, in every copy.
        return [row for row in batch if row["id"] in there or row["raw_content"] == ERASED]

    def _numbers(self, target: TableSpec, keys: Sequence[Any]) -> dict[Any, int]:
        found = super()._numbers(target, keys)
        if target.name not in ("messages", "memories", *_NATURAL):
            return found
        for key in {key for key in keys if key is not None} - found.keys():
            row = self._source_row(target, key)
            old = row and self._identical(target, row)
            if old:
                found[key] = old["no"]
        return found

    def _source_row(self, table: TableSpec, key: str) -> Row | None:
        """Return a row of the source with the numbers of the target, as far as they are there."""
        merge, names = self._merge, [each.name for each in self._columns[table.name]]
        columns, column = ", ".join(names), table.key[0]
        found = merge._session.one(
            f"SELECT {columns} FROM {table.name} WHERE project_no = ? AND {column} = ?",
            (merge._scope.project_no, key),
        )
        if found is None:
            return None
        row = dict(zip(names, found, strict=True))
        if table.name == "messages":
            thread = merge._session.one("SELECT id FROM threads WHERE no = ?", (row["thread_no"],))
            there = super()._numbers(BY_NAME["threads"], [thread[0]] if thread else [])
            row["thread_no"] = next(iter(there.values()), None)
        return row

    def _existing(self, table: TableSpec, rows: Sequence[Row]) -> list[Row | None]:
        """Return the row of the target that each row is, by key or by content."""
        key = table.key
        if len(key) == 1:
            names = [row[key[0]] for row in rows]
            there = {row[key[0]]: row for row in self._select(table, key[0], names)}
            found = [there.get(name) for name in names]
        else:
            found = []
            for row in rows:
                where, values = self._same(table, row)
                found += self._rows(table, where, values)[:1] or [None]
        if table.name == "messages":
            return self._said_twice(rows, found)
        return [old or self._identical(table, row) for row, old in zip(rows, found, strict=True)]

    def _said_twice(self, rows: Sequence[Row], found: Sequence[Row | None]) -> list[Row | None]:
        """Look for messages that are there under other ids, in one pass over each thread."""
        times: dict[int, list[int]] = defaultdict(list)
        for row, old in zip(rows, found, strict=True):
            if old is None:
                times[row["thread_no"]].append(row["created_at"])
        near = {
            key
            for thread_no, every in times.items()
            for key in self._session.all(
                "SELECT thread_no, created_at FROM messages WHERE project_no = ?"
                " AND thread_no = ? AND created_at BETWEEN ? AND ?",
                (self._project, thread_no, min(every), max(every)),
            )
        }
        return [
            old
            or (
                self._identical(BY_NAME["messages"], row)
                if row["client_id"] or (row["thread_no"], row["created_at"]) in near
                else None
            )
            for row, old in zip(rows, found, strict=True)
        ]

    def _select(self, table: TableSpec, column: str, names: Sequence[Any]) -> Iterator[Row]:
        for part in parts(names):
            where = f"project_no = {self._project} AND {column} IN ({marks(len(part))})"
            yield from self._rows(table, where, part)

    def _rows(self, table: TableSpec, where: str, values: Sequence[Any]) -> list[Row]:
        names = [each.name for each in self._columns[table.name]]
        columns = ", ".join(names)
        statement = f"SELECT {columns} FROM {table.name} WHERE {where}"
        return [dict(zip(names, row, strict=True)) for row in self._session.all(statement, values)]

    def _identical(self, table: TableSpec, row: Row) -> Row | None:
        """Return the row of the target with the same content and another id."""
        rest: dict[str, Any] = {}
        names: tuple[str, ...]
        if table.name == "messages":
            names = ("client_id",) if row["client_id"] else ("role", "created_at", "raw_content")
            rest = {name: row[name] for name in ("thread_no", *names)}
        elif table.name == "memories" and row["deprecated_at"] is None:
            names = ("fingerprint", "type", "visibility", "deprecated_at")
            rest = {name: row[name] for name in names}
            if row["visibility"] == "personal":
                rest["created_by"] = row["created_by"]
        elif table.name in _NATURAL:
            rest = {name: row[name] for name in _NATURAL[table.name]}
        if not rest:
            return None
        same = " AND ".join(f"{name} IS NOT DISTINCT FROM ?" for name in rest)
        where = f"project_no = {self._project} AND {same} ORDER BY no LIMIT {_MOST_NAMED}"
        found = self._rows(table, where, list(rest.values()))
        if table.name not in _NATURAL:
            # One that the source has as well is the same as that one.
            found = [old for old in found if self._source_row(table, old["id"]) is None]
        return next(iter(found), None)

    def _verdict(self, table: TableSpec, row: Row, old: Row | None) -> Verdict:
        course = self._course
        owner = table.owner and table.refs[table.owner]
        if isinstance(owner, Mapping):
            owner = owner[row["owner"]]
        above = (str(owner), int(row[table.owner])) if owner and table.owner else None
        if above in course.mapped and table.name != "messages":
            return "same"
        if table.name in COUNTED and row["thread_no"] in course.shifted:
            return "same" if old else "conflicts"
        if table.name in (_PARTS_OF | _OBSERVED) and above in course.ours:
            return "same" if old else "kept"
        if old is None and table.name == "code_anchors" and self._is_anchored(row):
            return "kept"
        if old is None:
            return "added"
        if table.name == "messages" and old["seq"] != row["seq"]:
            course.shifted.add(int(old["thread_no"]))
        mine = (table.name, int(old.get("no") or 0))
        if table.name not in _NATURAL and any(old[name] != row[name] for name in table.key):
            course.mapped.add(mine)
            return "same"
        columns = self._compared(table, row)
        different = [name for name in columns if old[name] != row[name]]
        if not different or table.name in _LEFT:
            return "same"
        if table.name == "observation_records" and not self._goes_on_from(row, old):
            course.ours.add(mine)
            return "conflicts"
        if above in course.theirs:
            return "updated"
        if table.changed is not None and old[table.changed] != row[table.changed]:
            if row[table.changed] < old[table.changed]:
                course.ours.add(mine)
                return "kept"
            course.theirs.add(mine)
            return "updated"
        if all(old[name] is None for name in different):
            return "filled"
        if all(row[name] is None for name in different):
            return "same"
        course.ours.add(mine)
        return "conflicts"

    def _is_anchored(self, row: Row) -> bool:
        """Return True if the target has looked the owner of an anchor up by itself."""
        found = self._session.one(
            "SELECT 1 FROM code_anchored WHERE project_no = ? AND owner = ? AND owner_no = ?",
            (self._project, row["owner"], row["owner_no"]),
        )
        return found is not None

    def _compared(self, table: TableSpec, row: Row) -> list[str]:
        """Return the columns in which two versions of a row may differ."""
        loops = {name for name, to in table.refs.items() if to == table.name}
        left_out = {*loops, *_NOT_COMPARED.get(table.name, ()), *table.key}
        return [name for name in row if name not in left_out]

    def _goes_on_from(self, row: Row, old: Row) -> bool:
        """Return True if the source has observed all that the target has, and more."""
        if row["id"] != old["id"]:
            return False
        merge = self._merge
        for name in sorted(_OBSERVED):
            ours = self._session.all(f"SELECT id FROM {name} WHERE record_no = ?", (old["no"],))
            theirs = merge._session.all(
                f"SELECT t.id FROM {name} t JOIN observation_records r ON r.no = t.record_no"
                " WHERE r.project_no = ? AND r.id = ?",
                (merge._scope.project_no, row["id"]),
            )
            if not {each[0] for each in ours} <= {each[0] for each in theirs}:
                return False
        return True

    def _report(self, table: TableSpec, row: Row) -> None:
        if len(self._course.conflicts) < _MOST_NAMED:
            name = row.get("short_id") or " ".join(str(row[key]) for key in table.key)
            self._course.conflicts.append(f"{table.label}: {name}")

    def _update(self, table: TableSpec, row: Row, old: Row, *, is_whole: bool) -> None:
        values = {
            name: row[name]
            for name in self._compared(table, row)
            if is_whole or (old[name] is None and row[name] is not None)
        }
        if table.changed in values and "no" in old:
            # Last, so that a merge that is cut short takes this version again.
            at = values.pop(table.changed)
            self._course.later.append((table.name, table.changed, int(old["no"]), int(at)))
        columns = ", ".join(f"{name} = ?" for name in values)
        where, keys = self._same(table, old)
        if values:
            self._session.run(
                f"UPDATE {table.name} SET {columns} WHERE {where}", (*values.values(), *keys)
            )
        for child in RECORDS if is_whole and "no" in old else ():
            owner = child.owner and child.refs[child.owner]
            names = (owner,) if isinstance(owner, str) else owner.values() if owner else ()
            if child.name in _PARTS_OF and table.name in names:
                kinds = (
                    {to: kind for kind, to in owner.items()} if isinstance(owner, Mapping) else {}
                )
                rest = "".join(f" AND owner = '{kinds[to]}'" for to in kinds if to == table.name)
                name = child.owner
                self._session.run(f"DELETE FROM {child.name} WHERE {name} = ?{rest}", (old["no"],))

    def _pairs(self, table: TableSpec, rows: Sequence[Row]) -> dict[int, int]:
        """Return the numbers of rows in the source, with those in the target."""
        spec = BY_NAME["memories"] if table.name == "decisions" else table
        if table.name == "decisions":
            numbers = [int(row["memory_no"]) for row in rows]
            keys = [row["id"] for row in self._select(spec, "no", numbers)]
        else:
            keys = [row[spec.key[0]] for row in rows]
        merge, key = self._merge, spec.key[0]
        there = self._numbers(spec, keys)
        found: dict[int, int] = {}
        for part in parts(keys):
            statement = (
                f"SELECT no, {key} FROM {spec.name} WHERE project_no = ? AND {key} IN"
                f" ({marks(len(part))})"
            )
            for no, name in merge._session.all(statement, (merge._scope.project_no, *part)):
                if name in there:
                    found[int(no)] = there[name]
        return found

    def _index_messages(self, rows: Sequence[Row], vectors: VectorCopy) -> None:
        if not rows:
            return
        pairs = self._pairs(BY_NAME["messages"], rows)
        by_id = {row["id"]: row for row in rows}
        stored = {
            no: row
            for row in self._select(BY_NAME["messages"], "no", list(pairs.values()))
            for no in (int(row["no"]),)
        }
        threads = sorted({int(row["thread_no"]) for row in rows})
        owners = {
            int(row["no"]): str(row["resource_id"])
            for row in self._select(BY_NAME["threads"], "no", threads)
        }
        terms = message_terms(self._merge._database, self._merge._session, sorted(pairs))
        entries: list[IndexRow] = []
        grown: Counter[int] = Counter()
        for source_no, pieces in terms.items():
            row = stored[pairs[source_no]]
            thread_no = int(row["thread_no"])
            for chunk, prose, code in pieces:
                entries.append(
                    IndexRow(
                        row_of(int(row["no"]), chunk),
                        prose,
                        code,
                        project_no=self._project,
                        thread_no=thread_no,
                        resource_id=owners[thread_no],
                        role=str(row["role"]),
                    )
                )
                grown[thread_no] += 1
        self._database.fulltext.add(self._session, entries)
        found = {
            word
            for row in by_id.values()
            if pointer_in(row["parts"]) is None
            for word in words(from_storable(row["raw_content"]))
        }
        self._database.words.add(self._session, self._project, sorted(found))
        source = f"FROM messages m WHERE m.project_no = {int(self._project)}"
        source += " AND m.thread_no = threads.no"
        for thread_no in threads:
            self._session.run(
                f"UPDATE threads SET last_seq = (SELECT max(m.seq) {source}),"
                f" tokens = (SELECT sum(m.token_count) {source}), index_rows = index_rows + ?,"
                f" index_terms = (SELECT sum(m.term_count) {source}) WHERE no = ?",
                (grown[thread_no], thread_no),
            )
        vectors.copy(self._session, "message", pairs)

    def _index_records(self, table: TableSpec, rows: Sequence[Row], vectors: VectorCopy) -> None:
        kind, vector = _KINDS[table.name]
        pairs = self._pairs(table, rows)
        self._database.records.remove(self._session, kind, sorted(pairs.values()))
        terms = record_terms(self._merge._database, self._merge._session, kind, sorted(pairs))
        records: list[tuple[int, RecordTerms]] = [(pairs[no], each) for no, each in terms.items()]
        self._database.records.put(self._session, kind, self._project, sorted(records), is_new=True)
        if vector is not None:
            vectors.copy(self._session, vector, pairs)

    def merge_versions(self, spec: TableSpec, rows: Sequence[Row]) -> None:
        """Number the versions of both stores in the order of time."""
        page = int(rows[0]["memory_no"])
        ours = self._rows(spec, "memory_no = ?", (page,))

        def identity(row: Row) -> tuple[Any, ...]:
            return row["created_at"], row["actor"], row["content"]

        there = {identity(row) for row in ours}
        fresh = [row for row in rows if identity(row) not in there]
        counts = self._course.counts[spec.name]
        counts["same"] += len(rows) - len(fresh)
        if not fresh:
            return
        counts["added"] += len(fresh)
        every = sorted((*ours, *fresh), key=lambda row: (row["created_at"], row["version"]))
        names = [name for name in fresh[0] if name != "version"]
        self._session.run("DELETE FROM working_memory_versions WHERE memory_no = ?", (page,))
        self._insert(
            spec,
            [
                {"version": at} | {name: row[name] for name in names}
                for at, row in enumerate(every, 1)
            ],
        )
        self._session.run("UPDATE working_memory SET version = ? WHERE no = ?", (len(every), page))

    def sort_events(self, table: TableSpec, owner_no: int) -> None:
        """Number the events of a record in the order of time.

        The newest by number is undone first.
        """
        column = str(table.owner)
        rows = self._session.all(
            f"SELECT no, at FROM {table.name} WHERE {column} = ? ORDER BY no", (owner_no,)
        )
        order = sorted(rows, key=lambda row: (row[1], row[0]))
        moved = {
            int(old[0]): int(new[0]) for old, new in zip(order, rows, strict=True) if old != new
        }
        # Through negative numbers: a number must not be there twice.
        for column in ("no", "undone_by"):
            self._session.run_many(
                f"UPDATE {table.name} SET {column} = -{column} WHERE {column} = ?",
                [(no,) for no in moved],
            )
            self._session.run_many(
                f"UPDATE {table.name} SET {column} = ? WHERE {column} = ?",
                [(new, -old) for old, new in moved.items()],
            )


def counted(courses: Sequence[Course]) -> dict[str, MergeCounts]:
    """Return what merges did, by table."""
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for course in courses:
        for name, counts in course.counts.items():
            sums[name].update(counts)
    return {
        name: MergeCounts(
            counts["added"],
            counts["updated"] + counts["filled"],
            counts["same"],
            counts["kept"],
            counts["erased"],
            counts["conflicts"],
        )
        for name, counts in sums.items()
        if counts.total()
    }
