"""Read OpenCode sessions, from its database, its JSON files, or an export.

The database is opened read-only, so that a running agent is never blocked. Messages of
OpenCode's next schema (``session_message``) are converted to the current one. A prompt is one
message. Each part of an answer (text, thought, call, result) is one; they share ``message_id``. An
unfinished message is counted and imported the next time.
"""

from __future__ import annotations

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from smara.actions.tool_output import exit_code_field
from smara.adapters.blocks import parts_of, usage_of, words_of
from smara.adapters.lines import (
    JsonLine,
    elements,
    given,
    is_database,
    list_in,
    load_json,
    mapping_in,
    milliseconds,
    read_whole,
    text_in,
)
from smara.adapters.readers.transcript import Transcript
from smara.adapters.records import Counted, Progress, Record, bounded_id, shorten_title
from smara.core.memory_block import without_memory_blocks
from smara.errors import SmaraError
from smara.messages.models import NewThread, Part, Role

_NO_WORDS = {
    "step-start": "where a step began",
    "step-finish": "where a step ended",
    "snapshot": "which files can be restored; no words",
    "patch": "which files were changed; no words",
    "agent": "which agent was asked for",
    "retry": "a call of the model that was tried again",
    "compaction": "where the conversation was compacted",
    "agent-switched": "a setting of the session",
    "model-switched": "a setting of the session",
}
_UNFINISHED = "still being written; import again later"
_PARTS = "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id"
_MESSAGES = (
    "SELECT id, data, time_created FROM message WHERE session_id = ? ORDER BY time_created, id"
)
_SECOND_MESSAGES = (
    "SELECT id, type, data, time_created FROM session_message WHERE session_id = ? ORDER BY seq"
)
_MOST_BYTES = 80 * 1024 * 1024
# What stands for the line of a message; records are numbered as they come.
_ENTRY = JsonLine(1, b"", {})


class StoredMessage(NamedTuple):
    """A message with its parts; unreadable ones are counted."""

    info: Mapping[str, Any]
    parts: tuple[Mapping[str, Any] | Counted, ...]


class StoredSession(NamedTuple):
    """A session, and its messages in order as they are read."""

    info: Mapping[str, Any]
    messages: Iterator[StoredMessage | Counted]


def read_sessions(
    path: str | os.PathLike[str], progress: Progress | None = None, *, only: str | None = None
) -> Iterator[Record]:
    """Read sessions from a file, an export, or the database.

    ``only`` names one session of the database.

    No content makes it raise; only a file that cannot be opened does.
    """
    records = chain.from_iterable(
        (session,) if isinstance(session, Counted) else _OpenCodeSession(session).records()
        for session in _sessions(Path(path), progress, only)
    )
    for number, record in enumerate(records, 1):
        yield replace(record, line=number)


def _sessions(
    path: Path, progress: Progress | None, only: str | None
) -> Iterator[StoredSession | Counted]:
    if is_database(path):
        rows = session_rows(path)
        if rows is None:
            yield Counted(1, "unreadable", "not a database of OpenCode, or a damaged one")
            return
        chosen = [row for row in rows if only is None or row["id"] == only]
        for number, row in enumerate(chosen, 1):
            yield StoredSession(row, _read_messages(path, row["id"]))
            if progress:
                progress(number, len(chosen))
        return
    document = elements(path, "messages", progress)
    around = mapping_in(document.around)
    info = mapping_in(around.get("info")) or around
    if isinstance(document.around, dict) and not document.entries:
        session_id = text_in(info.get("id")) or path.stem
        if path.parent.name == "info":  # the first versions
            above = path.parent.parent
            messages = _tree_messages(above / "message" / session_id, above / "part" / session_id)
        else:
            storage = path.parent.parent.parent
            messages = _tree_messages(storage / "message" / session_id, storage / "part")
        yield StoredSession(info, messages)
    elif info:
        yield StoredSession(info, map(_exported, document.entries))
    else:
        yield from (
            Counted(each.line, "unknown", "not a session of OpenCode")
            if isinstance(each, JsonLine)
            else each
            for each in document.entries
        )


def _exported(entry: JsonLine | Counted) -> StoredMessage | Counted:
    if isinstance(entry, Counted):
        return entry
    parts = tuple(
        each if isinstance(each, dict) else Counted(1, "part", "not a JSON object")
        for each in list_in(entry.value.get("parts"))
    )
    return StoredMessage(mapping_in(entry.value.get("info")) or entry.value, parts)


