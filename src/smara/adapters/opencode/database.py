"""OpenCode's database: the tables ``session``, ``message`` and ``part``, and ``session_message`` of
its next version.

It is opened for reading alone, so that an agent that is at work is not held up.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from smara.adapters.decoding import load_json
from smara.adapters.opencode.models import StoredMessage, StoredSession
from smara.adapters.opencode.second import as_first
from smara.adapters.records import Counted, Progress

_NO_STORE = "not a database of OpenCode, or a damaged one"
_BROKEN_OFF = "the database cannot be read from here on"


def session_rows(path: str | os.PathLike[str]) -> list[dict[str, Any]] | None:
    """What the database says of its sessions, the newest first; ``None`` when it cannot be read."""
    try:
        with _Opened(path) as connection:
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
    """Whether the database holds a session; ``False`` when it cannot be read."""
    try:
        with _Opened(path) as connection:
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
        yield StoredSession(info, _messages(path, str(info["id"])))
        if progress:
            progress(number, len(wanted))


def _messages(path: str | os.PathLike[str], session_id: str) -> Iterator[StoredMessage | Counted]:
    try:
        with _Opened(path) as connection:
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


class _Opened:
    """A connection that reads only, and is closed at the end."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._uri = f"file:{quote(str(Path(path).absolute()))}"

    def __enter__(self) -> sqlite3.Connection:
        self._connection = self._connect()
        self._connection.row_factory = sqlite3.Row
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(f"{self._uri}?mode=ro", uri=True, timeout=5)
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            # In a folder that cannot be written to there is no room for the log: read the file as
            # it lies there.
            connection.close()
            connection = sqlite3.connect(f"{self._uri}?mode=ro&immutable=1", uri=True, timeout=5)
        return connection
