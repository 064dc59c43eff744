"""What a tool answered, as text, and whether it failed: every host wraps it differently."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from typing import Any

_NAMES = ("llmContent", "textResultForLlm", "text", "output", "content", "result", "message", "returnDisplay")
_EXIT = re.compile(r"\A\s*(?:Process exited with code|Exit code:?|exit status) (\d+)", re.I)
_LAST_EXIT = re.compile(r"^Exit Code: (\d+)[ \t]*$", re.M)
_REPORTS = ("Command: ", "Output: ", "Stdout: ")
"""How a report begins that tells a command, what it wrote and its exit code, line by line."""
_EXIT_NAMES = ("exit_code", "exitCode", "exit", "code")


def text_of(response: Any) -> str:
    """The words of a response: of a command what it wrote, of a file its content, of blocks their texts."""
    if response is None:
        return ""
    if isinstance(response, str):
        return _unwrapped(response)
    if isinstance(response, list):
        return "\n".join(filter(None, map(text_of, response)))
    if not isinstance(response, Mapping):
        return str(response)
    if isinstance(response.get("stdout"), str):
        return "\n".join(filter(None, (response["stdout"], response.get("stderr") or "")))
    if isinstance(response.get("file"), Mapping):
        return text_of(response["file"])
    found = next((response[name] for name in _NAMES if response.get(name) not in (None, "", [], {})), None)
    if found is not None:
        return text_of(found)
    return json.dumps(response, ensure_ascii=False, default=str) if response else ""


def failure_in(response: Any) -> str | None:
    """What went wrong, when a response that was told as a result is one of a failure; ``None`` when it is not."""
    if isinstance(response, str):
        inner = _inner(response)
        if inner is not None:
            return failure_in(inner)
        code = _EXIT.match(response) or (_LAST_EXIT.search(response) if response.startswith(_REPORTS) else None)
        return response if code and code[1] != "0" else None
    if not isinstance(response, Mapping):
        return None
    if response.get("error"):
        return text_of(response["error"]) or "failed"
    has_failed = (
        response.get("is_error") is True or response.get("isError") is True or response.get("success") is False
        or response.get("resultType") in ("failure", "error") or _code(response) not in (None, 0)
    )  # fmt: skip
    if has_failed:
        return text_of(response) or "failed"
    said = response.get("llmContent")
    return failure_in(said) if isinstance(said, str) else None


def failure_of(payload: Mapping[str, Any], response: Any) -> str | None:
    """The same for a response whose exit code stands beside it in the payload."""
    found = failure_in(response)
    if found is None and isinstance(payload.get("metadata"), Mapping) and _code(payload["metadata"]) not in (None, 0):
        return text_of(response) or "failed"
    return found


def _code(response: Mapping[str, Any]) -> int | None:
    inside = response.get("metadata")
    for place in (response, inside if isinstance(inside, Mapping) else {}):
        for name in _EXIT_NAMES:
            if isinstance(place.get(name), int) and not isinstance(place[name], bool):
                return int(place[name])
    return None


def _unwrapped(text: str) -> str:
    inner = _inner(text)
    return text if inner is None else text_of(inner)


def _inner(text: str) -> Mapping[str, Any] | None:
    """Some hosts hand over their answer as JSON in a text, with the exit code beside it."""
    if not text.startswith('{"output"'):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
