"""Read a Pi session into threads and messages.

A session is a tree, one entry on each line; abandoned branches are kept. A session made from
another begins with copies of its entries under the same ids, which belong to the first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from smara.adapters.blocks import parts_of, text_parts, usage_of
from smara.adapters.lines import (
    MAX_LINE_BYTES,
    JsonLine,
    LineReader,
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
from smara.messages.models import NewThread, Part, Role

__all__ = ["read_session"]


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


def read_session(
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Record]:
    """Read the entries of a session into records.

    No content makes it raise; only a file that cannot be opened does.
    """
    return read_with(_PiSession(Path(path)), path, progress, max_line_bytes=max_line_bytes)


class _PiSession(LineReader):
    """What has to be remembered of a session while it is read."""

    def __init__(self, path: Path) -> None:
        self._identities = Identities()
        named = path.name.split(".")[0].rpartition("_")[2]
        self._thread = NewThread(bounded_id(named or "unnamed"), metadata={"host": "pi"})
        self._at: int | None = None
        self._has_name = self._has_begun = False
        self._inherited_until: int | None = None

    def take(self, entry: JsonLine) -> Iterator[Record]:
        """One entry."""
        value = entry.value
        kind = text_in(value.get("type"))
        self._at = milliseconds(value.get("timestamp")) or self._at
        if kind == "session":
            yield self._described(entry)
        elif kind == "session_info":
            if title := shorten_title(text_in(entry.value.get("name"))):
                self._has_name = True
                self._thread = replace(self._thread, title=title)
            yield Counted(
                entry.line, "session_info", "the name of the session", thread=self._thread
            )
        elif kind == "message":
            yield from self._message(entry, mapping_in(value.get("message")))
        elif kind in _SUMMARIES:
            yield self._keep(
                entry,
                "",
                "system",
                text_parts(text_in(value.get("summary"))),
                {"kind": _SUMMARIES[kind]},
            )
        elif kind == "custom_message":
            yield self._keep(
                entry, "", "system", parts_of(value.get("content")), {"kind": "extension"}
            )
        else:
            yield Counted(
                entry.line,
                kind[:100] or "without a type",
                _SILENT.get(kind, "tells of the program"),
            )

    def _described(self, entry: JsonLine) -> Record:
        value = entry.value
        if not self._has_begun:
            facts = {**self._thread.metadata, "cwd": text_in(value.get("cwd"))}
            parent = text_in(value.get("parentSession"))
            if parent:
                facts["forked_from"] = bounded_id(
                    Path(parent).name.split(".")[0].rpartition("_")[2]
                )
                self._inherited_until = self._at
            self._thread = NewThread(
                bounded_id(text_in(value.get("id")) or self._thread.id),
                metadata={name: fact for name, fact in facts.items() if fact},
                created_at=self._at,
            )
            self._has_begun = True
        return Counted(entry.line, "session", "describes the session")

    def _message(self, entry: JsonLine, message: Mapping[str, Any]) -> Iterator[Record]:
        role = text_in(message.get("role"))
        self._at = milliseconds(message.get("timestamp")) or self._at
        content = message.get("content")
        if role == "user":
            parts = parts_of(content)
            words = "\n".join(part.text for part in parts if part.type == "text")
            if (
                not self._has_name
                and self._thread.title is None
                and (title := shorten_title(words))
            ):
                self._thread = replace(self._thread, title=title)
            yield self._keep(entry, "", "user", parts, {})
        elif role == "assistant":
            yield from self._answer(entry, message)
        elif role == "toolResult":
            yield self._result(entry, message)
        elif role == "bashExecution":
            # A command that the person ran: asked for by them, answered by the machine.
            command, code = text_in(message.get("command")), message.get("exitCode")
            has_failed = isinstance(code, int) and not isinstance(code, bool) and code != 0
            yield self._keep(entry, "", "user", text_parts(f"!{command}"), {"kind": "shell_input"})
            result = Part(
                "tool_result", text_in(message.get("output")), name="stdout", is_error=has_failed
            )
            facts = {
                "tool_result": {"exit_code": code} if isinstance(code, int) else {},
                "kind": "shell_output",
            }
            yield self._keep(entry, ":output", "tool", (result,), facts)
        elif role in _SUMMARIES:
            yield self._keep(
                entry,
                "",
                "system",
                text_parts(text_in(message.get("summary"))),
                {"kind": _SUMMARIES[role]},
            )
        else:  # "custom", and "hookMessage" as it was called before
            yield self._keep(entry, "", "system", parts_of(content), {"kind": "extension"})

    def _answer(self, entry: JsonLine, message: Mapping[str, Any]) -> Iterator[Record]:
        blocks = [mapping_in(each) for each in list_in(message.get("content"))] or [
            {"type": "text", "text": text_in(message.get("content"))}
        ]
        metadata = {
            "model": text_in(message.get("model")),
            "usage": usage_of(message.get("usage"), _TOKENS),
        }
        said = tuple(
            part
            for each in blocks
            if each.get("type") != "toolCall"
            for part in parts_of(dict(each))
        )
        calls = [each for each in blocks if each.get("type") == "toolCall"]
        trouble = text_in(message.get("errorMessage"))
        if has_content(said):
            yield self._keep(entry, "", "assistant", said, metadata)
        for number, call in enumerate(calls, 1):
            asked = Part(
                "tool_call",
                name=text_in(call.get("name")) or None,
                call_id=text_in(call.get("id")) or None,
                arguments=call.get("arguments"),
            )
            yield self._keep(
                entry, f":{number}", "assistant", (asked,), {} if has_content(said) else metadata
            )
        if trouble.strip():
            yield self._keep(entry, ":error", "system", text_parts(trouble), {"kind": "api_error"})
        elif not has_content(said) and not calls:
            yield Counted(entry.line, "message/assistant", "nothing was said")

    def _result(self, entry: JsonLine, message: Mapping[str, Any]) -> Record:
        found = parts_of(message.get("content"))
        text = "\n".join(part.text for part in found if part.type == "text")
        result = Part(
            "tool_result",
            text,
            name=text_in(message.get("toolName")) or None,
            call_id=text_in(message.get("toolCallId")) or None,
            is_error=message.get("isError") is True,
        )
        others = tuple(part for part in found if part.type in ("image", "file"))
        return self._keep(entry, "", "tool", (result, *others), {})

    def _keep(
        self,
        entry: JsonLine,
        unit: str,
        role: Role,
        parts: tuple[Part, ...],
        metadata: dict[str, Any],
    ) -> Record:
        if not has_content(parts):
            return Counted(
                entry.line, f"{entry.value.get('type')}/{role}"[:100], "nothing was said"
            )
        stem = text_in(entry.value.get("id")) or self._identities.of_line(
            self._thread.id, entry.raw
        )
        written = milliseconds(entry.value.get("timestamp"))
        is_copy = (
            self._inherited_until is not None
            and written is not None
            and written < self._inherited_until
        )
        return self._identities.keep(
            entry.line,
            self._thread,
            role,
            parts,
            client_id=bounded_id(f"{stem}{unit}"),
            created_at=self._at,
            metadata={**metadata, "inherited": is_copy},
            repairs=entry.repairs,
        )
