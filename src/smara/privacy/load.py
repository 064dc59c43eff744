"""Read an archive into a store: all of it, or nothing.

Rows are added by their keys; those that are there already are left as they are. Files are checked
against the manifest, and values against the tables, in the transaction that stores them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import IO, Any, Generic, NamedTuple, TypeVar
from zipfile import BadZipFile, ZipFile

from smara.core.ids import bare_key_of, key_of
from smara.core.scope import Scope, require_id
from smara.database.database import Database, Session, marks
from smara.database.migrate import HEAD
from smara.database.project_store import Tombstones
from smara.database.session import PART, Column, number, parts
from smara.errors import DatabaseError, InvalidInputError, NotFoundError
from smara.knowledge.store import KnowledgeStore
from smara.privacy.archive import FORMAT, MANIFEST, VERSION
from smara.privacy.derive import put_totals
from smara.privacy.models import ArchiveReport
from smara.privacy.pointers import check_pointer, count_texts, refuse_texts
from smara.privacy.rows import NUMBERS, exported_name, row_name, stored_value
from smara.privacy.tables import BY_NAME, JSON_COLUMNS, RECORDS, TableSpec
from smara.secrets import redact, redact_value
from smara.tasks.store import TaskStore

_MOST_MANIFEST_BYTES = 64 << 20
_MOST_LINE_BYTES = 256 << 20
COUNTED = frozenset({"compactions", "observation_batches", "observation_cursors", "observations"})
"""Rows that say which messages they are of by their places in the thread.

Of a conversation that went on in both stores only those of the target stay.
"""
_UNIQUE = frozenset({"messages", "observations"})
"""Tables of whose ids no two projects have the same; no key of a divided table says so."""
Row = dict[str, Any]
T = TypeVar("T")


def is_archive(path: str) -> bool:
    """Return True if a file is an archive of Smara."""
    try:
        with ZipFile(path) as archive:
            return archive.getinfo(MANIFEST).file_size <= _MOST_MANIFEST_BYTES
    except (OSError, BadZipFile, KeyError):
        return False


class Loader:
    """Adds the rows of archives to a store."""

    def __init__(
        self,
        database: Database,
        scope_of: Callable[[str], Scope],
        index: Callable[[Session, Mapping[str, int]], None],
    ) -> None:
        self._database = database
        self._scope_of = scope_of
        self._index = index

    def load(self, path: str, project: str | None = None) -> ArchiveReport:
        """Add the rows of an archive that the store lacks.

        Args:
            path: The archive.
            project: The project to read an archive of a single one into; by default its own.

        Raises:
            NotFoundError: If there is no such file.
            InvalidInputError: If it is not an archive, is damaged, or was made by a newer Smara.
        """
        try:
            with ZipFile(path) as archive:
                return self._load(archive, path, project)
        except FileNotFoundError:
            raise NotFoundError(f"File not found: {path}.") from None
        except (OSError, BadZipFile, KeyError, TypeError, AttributeError, ValueError) as error:
            raise InvalidInputError(
                f"{path} is not a sound archive of Smara ({error}). Nothing was stored."
            ) from error

    def _load(self, archive: ZipFile, path: str, project: str | None) -> ArchiveReport:
        with archive.open(MANIFEST) as file:
            manifest = json.loads(file.read(_MOST_MANIFEST_BYTES))
        if manifest["format"] != FORMAT:
            raise ValueError(f"its format is {manifest['format']!r}")
        if manifest["version"] > VERSION or manifest["schema"] > HEAD:
            raise InvalidInputError(
                f"{path} was made by a newer Smara ({manifest.get('smara')}). Upgrade with `pip"
                " install --upgrade smara`; nothing was stored."
            )
        projects = manifest["projects"]
        if project is not None and len(projects) != 1:
            raise InvalidInputError(
                f"{path} holds {len(projects)} projects, so that they cannot be read into one."
                " Leave out --project."
            )
        files = {each["path"]: each for each in manifest["files"] if "kind" in each}
        scopes = [self._scope_of(project or require_id(each["id"], "project")) for each in projects]
        names = tuple(scope.project_id for scope in scopes)
        counts = RowCounts[Counter[str]](Counter(), Counter(), Counter())
        with self._database.write() as session:
            columns = self._database.tables(session)
            newest = {
                table.name: number(session, f"SELECT coalesce(max(no), 0) FROM {table.name}")
                for table in RECORDS
                if any(each.name == "no" for each in columns[table.name])
            }
            for each, scope in zip(projects, scopes, strict=True):
                adder = RowAdder(self._database, session, scope, columns, counts)
                for table in RECORDS:
                    facts = files.get(f"{each['folder']}/{table.name}.ndjson")
                    if facts is not None:
                        adder.add(table, _lines(archive, facts))
                adder.finish()
            self._index(session, newest)
        return ArchiveReport(names, *map(dict, counts))


def _lines(archive: ZipFile, facts: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the rows of a file; refuse it at its end if the checksum differs."""
    digest = hashlib.sha256()
    with archive.open(facts["path"]) as file:
        while line := _read_line(file, facts["path"]):
            digest.update(line)
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError(f"{facts['path']} holds a line that is not an object")
            yield row
    if digest.hexdigest() != facts["sha256"]:
        raise ValueError(f"the checksum of {facts['path']} differs")


