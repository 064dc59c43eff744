"""Define the records of other tools, and their formats.

A reader yields messages, facts, and what it leaves out. It raises `Malformed` with the place of a
record that it cannot read; an import reads everything once before it stores anything.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zipfile import BadZipFile, ZipFile

import apsw

from smara.core.clock import to_ms
from smara.core.files import read_regular
from smara.core.startup.record import dataclass
from smara.core.startup.regex import regex
from smara.errors import InvalidInputError
from smara.knowledge.models import MemoryType
from smara.messages.models import ROLES, Role

_HEAD_BYTES = 64 << 10
_MOST_FILES_LOOKED_AT = 20
_MOST_DOCUMENT_BYTES = 1 << 30
_SQLITE = b"SQLite format 3\x00"
_WAL_VERSION = b"\x02"
_BUSY_MS = 5_000
_SECONDS_BELOW = 100_000_000_000
"""A time below is in seconds: as milliseconds it would be before 1974."""
_YEAR_10000_MS = 253_402_300_800_000
_KEY = regex(r'"(\w+)"\s*:')


class Malformed(ValueError):
    """A record that cannot be read, with its place."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place}: {why}")


@dataclass(frozen=True, slots=True)
class ForeignFact:
    """A statement of another tool: it becomes a memory."""

    id: str
    """Its name there; the same at every import."""
    text: str
    at_ms: int | None = None
    """When it was learned there."""
    type: MemoryType | None = None
    """Its type here; ``None`` to tell by its words."""
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    part: str = ""
    """The project, person or bank of the other tool that it belongs to."""
    is_personal: bool = True
    ended_ms: int | None = None
    """When it stopped being true there; such a fact is stored as superseded."""
    session_id: str | None = None
    messages: tuple[str, ...] = ()
    """The ids of messages that it rests on; they come before it."""


@dataclass(frozen=True, slots=True)
class ForeignMessage:
    """Something that was said or written: it becomes a message."""

    id: str
    thread: str
    text: str
    role: Role = "system"
    at_ms: int | None = None
    title: str | None = None
    """The title of its thread."""
    person: str | None = None
    part: str = ""
    kind: str = ""
    """Its sort, if it is not part of a conversation: ``note``, ``summary`` …"""
    session_id: str | None = None
    """The session of an agent that it was said in; a transcript may have brought it already."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A record that is not imported, and why."""

    reason: str
    part: str = ""


ForeignRecord = ForeignFact | ForeignMessage | Unread


@dataclass(frozen=True, slots=True)
class ForeignFormat:
    """Everything about one format of another tool."""

    name: str
    """Its name in ``--from NAME``, and before the ids of its records."""
    title: str
    """The tool's name for people."""
    recognizes: Callable[[Candidate], bool]
    read: Callable[[str], Iterator[ForeignRecord]]
    parts_are_projects: bool = False
    """True if one store holds many projects, of which one is imported."""


class Candidate:
    """A path to be recognized; each fact about it is read once."""

    def __init__(self, path: str) -> None:
        self.path = path

    @cached_property
    def head(self) -> bytes:
        """The first bytes of a file."""
        try:
            return read_regular(self.path, _HEAD_BYTES)
        except OSError:
            return b""

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of JSON objects at the beginning of a file."""
        text = self.head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
        return frozenset(_KEY.findall(text)) if text[:1] in ("{", "[") else frozenset()

    @cached_property
    def tables(self) -> Mapping[str, frozenset[str]]:
        """The tables of a SQLite file, each with its columns."""
        if not self.head.startswith(_SQLITE):
            return {}
        try:
            with database(self.path) as connection:
                return tables_of(connection)
        except Malformed:
            return {}

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        """The file ``manifest.json`` of a ZIP."""
        try:
            with ZipFile(self.path) as archive:
                value = read_entry(archive, "manifest.json")
        except (OSError, BadZipFile, Malformed):
            return {}
        return value if isinstance(value, dict) else {}

    @cached_property
    def notes(self) -> Sequence[str]:
        """The beginnings of Markdown files: of this one, or in this folder."""
        if not os.path.isdir(self.path):
            is_note = self.path.lower().endswith(".md")
            return (self.head.decode("utf-8", "replace"),) if is_note else ()
        inside = islice(notes_in(self.path), _MOST_FILES_LOOKED_AT)
        return [Candidate(str(each)).head.decode("utf-8", "replace") for each in inside]


def notes_in(folder: str) -> Iterator[Path]:
    """Yield the Markdown files in a folder, by name, without hidden ones."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(files):
            if name.lower().endswith(".md") and not name.startswith("."):
                yield Path(place, name)


@contextmanager
def database(path: str) -> Iterator[apsw.Connection]:
    """Open a SQLite file for reading; nothing is put beside it.

    Raises:
        Malformed: If it is damaged or not a database.
    """
    place = os.path.realpath(path)
    head = Candidate(place).head
    if not head.startswith(_SQLITE):
        raise Malformed(path, "it is no SQLite or libSQL database")
    log = f"{place}-wal"
    has_log = os.path.exists(log) and os.path.getsize(log) > 0
    is_at_rest = head[18:19] == _WAL_VERSION and not has_log
    url = f"file:{quote(place)}?mode=ro{'&immutable=1' if is_at_rest else ''}"
    connection = None
    try:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(url, flags=flags)
        connection.set_busy_timeout(_BUSY_MS)
        connection.execute("PRAGMA query_only = 1")
        connection.execute("PRAGMA trusted_schema = 0")
        connection.execute("BEGIN")  # all tables are read as they are at one moment
        yield connection
    except (apsw.Error, UnicodeDecodeError) as error:
        raise Malformed(path, " ".join(str(error).split()) or type(error).__name__) from error
    finally:
        if connection is not None:
            connection.close()


