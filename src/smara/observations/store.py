"""Read and write observations in the database.

SQL and row mapping only; the store decides nothing and calls no model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from smara.core.escape import from_storable, to_storable
from smara.database.database import Row, Session, marks, parts
from smara.database.fulltext import RecordTerms, terms_of
from smara.database.project_store import ProjectStore
from smara.observations.models import (
    Observation,
    ObservationFailure,
    ObservationRecord,
    ObservationWarning,
    RecordKey,
)
from smara.secrets import redact

_FIELDS = tuple(field.name for field in fields(Observation))
_COLUMNS = ", ".join("h.id" if name == "thread_id" else f"o.{name}" for name in _FIELDS)
_SELECT = f"SELECT {_COLUMNS}, o.no FROM observations o LEFT JOIN threads h ON h.no = o.thread_no"
_FAILURE_FIELDS = tuple(field.name for field in fields(ObservationFailure))
_FAILURE = ", ".join("h.id" if name == "thread_id" else f"f.{name}" for name in _FAILURE_FIELDS)
_RECORD = (
    "r.no, r.id, r.scope, r.resource_id, h.id, r.version, r.generation, r.observed_tokens,"
    " r.last_observed_at, r.last_reflected_at"
)


class Cursor(NamedTuple):
    """The progress of observing one thread; tokens count from its beginning."""

    thread_no: int
    thread_id: str
    last_seq: int
    tokens: int
    observed_seq: int
    observed_tokens: int
    buffered_seq: int
    buffered_tokens: int

    @property
    def covered_seq(self) -> int:
        """The last message that some observation stands for, active or buffered."""
        return max(self.observed_seq, self.buffered_seq)

    @property
    def covered_tokens(self) -> int:
        return max(self.observed_tokens, self.buffered_tokens)


class ObservationBatch(NamedTuple):
    """The messages that were observed in one go."""

    no: int
    last_seq: int
    message_tokens: int


class StoredRecord(NamedTuple):
    """A record and its number."""

    no: int
    record: ObservationRecord


class FailureKey(NamedTuple):
    """A job that failed; thread 0 for what is no thread's own."""

    record_no: int
    thread_no: int
    operation: str
    first_seq: int


_OF_FAILURE = (
    " WHERE project_no = :project AND record_no = ? AND thread_no = ? AND operation = ? AND"
    " first_seq = ?"
)