class _OpenCodeSession(Transcript):
    host = "opencode"

    def __init__(self, session: StoredSession) -> None:
        info = session.info
        session_id = text_in(info.get("id")) or "unnamed"
        super().__init__(Path(session_id))
        self._messages = session.messages
        parent = text_in(info.get("parentID"))
        self.thread = NewThread(
            bounded_id(session_id),
            title=shorten_title(text_in(info.get("title"))) or None,
            metadata=given(
                host=self.host,
                cwd=text_in(info.get("directory")),
                version=text_in(info.get("version")),
                agent_id=parent and bounded_id(session_id),
            ),
            kind="subagent" if parent else "conversation",
            parent_id=bounded_id(parent) if parent else None,
            created_at=milliseconds(mapping_in(info.get("time")).get("created")),
        )

    def records(self) -> Iterator[Record]:
        """Yield every message and part.

        An answer is known to be finished when the next one has come.
        """
        is_empty = True
        waiting: StoredMessage | None = None
        for message in self._messages:
            is_empty = False
            if isinstance(message, Counted):
                yield message
                continue
            if waiting is not None:
                yield from self._message(waiting, is_last=False)
            waiting = message
        if waiting is not None:
            yield from self._message(waiting, is_last=True)
        if is_empty:
            yield Counted(1, "session", "a session without messages")

    def _message(self, message: StoredMessage, *, is_last: bool) -> Iterator[Record]:
        info = message.info
        time = mapping_in(info.get("time"))
        self.at = milliseconds(time.get("created", info.get("created"))) or self.at
        self.place = text_in(mapping_in(info.get("path")).get("cwd"))
        if info.get("role") == "user":
            yield from self._prompt(message)
            return
        is_finished = not is_last or bool(time.get("completed")) or bool(info.get("error"))
        tokens = mapping_in(info.get("tokens"))
        cache = mapping_in(tokens.get("cache"))
        counts = {
            "input_tokens": tokens.get("input"),
            "output_tokens": tokens.get("output"),
            "reasoning_tokens": tokens.get("reasoning"),
            "cache_read_tokens": cache.get("read"),
            "cache_write_tokens": cache.get("write"),
        }
        usage = usage_of(counts, dict(zip(counts, counts, strict=True)))
        for part in message.parts:
            if isinstance(part, Counted):
                yield part
                continue
            for record in self._part(part, info, usage, is_finished=is_finished):
                yield record
                if not isinstance(record, Counted):
                    usage = {}
        error = mapping_in(info.get("error"))
        words = words_of(error.get("data")) or words_of(error) or text_in(error.get("name"))
        if words.strip():
            unit = f"{text_in(info.get('id'))}:error"
            yield self._keep(unit, "system", (Part("text", words),), kind="api_error")
        if not message.parts and not info.get("error"):
            yield Counted(1, "message", "nothing was said")

    def _prompt(self, message: StoredMessage) -> Iterator[Record]:
        own: list[Part] = []
        for part in message.parts:
            if isinstance(part, Counted):
                yield part
                continue
            kind, words = part.get("type"), text_in(part.get("text"))
            match kind:
                case "text" if words and not without_memory_blocks(words):
                    yield Counted(1, "part/hook", "what memory told the agent itself")
                case "text" if part.get("synthetic") is True or part.get("ignored") is True:
                    unit = text_in(part.get("id"))
                    yield self._keep(unit, "system", (Part("text", words),), kind="synthetic")
                case "text":
                    own.append(Part("text", words))
                case "file":
                    own += _file(part)
                case "subtask":
                    own.append(Part("text", words_of([part.get("command"), part.get("prompt")])))
                case _:
                    yield _count(part)
        if own:
            self.suggest_title("\n".join(part.text for part in own if part.type == "text"))
            kind = "agent_prompt" if self.thread.kind == "subagent" else None
            yield self._keep(text_in(message.info.get("id")), "user", tuple(own), kind=kind)
        elif not message.parts:
            yield Counted(1, "message", "nothing was said")

    def _part(
        self,
        part: Mapping[str, Any],
        info: Mapping[str, Any],
        usage: dict[str, int],
        *,
        is_finished: bool,
    ) -> Iterator[Record]:
        kind, part_id = text_in(part.get("type")), text_in(part.get("id"))
        words, time = text_in(part.get("text")), mapping_in(part.get("time"))
        self.at = milliseconds(time.get("start")) or self.at
        metadata = {
            "model": text_in(info.get("modelID")),
            "message_id": text_in(info.get("id")),
            "usage": usage,
        }
        if kind == "tool":
            yield from self._tool(part, part_id, metadata)
        elif kind not in ("text", "reasoning"):
            yield _count(part)
        elif not is_finished and not time.get("end"):
            yield Counted(1, kind, _UNFINISHED)
        elif kind == "reasoning":
            thought = (Part("reasoning", words),) if words.strip() else ()
            yield self._keep(part_id, "assistant", thought, **metadata)
        elif info.get("summary") is True:
            metadata["kind"] = "compaction_summary"
            yield self._keep(part_id, "system", (Part("text", words),), **metadata)
        else:
            yield self._keep(part_id, "assistant", (Part("text", words),), **metadata)

    def _tool(
        self, part: Mapping[str, Any], part_id: str, metadata: dict[str, Any]
    ) -> Iterator[Record]:
        state = mapping_in(part.get("state"))
        status, time = text_in(state.get("status")), mapping_in(state.get("time"))
        call_id, name = text_in(part.get("callID")) or part_id, text_in(part.get("tool")) or None
        if status == "pending" or (status == "running" and not state.get("input")):
            yield Counted(1, "tool", _UNFINISHED)
            return
        self.at = milliseconds(time.get("start")) or self.at
        call = Part("tool_call", name=name, call_id=call_id, arguments=state.get("input"))
        yield self._keep(part_id, "assistant", (call,), **metadata)
        if status not in ("completed", "error"):
            return
        self.at = milliseconds(time.get("end")) or self.at
        about = mapping_in(state.get("metadata"))
        code = exit_code_field({"exit": about.get("exit")})
        text = without_memory_blocks(text_in(state.get("error" if status == "error" else "output")))
        files = (each for file in list_in(state.get("attachments")) for each in _file(file))
        facts = {
            "exit_code": code,
            "title": text_in(state.get("title"))[:200],
        }
        yield self._keep(
            f"{part_id}:result",
            "tool",
            (
                Part(
                    "tool_result",
                    text,
                    name=name,
                    call_id=call_id,
                    is_error=status == "error" or bool(code),
                ),
                *files,
            ),
            tool_result={key: fact for key, fact in facts.items() if fact not in (None, "")},
            agent_thread=text_in(about.get("sessionId")) or text_in(about.get("sessionID")),
        )

    def _keep(self, unit: str, role: Role, parts: tuple[Part, ...], **metadata: Any) -> Record:
        return self.keep(_ENTRY, role, parts, unit=unit or "unnamed", label="part", **metadata)