def tables_of(connection: apsw.Connection) -> dict[str, frozenset[str]]:
    """Return the columns of each table."""
    statement = (
        "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c"
        " WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    found: dict[str, set[str]] = {}
    for table, name in connection.execute(statement):
        found.setdefault(str(table), set()).add(str(name))
    return {table: frozenset(columns) for table, columns in found.items()}


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file.

    Raises:
        Malformed: If it cannot be read or is too large.
    """
    try:
        raw = read_regular(path, _MOST_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise Malformed(os.fspath(path), f"it cannot be read ({error.strerror})") from error
    if len(raw) > _MOST_DOCUMENT_BYTES:
        raise Malformed(os.fspath(path), f"it has more than {_MOST_DOCUMENT_BYTES >> 30} GiB")
    return raw.decode("utf-8", "replace").removeprefix("\ufeff")


def read_document(path: str) -> Any:
    """Return a JSON document, or the list of its lines.

    Raises:
        Malformed: If a line is not JSON.
    """
    text = read_text(path)
    try:
        return parse_json(text, "")
    except Malformed as error:
        whole = error
    lines = text.split("\n")
    try:
        parse_json(lines[0], "")
    except Malformed:
        raise whole from None
    return [
        parse_json(line, f"line {number}") for number, line in enumerate(lines, 1) if line.strip()
    ]


def read_entry(archive: ZipFile, name: str) -> Any:
    """Return the JSON document in a ZIP.

    Raises:
        Malformed: If it is missing, too large, damaged or not JSON.
    """
    try:
        if archive.getinfo(name).file_size > _MOST_DOCUMENT_BYTES:
            raise Malformed(name, f"it has more than {_MOST_DOCUMENT_BYTES >> 30} GiB")
        with archive.open(name) as file:
            text = file.read(_MOST_DOCUMENT_BYTES).decode("utf-8", "replace")
    except (KeyError, BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise Malformed(name, str(error)) from error
    return parse_json(text, name)


def parse_json(text: str, place: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        Malformed: If it is not JSON.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        at = place or f"line {error.lineno}"
        raise Malformed(at, f"it is not JSON ({error.msg.lower()})") from None
    except (ValueError, RecursionError) as error:
        raise Malformed(place or "the file", f"it is not JSON ({error})") from None


def objects_of(values: Any, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the objects of a list, each with its place.

    Raises:
        Malformed: If it is not a list, or one of them is not an object.
    """
    if values is None:
        return
    if not isinstance(values, list):
        raise Malformed(place, f"it should be a list, not {_name_of(values)}")
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise Malformed(f"{place} {number}", f"it should be an object, not {_name_of(value)}")
        yield f"{place} {number}", value


def text_of(record: Mapping[str, Any], place: str, *names: str, needed: bool = True) -> str:
    """Return the first of some fields that has a text.

    Raises:
        Malformed: If a field is not a text, or none has one though it is needed.
    """
    for name in names:
        value = record.get(name)
        if value is not None and not isinstance(value, str):
            raise Malformed(place, f"{name} should be a text, not {_name_of(value)}")
        if value is not None and value.strip():
            return value.strip()
    if needed:
        raise Malformed(place, f"it has no {' or '.join(names)}")
    return ""


def texts_of(record: Mapping[str, Any], place: str, name: str) -> tuple[str, ...]:
    """Return a list of texts without the empty ones; also from JSON.

    Raises:
        Malformed: If it is anything else.
    """
    value = record.get(name)
    if isinstance(value, str):
        value = parse_json(value, f"{place}, {name}") if value.lstrip()[:1] == "[" else [value]
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Malformed(place, f"{name} should be a list of texts")
    return tuple(dict.fromkeys(each.strip() for each in value if each.strip()))


def time_of(record: Mapping[str, Any], place: str, *names: str) -> int | None:
    """Return the first of some fields that has a time, in milliseconds.

    Raises:
        Malformed: If a field is not a time.
    """
    for name in names:
        value = record.get(name)
        if value is None or value == "":
            continue
        try:
            found = to_ms(int(value) if isinstance(value, float) else value, name) or 0
        except (InvalidInputError, ValueError, OverflowError):
            raise Malformed(place, f"{name} {str(value)[:60]!r} is not a time") from None
        if isinstance(value, int | float) and abs(found) < _SECONDS_BELOW:
            found *= 1000
        if not 0 <= found < _YEAR_10000_MS:
            raise Malformed(place, f"{name} {str(value)[:60]!r} is no time since 1970")
        return found
    return None


def digest_of(text: str) -> str:
    """Return a short name for a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def role_of(name: Any) -> Role:
    """Return a role of ours for that of another tool."""
    aliases = {"human": "user", "ai": "assistant", "function": "tool"}
    name = aliases.get(str(name).lower(), str(name).lower())
    return next((role for role in ROLES if role == name), "system")


def _name_of(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return names.get(type(value), "nothing" if value is None else "a number")
