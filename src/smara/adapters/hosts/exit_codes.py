"""Look up the exit code of a command in a transcript.

It is for hosts that tell hooks none; their spec names the function that reads it. Codex passes a
command's output to its hooks alone. Its rollout has the exit code under the call id: beside the
call's end, written before the hook runs, and in the heading of the model's copy, written after it.
Hooks load this on demand, so it imports little.
"""

from __future__ import annotations

import json
import os
from importlib import import_module

from smara.actions.tool_output import exit_code_field, host_exit_code
from smara.core.host_table import EXIT_CODES
from smara.core.startup.regex import regex

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from smara.core.events import HostEvent

AT_HAND = 1 << 17
"""How much of a record's end a hook looks at: the call it is told of has just ended."""
_SIZES = (1 << 18, 1 << 22, 1 << 26)
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
_TELLING = regex(rb'exit_code|exited with code|"Exit code')
_IDS = regex(rb'"(?:call_id|id)": ?"([^"\\]{1,200})"')


def _reader_of(agent: str) -> Callable[[str, Collection[str], int], dict[str, int]]:
    """Return the host's function: path, ids of calls and bytes at the end to exit codes."""
    module, _, name = EXIT_CODES[agent].partition(":")
    reader: Callable[[str, Collection[str], int], dict[str, int]]
    reader = getattr(import_module(module), name)
    return reader


def failure_at_hand(agent: str, payload: Mapping[str, Any], output: str) -> str | None:
    """Return the output of a command that failed by its session's record.

    ``None`` when the record does not say so.
    """
    path, call_id = payload.get("transcript_path"), payload.get("tool_use_id")
    if not (isinstance(path, str) and path and isinstance(call_id, str) and call_id):
        return None
    code = _reader_of(agent)(path, {call_id}, AT_HAND).get(call_id, 0)
    return (output if output.strip() else f"Exit code {code}") if code else None


def with_exits(events: Sequence[HostEvent]) -> list[HostEvent]:
    """Mark commands as failures where their session's record says so."""
    calls: dict[tuple[str, str], set[str]] = {}
    for event in events:
        if (
            event.agent in EXIT_CODES
            and event.kind == "tool_post"
            and event.tool == "Bash"
            and event.error is None
            and event.tool_use_id
            and event.transcript_path
        ):
            calls.setdefault((event.agent, event.transcript_path), set()).add(event.tool_use_id)
    if not calls:
        return list(events)
    from dataclasses import replace

    codes: dict[tuple[str, str], int] = {}
    for (agent, path), ids in calls.items():
        # From the end, since what was just told stands there; further back when not all were found.
        for size in _SIZES:
            some = _reader_of(agent)(path, ids, size)
            if len(some) == len(ids) or not os.path.exists(path) or os.path.getsize(path) <= size:
                break
        codes.update({(path, call_id): code for call_id, code in some.items()})
    marked = []
    for event in events:
        code = codes.get((event.transcript_path, event.tool_use_id), 0)
        if code and event.kind == "tool_post":
            error = event.tool_output if event.tool_output.strip() else f"Exit code {code}"
            event = replace(event, kind="tool_fail", error=error)
        marked.append(event)
    return marked


def rollout_codes(path: str, calls: Collection[str], most: int) -> dict[str, int]:
    """Return the exit codes at the end of a Codex rollout."""
    codes: dict[str, int] = {}
    for line in reversed(_end_of(path, most).split(b"\n")):
        if len(codes) == len(calls):
            break
        if not _TELLING.search(line):
            continue
        for named in _IDS.findall(line):
            call_id = named.decode("utf-8", "replace")
            is_open = call_id in calls and call_id not in codes
            if is_open and (code := _code_in(line, call_id)) is not None:
                codes[call_id] = code
    return codes


def _code_in(line: bytes, call_id: str) -> int | None:
    """The exit code that a record tells of a call; ``None`` when it is about another, or about
    something else.
    """
    try:
        payload = json.loads(line)["payload"]
        kind = payload["type"]
        call = payload["item"] if kind == "item_completed" else payload
        if (call.get("call_id") or call.get("id")) != call_id:
            return None
        code = exit_code_field(call)
        output = call.get("output") if kind in _OUTPUTS else None
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None
    return host_exit_code(output) if code is None and isinstance(output, str) else code


def _end_of(path: str, most: int) -> bytes:
    """Return the end of a file from a whole line on; empty if it is unreadable or no file."""
    from smara.core.files import open_regular

    try:
        with open_regular(path) as file:
            start = max(0, os.fstat(file.fileno()).st_size - most)
            file.seek(start)
            content = file.read(most)
    except (OSError, ValueError):
        return b""
    return content.partition(b"\n")[2] if start else content