def _file(part: Any) -> tuple[Part, ...]:
    file = mapping_in(part)
    mime = text_in(file.get("mime"))
    return parts_of(
        {
            "type": "image" if mime.startswith("image/") else "file",
            "media_type": mime or None,
            "filename": file.get("filename"),
            "image_url": text_in(file.get("url")),
        }
    )


def _count(part: Mapping[str, Any]) -> Counted:
    kind = text_in(part.get("type")) or "without a type"
    return Counted(1, f"part/{kind}"[:100], _NO_WORDS.get(kind, f"unknown part: {kind[:60]}"))


# The store: a tree of files, or a database


def _tree_messages(folder: Path, parts: Path) -> Iterator[StoredMessage | Counted]:
    messages: list[tuple[Any, str, Mapping[str, Any]]] = []
    for each in _tree_objects(folder, "message"):
        if isinstance(each, Counted):
            yield each
            continue
        created = mapping_in(each[1].get("time")).get("created")
        messages.append((created if isinstance(created, int | float) else 0, *each))
    for _, name, info in sorted(messages, key=lambda each: each[:2]):
        yield StoredMessage(
            info,
            tuple(
                each
                if isinstance(each, Counted)
                else each[1] | {"id": text_in(each[1].get("id")) or each[0]}
                for each in _tree_objects(parts / (text_in(info.get("id")) or name), "part")
            ),
        )


def _tree_objects(folder: Path, kind: str) -> Iterator[tuple[str, dict[str, Any]] | Counted]:
    """The objects in the files of a folder, with their names."""
    try:
        names = sorted(each.name for each in os.scandir(folder) if each.name.endswith(".json"))
    except OSError:
        return  # a session without messages has no folder
    for name in names:
        value = read_object(folder / name)
        if isinstance(value, str):
            yield Counted(1, kind, value, detail=name)
        else:
            yield Path(name).stem, value


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


def session_rows(path: str | os.PathLike[str]) -> list[dict[str, Any]] | None:
    """Return the database's sessions, newest first; ``None`` if unreadable.

    They have the names that the files have.
    """
    try:
        with _read_only(path) as connection:
            columns = {row[1] for row in connection.execute("PRAGMA table_info(session)")}
            if not {"id", "directory"} <= columns:
                return None
            rows = connection.execute("SELECT * FROM session ORDER BY time_updated DESC, id DESC")
            return [
                {
                    "id": str(row.get("id")),
                    "directory": row.get("directory"),
                    "title": row.get("title"),
                    "version": row.get("version"),
                    "parentID": row.get("parent_id"),
                    "projectID": row.get("project_id"),
                    "time": {
                        "created": row.get("time_created"),
                        "updated": row.get("time_updated"),
                    },
                }
                for row in map(dict, rows.fetchall())
            ]
    except sqlite3.Error:
        return None