def _read_line(file: IO[bytes], path: str) -> bytes:
    line = file.readline(_MOST_LINE_BYTES)
    if len(line) == _MOST_LINE_BYTES:
        raise ValueError(f"{path} holds a line of more than {_MOST_LINE_BYTES >> 20} MiB")
    return line


class RowCounts(NamedTuple, Generic[T]):
    """New rows, rows that were there, and rows that name none."""

    added: T
    present: T
    skipped: T


class RowAdder:
    """Adds rows to the tables of one project, within one transaction."""

    def __init__(
        self,
        database: Database,
        session: Session,
        scope: Scope,
        columns: Mapping[str, Sequence[Column]],
        counts: RowCounts[Counter[str]],
    ) -> None:
        self._database = database
        self._session = session
        self._scope = scope
        self._project = int(scope.project_no)
        self._stones = Tombstones(database, scope)
        self._columns = columns
        self._counts = counts
        self._shifted: set[int] = set()
        """Threads in which messages have other places than where the rows come from."""

    def add(self, table: TableSpec, rows: Iterator[Row]) -> None:
        """Add the rows of a table that are not there yet."""
        before, is_text = self._count(table), table.name == "messages"
        texts = count_texts(self._session, self._project) if is_text else 0
        total = skipped = 0
        loops: list[tuple[Row, dict[str, Any]]] = []
        while batch := list(islice(rows, PART)):
            ready = self._resolve(table, batch, loops)
            for row in ready if is_text else ():
                check_pointer(row["parts"])
            total += len(batch)
            new = [row for row in ready if not before or not self._is_there(table, row)]
            fitting = [
                row
                for row in new
                if table.name not in COUNTED or row["thread_no"] not in self._shifted
            ]
            skipped += len(batch) - len(ready) + len(new) - len(fitting)
            if before and is_text:
                self._place(fitting)
            for row in fitting if before and table.name in ("tasks", "memories") else ():
                self._name(table, row)
            self._insert(table, fitting)
        for row, targets in loops:
            self._close_loop(table, row, targets)
        if is_text and count_texts(self._session, self._project) > texts:
            refuse_texts()
        added = self._count(table) - before
        found = RowCounts(added, total - skipped - added, skipped)
        for counter, count in zip(self._counts, found, strict=True):
            if count:
                counter[table.name] += count

    def finish(self) -> None:
        """Count again what threads say of their messages, tasks and memories."""
        put_totals(self._database, self._session, self._scope)
        source = f"FROM messages m WHERE m.project_no = {int(self._project)}"
        source += " AND m.thread_no = threads.no"
        self._session.run(
            f"UPDATE threads SET last_seq = (SELECT coalesce(max(m.seq), 0) {source}),"
            f" tokens = (SELECT coalesce(sum(m.token_count), 0) {source})"
            f" WHERE project_no = {int(self._project)}"
        )

    def _count(self, table: TableSpec) -> int:
        statement = f"SELECT count(*) FROM {table.name} WHERE project_no = {self._project}"
        return number(self._session, statement)

    def _resolve(
        self, table: TableSpec, batch: Sequence[Row], loops: list[tuple[Row, dict[str, Any]]]
    ) -> list[Row]:
        """Return the rows with numbers in place of keys; without those that name no row."""
        ready = [self._checked(table, row) for row in self._unerased(table, batch)]
        required = {each.name for each in self._columns[table.name] if each.is_required}
        for column, target in table.refs.items():
            if target == table.name:
                # Rows of one table may name each other in any order.
                for row in ready:
                    if row[column] is not None:
                        loops.append((row, {column: row[column]}))
                        row[column] = None
                continue
            names = [target] if isinstance(target, str) else list(target.values())
            for name in names:
                mine = [
                    row for row in ready if isinstance(target, str) or target[row["owner"]] == name
                ]
                numbers = self._numbers(BY_NAME[name], [row[column] for row in mine])
                for row in mine:
                    row[column] = numbers.get(_hashable(row[column]))
            if column in required:
                ready = [row for row in ready if row[column] is not None]
        return ready

    def _unerased(self, table: TableSpec, batch: Sequence[Row]) -> list[Row]:
        """Return the rows without those that were erased here, or whose owner or session was."""
        questions: list[tuple[str, Callable[[Row], Any]]] = [
            (table.name, lambda row: [row.get(exported_name(table, name)) for name in table.key])
        ]
        if table.owner is not None and isinstance(owner := table.refs[table.owner], str):
            name = exported_name(table, table.owner)
            questions.append((owner, lambda row: row.get(name)))
        if table.session is not None:
            questions.append(("thread", lambda row: row.get(str(table.session))))
        if table.name == "memories":
            is_own = "user_taught"
            questions.append(
                ("words", lambda row: None if row.get("source") == is_own else row["fingerprint"])
            )
        left = list(batch)
        for kind, identify in questions:
            names = [_name(identify(row)) for row in left]
            erased = self._stones.erased(self._session, kind, {name for name in names if name})
            left = [
                row
                for row, name in zip(left, names, strict=True)
                if name not in erased or _goes_on(table, row, kind, erased[name])
            ]
        return left

    def _checked(self, table: TableSpec, row: Row) -> Row:
        columns = {
            exported_name(table, each.name): each
            for each in self._columns[table.name]
            if each.name not in (*NUMBERS, *table.omitted)
        }
        if unknown := sorted(row.keys() - columns.keys()):
            raise ValueError(f"{table.name} has no column {unknown[0]!r}")
        # An archive may have been edited, or written before a rule for secrets was known.
        checked = {}
        for name, value in row.items():
            column = columns[name]
            if column.name in table.refs:
                checked[column.name] = value
            else:
                cleaned = value if name in table.key else _clean(table, name, value)
                checked[column.name] = stored_value(table, column, cleaned)
        return checked

    def _numbers(self, target: TableSpec, keys: Sequence[Any]) -> dict[Any, int]:
        """Return the numbers of rows by their keys."""
        distinct = list(dict.fromkeys(_hashable(key) for key in keys if key is not None))
        found: dict[Any, int] = {}
        where = f"FROM {target.name} WHERE project_no = {self._project}"
        if len(target.key) == 1:
            key = target.key[0]
            for part in parts(distinct):
                statement = f"SELECT no, {key} {where} AND {key} IN ({marks(len(part))})"
                found |= {name: no for no, name in self._session.all(statement, part)}
            return found
        for values in distinct:
            same = " AND ".join(f"{name} = ?" for name in target.key)
            statement = f"SELECT no {where} AND {same}"
            row = self._session.one(statement, values)
            if row is not None:
                found[values] = row[0]
        return found

    def _same(self, table: TableSpec, row: Row) -> tuple[str, list[Any]]:
        names = [name for name in table.key if name in row]
        same = "".join(f" AND {name} IS NOT DISTINCT FROM ?" for name in names)
        return f"project_no = {self._project}{same}", [row[name] for name in names]

    def _is_there(self, table: TableSpec, row: Row) -> bool:
        if table.name != "messages":
            where, values = self._same(table, row)
            return bool(self._session.one(f"SELECT 1 FROM {table.name} WHERE {where}", values))
        found = self._session.one(
            "SELECT thread_no, seq FROM messages WHERE id = ? AND project_no = ?",
            (row["id"], self._project),
        ) or self._session.one(
            "SELECT thread_no, seq FROM messages WHERE thread_no = ? AND client_id = ?"
            " AND project_no = ?",
            (row["thread_no"], row["client_id"], self._project),
        )
        if found is not None and found[1] != row["seq"]:
            self._shifted.add(int(found[0]))
        return found is not None

    def _place(self, rows: Sequence[Row]) -> None:
        """Put messages behind those of their threads, if their places are taken."""
        threads = sorted({int(row["thread_no"]) for row in rows})
        last: dict[int, int] = {}
        for part in parts(threads):
            found = self._session.all(
                f"SELECT thread_no, max(seq) FROM messages WHERE project_no = {int(self._project)}"
                f" AND thread_no IN ({marks(len(part))}) GROUP BY thread_no",
                part,
            )
            last |= {int(no): int(seq) for no, seq in found}
        for row in rows:
            no = int(row["thread_no"])
            if row["seq"] <= last.get(no, 0):
                self._shifted.add(no)
                row["seq"] = last[no] + 1
            last[no] = row["seq"]

    def _name(self, table: TableSpec, row: Row) -> None:
        """Give a record another short id if its own is taken."""
        taken = self._session.one(
            f"SELECT 1 FROM {table.name} WHERE project_no = ? AND key = ?",
            (self._project, row["key"]),
        )
        if taken:
            make = TaskStore if table.name == "tasks" else KnowledgeStore
            store = make(self._database, self._scope)
            prefix, _, code = str(row["short_id"]).rpartition("-")
            name = store.new_short_id(self._session, str(row["id"]), prefix, 32 ** len(code))
            row |= {"short_id": name, "key": key_of(name), "bare_key": bare_key_of(name)}

    def _insert(self, table: TableSpec, rows: Sequence[Row]) -> None:
        if table.name in _UNIQUE:
            taken: set[str] = set()
            for part in parts([row["id"] for row in rows]):
                statement = f"SELECT id FROM {table.name} WHERE id IN ({marks(len(part))})"
                taken |= {str(found[0]) for found in self._session.all(statement, part)}
            rows = [row for row in rows if row["id"] not in taken]
        if not rows:
            return
        names = list(rows[0])
        columns = ", ".join(("project_no", *names))
        try:
            self._session.run_many(
                f"INSERT INTO {table.name} ({columns})"
                f" VALUES ({int(self._project)}, {marks(len(names))}) ON CONFLICT DO NOTHING",
                [[row[name] for name in names] for row in rows],
            )
        except DatabaseError as error:
            if type(error) is not DatabaseError:
                raise
            raise ValueError(f"a row of {table.name} does not fit: {error}") from error

    def _close_loop(self, table: TableSpec, row: Row, targets: Mapping[str, Any]) -> None:
        where, values = self._same(table, row)
        for column, key in targets.items():
            no = self._numbers(table, [key]).get(_hashable(key))
            statement = f"UPDATE {table.name} SET {column} = ? WHERE {where} AND {column} IS NULL"
            self._session.run(statement, (no, *values))


def _name(key: Any) -> str:
    """Return the name of a tombstone for a key; an empty one has none."""
    values = key if isinstance(key, list) else [key]
    return row_name(values) if values and values != [None] else ""


def _goes_on(table: TableSpec, row: Row, kind: str, erased_at: int) -> bool:
    """Return True for what happened in a conversation after it was erased."""
    if kind not in ("thread", "threads") or table.holds != "records":
        return False
    at = row.get(table.times[-1] if table.times else "created_at")
    return isinstance(at, int) and at > erased_at


def _hashable(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


def _clean(table: TableSpec, column: str, value: Any) -> Any:
    """Return a value without secrets; what is read as JSON stays JSON."""
    if not isinstance(value, str):
        return redact_value(value)[0] if isinstance(value, (list, dict)) else value
    if column not in JSON_COLUMNS:
        return redact(value).text
    try:
        cleaned, count = redact_value(json.loads(value))
    except ValueError:
        return redact(value).text
    return table.json_text(cleaned) if count else value
