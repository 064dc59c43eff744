"""Whether a hook has anything to say, asked as cheaply as can be: most have not.

What decides here reads the payload and small files. Only when something may be known is
the store opened (:mod:`.speaking`).
"""

from __future__ import annotations

import json
import os
import time
from zlib import crc32

from smara.adapters.hosts import briefs
from smara.adapters.hosts.emitting import emit
from smara.adapters.hosts.spool import names, put
from smara.core.triggers import triggers_of
from smara.environment import named_project

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MARKS = "told"
_TWICE_SECONDS = 5.0
"""Two hooks that ask the same within so short a time were set up twice; the second stays silent."""
_PROMPTS = ("UserPromptSubmit", "BeforeAgent", "chat.message")
_STARTS = ("SessionStart", "sessionStart", "session.start", "SubagentStart")
_TOOL_NAMES = ("tool_name", "toolName", "tool")
_TOOL_INPUTS = ("tool_input", "toolArgs", "args")
_FRESH = ("startup", "new", None)
NOTICE = ("smara", "told")
"""Who tells, and what: that a prepared start was said."""
_FAILURES = ("PostToolUseFailure", "postToolUseFailure")


def answer(agent: str, event: str, payload: bytes, folder: str) -> bytes:
    """What is written to the host's standard output; empty when nothing is to be said."""
    told = json.loads(payload)
    if not isinstance(told, dict) or not may_speak(event, told, folder) or _is_repeat(event, payload, folder):
        return b""
    prepared = _prepared_start(agent, event, told, folder)
    if prepared is not None:
        return prepared
    from smara.adapters.hosts.speaking import speak

    return speak(agent, event, payload, folder)


def may_speak(event: str, told: Mapping[str, Any], folder: str) -> bool:
    """Whether the store must be asked: at a start, for a session's first prompt, or about what is known."""
    if event in _STARTS:
        return True
    if event in _PROMPTS:
        return not has_spoken_first(folder, session_of(told))
    known = briefs.watched(folder, _text(told, ("cwd", "directory")) or os.getcwd())
    if known is None or event in _FAILURES:
        return known is None or bool(known)
    return not known.isdisjoint(triggers_of(_text(told, _TOOL_NAMES), _arguments(told)))


def _prepared_start(agent: str, event: str, told: Mapping[str, Any], folder: str) -> bytes | None:
    """What was prepared for this start; its receipt is written when the spool is drained.

    ``None`` when the store must be asked: nothing was prepared, the session goes on from something, or events wait
    that may change what is known (one of them is this start itself).
    """
    if event not in _STARTS[:3] or told.get("source") not in _FRESH or len(names(folder)) > 1:
        return None
    cwd = _text(told, ("cwd", "directory")) or os.getcwd()
    start = briefs.start_of(folder, cwd, agent)
    if start is None:
        return None
    if not start["text"].strip():
        return b""
    notice = {"session_id": session_of(told), "source": told.get("source") or "startup", "cwd": cwd, "agent": agent}
    put(folder, NOTICE[0], NOTICE[1], json.dumps({**notice, "told": start["told"]}).encode(), named_project(), cwd)
    return emit(agent, event, start["text"])


def session_of(told: Mapping[str, Any]) -> str:
    """The session of a payload, whatever its host calls it."""
    return _text(told, ("session_id", "sessionId", "conversation_id", "sessionID"))


def has_spoken_first(folder: str, session_id: str) -> bool:
    """Whether this session has had its first prompt; from now on it has. One without a name is never at its first."""
    return not session_id or not _mark(folder, f"first {session_id}", for_ever=True)


def _is_repeat(event: str, payload: bytes, folder: str) -> bool:
    return not _mark(folder, f"{event} {crc32(payload):08x} {len(payload)}", for_ever=False)


def _mark(folder: str, what: str, for_ever: bool) -> bool:
    """Leave a mark; ``False`` when it was there already. Whoever cannot leave one is taken to be the first."""
    name = what.encode("utf-8", "surrogatepass")
    path = os.path.join(folder, MARKS, f"{crc32(name):08x}{crc32(name, 1):08x}")
    for _ in range(2):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            return True
        except FileExistsError:
            return not for_ever and _is_old(path)
        except FileNotFoundError:
            try:
                os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            except OSError:
                return True
        except OSError:
            return True
    return True


def _is_old(path: str) -> bool:
    try:
        if time.time() - os.stat(path).st_mtime <= _TWICE_SECONDS:
            return False
        os.utime(path)
    except OSError:
        pass
    return True


def _arguments(told: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = next((told[name] for name in _TOOL_INPUTS if told.get(name)), None)
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            return {}
    return found if isinstance(found, dict) else {}


def _text(told: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := told.get(name), str) and value), "")


def drain_quietly(folder: str) -> None:
    """Take in what waits and do what is due, for a host that runs this in its background."""
    from smara.adapters.hosts.speaking import drain_in_background

    drain_in_background(folder)
