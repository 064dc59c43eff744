"""Read OpenCode sessions from its JSON files or its database.

The database is opened read-only, so that a running agent is never blocked. Messages of
OpenCode's next schema (``session_message``) are converted to the current one.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from smara.adapters.blocks import words_of
from smara.adapters.lines import list_in, load_json, mapping_in, read_whole, text_in
from smara.adapters.records import Counted, Progress
from smara.errors import SmaraError


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message with its parts; unreadable ones are counted."""

    info: Mapping[str, Any]
    parts: tuple[Mapping[str, Any] | Counted, ...]


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session, and its messages in order as they are read."""

    info: Mapping[str, Any]
    messages: Iterator[StoredMessage | Counted]


_NO_WORDS = ("agent-switched", "model-switched")


def as_first(told: Mapping[str, Any]) -> StoredMessage:
    """A message with its content inside, as a message with parts."""
    kind, message_id = text_in(told.get("type")), text_in(told.get("id"))
    info = {**told, "role": "assistant" if kind in ("assistant", "shell") else "user"}
    if kind == "assistant":
        return StoredMessage(
            {**info, "modelID": text_in(mapping_in(told.get("model")).get("id"))},
            tuple(_parts_of_second(told, message_id)),
        )
    if kind == "shell":
        state = {
            "status": "completed",
            "input": {"command": told.get("command")},
            "output": told.get("output"),
        }
        part = {
            "id": f"{message_id}:shell",
            "type": "tool",
            "tool": "bash",
            "callID": told.get("callID"),
        }
        return StoredMessage(
            info, ({**part, "state": {**state, "time": _times(told.get("time"))}},)
        )
    if kind in _NO_WORDS:
        return StoredMessage(info, ({"id": f"{message_id}:{kind}", "type": kind},))
    if kind == "compaction":
        part = {"id": f"{message_id}:summary", "type": "text", "text": told.get("summary")}
        time = {"created": _at(told), "completed": _at(told) or 1}
        return StoredMessage({**info, "role": "assistant", "summary": True, "time": time}, (part,))
    text = {
        "id": f"{message_id}:text",
        "type": "text",
        "text": told.get("text"),
        "synthetic": kind != "user",
    }
    files = [
        {
            "id": f"{message_id}:file-{number}",
            "type": "file",
            "mime": file.get("mime"),
            "filename": file.get("name"),
            "url": file.get("uri"),
        }
        for number, file in enumerate(map(mapping_in, list_in(told.get("files"))), 1)
    ]
    return StoredMessage(info, (text, *files))


def _parts_of_second(told: Mapping[str, Any], message_id: str) -> Iterator[Mapping[str, Any]]:
    for number, each in enumerate(map(mapping_in, list_in(told.get("content"))), 1):
        part_id = f"{message_id}:{text_in(each.get('id')) or number}"
        if each.get("type") != "tool":
            yield {**each, "id": part_id, "time": _times(each.get("time"))}
            continue
        state = mapping_in(each.get("state"))
        given = state.get("input")
        made = {
            "status": state.get("status"),
            "input": given if isinstance(given, dict) else {"input": given} if given else {},
            "output": words_of(state.get("content")) or words_of(state.get("result")),
            "error": words_of(state.get("error")),
            "time": _times(each.get("time")),
        }
        yield {
            "id": part_id,
            "type": "tool",
            "tool": each.get("name"),
            "callID": each.get("id"),
            "state": made,
        }


def _times(time: Any) -> dict[str, Any]:
    told = mapping_in(time)
    return {"start": told.get("ran", told.get("created")), "end": told.get("completed")}


def _at(told: Mapping[str, Any]) -> Any:
    return mapping_in(told.get("time")).get("created", told.get("created"))


_MOST_BYTES = 80 * 1024 * 1024


def tree_session(path: Path, info: Mapping[str, Any]) -> StoredSession:
    """The session whose file this is."""
    session_id = text_in(info.get("id")) or path.stem
    if path.parent.name == "info":  # the first versions
        above = path.parent.parent
        return StoredSession(
            info, _tree_messages(above / "message" / session_id, above / "part" / session_id)
        )
    storage = path.parent.parent.parent
    return StoredSession(info, _tree_messages(storage / "message" / session_id, storage / "part"))


def _tree_messages(folder: Path, parts: Path) -> Iterator[StoredMessage | Counted]:
    found: list[tuple[Any, str, Mapping[str, Any]]] = []
    for path in _tree_files(folder):
        told = read_object(path)
        if isinstance(told, str):
            yield Counted(1, "message", told, detail=path.name)
            continue
        created = mapping_in(told.get("time")).get("created")
        found.append((created if isinstance(created, int | float) else 0, path.stem, told))
    for _, name, info in sorted(found, key=lambda each: each[:2]):
        yield StoredMessage(info, tuple(_tree_parts(parts / (text_in(info.get("id")) or name))))


def _tree_parts(folder: Path) -> Iterator[Mapping[str, Any] | Counted]:
    for path in _tree_files(folder):
        told = read_object(path)
        if isinstance(told, str):
            yield Counted(1, "part", told, detail=path.name)
        else:
            yield told if text_in(told.get("id")) else {**told, "id": path.stem}


def _tree_files(folder: Path) -> list[Path]:
    try:
        return sorted(Path(each.path) for each in os.scandir(folder) if each.name.endswith(".json"))
    except OSError:
        return []  # a session without messages has no folder


def read_object(path: Path) -> dict[str, Any] | str:
    """The object in a file, or why there is none."""
    try:
        data, problem = read_whole(path, max_bytes=_MOST_BYTES)
        value, _ = load_json(data.decode("utf-8", "replace").strip("\x00 \t\r\n\ufeff"))
    except RecursionError:
        return "nested too deeply to be read"
    except (ValueError, SmaraError):
        return "invalid JSON"
    if problem:
        return problem
    return value if isinstance(value, dict) else "not a JSON object"


_NO_STORE = "not a database of OpenCode, or a damaged one"
_BROKEN_OFF = "the database cannot be read from here on"


def session_rows(path: str | os.PathLike[str]) -> list[dict[str, Any]] | None:
    """Return the database's sessions, newest first; ``None`` if unreadable."""
    try:
        with _ReadOnlyDatabase(path) as connection:
            columns = {row[1] for row in connection.execute("PRAGMA table_info(session)")}
            if not {"id", "directory"} <= columns:
                return None
            rows = connection.execute(
                "SELECT * FROM session ORDER BY time_updated DESC, id DESC"
            ).fetchall()
            return [_info(dict(row)) for row in rows]
    except sqlite3.Error:
        return None


