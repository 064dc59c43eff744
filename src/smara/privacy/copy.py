"""Copy a store into an empty one, row by row.

Into a store that has projects, they are merged; see `smara.privacy.joint`.
Numbers, indexes and vectors are copied as they are; nothing is analyzed or embedded again. Rows
go over in batches, each a transaction that also notes how far the copy is: a copy that was killed
goes on there. At the end every row of both stores is read and compared, and what changed in the
source meanwhile is written again. Until then the target cannot be opened; see
`smara.database.migrate`.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any

from smara.config import Settings, store_exists
from smara.core import log
from smara.core.clock import Clock
from smara.core.ids import Uuid7
from smara.core.scope import Scope
from smara.database.database import Database, Row, Session
from smara.database.leases import Leases, host_name
from smara.database.migrate import COPYING, HEAD, migrate, opened_by, schema_version
from smara.database.session import number
from smara.errors import (
    BusyError,
    ConfigError,
    ConflictError,
    CorruptError,
    InvalidInputError,
    NotFoundError,
    SchemaTooNewError,
    UsageError,
)
from smara.privacy.joint import Joint
from smara.privacy.models import CopyReport, TableCheck
from smara.privacy.streams import Stream, TableStream, left_out, streams

_MOST_ROWS = 2_000
_MOST_BYTES = 4 << 20
_LEASE = "copy"
_LEASE_SECONDS = 60.0
_MOST_ROUNDS = 3


def copy_between(
    places: tuple[Settings, Settings],
    open_database: Callable[[Settings], Database],
    open_memory: Callable[..., Any],
    *,
    projects: Sequence[str] | None,
    into: str | None,
    clock: Clock,
) -> CopyReport:
    """Copy projects of one store into another, or merge them.

    Args:
        places: The store to read, in which nothing is written, and the store to write.
        open_database: Opens a store.
        open_memory: Opens a project of a store, to index its code after a merge.
        projects: The projects by name; all by default.
        into: The project of the target to merge a single one into; by default the one of the
            same name or of the same repository.
        clock: The clock.

    Returns:
        What both stores hold now, or what was merged, table by table.

    Raises:
        InvalidInputError: If both are one store, or the source needs a migration.
        NotFoundError: If there is no such store or project.
        SchemaTooNewError: If the source has what only a newer Smara can copy.
        ConflictError: If the target holds other content under the same ids.
        BusyError: If another process copies into the target.
    """
    if not store_exists(places[0]):
        raise NotFoundError(f"Store not found: {places[0].db}.")
    with closing(open_database(places[0])) as source, source.snapshot() as session:
        version = _require_current(source, session)
        scopes = _scopes(session, projects)
        if into is not None and len(scopes) != 1:
            raise InvalidInputError("Name the one project to merge into another.")
        with closing(open_database(places[1])) as target:
            if _address(source) == _address(target):
                raise InvalidInputError("FROM and TO are the same store. Copy to another place.")
            is_resumed = _is_copying(target)
            if not is_resumed:
                migrate(target, clock)
            with target.read() as other:
                is_newer = version > HEAD
                names = left_out((source, session), (target, other)) if is_newer else []
            if names:
                why = f"with {', '.join(names)}, which a copy would leave out"
                raise _too_new(source, version, why)
            with _alone(target, clock):
                if is_resumed or (_is_empty(target) and into is None):
                    run = _WholeCopy(source, target, session, scopes=scopes)
                    report = run.run(clock, is_resumed)
                else:
                    joint = Joint((source, session), target, scopes=scopes, into=into)
                    report = joint.run((_address(source), _address(target)), clock)
                    report = _with_code(report, joint.code_roots(), open_memory, places[1].db)
    log.event("store.copied", rows=report.rows, target=report.target)
    return report


def _with_code(
    report: CopyReport,
    roots: dict[str, list[str]],
    open_memory: Callable[..., Any],
    address: str | None,
) -> CopyReport:
    """Index the folders of merged projects that only the source has indexed.

    A graph is not merged: it is of the files of a folder, and is made from them in seconds.
    """
    indexed, left = [], []
    for name, folders in roots.items():
        with open_memory(address, project=name, embed_in_background=False) as memory:
            for root in folders:
                try:
                    memory.code.index(root)
                    indexed.append(root)
                except (UsageError, ConfigError, OSError):
                    left.append(root)  # not on this machine, or no grammars are installed
    return replace(report, code_indexed=tuple(indexed), code_left=tuple(left))


def _is_empty(target: Database) -> bool:
    with target.read() as session:
        return not number(session, "SELECT count(*) FROM projects")


def _address(database: Database) -> str:
    facts = database.facts()
    if database.kind == "sqlite":
        return os.path.realpath(database.path)
    return f"{facts['path']} (schema {facts['schema']})"


def _require_current(source: Database, session: Session) -> int:
    version = schema_version(source, session)
    if version == COPYING:
        raise ConflictError(f"{_address(source)} is an unfinished copy itself. Finish it first.")
    if version == 0:
        raise NotFoundError(f"{_address(source)} holds no store of Smara.")
    if version > HEAD and opened_by(session, version) > HEAD:
        raise _too_new(source, version, "which this one cannot read")
    if version < HEAD:
        raise InvalidInputError(
            f"{_address(source)} has schema {version}, and this Smara copies schema {HEAD}. Open it"
            " once with this version (`smara --db FROM status`), which brings it up to date."
        )
    return version


def _too_new(source: Database, version: int, why: str) -> SchemaTooNewError:
    return SchemaTooNewError(
        f"A newer Smara brought {_address(source)} to schema {version}, {why}. Upgrade with `pip"
        " install --upgrade smara` and copy with that release; nothing was copied.",
        found=version,
        known=HEAD,
    )


def _scopes(session: Session, names: Sequence[str] | None) -> list[Scope]:
    rows = session.all("SELECT no, id FROM projects ORDER BY no")
    there = {str(name): Scope(int(no), str(name)) for no, name in rows}
    missing = [name for name in names or () if name not in there]
    if missing:
        raise NotFoundError(f"Project not found in FROM: {missing[0]}.")
    return [there[name] for name in names] if names else list(there.values())


def _is_copying(target: Database) -> bool:
    with target.read() as session:
        return schema_version(target, session) == COPYING


@contextmanager
def _alone(target: Database, clock: Clock) -> Iterator[None]:
    """Hold the target for one process that copies."""
    leases = Leases(target, clock, Uuid7(clock))
    lease = leases.acquire_from_gone(_LEASE, f"{host_name()}:{os.getpid()}", _LEASE_SECONDS)
    if lease is None:
        raise BusyError("Another process copies into this store. Wait until it is done.")
    with leases.hold(lease, _LEASE_SECONDS) as beat:
        yield
        beat.check()


class _WholeCopy:
    """One copy into an empty store, from one moment of the source."""

    def __init__(
        self, source: Database, target: Database, session: Session, *, scopes: Sequence[Scope]
    ) -> None:
        self._source = source
        self._target = target
        self._session = session
        self._facts = json.dumps(
            {"schema": HEAD, "projects": [scope.project_id for scope in scopes]}
        )
        with target.read() as other:
            numbers = [int(scope.project_no) for scope in scopes]
            self._streams = streams((source, session), (target, other), numbers)
        self._progress: dict[str, int] = {}

    def run(self, clock: Clock, is_resumed: bool) -> CopyReport:
        """Copy everything, or go on with it, and compare."""
        if not is_resumed:
            self.begin(clock)
        self.resume()
        self.copy()
        checks = self.make_equal()
        if self._target.kind == "postgres":
            with self._target.write(is_derived=True) as other:
                # Without statistics a server reads every row for a rare word.
                self._target.fulltext.optimize(other)
                self._target.records.optimize(other)
        self.finish(clock)
        self._target.shrink_log()
        names = json.loads(self._facts)["projects"]
        return CopyReport(
            _address(self._source),
            _address(self._target),
            projects={name: name for name in names},
            is_resumed=is_resumed,
            tables=checks,
        )

    def begin(self, clock: Clock) -> None:
        """Mark the target as a copy that is not finished."""
        with self._target.write() as session:
            session.run(
                "INSERT INTO copies (id, source, facts, progress, started_at)"
                " VALUES (?, ?, ?, '{}', ?)",
                (Uuid7(clock)(), _address(self._source), self._facts, clock.now_ms()),
            )
            _set_schema(self._target, session, COPYING, clock.now_ms())

    def resume(self) -> None:
        """Read how far the copy is.

        Raises:
            ConflictError: If it is a copy of something else.
        """
        with self._target.read() as session:
            row = session.one(
                "SELECT source, facts, progress FROM copies WHERE finished_at IS NULL"
            )
        there = _address(self._source), self._facts
        if row is None or row[:2] != there:
            begun = f"{row[0]} {json.loads(row[1])['projects']}" if row else "another store"
            raise ConflictError(
                f"{_address(self._target)} holds an unfinished copy of {begun}. Finish that one, or"
                " copy to a new file or schema."
            )
        self._progress = json.loads(row[2])

    def copy(self) -> None:
        """Write the rows behind those that are there."""
        for stream in self._streams:
            if self._progress.get(f"{stream.name}.done"):
                continue
            if stream.name == "embedding_queue":
                with self._target.write(is_derived=True) as other:
                    # Triggers have put every record there; most have their vectors.
                    other.run("DELETE FROM embedding_queue")
            after = self._progress.get(stream.name, 0)
            for rows in _batches(stream, stream.read(self._source, self._session, after)):
                with self._target.write(is_derived=True) as other:
                    stream.write(self._target, other, rows, is_new=True)
                    if stream.is_numbered:
                        self._note(other, stream.name, rows[-1][0])
            with self._target.write(is_derived=True) as other:
                if isinstance(stream, TableStream):
                    stream.close_loops(self._session, other)
                stream.finish(self._target, other)
                self._note(other, f"{stream.name}.done", 1)

    def make_equal(self) -> dict[str, TableCheck]:
        """Read every row of both stores; write again what differs.

        Returns:
            Rows and checksum of each table, the same in both.

        Raises:
            CorruptError: If the target does not become equal.
        """
        for _ in range(_MOST_ROUNDS):
            checks: dict[str, TableCheck] = {}
            gone: list[tuple[Stream, list[Row]]] = []
            is_equal = True
            for stream in self._streams:
                comparison = _Comparison(stream)
                with self._target.snapshot() as other:
                    comparison.run(
                        stream.read(self._source, self._session), stream.read(self._target, other)
                    )
                checks[stream.name] = comparison.check
                if not comparison.is_equal:
                    is_equal = False
                    self._repair(stream, comparison.changed)
                    gone.append((stream, comparison.gone))
            for stream, rows in reversed(gone):
                with self._target.write(is_derived=True) as other:
                    stream.remove(self._target, other, rows)
                    stream.finish(self._target, other)
            if is_equal:
                return {name: check for name, check in checks.items() if check.rows}
        raise CorruptError(
            f"{_address(self._target)} did not become equal to {_address(self._source)}: a copy"
            " of it cannot be trusted. Check the disk, and copy to a new place."
        )

    def _repair(self, stream: Stream, rows: list[Row]) -> None:
        with self._target.write(is_derived=True) as other:
            if not isinstance(stream, TableStream):
                stream.remove(self._target, other, rows)
            stream.write(self._target, other, rows)
            if isinstance(stream, TableStream):
                stream.close_loops(self._session, other)
            stream.finish(self._target, other)

    def finish(self, clock: Clock) -> None:
        """Open the target for use."""
        with self._target.write() as session:
            session.run(
                "UPDATE copies SET finished_at = ?, progress = '{}' WHERE finished_at IS NULL",
                (clock.now_ms(),),
            )
            # A target that a newer Smara made keeps its schema: its steps are not taken twice.
            steps = f"SELECT max(number) FROM migrations WHERE number < {COPYING}"
            version = number(session, steps)
            _set_schema(self._target, session, version, clock.now_ms())

    def _note(self, session: Session, name: str, value: int) -> None:
        self._progress[name] = value
        session.run(
            "UPDATE copies SET progress = ? WHERE finished_at IS NULL",
            (json.dumps(self._progress),),
        )


def _set_schema(database: Database, session: Session, version: int, now_ms: int) -> None:
    if database.kind == "sqlite":
        session.run(f"PRAGMA user_version = {int(version)}")
    elif version == COPYING:
        session.run(
            "INSERT INTO migrations (number, name, applied_at) VALUES (?, 'copying', ?)",
            (version, now_ms),
        )
    else:
        session.run("DELETE FROM migrations WHERE number = ?", (COPYING,))


def _batches(stream: Stream, rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Yield rows in parts of bounded size; rows of one unit stay together."""
    batch: list[Row] = []
    size, unit = 0, None
    for row in rows:
        mine = stream.unit(row)
        if (len(batch) >= _MOST_ROWS or size >= _MOST_BYTES) and mine != unit:
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += sum(len(value) for value in row if isinstance(value, (str, bytes)))
        unit = mine
    if batch:
        yield batch


