"""The structured twin of a tool result (``toolUseResult``), made compact.

Most of it repeats the words of the result or of the call, or whole files; those are
named by their size. Small facts that stand nowhere else are kept as metadata. Output of
a command that the result itself does not contain (it is cut when it is long) is kept
whole, as a part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from smara.adapters.decoding import list_in, mapping_in, text_in
from smara.messages.models import Part

_SHORT_CHARS = 200
_MAX_FACTS = 24
_OUTPUTS = ("stdout", "stderr")
_ALWAYS = ("filePath", "agentId", "backgroundTaskId", "status", "url")
_TOKEN_COUNTS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}


def compact_result(result: Any, parts: Sequence[Part]) -> tuple[dict[str, Any], tuple[Part, ...]]:
    """The facts worth keeping as metadata, and the parts for output found nowhere else."""
    words = "\n".join(part.text for part in parts)
    if isinstance(result, str):
        message = result.removeprefix("Error: ").strip()
        if not message or message in words:
            return {}, ()
        if len(message) <= _SHORT_CHARS:
            return {"message": message}, ()
        return {}, (Part("tool_result", message, name="message", call_id=_call_id(parts)),)
    facts = _facts(mapping_in(result), words)
    return facts, _outputs(mapping_in(result), words, parts)


def _facts(result: Mapping[str, Any], words: str, depth: int = 0) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for key, value in list(result.items())[:_MAX_FACTS]:
        name = _snake_case(key)[:60]
        if key == "usage":
            facts[name] = compact_usage(value)
        elif key == "structuredPatch":
            facts["patch"] = _patch(value)
        elif isinstance(value, dict):
            facts[name] = _facts(value, words, depth + 1) if depth < 2 else {}
        elif isinstance(value, list):
            facts[f"{name}_count"] = len(value)
        elif not isinstance(value, str):
            facts[name] = value
        elif len(value) > _SHORT_CHARS:
            facts[f"{name}_chars"] = len(value)
        elif key in _ALWAYS or value.strip() not in words:
            facts[name] = value
    return {name: value for name, value in facts.items() if value not in (None, False, 0, "", {})}


def _outputs(result: Mapping[str, Any], words: str, parts: Sequence[Part]) -> tuple[Part, ...]:
    found = []
    for name in _OUTPUTS:
        output = text_in(result.get(name))
        if len(output) <= _SHORT_CHARS or output.startswith("data:") or _contains(words, output):
            continue
        found.append(Part("tool_result", output, name=name, call_id=_call_id(parts)))
    return tuple(found)


def _contains(words: str, output: str) -> bool:
    return output.strip() in words or " ".join(output.split()) in " ".join(words.split())


def _call_id(parts: Sequence[Part]) -> str | None:
    return next((part.call_id for part in parts if part.type == "tool_result"), None)


def _patch(hunks: Any) -> dict[str, int]:
    lines = [
        text_in(line) for hunk in list_in(hunks) for line in list_in(mapping_in(hunk).get("lines"))
    ]
    counts = {
        "hunks": len(list_in(hunks)),
        "added": sum(line.startswith("+") for line in lines),
        "removed": sum(line.startswith("-") for line in lines),
    }
    return counts if counts["hunks"] else {}


def compact_usage(usage: Any) -> dict[str, int]:
    """Token counts under our names, those that are not zero."""
    counts = {name: mapping_in(usage).get(key) for key, name in _TOKEN_COUNTS.items()}
    return {name: count for name, count in counts.items() if isinstance(count, int) and count}


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found[1], name).lower()
