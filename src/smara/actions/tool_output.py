"""Extract text, exit code and failure from a tool's output.

Every host wraps the output of a tool differently. Hosts state an exit code in a heading, in a
report, in a closing mark, in a tag or in JSON; programs state it in their last line. Hooks load
this module: keep its imports few.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from smara.core.startup.regex import re, regex

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from typing import Any

_STATEMENT = regex(
    r"^[^\w\n]{0,3}(?:process exited with code|(?:(?:error:? )?command failed with )?exit (?:code"
    r"|status)|exited with(?: code| status)?|return code|exit_code)[:= ]{1,3}(-?\d{1,10})"
    r"[^\w\n]{0,3}$",
    re.IGNORECASE | re.MULTILINE,
)
"""A whole line that says nothing but the code."""
_OUTPUT_MARK = regex(r"^(?:Output|Total output lines):", re.MULTILINE)
_REPORTS = ("Command: ", "Output: ", "Stdout: ")
"""The openings of a report that has a command, its output and its exit code, line by line."""
_CLOSING = regex(r"\n?<(?:shellId: \w+ completed|exited) with exit code (-?\d+)>\s*\Z")
"""How Copilot CLI ends the output of a command."""
_TAG = regex(r"<exit_code>(-?\d{1,10})</exit_code>|[\"']exit_?code[\"']: ?(-?\d{1,10})", re.I)
_HEADING_CHARACTERS = 400
_END_CHARACTERS = 300
_MOST_JSON = 2_000_000


def exit_code(output: str) -> int | None:
    """Return the exit code a command's output states, or None.

    >>> exit_code("Exit code 1\\nboom"), exit_code("boom\\n<exited with exit code 3>"), exit_code("ok")
    (1, 3, None)
    """  # noqa: E501
    # Most outputs state none; plain searches say so in a tenth of the time of the patterns.
    ends = (output[:_HEADING_CHARACTERS] + output[-_END_CHARACTERS:]).lower()
    if not ("exit" in ends or "return code" in ends or output.startswith(("{", *_REPORTS))):
        return None
    if (stated := host_exit_code(output)) is not None:
        return stated
    head, end = output[:_END_CHARACTERS], output[-_END_CHARACTERS:].rstrip()
    if statement := _STATEMENT.search(head) or _STATEMENT.search(end, end.rfind("\n") + 1):
        return int(statement[1])
    tag = _TAG.search(head) or _TAG.search(end)
    return int(tag[1] or tag[2]) if tag else None


def host_exit_code(output: str) -> int | None:
    """Return the exit code a host put around an output, or None.

    What stands further down may be anything: a log, or a file that speaks of exit codes.

    >>> host_exit_code("Wall time: 1 s\\nProcess exited with code 2\\nOutput:\\nboom")
    2
    >>> host_exit_code("see the log\\nexit status 2") is None
    True
    """
    if (unwrapped := unwrap_json(output)) is not None:
        return exit_code_field(unwrapped)
    heading = output[:_HEADING_CHARACTERS]
    mark = _OUTPUT_MARK.search(heading)
    statement = _STATEMENT.search(heading[: mark.start()] if mark else heading)
    if statement is not None and (mark or not heading[: statement.start()].strip()):
        return int(statement[1])
    if output.startswith(_REPORTS):
        codes = _STATEMENT.findall(output)
        return int(codes[-1]) if codes else None
    closing = _CLOSING.search(output, max(0, len(output) - 200))
    return int(closing[1]) if closing else None


def exit_code_field(fields: Mapping[str, Any], is_command: bool = True) -> int | None:
    """Return the exit code in a result's fields, or None.

    Args:
        fields: The result as a mapping, or one with ``metadata``.
        is_command: False for tools whose ``code`` is another one, such as that of HTTP.
    """
    inside = fields.get("metadata")
    names = ("exit_code", "exitCode", "exit", "code") if is_command else ("exit_code", "exitCode")
    for place in (fields, inside if isinstance(inside, dict) else {}):
        for name in names:
            if isinstance(place.get(name), int) and not isinstance(place[name], bool):
                return int(place[name])
    return None


def unwrap_json(output: str) -> dict[str, Any] | None:
    """Parse an output given as JSON with its exit code."""
    if not output.startswith(('{"output"', '{"stdout"', '{"exit', '{"metadata"')):
        return None
    try:
        fields = json.loads(output) if len(output) <= _MOST_JSON else None
    except (ValueError, RecursionError):
        return None
    has_text = isinstance(fields, dict) and isinstance(
        fields.get("output", fields.get("stdout")), str
    )
    return fields if has_text else None


_NAMES = (
    "llmContent", "textResultForLlm", "text_result_for_llm", "text", "output", "content", "result",
    "message",
    "returnDisplay",
)  # fmt: skip
REFUSAL = "The user doesn't want to proceed with this tool use"
"""How the result of a call begins that its user did not allow; no hook runs for it."""
PERSISTED = "<persisted-output>"
"""How a result begins whose output was so long that the host put it into a file."""
_WRAPPED = regex(r"\A\s*<untrusted_context>\n?(.*?)\n?</untrusted_context>\s*\Z", re.S)
"""What Gemini CLI puts around whatever a tool brought from outside."""
_HEADING = regex(
    r"(?:(?:Chunk ID|Exit code|Wall time|Process exited|Original token "
    r"count)[^\n]{0,100}\n){1,6}Output:\n"
)
"""What Codex writes above the output of a command."""
_ERROR_TAGS = ("<tool_use_error>", "</tool_use_error>")
"""What Claude Code puts around an error in a transcript, and leaves out in a hook."""
_BACKGROUND = "Command running in background with ID: "
"""What Claude Code writes in the place of an output that is not there yet."""
_LINE_NUMBERS = regex(r"^ *\d+[→\t]", re.M)
_REMINDER = regex(r"\n\n<system-reminder>.*\Z", re.S)
_NUMBERS = regex(r"\n(?:Process Group PGID|Background PIDs): [\d, ]+(?=\n|\Z)")
"""Lines that differ from run to run, so that one error would look like many."""


def text_of(response: Any) -> str:
    """Return the words of a response.

    Of a command that is what it wrote, of a file its content, of blocks their texts.
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
    if isinstance(response.get("filenames"), list) and not response.get("content"):
        return "\n".join(map(str, response["filenames"])) or "No files found"
    task = response.get("task")
    if isinstance(task, Mapping) and "subject" in task:
        return f"Task #{task.get('id')} created: {task['subject']}"
    found = next(
        (response[name] for name in _NAMES if response.get(name) not in (None, "", [], {})), None
    )
    if found is not None:
        return text_of(found)
    return json.dumps(response, ensure_ascii=False, default=str) if response else ""


