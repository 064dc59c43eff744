"""Convert OpenCode sessions into threads and messages.

A prompt is one message. Each part of an answer (text, thought, call, result) is one; they
share ``message_id``. An unfinished message is counted and imported the next time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from smara.adapters.blocks import parts_of, words_of
from smara.adapters.documents import elements
from smara.adapters.lines import JsonLine, is_database, list_in, mapping_in, milliseconds, text_in
from smara.adapters.readers.opencode_store import (
    StoredMessage,
    StoredSession,
    database_sessions,
    tree_session,
)
from smara.adapters.records import (
    Counted,
    Identities,
    Progress,
    Record,
    bounded_id,
    has_content,
    shorten_title,
)
from smara.core.memory_block import without_memory_blocks
from smara.messages.models import NewThread, Part, Role

__all__ = ["read_sessions"]


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


def read_sessions(
    path: str | os.PathLike[str], progress: Progress | None = None, *, only: str | None = None
) -> Iterator[Record]:
    """Read sessions from a file, an export, or the database.

    ``only`` names one session of the database.

    No content makes it raise; only a file that cannot be opened does.
    """
    number = 0
    for session in _sessions(Path(path), progress, only):
        for record in (
            (session,) if isinstance(session, Counted) else _OpenCodeSession(session).read()
        ):
            number += 1
            yield replace(record, line=number)


def _sessions(
    path: Path, progress: Progress | None, only: str | None
) -> Iterator[StoredSession | Counted]:
    if is_database(path):
        yield from database_sessions(path, only, progress)
        return
    document = elements(path, "messages", progress)
    around = mapping_in(document.around)
    info = mapping_in(around.get("info")) or around
    if isinstance(document.around, dict) and not document.entries:
        yield tree_session(path, info)
    elif info:
        yield StoredSession(info, map(_exported, document.entries))
    else:
        yield from (
            each
            if isinstance(each, Counted)
            else Counted(each.line, "unknown", "not a session of OpenCode")
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


class _OpenCodeSession:
    """One session, as far as it has been read."""

    def __init__(self, session: StoredSession) -> None:
        self._session = session
        self._identities = Identities()
        self._at: int | None = None
        self._place = ""
        session_id = bounded_id(text_in(session.info.get("id")) or "unnamed")
        parent = text_in(session.info.get("parentID"))
        facts: dict[str, Any] = {
            "host": "opencode",
            "cwd": text_in(session.info.get("directory")),
            "version": text_in(session.info.get("version")),
        }
        if parent:
            facts["agent_id"] = session_id
        title = text_in(session.info.get("title"))
        self._thread = NewThread(
            session_id,
            None,
            shorten_title(title) or None,
            metadata={name: fact for name, fact in facts.items() if fact},
            kind="subagent" if parent else "conversation",
            parent_id=bounded_id(parent) if parent else None,
            created_at=milliseconds(mapping_in(session.info.get("time")).get("created")),
        )

    def read(self) -> Iterator[Record]:
        """Yield every message and part.

        An answer is known to be finished when the next one has come.
        """
        found = False
        waiting: StoredMessage | None = None
        for message in self._session.messages:
            found = True
            if isinstance(message, Counted):
                yield message
                continue
            if waiting is not None:
                yield from self._message(waiting, is_last=False)
            waiting = message
        if waiting is not None:
            yield from self._message(waiting, is_last=True)
        if not found:
            yield Counted(1, "session", "a session without messages")

    def _message(self, message: StoredMessage, *, is_last: bool) -> Iterator[Record]:
        info = message.info
        time = mapping_in(info.get("time"))
        self._at = milliseconds(time.get("created", info.get("created"))) or self._at
        self._place = text_in(mapping_in(info.get("path")).get("cwd"))
        if info.get("role") == "user":
            yield from self._said_by_user(message)
            return
        is_finished = not is_last or bool(time.get("completed")) or bool(info.get("error"))
        tokens = info.get("tokens")
        told = mapping_in(tokens)
        cache = mapping_in(told.get("cache"))
        counts = {
            "input_tokens": told.get("input"),
            "output_tokens": told.get("output"),
            "reasoning_tokens": told.get("reasoning"),
            "cache_read_tokens": cache.get("read"),
            "cache_write_tokens": cache.get("write"),
        }
        usage = {
            name: int(count)
            for name, count in counts.items()
            if isinstance(count, int | float) and count
        }
        for part in message.parts:
            if isinstance(part, Counted):
                yield part
                continue
            records = list(self._part(part, info, usage, is_finished=is_finished))
            usage = {} if any(not isinstance(record, Counted) for record in records) else usage
            yield from records
        error = mapping_in(info.get("error"))
        words = words_of(error.get("data")) or words_of(error) or text_in(error.get("name"))
        if words.strip():
            parts = (Part("text", words),)
            yield self._keep(
                f"{text_in(info.get('id'))}:error", "system", parts, {"kind": "api_error"}
            )
        if not message.parts and not info.get("error"):
            yield Counted(1, "message", "nothing was said")

    def _said_by_user(self, message: StoredMessage) -> Iterator[Record]:
        own: list[Part] = []
        message_id = text_in(message.info.get("id")) or "unnamed"
        for part in message.parts:
            if isinstance(part, Counted):
                yield part
            elif (
                part.get("type") == "text"
                and (words := text_in(part.get("text")))
                and not without_memory_blocks(words)
            ):
                yield Counted(1, "part/hook", "what memory told the agent itself")
            elif part.get("type") == "text" and (
                part.get("synthetic") is True or part.get("ignored") is True
            ):
                yield self._keep(
                    text_in(part.get("id")), "system", _worded("text", part), {"kind": "synthetic"}
                )
            elif part.get("type") in ("text", "file"):
                own += _worded("text", part) if part["type"] == "text" else _file(part)
            elif part.get("type") == "subtask":
                own += [Part("text", words_of([part.get("command"), part.get("prompt")]))]
            else:
                yield _counted(part)
        if own:
            said = "\n".join(part.text for part in own if part.type == "text")
            if self._thread.title is None and said.strip():
                self._thread = replace(self._thread, title=shorten_title(said) or None)
            kind = "agent_prompt" if self._thread.kind == "subagent" else None
            yield self._keep(message_id, "user", tuple(own), {"kind": kind})
        elif not message.parts:
            yield Counted(1, "message", "nothing was said")

    def _part(
        self,
        part: Mapping[str, Any],
        info: Mapping[str, Any],
        usage: dict[str, int],
        is_finished: bool,
    ) -> Iterator[Record]:
        kind, part_id = text_in(part.get("type")), text_in(part.get("id"))
        time = mapping_in(part.get("time"))
        self._at = milliseconds(time.get("start")) or self._at
        metadata = {
            "model": text_in(info.get("modelID")),
            "message_id": text_in(info.get("id")),
            "usage": usage,
        }
        if kind == "tool":
            yield from self._tool(part, part_id, metadata)
        elif kind not in ("text", "reasoning"):
            yield _counted(part)
        elif not is_finished and not time.get("end"):
            yield Counted(1, kind, _UNFINISHED)
        elif info.get("summary") is True and kind == "text":
            yield self._keep(
                part_id, "system", _worded(kind, part), {**metadata, "kind": "compaction_summary"}
            )
        else:
            yield self._keep(part_id, "assistant", _worded(kind, part), metadata)

    def _tool(
        self, part: Mapping[str, Any], part_id: str, metadata: dict[str, Any]
    ) -> Iterator[Record]:
        state = mapping_in(part.get("state"))
        status, time = text_in(state.get("status")), mapping_in(state.get("time"))
        call_id, name = text_in(part.get("callID")) or part_id, text_in(part.get("tool")) or None
        if status == "pending" or (status == "running" and not state.get("input")):
            yield Counted(1, "tool", _UNFINISHED)
            return
        self._at = milliseconds(time.get("start")) or self._at
        asked = Part("tool_call", name=name, call_id=call_id, arguments=state.get("input"))
        yield self._keep(part_id, "assistant", (asked,), metadata)
        if status not in ("completed", "error"):
            return
        self._at = milliseconds(time.get("end")) or self._at
        about = mapping_in(state.get("metadata"))
        code = about.get("exit")
        has_failed = status == "error" or (
            isinstance(code, int) and not isinstance(code, bool) and code != 0
        )
        text = without_memory_blocks(
            text_in(state.get("error")) if status == "error" else text_in(state.get("output"))
        )
        files = tuple(
            each for file in list_in(state.get("attachments")) for each in _file(mapping_in(file))
        )
        facts = {
            "exit_code": code if isinstance(code, int) else None,
            "title": text_in(state.get("title"))[:200],
        }
        agent = text_in(about.get("sessionId")) or text_in(about.get("sessionID"))
        result = Part("tool_result", text, name=name, call_id=call_id, is_error=has_failed)
        about_result = {
            "tool_result": {key: fact for key, fact in facts.items() if fact not in (None, "")}
        }
        yield self._keep(
            f"{part_id}:result", "tool", (result, *files), {**about_result, "agent_thread": agent}
        )

    def _keep(
        self, unit_id: str, role: Role, parts: tuple[Part, ...], metadata: dict[str, Any]
    ) -> Record:
        if not has_content(parts):
            return Counted(1, "part", "nothing was said")
        if self._place and self._place != self._thread.metadata.get("cwd"):
            metadata = {**metadata, "cwd": self._place}
        return self._identities.keep(
            1,
            self._thread,
            role,
            parts,
            client_id=bounded_id(unit_id or "unnamed"),
            created_at=self._at,
            metadata=metadata,
        )


def _worded(kind: str, part: Mapping[str, Any]) -> tuple[Part, ...]:
    words = text_in(part.get("text"))
    if kind == "reasoning":
        return (Part("reasoning", words),) if words.strip() else ()
    return (Part("text", words),)


def _file(part: Mapping[str, Any]) -> tuple[Part, ...]:
    mime, url = text_in(part.get("mime")), text_in(part.get("url"))
    block = {
        "type": "image" if mime.startswith("image/") else "file",
        "media_type": mime or None,
        "filename": part.get("filename"),
        "image_url": url,
    }
    return parts_of(block)


def _counted(part: Mapping[str, Any]) -> Counted:
    kind = text_in(part.get("type")) or "without a type"
    return Counted(1, f"part/{kind}"[:100], _NO_WORDS.get(kind, f"unknown part: {kind[:60]}"))
