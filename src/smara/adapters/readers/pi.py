"""Read a Pi session into threads and messages.

A session is a tree, one entry on each line; abandoned branches are kept. A session made from
another begins with copies of its entries under the same ids, which belong to the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from smara.actions.tool_output import exit_code_field
from smara.adapters.blocks import parts_of, text_parts, usage_of
from smara.adapters.lines import JsonLine, given, list_in, mapping_in, milliseconds, text_in
from smara.adapters.readers.transcript import Transcript
from smara.adapters.records import Record, bounded_id, has_content
from smara.messages.models import NewThread, Part, Role

_SILENT = {
    "model_change": "a setting of the session",
    "thinking_level_change": "a setting of the session",
    "custom": "what an extension keeps for itself",
    "label": "a mark in the session",
}
_SUMMARIES = {
    "compaction": "compaction_summary",
    "compactionSummary": "compaction_summary",
    "branch_summary": "branch_summary",
    "branchSummary": "branch_summary",
}
_TOKENS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cacheRead": "cache_read_tokens",
    "cacheWrite": "cache_write_tokens",
}


class _PiSession(Transcript):
    host = "pi"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.thread = replace(self.thread, id=bounded_id(_session_in(path) or "unnamed"))
        self._inherited_until: int | None = None

    def take(self, entry: JsonLine) -> Iterator[Record]:
        value = entry.value
        kind = text_in(value.get("type"))
        self.at = milliseconds(value.get("timestamp")) or self.at
        match kind:
            case "session":
                if not self.has_begun:
                    self._begin(value)
                yield self.count(entry, kind, "describes the session")
            case "session_info":
                self.suggest_title(text_in(value.get("name")), is_given=True)
                yield self.count(entry, kind, "the name of the session", self.thread)
            case "message":
                yield from self._message(entry, mapping_in(value.get("message")))
            case "custom_message":
                yield self._keep(entry, "system", parts_of(value.get("content")), kind="extension")
            case _ if kind in _SUMMARIES:
                summary = text_parts(text_in(value.get("summary")))
                yield self._keep(entry, "system", summary, kind=_SUMMARIES[kind])
            case _:
                yield self.count(entry, kind, _SILENT.get(kind, "tells of the program"))

    def _begin(self, session: Mapping[str, Any]) -> None:
        parent = text_in(session.get("parentSession"))
        self._inherited_until = self.at if parent else None
        self.thread = NewThread(
            bounded_id(text_in(session.get("id")) or self.thread.id),
            metadata=given(
                self.thread.metadata,
                cwd=text_in(session.get("cwd")),
                forked_from=parent and bounded_id(_session_in(Path(parent))),
            ),
            created_at=self.at,
        )
        self.has_begun = True

    def _message(self, entry: JsonLine, message: Mapping[str, Any]) -> Iterator[Record]:
        role, content = text_in(message.get("role")), message.get("content")
        self.at = milliseconds(message.get("timestamp")) or self.at
        parts = parts_of(content)
        words = "\n".join(part.text for part in parts if part.type == "text")
        match role:
            case "assistant":
                yield from self._answer(entry, message)
            case "user":
                self.suggest_title(words)
                yield self._keep(entry, "user", parts)
            case "toolResult":
                result = Part(
                    "tool_result",
                    words,
                    name=text_in(message.get("toolName")) or None,
                    call_id=text_in(message.get("toolCallId")) or None,
                    is_error=message.get("isError") is True,
                )
                others = (part for part in parts if part.type in ("image", "file"))
                yield self._keep(entry, "tool", (result, *others))
            case "bashExecution":
                # A command that the person ran: asked for by them, answered by the machine.
                command, code = text_in(message.get("command")), exit_code_field(message)
                yield self._keep(entry, "user", text_parts(f"!{command}"), kind="shell_input")
                output = text_in(message.get("output"))
                yield self._keep(
                    entry,
                    "tool",
                    (Part("tool_result", output, name="stdout", is_error=bool(code)),),
                    suffix=":output",
                    tool_result={} if code is None else {"exit_code": code},
                    kind="shell_output",
                )
            case _ if role in _SUMMARIES:
                summary = text_parts(text_in(message.get("summary")))
                yield self._keep(entry, "system", summary, kind=_SUMMARIES[role])
            case _:  # "custom", and "hookMessage" as it was called before
                yield self._keep(entry, "system", parts, kind="extension")

    def _answer(self, entry: JsonLine, message: Mapping[str, Any]) -> Iterator[Record]:
        blocks = [mapping_in(each) for each in list_in(message.get("content"))] or [
            {"type": "text", "text": text_in(message.get("content"))}
        ]
        metadata: dict[str, Any] = {
            "model": text_in(message.get("model")),
            "usage": usage_of(message.get("usage"), _TOKENS),
        }
        calls = [each for each in blocks if each.get("type") == "toolCall"]
        words = parts_of([dict(each) for each in blocks if each.get("type") != "toolCall"])
        trouble = text_in(message.get("errorMessage"))
        if has_content(words):
            yield self._keep(entry, "assistant", words, **metadata)
            metadata = {}
        for number, call in enumerate(calls, 1):
            part = Part(
                "tool_call",
                name=text_in(call.get("name")) or None,
                call_id=text_in(call.get("id")) or None,
                arguments=call.get("arguments"),
            )
            yield self._keep(entry, "assistant", (part,), suffix=f":{number}", **metadata)
        if trouble.strip():
            yield self._keep(
                entry, "system", text_parts(trouble), suffix=":error", kind="api_error"
            )
        elif not has_content(words) and not calls:
            yield self.count(entry, "message/assistant", "nothing was said")

    def _keep(
        self,
        entry: JsonLine,
        role: Role,
        parts: tuple[Part, ...],
        *,
        suffix: str = "",
        **metadata: Any,
    ) -> Record:
        written, until = milliseconds(entry.value.get("timestamp")), self._inherited_until
        return self.keep(
            entry,
            role,
            parts,
            unit=f"{self.id_of(entry)}{suffix}",
            label=f"{entry.value.get('type')}/{role}",
            inherited=until is not None and written is not None and written < until,
            **metadata,
        )


def _session_in(path: Path) -> str:
    """The id in the name of a session's file, behind the time."""
    return path.name.split(".")[0].rpartition("_")[2]


read_session = _PiSession.read
