"""Extract the text and the failure from a tool's output.

Every host wraps the output of a tool differently. Hooks load this on demand, so it imports
little.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from typing import Any

_NAMES = (
    "llmContent", "textResultForLlm", "text_result_for_llm", "text", "output", "content", "result",
    "message",
    "returnDisplay",
)  # fmt: skip
_EXIT = re.compile(r"\A\s*(?:Process exited with code|Exit code:?|exit status) (\d+)", re.I)
_LAST_EXIT = re.compile(r"^Exit Code: (\d+)[ \t]*$", re.M)
_REPORTS = ("Command: ", "Output: ", "Stdout: ")
"""How a report begins that tells a command, what it wrote and its exit code, line by line."""
_EXIT_NAMES = ("exit_code", "exitCode", "exit", "code")
_WRAPPED = re.compile(r"\A\s*<untrusted_context>\n?(.*?)\n?</untrusted_context>\s*\Z", re.S)
"""What Gemini CLI puts around whatever a tool brought from outside."""
_NUMBERS = re.compile(r"\n(?:Process Group PGID|Background PIDs): [\d, ]+(?=\n|\Z)")
"""Lines that differ from run to run, so that one error would look like many."""
_ENDED = re.compile(r"\n?<(?:shellId: \w+ completed|exited) with exit code (-?\d+)>\s*\Z")
"""How Copilot CLI ends the output of a command."""


def text_of(response: Any) -> str:
    """The words of a response: of a command what it wrote, of a file its content, of blocks their
    texts.
    """
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
    found = next(
        (response[name] for name in _NAMES if response.get(name) not in (None, "", [], {})), None
    )
    if found is not None:
        return text_of(found)
    return json.dumps(response, ensure_ascii=False, default=str) if response else ""


def failure_in(response: Any) -> str | None:
    """What went wrong, when a response that was told as a result is one of a failure; ``None`` when
    it is not.
    """
    if isinstance(response, str):
        inner = _inner(response)
        if inner is not None:
            return failure_in(inner)
        words = bare(response)
        code = _EXIT.match(words) or (
            _LAST_EXIT.search(words) if words.startswith(_REPORTS) else _ending(response)
        )
        return words if code and code[1] != "0" else None
    if not isinstance(response, Mapping):
        return None
    if response.get("error"):
        return text_of(response["error"]) or "failed"
    has_failed = (
        response.get("is_error") is True
        or response.get("isError") is True
        or response.get("success") is False
        or _first(response, ("resultType", "result_type")) in ("failure", "error")
        or _code(response) not in (None, 0)
    )
    if has_failed:
        return text_of(response) or "failed"
    said = _first(response, ("llmContent", "textResultForLlm", "text_result_for_llm"))
    return failure_in(said) if isinstance(said, str) else None


def failure_of(payload: Mapping[str, Any], response: Any) -> str | None:
    """The same for a response whose exit code stands beside it in the payload."""
    found = failure_in(response)
    if (
        found is None
        and isinstance(payload.get("metadata"), Mapping)
        and _code(payload["metadata"]) not in (None, 0)
    ):
        return text_of(response) or "failed"
    return found


def _code(response: Mapping[str, Any]) -> int | None:
    inside = response.get("metadata")
    for place in (response, inside if isinstance(inside, Mapping) else {}):
        for name in _EXIT_NAMES:
            if isinstance(place.get(name), int) and not isinstance(place[name], bool):
                return int(place[name])
    return None


def bare(text: str) -> str:
    """The words of a tool without what a host puts around them.

    >>> bare("<untrusted_context>\\nOutput: no\\nExit Code: 1\\nProcess Group PGID: 77\\n</untrusted_context>")
    'Output: no\\nExit Code: 1'
    >>> bare("no such file\\n<shellId: 3 completed with exit code 1>")
    'no such file'
    """  # noqa: E501
    wrapped = _WRAPPED.match(text)
    if wrapped:
        return _NUMBERS.sub("", wrapped[1])
    ended = _ending(text)
    return text[: ended.start()] if ended else text


def _ending(text: str) -> re.Match[str] | None:
    return _ENDED.search(text, max(0, len(text) - 200))


def _unwrapped(text: str) -> str:
    inner = _inner(text)
    return bare(text) if inner is None else text_of(inner)


def _first(response: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((response[name] for name in names if name in response), None)


def _inner(text: str) -> Mapping[str, Any] | None:
    """Some hosts hand over their answer as JSON in a text, with the exit code beside it."""
    if not text.startswith('{"output"'):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