class ObservationStore(ProjectStore):
    """The tables of observations of one project."""

    # records

    def find_record(self, session: Session, lookup_key: str) -> StoredRecord | None:
        """Return the record with a lookup key, or None."""
        row = self.row(
            session,
            f"SELECT {_RECORD} FROM observation_records r LEFT JOIN threads h ON h.no ="
            " r.thread_no WHERE r.project_no = :project AND r.lookup_key = ?",
            lookup_key,
        )
        return StoredRecord(int(row[0]), ObservationRecord(*row[1:])) if row else None

    def ensure_record(
        self, session: Session, record_id: str, place: RecordKey, thread_no: int | None, now_ms: int
    ) -> StoredRecord:
        """Return the record of a place; make it if there is none."""
        self._insert(
            session,
            "observation_records",
            {
                "id": record_id,
                "lookup_key": place.lookup_key,
                "scope": place.scope,
                "resource_id": place.resource_id,
                "thread_no": thread_no,
                "created_at": now_ms,
                "updated_at": now_ms,
            },
            rest=" ON CONFLICT (project_no, lookup_key) DO NOTHING",
        )
        record = self.find_record(session, place.lookup_key)
        if record is None:  # it was just made
            raise AssertionError(f"no record {place.lookup_key}")
        return record

    def _insert(
        self, session: Session, table: str, *rows: Mapping[str, Any], rest: str = ""
    ) -> None:
        """Insert rows by column name; all have the same columns."""
        if rows:
            columns = ", ".join(rows[0])
            session.run_many(
                self.sql(
                    f"INSERT INTO {table} (project_no, {columns})"
                    f" VALUES (:project, {marks(len(rows[0]))}){rest}"
                ),
                [[row[name] for name in rows[0]] for row in rows],
            )

    def update_record(
        self,
        session: Session,
        record_no: int,
        now_ms: int,
        *,
        is_changed: bool = True,
        observed_tokens: int | None = None,
        generation: int | None = None,
    ) -> None:
        """Lock a record until the transaction ends, and note a change.

        Args:
            session: The caller's transaction.
            record_no: The record.
            now_ms: The time of the change.
            is_changed: True to count a new version of what is active.
            observed_tokens: Tokens of messages that count as observed from now on.
            generation: The generation that is in force from now on.
        """
        changes = {"updated_at = ?": now_ms, "version = version + ?": int(is_changed)}
        if observed_tokens is not None:
            changes["observed_tokens = observed_tokens + ?"] = observed_tokens
            changes["last_observed_at = ?"] = now_ms
        if generation is not None:
            changes |= {"generation = ?": generation, "last_reflected_at = ?": now_ms}
        columns = ", ".join(changes)
        self.run(
            session,
            f"UPDATE observation_records SET {columns} WHERE project_no = :project AND no = ?",
            *changes.values(),
            record_no,
        )

    def thread_records(self, session: Session, resource_id: str) -> list[tuple[int, int, int]]:
        """Return (record, thread, generation) of the threads with records of their own."""
        rows = self.rows(
            session,
            "SELECT no, thread_no, generation FROM observation_records WHERE project_no = :project"
            " AND resource_id = ? AND scope = 'thread' AND thread_no IS NOT NULL ORDER BY no",
            resource_id,
        )
        return [(no, thread_no, generation) for no, thread_no, generation in rows]

    def move_thread(self, session: Session, thread_no: int, from_no: int, to_no: int) -> int | None:
        """Move a thread to another record; None if it is there already."""
        there = self.row(
            session,
            "SELECT 1 FROM observation_cursors WHERE project_no = :project AND record_no = ? AND"
            " thread_no = ?",
            to_no,
            thread_no,
        )
        if there is not None:
            return None
        moved = 0
        for name in ("observation_batches", "observation_cursors", "observations"):
            moved = self.run(
                session,
                f"UPDATE {name} SET record_no = ? WHERE project_no = :project AND record_no = ?",
                to_no,
                from_no,
            )
        return moved

    # cursors

    def cursors(
        self,
        session: Session,
        record_no: int,
        thread_id: str | None,
        *,
        resource_id: str | None = None,
        is_pending_only: bool = False,
    ) -> list[Cursor]:
        """Return cursors of a thread or resource, longest unobserved first."""
        where = (
            "t.id = ?" if thread_id is not None else "t.resource_id = ? AND t.kind <> 'compaction'"
        )
        if is_pending_only:
            where += " AND t.last_seq > coalesce(c.observed_seq, 0)"
        rows = self.rows(
            session,
            "SELECT t.no, t.id, t.last_seq, t.tokens, coalesce(c.observed_seq, 0),"
            " coalesce(c.observed_tokens, 0), coalesce(c.buffered_seq, 0),"
            " coalesce(c.buffered_tokens, 0), m.created_at FROM threads t LEFT JOIN"
            " observation_cursors c ON c.thread_no = t.no AND c.record_no = ? LEFT JOIN messages m"
            " ON m.thread_no = t.no AND +m.project_no = t.project_no"
            " AND m.seq = coalesce(c.observed_seq, 0) + 1 WHERE t.project_no"
            f" = :project AND {where} ORDER BY m.created_at, t.no",
            record_no,
            thread_id if thread_id is not None else resource_id,
        )
        return [Cursor(*row[:8]) for row in rows]

    def cursor(self, session: Session, record_no: int, thread_id: str) -> Cursor | None:
        """Return a thread's cursor, pending or not."""
        cursors = self.cursors(session, record_no, thread_id)
        return cursors[0] if cursors else None

    def move_cursor(
        self, session: Session, record_no: int, thread_no: int, column: str, seq: int, tokens: int
    ) -> None:
        """Set how far a thread is ``observed`` or ``buffered``."""
        self._insert(
            session,
            "observation_cursors",
            {
                "record_no": record_no,
                "thread_no": thread_no,
                f"{column}_seq": seq,
                f"{column}_tokens": tokens,
            },
            rest=f" ON CONFLICT (record_no, thread_no) DO UPDATE SET {column}_seq ="
            f" excluded.{column}_seq, {column}_tokens = excluded.{column}_tokens",
        )

    def add_batch(self, session: Session, **values: Any) -> int:
        """Insert a batch by column name; return its number."""
        columns = ", ".join(values)
        return self.number(
            session,
            f"INSERT INTO observation_batches (project_no, {columns}) VALUES (:project,"
            f" {marks(len(values))}) RETURNING no",
            *values.values(),
        )

    def buffered_batches(
        self, session: Session, record_no: int, thread_no: int
    ) -> list[ObservationBatch]:
        rows = self.rows(
            session,
            "SELECT no, last_seq, message_tokens FROM observation_batches WHERE project_no ="
            " :project AND record_no = ? AND state = 'buffered' AND thread_no = ?"
            " ORDER BY first_seq",
            record_no,
            thread_no,
        )
        return [ObservationBatch(*row) for row in rows]

    def extracted(self, session: Session, thread_id: str, limit: int) -> list[dict[str, Any]]:
        """Return the values that extractors found in a thread, newest first."""
        rows = self.rows(
            session,
            "SELECT b.extracted FROM observation_batches b JOIN threads h ON h.no = b.thread_no"
            " WHERE b.project_no = :project AND h.id = ? AND b.extracted <> '{}' ORDER BY "
            "b.first_seq DESC LIMIT ?",
            thread_id,
            limit,
        )
        return [json.loads(row[0]) for row in rows]

    def taint_of_thread(self, session: Session, thread_id: str) -> frozenset[str]:
        """Return the sources of a thread's observations other than people's own words."""
        rows = self.rows(
            session,
            "SELECT DISTINCT b.taint FROM observation_batches b JOIN threads h ON h.no ="
            " b.thread_no WHERE b.project_no = :project AND h.project_no = :project AND h.id = ?",
            thread_id,
        )
        return frozenset(word for row in rows for word in row[0].split())

    def warnings_of(self, session: Session, observation_id: str) -> tuple[str, ...]:
        """Return what was left out of an observation's batch."""
        row = self.row(
            session,
            "SELECT b.warnings FROM observations o JOIN observation_batches b ON b.no = o.batch_no"
            " WHERE o.project_no = :project AND o.id = ?",
            observation_id,
        )
        return tuple(from_storable(each) for each in json.loads(row[0])) if row else ()

    def warned(self, session: Session, limit: int) -> list[ObservationWarning]:
        """Return the batches of which something was left out, newest first."""
        rows = self.rows(
            session,
            "SELECT h.id, b.first_seq, b.last_seq, b.warnings, b.created_at FROM"
            " observation_batches b JOIN threads h ON h.no = b.thread_no WHERE b.project_no ="
            " :project AND b.warnings <> '[]' ORDER BY b.created_at DESC, b.no DESC LIMIT ?",
            limit,
        )
        return [
            ObservationWarning(
                thread_id,
                first,
                last,
                warnings=tuple(map(from_storable, json.loads(warnings))),
                created_at=created_at,
            )
            for thread_id, first, last, warnings, created_at in rows
        ]

    def activate_batches(self, session: Session, numbers: Sequence[int]) -> int:
        """Make batches and their observations active; return how many observations."""
        self.run(
            session,
            "UPDATE observation_batches SET state = 'active' WHERE project_no = :project AND no IN"
            " (:some)",
            some=numbers,
        )
        return self.run(
            session,
            "UPDATE observations SET state = 'active' WHERE project_no = :project AND state ="
            " 'buffered' AND batch_no IN (:some)",
            some=numbers,
        )

    # observations

    def add(self, session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert observations by column name, and index them by their words."""
        self._insert(session, "observations", *rows)
        for part in parts([str(row["id"]) for row in rows]):
            stored = self.select(session, f" AND o.id IN ({marks(len(part))})", part)
            terms = [(no, observation_terms(row)) for no, row in stored]
            self.database.records.put(session, "observation", self.scope.project_no, terms)

    def by_numbers(self, session: Session, numbers: Iterable[int]) -> dict[int, Observation]:
        """Return observations by number."""
        # The plus keeps SQLite from reading a whole project by an index that begins with it.
        statement = f"{_SELECT} WHERE +o.project_no = :project AND o.no IN (:some)"
        rows = self.rows(session, statement, some=list(numbers))
        return {row[-1]: _observation(row) for row in rows}

    def select(
        self, session: Session, rest: str, values: Sequence[Any] = ()
    ) -> list[tuple[int, Observation]]:
        """Return observations with their numbers, by the rest of a statement."""
        rows = self.rows(session, f"{_SELECT} WHERE o.project_no = :project{rest}", *values)
        return [(row[-1], _observation(row)) for row in rows]

    def noted_between(
        self, session: Session, thread_id: str, resource_id: str, first_seq: int, last_seq: int
    ) -> list[Observation]:
        """Return the observations of a run of messages, condensed ones too.

        Those that begin in it, else those that reach into it; none unless all of it was observed.
        """
        row = self.row(
            session,
            "SELECT r.no, t.no, max(b.first_seq) FROM observation_records r JOIN threads t ON"
            " t.project_no = r.project_no AND t.id = ? JOIN observation_cursors c ON c.record_no ="
            " r.no AND c.thread_no = t.no JOIN observation_batches b ON b.record_no = r.no AND"
            " b.thread_no = t.no AND b.first_seq <= ? WHERE r.project_no = :project AND"
            " r.lookup_key IN (?, ?) AND (c.observed_seq >= ? OR c.buffered_seq >= ?) GROUP BY"
            " r.no, t.no ORDER BY r.no DESC LIMIT 1",
            thread_id,
            first_seq,
            f"thread:{thread_id}",
            f"resource:{resource_id}",
            last_seq,
            last_seq,
        )
        if row is None:
            return []
        rows = self.select(
            session,
            " AND o.thread_no = ? AND o.record_no = ? AND o.kind = 'observation' AND o.first_seq"
            " >= ? AND o.first_seq <= ? AND o.last_seq >= ? ORDER BY o.first_seq, o.no",
            (row[1], row[0], row[2], last_seq, first_seq),
        )
        within = [each for _, each in rows if each.first_seq >= first_seq]
        # A note belongs to the run it begins in, so that two runs do not tell the same; a run in
        # which none begins is told by those that reach into it.
        return within or [each for _, each in rows]

    def active(self, session: Session, record_no: int) -> list[tuple[int, Observation]]:
        """Return what is active: reflections, then observations, each oldest first."""
        return self.select(
            session,
            " AND o.record_no = ? AND o.state = 'active' ORDER BY o.kind DESC, o.said_at, o.no",
            (record_no,),
        )

    def newest(self, session: Session, record_no: int, limit: int) -> list[Observation]:
        """Return the newest observations that are active or buffered, oldest first."""
        rows = self.select(
            session,
            # A reflection that was made ahead says again what the rows it stands for say.
            " AND o.record_no = ? AND (o.state = 'active' OR (o.state = 'buffered' AND o.kind ="
            " 'observation')) ORDER BY o.no DESC LIMIT ?",
            (record_no, limit),
        )
        return [row for _, row in reversed(rows)]

    def active_tokens(self, session: Session, record_no: int) -> int:
        """Count the tokens of a record's active observations."""
        return self.number(
            session,
            "SELECT coalesce(sum(tokens), 0) FROM observations WHERE project_no = :project AND"
            " record_no = ? AND state = 'active'",
            record_no,
        )

    def mark_reflected(
        self, session: Session, record_no: int, numbers: Sequence[int], generation: int
    ) -> int:
        """Put observations behind a reflection; return how many were still active."""
        return self.run(
            session,
            "UPDATE observations SET state = 'reflected', reflected_into = ? WHERE project_no"
            " = :project AND record_no = ? AND state = 'active' AND no IN (:some)",
            generation,
            record_no,
            some=numbers,
        )

    def merged(
        self, session: Session, reflection_id: str, generation: int
    ) -> list[tuple[int, Observation]]:
        """Return what went into a reflection's generation, numbered."""
        return self.select(
            session,
            " AND o.reflected_into = ? AND o.record_no = (SELECT r.record_no FROM observations r"
            " WHERE r.id = ? AND +r.project_no = :project)",
            (generation, reflection_id),
        )

    def count(self, session: Session) -> int:
        """Count the observations of the project, by an index alone."""
        return self.number(session, "SELECT count(*) FROM observations WHERE project_no = :project")

    def totals(self, session: Session) -> tuple[int, int, int]:
        """Count observations, active ones, and reflections of the project."""
        return (
            self.count(session),
            self.number(
                session,
                "SELECT count(*) FROM observations WHERE project_no = :project"
                " AND state = 'active'",
            ),
            self.number(
                session,
                "SELECT coalesce(sum(generation), 0) FROM observation_records"
                " WHERE project_no = :project",
            ),
        )

    # failures

    def failure(self, session: Session, key: FailureKey) -> ObservationFailure | None:
        """Return the failure of one job, or None."""
        row = self.row(
            session,
            f"SELECT {_FAILURE} FROM observation_failures f LEFT JOIN threads h ON h.no ="
            " f.thread_no WHERE f.project_no = :project AND f.record_no = ? AND f.thread_no = ?"
            " AND f.operation = ? AND f.first_seq = ?",
            *key,
        )
        return _failure(row) if row else None

    def failures(self, session: Session, limit: int) -> list[ObservationFailure]:
        """Return failures, newest first."""
        rows = self.rows(
            session,
            f"SELECT {_FAILURE} FROM observation_failures f LEFT JOIN threads h ON h.no ="
            " f.thread_no WHERE f.project_no = :project ORDER BY f.failed_at DESC, f.no DESC LIMIT"
            " ?",
            limit,
        )
        return [_failure(row) for row in rows]

    def troubles(self, session: Session) -> tuple[int, int]:
        """Count threads waiting for a model, and jobs given up."""
        row = self.row(
            session,
            "SELECT coalesce(sum(CASE WHEN operation = 'outage' THEN 1 ELSE 0 END), 0),"
            " coalesce(sum(is_dead), 0) FROM observation_failures WHERE project_no = :project",
        )
        return (int(row[0]), int(row[1])) if row else (0, 0)

    def put_failure(
        self,
        session: Session,
        key: FailureKey,
        *,
        code: str,
        message: str,
        now_ms: int,
        wait_ms: Callable[[int], int] | None = None,
        is_dead: bool = False,
    ) -> None:
        """Count a failure of a job; its message is redacted.

        Args:
            session: The caller's transaction.
            key: The job.
            code: The code of the error.
            message: What went wrong.
            now_ms: When it failed.
            wait_ms: How long to wait, by the number of failures before this one.
            is_dead: True if it is not tried again.
        """
        before = self.failure(session, key)
        failed_before = before.attempts if before else 0
        values = {
            "attempts": failed_before + 1,
            "code": code,
            "message": to_storable(redact(message).text[:1_000]),
            "is_dead": int(is_dead),
            "failed_at": now_ms,
            "retry_at": now_ms + (wait_ms(failed_before) if wait_ms else 0),
        }
        self._insert(
            session,
            "observation_failures",
            {**key._asdict(), **values},
            rest=" ON CONFLICT (record_no, thread_no, operation, first_seq) DO UPDATE SET "
            + ", ".join(f"{name} = excluded.{name}" for name in values),
        )

    def bury_failure(self, session: Session, key: FailureKey) -> None:
        """Keep the failure of a job as a dead letter."""
        self.run(session, f"UPDATE observation_failures SET is_dead = 1{_OF_FAILURE}", *key)

    def clear_failure(self, session: Session, key: FailureKey) -> None:
        """Clear an overcome failure; a dead letter stays."""
        self.run(session, f"DELETE FROM observation_failures{_OF_FAILURE} AND is_dead = 0", *key)


def _failure(row: Row) -> ObservationFailure:
    values = dict(zip(_FAILURE_FIELDS, row, strict=True))
    values["message"] = from_storable(values["message"])
    values["is_dead"] = bool(values["is_dead"])
    return ObservationFailure(**values)


def _observation(row: Row) -> Observation:
    values = dict(zip(_FIELDS, row, strict=False))
    values["text"] = from_storable(values["text"])
    values["taint"] = tuple(values["taint"].split())
    values["mode_specific"] = json.loads(values["mode_specific"])
    for name in ("details", "files", "lines"):
        values[name] = tuple(json.loads(values[name]))
    return Observation(**values)


def observation_terms(row: Observation) -> RecordTerms:
    """Return the words by which an observation is found."""
    return terms_of("", "\n".join((row.text, *row.details, " ".join(row.files))))


def indexed_observations(
    session: Session, after: int = 0
) -> Iterator[tuple[int, int, Observation]]:
    """Read every observation above a number, as (number, project, observation)."""
    while True:
        rows = session.all(
            f"SELECT {_COLUMNS}, o.no, o.project_no FROM observations o LEFT JOIN threads h ON"
            " h.no = o.thread_no WHERE o.no > ? ORDER BY o.no LIMIT 500",
            (after,),
        )
        if not rows:
            return
        yield from ((row[-2], row[-1], _observation(row)) for row in rows)
        after = rows[-1][-2]