class _Comparison:
    """Finds the rows in which two streams differ, in one pass over both."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.changed: list[Row] = []
        """Rows of the source that the target lacks or has otherwise."""
        self.gone: list[Row] = []
        """Rows of the target that the source lacks."""
        self._hash = hashlib.sha256()
        self._rows = 0

    @property
    def is_equal(self) -> bool:
        return not self.changed and not self.gone

    @property
    def check(self) -> TableCheck:
        return TableCheck(self._rows, self._hash.hexdigest())

    def run(self, ours: Iterator[Row], theirs: Iterator[Row]) -> None:
        """Compare rows of the source with rows of the target."""
        width = self._stream.key_width
        other: Any = next(theirs, None)
        for row in ours:
            self._rows += 1
            # Version 0 of the format gives the same bytes for the same values.
            self._hash.update(marshal.dumps(row, 0))
            while other is not None and _order(other[:width]) < _order(row[:width]):
                self.gone.append(other)
                other = next(theirs, None)
            if other == row:
                other = next(theirs, None)
                continue
            self.changed.append(row)
            if other is not None and other[:width] == row[:width]:
                other = next(theirs, None)
        self.gone += chain([] if other is None else [other], theirs)


def _order(key: Sequence[Any]) -> list[Any]:
    """Return a key as both databases order it: texts by their bytes."""
    return [
        value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value for value in key
    ]
