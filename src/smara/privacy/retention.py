"""Keep each kind of record for as long as the settings say.

`TableSpec.keep` has the defaults and says which rows may go; the table ``retention`` of
``smara.toml`` has other limits. A worker looks once a day. It holds a lease and removes the oldest
rows first, in batches with a transaction each: a round that is cut short or killed is continued by
the next one. Conversations, tasks and memories go as in an erase, with what was made from them;
those that a memory in force or an unfinished task rests on stay.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, NamedTuple

from smara.core import log
from smara.core.scope import Scope
from smara.database.database import Session, marks, parts
from smara.database.leases import Lease, host_name
from smara.database.partitions import PART_OF_ROW
from smara.database.project_store import ProjectStore, Tombstones
from smara.database.projects import ProjectContext
from smara.database.session import Column, number
from smara.errors import (
    BusyError,
    ConfigError,
    DeadlineError,
    LeaseLostError,
    SchemaTooNewError,
)
from smara.privacy.erase import Eraser, require_known_tables
from smara.privacy.models import KindReport, RetentionRule
from smara.privacy.tables import RECORDS, TABLES, Keep, TableSpec
from smara.privacy.walk import Walk

if TYPE_CHECKING:
    from smara.search.index import Index

DAY_MS = 86_400_000
_REWRITE_MS = 7 * DAY_MS
"""The files are written again at most so often: it takes time in proportion to the store, or on
PostgreSQL to a part of it."""
_REWRITE, _TRY = "rewrite", "rewrite_try"
_SMALL_BYTES = 256 << 20
"""A larger file is rewritten by `smara worker` alone: what hooks start is ended soon."""
_LOOK_MS = 3_600_000
_ROUND_SECONDS = 10.0
_LEASE_SECONDS = 120.0
_MOST_PLAIN = 5_000
_MOST_WALKED = 500
"""So many rows one transaction removes; one conversation at least."""
_WITH_MORE = {str(table.refs[table.owner]) for table in RECORDS if table.owner}
"""Tables whose rows have others that belong to them, or terms in an index."""
_WITH_WORDS = (
    "messages", "tool_outputs", "condensed_observations", "closed_tasks", "retired_memories",
)  # fmt: skip
"""Kinds that search finds: their removal is audited, and the file rewritten."""

_TOTALS = {
    "tasks": "UPDATE task_totals SET closed = closed - ? WHERE project_no = ?",
    "memories": "UPDATE memory_state SET total = total - ? WHERE project_no = ?",
}

KINDS: Mapping[str, tuple[TableSpec, ...]] = {
    kind: tuple(each for each in TABLES if each.keep is not None and each.keep.kind == kind)
    for kind in dict.fromkeys(each.keep.kind for each in TABLES if each.keep is not None)
    if kind
}
"""The tables of each kind."""


def parse_rules(text: str | None) -> dict[str, RetentionRule]:
    """Return the rule of each kind, from the setting and the defaults.

    >>> str(parse_rules("receipts_days=90; receipts_mib=8")["receipts"])
    '90 days, 8 MiB'
    >>> str(parse_rules("model_calls_days=0")["model_calls"])
    'for ever'

    Raises:
        ConfigError: If a kind or unit is unknown, or a limit is invalid.
    """
    keeps = {kind: [each.keep for each in tables if each.keep] for kind, tables in KINDS.items()}
    rules = {kind: RetentionRule(found[0].days, mib=found[0].mib) for kind, found in keeps.items()}
    for entry in filter(None, (each.strip() for each in (text or "").split(";"))):
        name, _, value = (piece.strip() for piece in entry.partition("="))
        kind, _, unit = name.rpartition("_")
        if kind not in rules or unit not in RetentionRule.__slots__:
            raise ConfigError(
                f"retention: {name!r} is not a kind with a unit. Write it as messages_days = 90;"
                f" the units are days, rows and mib, the kinds {', '.join(rules)}."
            )
        if not value.isdecimal():
            raise ConfigError(
                f"retention: {name} must be a whole number, not {value!r}; 0 is no limit."
            )
        least = max(keeps[kind], key=lambda keep: keep.least_days)
        if unit == "days" and 0 < int(value) < least.least_days:
            raise ConfigError(
                f"retention: {name} must be at least {least.least_days}, because {least.why};"
                " 0 is no limit."
            )
        rules[kind] = replace(rules[kind], **{unit: int(value)})
    return rules


class _State(NamedTuple):
    """The past of a kind."""

    kept_at: int | None = None
    removed_at: int | None = None
    removed: int = 0


class _Expiry(Walk):
    """Rows with what was made from them, but for what has a rule of its own.

    What was learned from a session, and what it was told, is kept as long as its kind says.
    """

    def add_sessions(self, names: set[str]) -> None:
        pass


class _Rows(_Expiry):
    """Rows with what belongs to them, and without what was derived from them."""

    _from_messages = _from_observations = None  # type: ignore[assignment]


class _Expirer(Eraser):
    """Removes rows that may come again, but for conversations.

    A transcript that is read again does not bring back a conversation. A memory may be learned
    again, and what an import brings goes again when its time is over.
    """

    def _bury(self, now_ms: int, *_: Any) -> None:
        stones, salt = Tombstones(self._database, self._scope), token_bytes(32)
        shown = "t.id, t.updated_at"
        for name, at in self._walk.among("threads", "no", self._walk.rows["threads"], shown):
            # What was said since then, and waits to be stored, is new.
            stones.add(self._session, "thread", [name], int(at), salt)

    def _put_pages(self) -> None:
        """Leave the pages of people: what they hold is of today."""

    def _put_totals(self) -> None:
        """Count what goes, of which nothing was open or in force: to count all takes longer."""
        for name, statement in _TOTALS.items():
            self._run(statement, (len(self._walk.rows[name]), self._project))


class KindTable:
    """A table of a kind, with the rows of one project."""

    def __init__(self, spec: TableSpec, columns: Mapping[str, Sequence[Column]], no: int) -> None:
        self.spec = spec
        self.keep = spec.keep or Keep()
        names = {each.name for each in columns[spec.name]}
        self.key = ("no",) if "no" in names else spec.key
        self.within = f"t.project_no = {int(no)}" if "project_no" in names else "1 = 1"
        self.of_kind = f"{self.within} AND {self.keep.where}"
        self.is_plain = spec.name not in _WITH_MORE and self.keep.kind not in _WITH_WORDS
        counted = self.keep.counted
        texts = " + ".join(
            f"coalesce(octet_length({'g' if counted else 't'}.{each.name}), 0)"
            if each.type in ("string", "bytes")
            else "8"
            for each in columns[counted or spec.name]
        )
        self.size = texts
        if counted:
            # A conversation counts for its messages.
            owner = f"SELECT coalesce(sum({texts}), 0) FROM {counted} g"
            self.size = f"({owner} WHERE g.thread_no = t.no AND +g.project_no = t.project_no)"

    def measure(self, session: Session) -> tuple[int, int, int | None]:
        """Return rows, bytes and the oldest time."""
        statement = (
            f"SELECT coalesce(sum({self.keep.weight}), 0), coalesce(sum({self.size}), 0),"
            f" min(t.{self.keep.at}) FROM {self.spec.name} t WHERE {self.of_kind}"
        )
        rows, size, oldest_at = session.one(statement) or (0, 0, None)
        return int(rows), int(size), oldest_at

    def expired(
        self, session: Session, rule: RetentionRule, now_ms: int, most: int, resting: set[Any]
    ) -> dict[tuple[Any, ...], int]:
        """Return the oldest rows past a rule, with what they count for."""
        rows, size = 0, 0
        if rule.rows or rule.mib:
            rows, size, _ = self.measure(session)
        too_many = rows - rule.rows if rule.rows else 0
        too_large = size - (rule.mib << 20) if rule.mib else 0
        cutoff = now_ms - rule.days * DAY_MS if rule.days else -(2**62)
        before = now_ms - self.keep.least_days * DAY_MS + 1
        if too_many <= 0 and too_large <= 0:
            before = min(before, cutoff)
        at, key = f"t.{self.keep.at}", ", ".join(f"t.{name}" for name in self.key)
        statement = (
            f"SELECT {at}, {self.keep.weight}, {self.size if too_large > 0 else '0'}, {key}"
            f" FROM {self.spec.name} t WHERE {self.of_kind} AND {at} < ?"
            f" AND NOT ({self.keep.unless}) ORDER BY {at}, {key} LIMIT ?"
        )
        found: dict[tuple[Any, ...], int] = {}
        count = 0
        for age, weight, bytes_, *values in session.all(statement, (before, most + len(resting))):
            is_due = age < cutoff or too_many > 0 or too_large > 0
            if tuple(values) in resting:
                continue
            if not is_due or count >= most:
                break
            found[tuple(values)] = int(weight)
            count += max(1, int(weight))
            too_many -= int(weight)
            too_large -= int(bytes_)
        return found

    def count_resting(self, session: Session, rule: RetentionRule, now_ms: int) -> int:
        """Count the expired rows that something in force rests on."""
        if not rule.days:
            return 0
        statement = (
            f"SELECT coalesce(sum({self.keep.weight}), 0) FROM {self.spec.name} t"
            f" WHERE {self.of_kind} AND t.{self.keep.at} < ? AND ({self.keep.unless})"
        )
        return number(session, statement, (now_ms - rule.days * DAY_MS,))


class ExpiredRows(NamedTuple):
    """The rows of a kind that are past its rule."""

    gone: int
    resting: int
    """Rows past its days that stay, because something in force rests on them."""


class Retention:
    """The rules of retention, and the work that keeps them."""

    def __init__(self, project: ProjectContext, index: Index) -> None:
        self._project = project
        self._database = project.database
        self._store = ProjectStore(project.database, project.scope)
        self._index = index
        self.rules = parse_rules(project.settings.retention)
        self._next_look_at = 0

    @cached_property
    def _tables(self) -> dict[str, list[KindTable]]:
        with self._database.read() as session:
            columns = self._database.tables(session)
        here = self._project.scope.project_no
        return {kind: [KindTable(each, columns, here) for each in KINDS[kind]] for kind in KINDS}

    def list(self, deadline_seconds: float = 1.0) -> list[KindReport]:
        """Return every kind with its rule, and what is stored of it.

        Args:
            deadline_seconds: A kind that takes longer to measure has no sizes.

        Returns:
            The kinds in a fixed order: rows, bytes, the oldest, the rule, when it was last kept,
            and how many rows went.
        """
        reports, state = [], self._state()
        for kind, tables in self._tables.items():
            rows = size = oldest_at = None
            with suppress(DeadlineError), self._database.read(deadline_seconds) as session:
                found = [each.measure(session) for each in tables]
                rows, size = sum(each[0] for each in found), sum(each[1] for each in found)
                oldest_at = min((each[2] for each in found if each[2] is not None), default=None)
            past, rule = state.get(kind, _State()), self.rules[kind]
            reports.append(
                KindReport(
                    kind,
                    rule,
                    rows,
                    size_bytes=size,
                    oldest_at=oldest_at,
                    kept_at=past.kept_at,
                    removed=past.removed,
                )
            )
        return reports

    def plan(self) -> dict[str, ExpiredRows]:
        """Count the rows of each kind that are past their rule.

        Returns:
            By kind, how many would go, and how many stay because something in force rests on
            them.
        """
        now, plan = self._project.clock.now_ms(), {}
        with self._database.snapshot() as session:
            for kind, tables in self._tables.items():
                rule, gone, resting = self.rules[kind], 0, 0
                for table in tables if rule.is_bounded else ():
                    gone += sum(table.expired(session, rule, now, 2**62, set()).values())
                    resting += table.count_resting(session, rule, now)
                plan[kind] = ExpiredRows(gone, resting)
        return {kind: each for kind, each in plan.items() if each.gone or each.resting}

    def run_due(self, seconds: float = _ROUND_SECONDS, *, is_patient: bool = False) -> int:
        """Keep the rules that are due, within some seconds.

        Safe to call often and from any number of processes: finding out that nothing is due
        takes one look an hour. A round that is cut short goes on with the next call. In a store
        with tables of a newer Smara nothing goes: a process of that release does it.

        Args:
            seconds: No batch is begun after so long.
            is_patient: True to rewrite a large file too, which takes longer.

        Returns:
            How many rows went.
        """
        now = self._project.clock.now_ms()
        if now < self._next_look_at and not is_patient:
            return 0
        state = self._state()
        due = [
            kind
            for kind, rule in self.rules.items()
            if rule.is_bounded and now - (state.get(kind, _State()).kept_at or 0) >= DAY_MS
        ]
        if not due and not self._find_stale(is_patient):
            self._next_look_at = now + _LOOK_MS
            return 0
        try:
            self._require_known_tables()
        except SchemaTooNewError as error:
            log.warning("retention.left", error=error.code)  # to a process of the newer release
            self._next_look_at = now + _LOOK_MS
            return 0
        return sum((self._run(due, seconds, is_patient=is_patient) or {}).values())

    def erase(self) -> dict[str, int]:
        """Remove everything that is past its rule now, and rewrite the file.

        Returns:
            How many rows of each kind went.

        Raises:
            BusyError: If another process does it just now.
            SchemaTooNewError: If the store has tables of a newer Smara; nothing is removed.
        """
        self._require_known_tables()
        due = [kind for kind, rule in self.rules.items() if rule.is_bounded]
        gone = self._run(due, seconds=float("inf"), is_rewritten=True)
        if gone is None:
            raise BusyError("Another process keeps the rules just now. Try again later.")
        return gone

    def _require_known_tables(self) -> None:
        with self._database.read() as session:
            require_known_tables(self._database, session)

    def _find_stale(self, is_patient: bool) -> Sequence[int]:
        """Return a project of each part that keeps removed words for a week.

        Any process looks after all parts: a project may never be opened again.
        """
        is_divided = self._database.kind == "postgres"
        with self._database.read() as session:
            rows = session.all(
                "SELECT part, kind, max(kept_at), max(removed_at), max(project_no) FROM"
                f" (SELECT {PART_OF_ROW if is_divided else '0'} AS part, project_no, kind, kept_at,"
                " removed_at FROM retention_state WHERE removed_at IS NOT NULL OR kind IN (?, ?))"
                " AS states GROUP BY part, kind",
                (_REWRITE, _TRY),
            )
        now, stale = self._project.clock.now_ms(), []
        for part in dict.fromkeys(row[0] for row in rows):
            state = {kind: _State(*times) for number, kind, *times, _ in rows if number == part}
            rewritten_at = state.get(_REWRITE, _State()).kept_at or 0
            tried_at = state.get(_TRY, _State()).kept_at or 0
            removed_at = max(state.get(kind, _State()).removed_at or 0 for kind in _WITH_WORDS)
            is_due = now - rewritten_at >= _REWRITE_MS and now - tried_at >= DAY_MS
            if removed_at > rewritten_at and is_due:
                stale.append(max(row[-1] for row in rows if row[0] == part))
        is_small = not stale or is_patient or self._database.facts()["fileBytes"] < _SMALL_BYTES
        return stale if is_small else []

    def _rewrite(self, projects: Sequence[int]) -> None:
        """Write the files again in which projects lie.

        Bytes of a row that were freed before it went are overwritten by nothing else.
        """
        begun_at = self._project.clock.now_ms()  # what others remove meanwhile is not in it
        # Other processes leave it for a day, also if it comes to nothing.
        self._note_all(projects, _TRY, begun_at)
        self._index.rewrite(projects)
        self._database.shrink_log()
        self._note_all(projects, _REWRITE, begun_at)

    def _note_all(self, projects: Sequence[int], kind: str, at_ms: int) -> None:
        with self._database.write() as session:
            for project_no in projects:
                store = ProjectStore(self._database, Scope(project_no, ""))
                self._note(session, kind, 0, at_ms, is_over=True, store=store)

    def _run(
        self,
        kinds: Sequence[str],
        seconds: float,
        *,
        is_patient: bool = True,
        is_rewritten: bool = False,
    ) -> dict[str, int] | None:
        leases, clock = self._project.leases, self._project.clock
        name = f"retention:{self._project.scope.project_no}"
        lease = leases.acquire_from_gone(name, f"{host_name()}:{os.getpid()}", _LEASE_SECONDS)
        if lease is None:
            return None
        until, gone, is_all = clock.monotonic() + seconds, dict.fromkeys(kinds, 0), True
        try:
            for kind in kinds:
                resting: set[Any] = set()
                is_over = False
                while not is_over and clock.monotonic() < until:
                    count, is_over = self._batch(kind, lease, resting)
                    gone[kind] += count
                    lease = leases.renew(lease, _LEASE_SECONDS)
                is_all = is_all and is_over
            if is_all:
                self._next_look_at = clock.now_ms() + _LOOK_MS
            if any(gone.values()):
                log.event("retention.kept", **{kind: rows for kind, rows in gone.items() if rows})
                self._database.shrink_log()  # it still has what the file has no more
            if is_rewritten:
                self._rewrite([int(self._project.scope.project_no)])
            elif is_all and (stale := self._find_stale(is_patient)):
                with suppress(BusyError):  # tried again a day later
                    self._rewrite(stale)
        except LeaseLostError:
            log.warning("retention.lease_lost")  # another process goes on
        finally:
            leases.release(lease)
        return {kind: count for kind, count in gone.items() if count}

    def _batch(self, kind: str, lease: Lease, resting: set[Any]) -> tuple[int, bool]:
        """Remove some rows of a kind; return how many, and True if none is left."""
        now, rule, gone = self._project.clock.now_ms(), self.rules[kind], 0
        with self._database.write() as session:
            self._project.leases.guard(session, lease)
            for table in self._tables[kind]:
                most = _MOST_PLAIN if table.is_plain else _MOST_WALKED
                found = table.expired(session, rule, now, most, resting)
                if found:
                    self._zero_what_is_freed(session, is_on=True)
                    remove = self._delete if table.is_plain else self._erase_each
                    staying = remove(session, table, list(found))
                    self._zero_what_is_freed(session, is_on=False)
                    resting |= staying
                    gone = sum(weight for key, weight in found.items() if key not in staying)
                    break
            self._note(session, kind, gone, now, is_over=not found)
            if gone and kind in _WITH_WORDS:
                session.run(
                    "INSERT INTO erasures (id, erased_at, actor, target, counts, outcome)"
                    " VALUES (?, ?, 'smara', 'retention', ?, 'expired')",
                    (self._project.new_id(), now, json.dumps({"chosen": {kind: gone}})),
                )
        return gone, not found

    def _delete(self, session: Session, table: KindTable, keys: Sequence[Any]) -> set[Any]:
        names = ", ".join(table.key)
        for part in parts(keys):
            values = ", ".join(f"({marks(len(key))})" for key in part)
            statement = (
                f"DELETE FROM {table.spec.name} WHERE {table.within.removeprefix('t.')}"
                f" AND ({names}) IN (VALUES {values})"
            )
            session.run(statement, [value for key in part for value in key])
        return set()

    def _erase_each(self, session: Session, table: KindTable, keys: Sequence[Any]) -> set[Any]:
        """Erase rows with all that goes with them; return those that stay."""
        if self._erase(session, table, keys):
            return set()
        return {key for key in keys if not self._erase(session, table, [key])}

    def _erase(self, session: Session, table: KindTable, keys: Sequence[Any]) -> bool:
        """Erase rows; return False, having done nothing, if a memory in force would go."""
        kind = _Expiry if table.keep.is_walked else _Rows
        walk = kind(self._database, session, self._project.scope)
        walk.choose(table.spec.name, [key[0] for key in keys])
        touched = walk.rows["memories"] | walk.touched
        memories = walk.among("memories", "no", touched, "t.deprecated_at")
        if any(row[0] is None for row in memories):
            return False
        eraser = _Expirer(self._database, session, self._project.scope, walk)
        eraser.erase(self._project.clock.now_ms(), None, is_project=False)
        return True

    def _zero_what_is_freed(self, session: Session, *, is_on: bool) -> None:
        """Have SQLite overwrite what is deleted, in tables and in indexes."""
        if self._database.kind != "sqlite":
            return
        session.run("PRAGMA secure_delete = ON")
        for table in ("message_index", "record_index"):
            session.run(
                f"INSERT INTO {table} ({table}, rank) VALUES ('secure-delete', ?)", (int(is_on),)
            )

    def _note(
        self,
        session: Session,
        kind: str,
        count: int,
        now: int,
        *,
        is_over: bool,
        store: ProjectStore | None = None,
    ) -> None:
        session.run(
            (store or self._store).sql(
                "INSERT INTO retention_state (project_no, kind, kept_at, removed_at, removed)"
                " VALUES (:project, ?, ?, ?, ?) ON CONFLICT (project_no, kind) DO UPDATE SET"
                " kept_at = coalesce(excluded.kept_at, retention_state.kept_at),"
                " removed_at = coalesce(excluded.removed_at, retention_state.removed_at),"
                " removed = retention_state.removed + excluded.removed"
            ),
            (kind, now if is_over else None, now if count else None, count),
        )

    def _state(self) -> dict[str, _State]:
        statement = (
            "SELECT kind, kept_at, removed_at, removed FROM retention_state"
            " WHERE project_no = :project"
        )
        with self._database.read() as session:
            rows = session.all(self._store.sql(statement))
        return {kind: _State(*rest) for kind, *rest in rows}