def has_session(path: str | os.PathLike[str], session_id: str) -> bool:
    """Return True if the database has a session and can be read."""
    try:
        with _ReadOnlyDatabase(path) as connection:
            return (
                connection.execute("SELECT 1 FROM session WHERE id = ?", [session_id]).fetchone()
                is not None
            )
    except sqlite3.Error:
        return False


def database_sessions(
    path: str | os.PathLike[str], only: str | None = None, progress: Progress | None = None
) -> Iterator[StoredSession | Counted]:
    """The sessions of the database, the newest first, or one of them."""
    rows = session_rows(path)
    if rows is None:
        yield Counted(1, "unreadable", _NO_STORE)
        return
    wanted = [row for row in rows if only is None or row["id"] == only]
    for number, info in enumerate(wanted, 1):
        yield StoredSession(info, _database_messages(path, str(info["id"])))
        if progress:
            progress(number, len(wanted))


def _database_messages(
    path: str | os.PathLike[str], session_id: str
) -> Iterator[StoredMessage | Counted]:
    try:
        with _ReadOnlyDatabase(path) as connection:
            yield from _read(connection, session_id)
    except sqlite3.Error:
        yield Counted(1, "unreadable", _BROKEN_OFF, detail=session_id[:100])


def _read(connection: sqlite3.Connection, session_id: str) -> Iterator[StoredMessage | Counted]:
    parts: dict[str, list[Any]] = {}
    for row in connection.execute(
        "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id", [session_id]
    ):
        found = _object(row["data"], {"id": row["id"]}, "part")
        parts.setdefault(row["message_id"], []).append(found)
    has_messages = False
    statement = (
        "SELECT id, data, time_created FROM message WHERE session_id = ? ORDER BY time_created, id"
    )
    for row in connection.execute(statement, [session_id]).fetchall():
        has_messages = True
        info = _object(row["data"], {"id": row["id"], "created": row["time_created"]}, "message")
        yield (
            info
            if isinstance(info, Counted)
            else StoredMessage(info, tuple(parts.get(row["id"], ())))
        )
    if has_messages or not connection.execute("PRAGMA table_info(session_message)").fetchone():
        return
    statement = (
        "SELECT id, type, data, time_created FROM session_message WHERE session_id = ? ORDER BY seq"
    )
    for row in connection.execute(statement, [session_id]).fetchall():
        told = _object(
            row["data"],
            {"id": row["id"], "type": row["type"], "created": row["time_created"]},
            "message",
        )
        yield told if isinstance(told, Counted) else as_first(told)


def _object(data: Any, around: dict[str, Any], kind: str) -> dict[str, Any] | Counted:
    try:
        value, _ = load_json(
            data if isinstance(data, str) else bytes(data or b"").decode("utf-8", "replace")
        )
    except (ValueError, TypeError, RecursionError):
        return Counted(1, kind, "invalid JSON", detail=str(around.get("id"))[:100])
    if not isinstance(value, dict):
        return Counted(1, kind, "not a JSON object", detail=str(around.get("id"))[:100])
    return {**value, **{name: each for name, each in around.items() if each is not None}}


def _info(row: dict[str, Any]) -> dict[str, Any]:
    """A row under the names that the files have."""
    return {
        "id": str(row.get("id")),
        "directory": row.get("directory"),
        "title": row.get("title"),
        "version": row.get("version"),
        "parentID": row.get("parent_id"),
        "projectID": row.get("project_id"),
        "time": {"created": row.get("time_created"), "updated": row.get("time_updated")},
    }


class _ReadOnlyDatabase:
    """A connection that reads only, and is closed at the end."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._uri = f"file:{quote(str(Path(path).absolute()))}"

    def __enter__(self) -> sqlite3.Connection:
        connection = sqlite3.connect(f"{self._uri}?mode=ro", uri=True, timeout=5)
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            # In a folder that cannot be written to there is no room for the log: read the file as
            # it lies there.
            connection.close()
            connection = sqlite3.connect(f"{self._uri}?mode=ro&immutable=1", uri=True, timeout=5)
        self._connection = connection
        self._connection.row_factory = sqlite3.Row
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._connection.close()