def error_of(response: Any, tool: str = "Bash") -> str | None:
    """Return the failure in a response sent as a result, or None."""
    if isinstance(response, str):
        if (inner := unwrap_json(response)) is not None:
            return error_of(inner)
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
        or response.get("resultType", response.get("result_type")) in ("failure", "error")
        or exit_code_field(response, is_command=tool == "Bash") not in (None, 0)
    )
    if has_failed:
        return text_of(response) or "failed"
    words = next((response[name] for name in _NAMES[:3] if name in response), None)
    return error_of(words, tool) if isinstance(words, str) else None


def failure_of(payload: Mapping[str, Any], response: Any, tool: str = "Bash") -> str | None:
    """Return the failure of a response with its exit code."""
    failure = error_of(response, tool)
    if (
        failure is None
        and isinstance(payload.get("metadata"), Mapping)
        and exit_code_field(payload["metadata"], is_command=tool == "Bash") not in (None, 0)
    ):
        return text_of(response) or "failed"
    return failure


def bare(text: str) -> str:
    """Remove what a host puts around a tool's words.

    >>> bare("<untrusted_context>\\nOutput: no\\nExit Code: 1\\nProcess Group PGID: 77\\n</untrusted_context>")
    'Output: no\\nExit Code: 1'
    >>> bare("no such file\\n<shellId: 3 completed with exit code 1>")
    'no such file'
    >>> bare("Wall time: 1 s\\nProcess exited with code 2\\nOutput:\\nno such file")
    'no such file'
    >>> bare("<tool_use_error>File does not exist.</tool_use_error>")
    'File does not exist.'
    """  # noqa: E501
    if heading := _HEADING.match(text):
        return text[heading.end() :]
    if text.startswith(_BACKGROUND):
        return ""
    if text.startswith(_ERROR_TAGS[0]):
        return text.removeprefix(_ERROR_TAGS[0]).removesuffix(_ERROR_TAGS[1])
    if wrapped := _WRAPPED.match(text):
        return _NUMBERS.sub("", wrapped[1])
    ended = _CLOSING.search(text, max(0, len(text) - 200))
    return text[: ended.start()] if ended else text


def file_text(output: str) -> str:
    """Return a file's text without a host's line numbers and reminders.

    >>> file_text("     1→import os\\n     2→print()\\n\\n<system-reminder>Beware</system-reminder>")
    'import os\\nprint()'
    """  # noqa: E501
    is_numbered = _LINE_NUMBERS.match(output)
    return _LINE_NUMBERS.sub("", _REMINDER.sub("", output)) if is_numbered else output
