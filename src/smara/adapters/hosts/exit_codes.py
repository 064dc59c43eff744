"""Look up a command's exit code in the rollout of Codex.

Codex passes a command's output to its hooks, but not its exit code. The rollout has it under
the call id: beside the call's end, written before the hook runs, and in the heading of the
model's copy, written after it. Hooks load this on demand, so it imports little.
"""

from __future__ import annotations

import json
import os
import re

from smara.actions.tool_output import exit_code_field, host_exit_code
from smara.core.host_table import WITHOUT_EXIT_CODES

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any

    from smara.core.events import HostEvent

AT_HAND = 1 << 17
"""How much of a record's end a hook looks at: the call it is told of has just ended."""
_SIZES = (1 << 18, 1 << 22, 1 << 26)
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
_TELLING = re.compile(rb'exit_code|exited with code|"Exit code')
_IDS = re.compile(rb'"(?:call_id|id)": ?"([^"\\]{1,200})"')


def failure_at_hand(told: Mapping[str, Any], output: str) -> str | None:
    """Return the output of a command that failed by its session's record.

    ``None`` when the record does not say so.
    """
    path, call_id = told.get("transcript_path"), told.get("tool_use_id")
    if not (isinstance(path, str) and path and isinstance(call_id, str) and call_id):
        return None
    code = _codes_in(path, {call_id}, AT_HAND).get(call_id, 0)
    return _said(output, code) if code else None


def with_exits(events: Sequence[HostEvent]) -> list[HostEvent]:
    """Mark Codex commands as failures where their session's record says so."""
    wanted: dict[str, set[str]] = {}
    for event in events:
        if _is_asked(event):
            wanted.setdefault(event.transcript_path, set()).add(event.tool_use_id)
    if not wanted:
        return list(events)
    codes = {path: _all_codes_in(path, ids) for path, ids in wanted.items()}
    return [_ended(event, codes) if _is_asked(event) else event for event in events]


def _is_asked(event: HostEvent) -> bool:
    return (
        event.agent in WITHOUT_EXIT_CODES
        and event.kind == "tool_post"
        and event.tool == "Bash"
        and event.error is None
        and bool(event.tool_use_id)
        and bool(event.transcript_path)
    )


def _ended(event: HostEvent, codes: Mapping[str, Mapping[str, int]]) -> HostEvent:
    from dataclasses import replace

    code = codes[event.transcript_path].get(event.tool_use_id, 0)
    return replace(event, kind="tool_fail", error=_said(event.tool_output, code)) if code else event


def _said(output: str, code: int) -> str:
    return output if output.strip() else f"Exit code {code}"


def _all_codes_in(path: str, wanted: Collection[str]) -> dict[str, int]:
    """From the end, since what was just told stands there; further back when not all were found."""
    found: dict[str, int] = {}
    for size in _SIZES:
        found = _codes_in(path, wanted, size)
        if len(found) == len(wanted) or _size_of(path) <= size:
            break
    return found


def _codes_in(path: str, wanted: Collection[str], most: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in reversed(_end_of(path, most).split(b"\n")):
        if len(found) == len(wanted):
            break
        if not _TELLING.search(line):
            continue
        for named in _IDS.findall(line):
            call_id = named.decode("utf-8", "replace")
            code = _code_in(line, call_id) if call_id in wanted and call_id not in found else None
            if code is not None:
                found[call_id] = code
    return found


def _code_in(line: bytes, call_id: str) -> int | None:
    """The exit code that a record tells of a call; ``None`` when it is about another, or about
    something else.
    """
    try:
        payload = json.loads(line)["payload"]
        kind = payload["type"]
        told = payload["item"] if kind == "item_completed" else payload
        if (told.get("call_id") or told.get("id")) != call_id:
            return None
        code = exit_code_field(told)
        output = told.get("output") if kind in _OUTPUTS else None
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None
    return host_exit_code(output) if code is None and isinstance(output, str) else code


def _end_of(path: str, most: int) -> bytes:
    """The end of a file, from the first whole line on; nothing of what is no file or cannot be
    read.
    """
    try:
        # Without waiting: a pipe that bears the name would hold the hook up for ever.
        file = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
    except (OSError, ValueError):
        return b""
    try:
        from stat import S_ISREG

        facts = os.fstat(file)
        if not S_ISREG(facts.st_mode):
            return b""
        start = max(0, facts.st_size - most)
        os.lseek(file, start, os.SEEK_SET)
        content = b"".join(_pieces(file, most))
    except OSError:
        return b""
    finally:
        os.close(file)
    return content.partition(b"\n")[2] if start else content


def _pieces(file: int, most: int) -> Iterator[bytes]:
    while most > 0:
        piece = os.read(file, min(most, 1 << 20))
        if not piece:
            return
        most -= len(piece)
        yield piece


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0
