"""Read a Copilot CLI session into threads and messages.

The file is ``session-state/<id>/events.jsonl``. Sub-agents write into the file of their
session under an id of their own; each is a thread. Events about the program are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from smara.actions.tool_output import error_of, exit_code_field
from smara.adapters.blocks import first_text, parts_of, text_parts
from smara.adapters.lines import JsonLine, given, list_in, mapping_in, milliseconds, text_in
from smara.adapters.readers.transcript import Transcript
from smara.adapters.records import Record, bounded_id, has_content
from smara.core.memory_block import without_memory_blocks
from smara.core.startup.regex import regex
from smara.messages.models import NewThread, Part, Role

# The events that are the program's own words: where these stand, and what kind of words they are.
_TELLING = {
    "session.compaction_complete": ("summaryContent", "compaction_summary"),
    "session.error": ("message", "api_error"),
    "session.handoff": ("summary", "handoff"),
    "session.task_complete": ("summary", "task_complete"),
    "skill.invoked": ("content", "skill"),
    "system.notification": ("content", "notification"),
}
_SILENT = {
    "assistant": "how an answer came about; its words stand in the answer",
    "hook": "what hooks were asked and said",
    "permission": "whether something was allowed",
    "session": "describes the session",
    "subagent": "what a helper is and how it ended",
    "system": "instructions of the program",
    "tool": "how a call went; its result is told when it has ended",
}
# What stands between a result and what hooks said about it.
_GUIDANCE = regex(
    r"\n*Tool \"[^\"\n]*\" (?:succeeded|failed)\. Additional guidance from \w+ hooks:\n?\s*\Z"
)


class _CopilotSession(Transcript):
    host = "copilot"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.thread = replace(self.thread, id=bounded_id(path.parent.name))
        self._helpers: dict[str, NewThread] = {}

    def take(self, entry: JsonLine) -> Iterator[Record]:
        kind, data = text_in(entry.value.get("type")), mapping_in(entry.value.get("data"))
        self.at = milliseconds(entry.value.get("timestamp")) or self.at
        match kind:
            case "session.start" | "session.resume":
                if not self.has_begun:
                    self._begin(data)
                yield self.count(entry, kind, "describes the session")
            case "session.title_changed":
                self.suggest_title(text_in(data.get("title")), is_given=True)
                yield self.count(entry, kind, "the title of the session", self.thread)
            case "user.message":
                yield self._prompt(entry, data)
            case "assistant.message":
                yield from self._answer(entry, data)
            case "tool.execution_start" if text_in(data.get("toolCallId")) not in self.tool_names:
                yield self._call(entry, self.id_of(entry), data, name=text_in(data.get("toolName")))
            case "tool.execution_complete":
                yield self._result(entry, data)
            case _ if kind in _TELLING and (words := text_in(data.get(_TELLING[kind][0]))).strip():
                yield self._keep(entry, "system", (Part("text", words),), kind=_TELLING[kind][1])
            case _:
                room = kind.partition(".")[0]
                reason = _SILENT.get(room, "tells of the program, not of the work")
                yield self.count(entry, kind, reason)

    def _begin(self, data: Mapping[str, Any]) -> None:
        context = mapping_in(data.get("context"))
        self.thread = replace(
            self.thread,
            id=bounded_id(text_in(data.get("sessionId")) or self.thread.id),
            created_at=milliseconds(data.get("startTime")) or self.at,
            metadata=given(
                self.thread.metadata,
                cwd=text_in(context.get("cwd")),
                branch=text_in(context.get("branch")),
                version=text_in(data.get("copilotVersion")),
            ),
        )
        self.has_begun = True

    def _prompt(self, entry: JsonLine, data: Mapping[str, Any]) -> Record:
        words, source = text_in(data.get("content")), text_in(data.get("source"))
        files: list[Part] = []
        for attachment in map(mapping_in, list_in(data.get("attachments"))):
            # A placeholder for what was attached: never its bytes.
            mime = text_in(attachment.get("mimeType"))
            files += parts_of(
                {
                    "type": "image" if mime.startswith("image/") else "file",
                    "media_type": mime or None,
                    "filename": first_text(attachment, "displayName", "path", "url"),
                }
            )
        is_helper = bool(text_in(entry.value.get("agentId")))
        kind = "agent_prompt" if is_helper or source.startswith("agent-") else source or None
        if kind is None:
            self.suggest_title(words)
        # Words of a schedule, a skill or another part of the program are no person's.
        role: Role = "user" if kind in (None, "agent_prompt", "user") else "system"
        kind = None if kind == "user" else kind
        return self._keep(entry, role, (*text_parts(words), *files), kind=kind)

    def _answer(self, entry: JsonLine, data: Mapping[str, Any]) -> Iterator[Record]:
        stem = self.id_of(entry)
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
            yield self._keep(entry, "assistant", parts, unit=stem, **metadata)
        for number, call in enumerate(calls, 1):
            yield self._call(
                entry, f"{stem}:{number}", call, name=text_in(call.get("name")), **metadata
            )

    def _call(
        self, entry: JsonLine, unit: str, call: Mapping[str, Any], *, name: str, **metadata: Any
    ) -> Record:
        call_id = text_in(call.get("toolCallId")) or unit
        self.tool_names[call_id] = name or None
        part = Part(
            "tool_call", name=name or None, call_id=call_id, arguments=call.get("arguments")
        )
        return self._keep(entry, "assistant", (part,), unit=unit, **metadata)

    def _result(self, entry: JsonLine, data: Mapping[str, Any]) -> Record:
        call_id = text_in(data.get("toolCallId"))
        result, error = mapping_in(data.get("result")), mapping_in(data.get("error"))
        words = text_in(result.get("content")) or text_in(error.get("message"))
        text = _GUIDANCE.sub("", without_memory_blocks(words))
        code = exit_code_field(mapping_in(data.get("shellExecution")))
        part = Part(
            "tool_result",
            text,
            name=self.tool_names.get(call_id),
            call_id=call_id or None,
            is_error=data.get("success") is False or bool(code) or error_of(text) is not None,
        )
        return self._keep(
            entry, "tool", (part,), tool_result={} if code is None else {"exit_code": code}
        )

    def _keep(
        self,
        entry: JsonLine,
        role: Role,
        parts: tuple[Part, ...],
        unit: str | None = None,
        **metadata: Any,
    ) -> Record:
        """Keep a message in the session's thread, or in that of the helper whose event it is."""
        unit = self.id_of(entry) if unit is None else unit
        thread, helper = self.thread, text_in(entry.value.get("agentId"))
        if helper and has_content(parts):
            if helper not in self._helpers:
                self._helpers[helper] = NewThread(
                    bounded_id(f"{thread.id}/agent-{helper}"),
                    metadata={
                        **thread.metadata,
                        "agent_id": bounded_id(helper),
                        "session": thread.id,
                    },
                    kind="subagent",
                    parent_id=thread.id,
                    created_at=self.at,
                )
            thread = self._helpers[helper]
        return self.keep(entry, role, parts, unit=unit, thread=thread, **metadata)


read_events = _CopilotSession.read
