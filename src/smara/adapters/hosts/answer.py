"""Answer a hook from the brief, or from the store.

Most hooks get no answer, so that case is the cheapest. The store is opened
(:mod:`.hook_store`) only if the brief (:mod:`.reply`) cannot decide.
"""

from __future__ import annotations

import json
import os
import time
from zlib import crc32

from smara.adapters.hosts.reply import choose, hearer_of, say, session_of
from smara.adapters.hosts.session_log import MARKS, SessionLog
from smara.core.host_table import COMPACTIONS, FIELDS, PROMPTS, STARTS

_TWICE_SECONDS = 5.0
"""Two hooks that ask the same within so short a time were set up twice; the second stays silent."""


def answer(agent: str, event: str, payload: bytes, folder: str, is_behind: bool = False) -> bytes:
    """Return the standard output for a hook; empty for silence.

    If the store ``is_behind``, because earlier sessions were not drained yet, it is asked in any
    case: it first takes in how they ended.
    """
    told = json.loads(payload)
    if not isinstance(told, dict):
        return b""
    # A host that answers this event starts no session after a compaction: what was said is said
    # again with a prompt.
    if event in COMPACTIONS:
        SessionLog.empty(folder, session_of(told))
        _unmark(folder, f"first {session_of(told)}")
        return b""
    if event in PROMPTS and (
        hearer_of(told) != session_of(told) or has_spoken_first(folder, session_of(told))
    ):
        return b""  # a helper's prompt is nobody's first words
    chosen = choose(agent, event, told, folder=folder) if not is_behind else None
    if chosen == [] or not _mark(folder, _asking(event, told, payload), for_ever=False):
        return b""
    if chosen is not None:
        return say(agent, event, told, folder=folder, chosen=chosen)
    from smara.adapters.hosts.hook_store import speak

    return speak(agent, event, payload, folder=folder)


def has_spoken_first(folder: str, session_id: str) -> bool:
    """Return True if this session has had its first prompt.

    From now on it has. A session without a name is never at its first.
    """
    return not session_id or not _mark(folder, f"first {session_id}", for_ever=True)


def _asking(event: str, told: dict[str, object], payload: bytes) -> str:
    """What is the same when two registrations ask about one thing: of one host, or of two that read
    each other's.
    """
    session_id = session_of(told)
    if session_id and event in STARTS:
        return f"start {session_id} {told.get('source') or 'startup'} {told.get('agent_id') or ''}"
    use_id = next(
        (told[name] for name in FIELDS["tool_use_id"] if isinstance(told.get(name), str)), None
    )
    if session_id and use_id:
        return f"{event.lower()} {session_id} {use_id}"
    return f"{event} {crc32(payload):08x} {len(payload)}"


def _mark(folder: str, what: str, for_ever: bool) -> bool:
    """Leave a mark; return False if it is there already.

    A process that cannot leave one counts as the first.
    """
    path = _path(folder, what)
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


def _unmark(folder: str, what: str) -> None:
    try:
        os.unlink(_path(folder, what))
    except OSError:
        return


def _path(folder: str, what: str) -> str:
    name = what.encode("utf-8", "surrogatepass")
    return os.path.join(folder, MARKS, f"{crc32(name):08x}{crc32(name, 1):08x}")


def _is_old(path: str) -> bool:
    try:
        if time.time() - os.stat(path).st_mtime <= _TWICE_SECONDS:
            return False
        os.utime(path)
    except OSError:
        pass
    return True


def drain_quietly(folder: str, is_waited_for: bool) -> None:
    """Drain the spool: all of it in the background, briefly otherwise."""
    from smara.adapters.hosts.hook_store import (
        BACKGROUND_SECONDS,
        WAITED_SECONDS,
        drain_in_background,
    )

    drain_in_background(folder, WAITED_SECONDS if is_waited_for else BACKGROUND_SECONDS)
