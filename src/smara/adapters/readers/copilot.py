"""Read a Copilot CLI session into threads and messages.

The file is ``session-state/<id>/events.jsonl``. Sub-agents write into the file of their
session under an id of their own; each is a thread. Events about the program are counted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from smara.actions.tool_output import failure_in
from smara.adapters.blocks import parts_of, text_parts
from smara.adapters.lines import (
    MAX_LINE_BYTES,
    JsonLine,
    LineReader,
    Recent,
    list_in,
    mapping_in,
    milliseconds,
    read_with,
    text_in,
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

__all__ = ["read_events"]


_TELLING = {
    "session.compaction_complete": ("summaryContent", "compaction_summary"),
    "session.error": ("message", "api_error"),
    "session.handoff": ("summary", "handoff"),
    "session.task_complete": ("summary", "task_complete"),
    "skill.invoked": ("content", "skill"),
    "system.notification": ("content", "notification"),
}
"""The events that are the program's own words: where these stand, and what kind of words they
are.
"""
_SILENT = {
    "assistant": "how an answer came about; its words stand in the answer",
    "hook": "what hooks were asked and said",
    "permission": "whether something was allowed",
    "session": "describes the session",
    "subagent": "what a helper is and how it ended",
    "system": "instructions of the program",
    "tool": "how a call went; its result is told when it has ended",
}
_GUIDANCE = re.compile(
    r"\n*Tool \"[^\"\n]*\" (?:succeeded|failed)\. Additional guidance from \w+ hooks:\n?\s*\Z"
)
"""What stands between a result and what hooks said about it."""


def read_events(
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Record]:
    """Read the events of a session into records.

    No content makes it raise; only a file that cannot be opened does.
    """
    return read_with(_CopilotSession(Path(path)), path, progress, max_line_bytes=max_line_bytes)


class _CopilotSession(LineReader):
    """What has to be remembered of a session while it is read."""

    def __init__(self, path: Path) -> None:
        self._identities = Identities()
        self._thread = NewThread(bounded_id(path.parent.name), metadata={"host": "copilot"})
        self._helpers: dict[str, NewThread] = {}
        self._names: Recent[str | None] = Recent()
        self._at: int | None = None
        self._has_begun = False

    def take(self, entry: JsonLine) -> Iterator[Record]:
        """One event."""
        kind, data = text_in(entry.value.get("type")), mapping_in(entry.value.get("data"))
        self._at = milliseconds(entry.value.get("timestamp")) or self._at
        if kind in ("session.start", "session.resume"):
            context = mapping_in(data.get("context"))
            facts = {
                **self._thread.metadata,
                "cwd": text_in(context.get("cwd")),
                "branch": text_in(context.get("branch")),
                "version": text_in(data.get("copilotVersion")),
            }
            known = {name: fact for name, fact in facts.items() if fact}
            if not self._has_begun:
                named = bounded_id(text_in(data.get("sessionId")) or self._thread.id)
                began = milliseconds(data.get("startTime")) or self._at
                self._thread = replace(self._thread, id=named, created_at=began, metadata=known)
                self._has_begun = True
            yield Counted(entry.line, text_in(entry.value.get("type")), "describes the session")
        elif kind == "session.title_changed":
            if title := shorten_title(text_in(data.get("title"))):
                self._thread = replace(self._thread, title=title)
            yield Counted(
                entry.line, "session.title_changed", "the title of the session", thread=self._thread
            )
        elif kind == "user.message":
            yield self._prompt(entry, data)
        elif kind == "assistant.message":
            yield from self._answer(entry, data)
        elif kind == "tool.execution_start" and text_in(data.get("toolCallId")) not in self._names:
            yield self._call(entry, self._stem(entry), data, "toolName")
        elif kind == "tool.execution_complete":
            yield self._result(entry, data)
        elif kind in _TELLING and (words := text_in(data.get(_TELLING[kind][0]))).strip():
            yield self._keep(
                entry,
                self._stem(entry),
                "system",
                (Part("text", words),),
                {"kind": _TELLING[kind][1]},
            )
        else:
            reason = _SILENT.get(kind.partition(".")[0], "tells of the program, not of the work")
            yield Counted(entry.line, kind[:100] or "without a type", reason)

    # What describes the session

    def _thread_of(self, entry: JsonLine) -> NewThread:
        """The session's thread, or that of the helper whose event it is."""
        helper = text_in(entry.value.get("agentId"))
        if not helper:
            return self._thread
        if helper not in self._helpers:
            facts = {
                **self._thread.metadata,
                "agent_id": bounded_id(helper),
                "session": self._thread.id,
            }
            self._helpers[helper] = NewThread(
                bounded_id(f"{self._thread.id}/agent-{helper}"),
                metadata=facts,
                kind="subagent",
                parent_id=self._thread.id,
                created_at=self._at,
            )
        return self._helpers[helper]

    # What was said and done

    def _prompt(self, entry: JsonLine, data: Mapping[str, Any]) -> Record:
        words, source = text_in(data.get("content")), text_in(data.get("source"))
        files = tuple(_file(mapping_in(each)) for each in list_in(data.get("attachments")))
        is_helper = bool(text_in(entry.value.get("agentId")))
        kind = "agent_prompt" if is_helper or source.startswith("agent-") else source or None
        if self._thread.title is None and kind is None and (title := shorten_title(words)):
            self._thread = replace(self._thread, title=title)
        # Words of a schedule, a skill or another part of the program are no person's.
        role: Role = "user" if kind in (None, "agent_prompt", "user") else "system"
        metadata = {"kind": None if kind == "user" else kind}
        return self._keep(entry, self._stem(entry), role, (*text_parts(words), *files), metadata)

    def _answer(self, entry: JsonLine, data: Mapping[str, Any]) -> Iterator[Record]:
        stem = self._stem(entry)
        thought = text_in(data.get("reasoningText"))
        parts = (
            *((Part("reasoning", thought),) if thought.strip() else ()),
            *text_parts(text_in(data.get("content"))),
        )
        metadata = {
            "model": text_in(data.get("model")),
            "message_id": text_in(data.get("messageId")),
        }
        calls = [mapping_in(each) for each in list_in(data.get("toolRequests"))]
        if has_content(parts) or not calls:
            yield self._keep(entry, stem, "assistant", parts, metadata)
        for number, call in enumerate(calls, 1):
            yield self._call(entry, f"{stem}:{number}", call, "name", metadata)

    def _call(
        self,
        entry: JsonLine,
        stem: str,
        call: Mapping[str, Any],
        name: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> Record:
        call_id, tool = text_in(call.get("toolCallId")) or stem, text_in(call.get(name)) or None
        self._names[call_id] = tool
        asked = Part("tool_call", name=tool, call_id=call_id, arguments=call.get("arguments"))
        return self._keep(entry, stem, "assistant", (asked,), dict(metadata or {}))

    def _result(self, entry: JsonLine, data: Mapping[str, Any]) -> Record:
        call_id = text_in(data.get("toolCallId"))
        result, error = mapping_in(data.get("result")), mapping_in(data.get("error"))
        text = _GUIDANCE.sub(
            "",
            without_memory_blocks(text_in(result.get("content")) or text_in(error.get("message"))),
        )
        code = mapping_in(data.get("shellExecution")).get("exitCode")
        has_code = isinstance(code, int) and not isinstance(code, bool)
        has_failed = (
            data.get("success") is False or (has_code and code != 0) or failure_in(text) is not None
        )
        part = Part(
            "tool_result",
            text,
            name=self._names.get(call_id),
            call_id=call_id or None,
            is_error=has_failed,
        )
        metadata = {"tool_result": {"exit_code": code} if has_code else {}}
        return self._keep(entry, self._stem(entry), "tool", (part,), metadata)

    def _stem(self, entry: JsonLine) -> str:
        return text_in(entry.value.get("id")) or self._identities.of_line(
            self._thread.id, entry.raw
        )

    def _keep(
        self,
        entry: JsonLine,
        unit: str,
        role: Role,
        parts: tuple[Part, ...],
        metadata: dict[str, Any],
    ) -> Record:
        if not has_content(parts):
            return Counted(entry.line, text_in(entry.value.get("type"))[:100], "nothing was said")
        return self._identities.keep(
            entry.line,
            self._thread_of(entry),
            role,
            parts,
            client_id=bounded_id(unit),
            created_at=self._at,
            metadata=metadata,
            repairs=entry.repairs,
        )


def _file(attachment: Mapping[str, Any]) -> Part:
    """A placeholder for what was attached: never its bytes."""
    name = (
        text_in(attachment.get("displayName"))
        or text_in(attachment.get("path"))
        or text_in(attachment.get("url"))
    )
    mime = text_in(attachment.get("mimeType")) or None
    block = {
        "type": "image" if (mime or "").startswith("image/") else "file",
        "media_type": mime,
        "filename": name,
    }
    return parts_of(block)[0]