def has_session(path: str | os.PathLike[str], session_id: str) -> bool:
    """Return True if the database has a session and can be read."""
    try:
        with _read_only(path) as connection:
            row = connection.execute("SELECT 1 FROM session WHERE id = ?", [session_id]).fetchone()
            return row is not None
    except sqlite3.Error:
        return False


def _read_messages(
    path: str | os.PathLike[str], session_id: str
) -> Iterator[StoredMessage | Counted]:
    try:
        with _read_only(path) as connection:
            parts = defaultdict[str, list[Any]](list)
            for row in connection.execute(_PARTS, [session_id]):
                part = _object(row["data"], {"id": row["id"]}, "part")
                parts[row["message_id"]].append(part)
            rows = connection.execute(_MESSAGES, [session_id]).fetchall()
            for row in rows:
                about = {"id": row["id"], "created": row["time_created"]}
                info = _object(row["data"], about, "message")
                yield (
                    info
                    if isinstance(info, Counted)
                    else StoredMessage(info, tuple(parts[row["id"]]))
                )
            if rows or not connection.execute("PRAGMA table_info(session_message)").fetchone():
                return
            for row in connection.execute(_SECOND_MESSAGES, [session_id]).fetchall():
                about = {"id": row["id"], "type": row["type"], "created": row["time_created"]}
                message = _object(row["data"], about, "message")
                yield message if isinstance(message, Counted) else _as_first(message)
    except sqlite3.Error:
        reason = "the database cannot be read from here on"
        yield Counted(1, "unreadable", reason, detail=session_id[:100])


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


@contextmanager
def _read_only(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    uri = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=5)
    try:
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            # In a folder that cannot be written to there is no room for the log: read the file as
            # it lies there.
            connection.close()
            connection = sqlite3.connect(f"{uri}&immutable=1", uri=True, timeout=5)
        connection.row_factory = sqlite3.Row
        yield connection
    finally:
        connection.close()


def _as_first(message: Mapping[str, Any]) -> StoredMessage:
    """A message with its content inside, as a message with parts."""
    kind, message_id = text_in(message.get("type")), text_in(message.get("id"))
    info = {**message, "role": "assistant" if kind in ("assistant", "shell") else "user"}
    match kind:
        case "assistant":
            info["modelID"] = text_in(mapping_in(message.get("model")).get("id"))
            return StoredMessage(info, tuple(_parts_of_second(message, message_id)))
        case "shell":
            state = {
                "status": "completed",
                "input": {"command": message.get("command")},
                "output": message.get("output"),
                "time": _times(message.get("time")),
            }
            part = {
                "id": f"{message_id}:shell",
                "type": "tool",
                "tool": "bash",
                "callID": message.get("callID"),
                "state": state,
            }
            return StoredMessage(info, (part,))
        case "agent-switched" | "model-switched":
            return StoredMessage(info, ({"id": f"{message_id}:{kind}", "type": kind},))
        case "compaction":
            part = {"id": f"{message_id}:summary", "type": "text", "text": message.get("summary")}
            at = mapping_in(message.get("time")).get("created", message.get("created"))
            time = {"created": at, "completed": at or 1}
            info |= {"role": "assistant", "summary": True, "time": time}
            return StoredMessage(info, (part,))
    text = {
        "id": f"{message_id}:text",
        "type": "text",
        "text": message.get("text"),
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
        for number, file in enumerate(map(mapping_in, list_in(message.get("files"))), 1)
    ]
    return StoredMessage(info, (text, *files))


def _parts_of_second(message: Mapping[str, Any], message_id: str) -> Iterator[Mapping[str, Any]]:
    for number, each in enumerate(map(mapping_in, list_in(message.get("content"))), 1):
        part_id = f"{message_id}:{text_in(each.get('id')) or number}"
        if each.get("type") != "tool":
            yield {**each, "id": part_id, "time": _times(each.get("time"))}
            continue
        state = mapping_in(each.get("state"))
        given = state.get("input")
        yield {
            "id": part_id,
            "type": "tool",
            "tool": each.get("name"),
            "callID": each.get("id"),
            "state": {
                "status": state.get("status"),
                "input": given if isinstance(given, dict) else {"input": given} if given else {},
                "output": words_of(state.get("content")) or words_of(state.get("result")),
                "error": words_of(state.get("error")),
                "time": _times(each.get("time")),
            },
        }


def _times(time: Any) -> dict[str, Any]:
    fields = mapping_in(time)
    return {"start": fields.get("ran", fields.get("created")), "end": fields.get("completed")}
