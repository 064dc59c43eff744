"""What of our words a host gave to its model: it stands in the record that the host keeps of the
session.

Claude Code writes what hooks told as attachments, Codex as messages of the developer, Copilot CLI
and Gemini CLI within marks of their own behind a prompt or a result; what they left out, as words
that came too late or were the same as before, is not there. Of a session's start the record of
Copilot CLI does not tell it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from smara.adapters.blocks import parts_of, words_of
from smara.adapters.decoding import list_in, mapping_in, milliseconds, text_in
from smara.adapters.hosts import prompts
from smara.core.telling import CLOSING, OPENING

_BLOCK = re.compile(f"{OPENING}.*?{CLOSING}", re.S)
_MOST_LINE = 1 << 20
_ESCAPED = OPENING.replace("<", "&lt;").replace(">", "&gt;")
_OF_HOOKS = re.compile(f"{prompts.OPENING}(.*?){prompts.CLOSING}", re.S)


def told_in(path: str) -> list[tuple[int, str]]:
    """The blocks in which memory spoke, as they stand in a transcript, each with its time; empty
    without any.
    """
    marks = (OPENING.encode(), _ESCAPED.encode())
    found: list[tuple[int, str]] = []
    try:
        with open(path, "rb") as file:
            for line in file:
                if len(line) <= _MOST_LINE and any(mark in line for mark in marks):
                    found += _told(line)
    except OSError:
        return []
    return found


def _told(line: bytes) -> list[tuple[int, str]]:
    try:
        record = mapping_in(json.loads(line))
    except (ValueError, RecursionError):
        return []
    at_ms = milliseconds(record.get("timestamp"))
    words = _of_hook(record)
    return [(at_ms, block) for block in _BLOCK.findall(words)] if at_ms is not None else []


def _of_hook(record: Any) -> str:
    """What a record holds that a hook told; empty for one of anybody else, who may quote it."""
    attachment, payload = mapping_in(record.get("attachment")), mapping_in(record.get("payload"))
    if record.get("type") == "attachment" and attachment.get("type") == "hook_additional_context":
        return words_of(attachment.get("content"))
    if payload.get("type") == "message" and payload.get("role") == "developer":
        return words_of(payload.get("content"))
    if record.get("type") in ("user.message", "tool.execution_complete"):
        return _of_copilot(mapping_in(record.get("data")))
    return _of_gemini(record) if record.get("type") in ("user", "gemini") else ""


def _of_copilot(data: Mapping[str, Any]) -> str:
    prompt, result = (
        text_in(data.get("transformedContent")),
        text_in(mapping_in(data.get("result")).get("content")),
    )
    return (
        prompt.partition("<system_reminder>")[2]
        or result.partition('\nTool "')[2].partition(" hooks:\n")[2]
    )


def _of_gemini(record: Mapping[str, Any]) -> str:
    results = [mapping_in(call).get("result") for call in list_in(record.get("toolCalls"))]
    words = "\n".join(
        part.text for each in (record.get("content"), *results) for part in parts_of(each)
    )
    return prompts.as_said("\n".join(_OF_HOOKS.findall(words)))
