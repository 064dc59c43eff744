"""Extract the text and the failure from a tool's output.

Every host wraps the output of a tool differently. Hooks load this on demand, so it imports
little.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from smara.actions.exit_codes import closing_mark, exit_code_field, host_exit_code, unwrap_json

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from typing import Any

_NAMES = (
    "llmContent", "textResultForLlm", "text_result_for_llm", "text", "output", "content", "result",
    "message",
    "returnDisplay",
)  # fmt: skip
_WRAPPED = re.compile(r"\A\s*<untrusted_context>\n?(.*?)\n?</untrusted_context>\s*\Z", re.S)
"""What Gemini CLI puts around whatever a tool brought from outside."""
_HEADING = re.compile(
    r"(?:(?:Chunk ID|Exit code|Wall time|Process exited|Original token "
    r"count)[^\n]{0,100}\n){1,6}Output:\n"
)
"""What Codex writes above the output of a command."""
_NUMBERS = re.compile(r"\n(?:Process Group PGID|Background PIDs): [\d, ]+(?=\n|\Z)")
"""Lines that differ from run to run, so that one error would look like many."""


def text_of(response: Any) -> str:
    """The words of a response: of a command what it wrote, of a file its content, of blocks their
    texts.
    """
    if response is None:
        return ""
    if isinstance(response, str):
        inner = unwrap_json(response)
        return bare(response) if inner is None else text_of(inner)
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


def failure_in(response: Any, tool: str = "Bash") -> str | None:
    """What went wrong, when a response that was told as a result is one of a failure; ``None`` when
    it is not.
    """
    if isinstance(response, str):
        inner = unwrap_json(response)
        if inner is not None:
            return failure_in(inner)
        wrapped = _WRAPPED.match(response)
        return bare(response) if host_exit_code(wrapped[1] if wrapped else response) else None
    if not isinstance(response, Mapping):
        return None
    if response.get("error"):
        return text_of(response["error"]) or "failed"
    has_failed = (
        response.get("is_error") is True
        or response.get("isError") is True
        or response.get("success") is False
        or _first(response, ("resultType", "result_type")) in ("failure", "error")
        or exit_code_field(response, is_command=tool == "Bash") not in (None, 0)
    )
    if has_failed:
        return text_of(response) or "failed"
    said = _first(response, ("llmContent", "textResultForLlm", "text_result_for_llm"))
    return failure_in(said, tool) if isinstance(said, str) else None


def failure_of(payload: Mapping[str, Any], response: Any, tool: str = "Bash") -> str | None:
    """Return the failure of a response whose exit code may stand beside it in the payload."""
    failure = failure_in(response, tool)
    if (
        failure is None
        and isinstance(payload.get("metadata"), Mapping)
        and exit_code_field(payload["metadata"], is_command=tool == "Bash") not in (None, 0)
    ):
        return text_of(response) or "failed"
    return failure


def bare(text: str) -> str:
    """Return the words of a tool without what a host puts around them.

    >>> bare("<untrusted_context>\\nOutput: no\\nExit Code: 1\\nProcess Group PGID: 77\\n</untrusted_context>")
    'Output: no\\nExit Code: 1'
    >>> bare("no such file\\n<shellId: 3 completed with exit code 1>")
    'no such file'
    >>> bare("Wall time: 1 s\\nProcess exited with code 2\\nOutput:\\nno such file")
    'no such file'
    """  # noqa: E501
    heading = _HEADING.match(text)
    if heading:
        return text[heading.end() :]
    wrapped = _WRAPPED.match(text)
    if wrapped:
        return _NUMBERS.sub("", wrapped[1])
    ended = closing_mark(text)
    return text[: ended.start()] if ended else text


def _first(response: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((response[name] for name in names if name in response), None)
