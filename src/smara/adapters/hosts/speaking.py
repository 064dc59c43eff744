"""What a hook says: the store is opened, the moment asked, and its words put into the host's shape.

Everything said comes from ``memory.moments``. A store that is missing, locked, read-only,
newer or slow leads to silence: the deadline ends the process, and what it had begun to
write is undone by the database.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from typing import Any

from smara.adapters.hosts import briefs
from smara.adapters.hosts.emitting import emit
from smara.adapters.hosts.learning import Moments, Preparing, Told, moments_of
from smara.adapters.hosts.normalizing import events_of
from smara.adapters.hosts.spool import names
from smara.config import load_settings, store_exists
from smara.core.events import HostEvent
from smara.memory import Memory, open_memory

START_SECONDS = 3.0
STEP_SECONDS = 1.5
BUSY_SECONDS = 0.2
"""How long a hook waits for another process that writes."""
CATCH_UP_SECONDS = 0.8
BACKGROUND_SECONDS = 50.0
_MOST_INSTRUCTIONS = 100_000
_INSTRUCTIONS = {
    "claude": ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"), "codex": ("AGENTS.override.md", "AGENTS.md"),
    "gemini": ("GEMINI.md", "AGENTS.md"), "copilot": (".github/copilot-instructions.md", "AGENTS.md"),
    "cursor": (".cursorrules", "AGENTS.md"), "opencode": ("AGENTS.md",), "generic": ("AGENTS.md",),
}  # fmt: skip


def speak(agent: str, event: str, payload: bytes, folder: str) -> bytes:
    """The host's standard output for an event that may be answered; empty for silence."""
    told = next(iter(events_of(agent, event, payload, _now_ms(), os.getcwd())), None)
    if told is None:
        return b""
    with _deadline(START_SECONDS if told.kind in ("session_start", "subagent_start") else STEP_SECONDS):
        _enter(told.cwd)
        settings = load_settings()
        if not store_exists(settings):
            return b""
        with _opened() as memory:
            moments = moments_of(memory)
            if moments is None:
                return b""
            if told.kind == "session_start" and len(names(folder)) > 1:  # one of them is this start
                from smara.adapters.hosts.draining import drain  # it loads all that reads transcripts

                drain(memory, folder, CATCH_UP_SECONDS, kinds=("finalize",))
            said = _ask(moments, told)
            _hand_over(moments, said)
            refresh = _watched(moments)
            store = str(getattr(memory.database, "path", ""))
        if refresh is not None:
            briefs.write(folder, told.cwd, os.path.abspath(store), refresh)
    return emit(agent, event, said.text) if said is not None and said.text.strip() else b""


def _ask(moments: Moments, told: HostEvent) -> Told | None:
    if told.kind in ("session_start", "subagent_start"):
        return moments.start(
            told.session_id, source=told.source or "startup", agent=told.agent, cwd=told.cwd,
            known_texts=instructions_of(told.agent, told.cwd),
        )  # fmt: skip
    if told.kind == "prompt":
        return moments.first_message(told.session_id, told.prompt)
    if told.kind == "tool_pre":
        return moments.before_tool(told.session_id, told.tool, dict(told.tool_input))
    return moments.after_tool(told.session_id, told.tool, dict(told.tool_input), told.tool_output, told.error)


def _hand_over(moments: Moments, said: Told | None) -> None:
    mark: Callable[[str], Any] | None = getattr(moments, "mark_delivered", None)
    if mark is not None and said is not None and said.receipt_id:
        mark(said.receipt_id)


def _watched(moments: Moments) -> list[str] | None:
    find: Callable[[], Any] | None = getattr(moments, "watched", None)
    return None if find is None else list(find())


def drain_in_background(folder: str) -> None:
    """Take in what waits and do what is due, then say anew what is known of each project that was met."""
    with _deadline(BACKGROUND_SECONDS + 5):
        if not names(folder) and not store_exists(load_settings()):
            return
        with _opened(busy_seconds=10.0) as memory:
            from smara.adapters.hosts.draining import drain

            done = drain(memory, folder, BACKGROUND_SECONDS)
            found = [
                (cwd, moments_of(memory.in_project(project)), sorted(agents))
                for cwd, (project, agents) in done.folders.items()
            ]
            known = [(cwd, _watched(room), _starts(room, cwd, agents)) for cwd, room, agents in found if room]
            store = os.path.abspath(str(getattr(memory.database, "path", "")))
        for cwd, triggers, starts in known:
            if triggers is not None:
                briefs.write(folder, cwd, store, triggers, starts)


def _starts(moments: Moments, cwd: str, agents: list[str]) -> dict[str, dict[str, Any]]:
    """What sessions of these agents begin with, where the room can prepare it."""
    if not isinstance(moments, Preparing):
        return {}
    found = {}
    for agent in agents:
        told = moments.prepare_start(agent=agent, cwd=cwd, known_texts=instructions_of(agent, cwd))
        facts = asdict(told) if is_dataclass(told) and not isinstance(told, type) else {"text": told.text}
        found[agent] = {"text": told.text, "told": facts, "files": instruction_files(agent, cwd)}
    return found


def instructions_of(agent: str, cwd: str) -> list[str]:
    """The instruction files that this agent has read by itself in a folder; what they say need not be said again."""
    found = []
    for path in instruction_files(agent, cwd):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                found.append(file.read(_MOST_INSTRUCTIONS))
        except OSError:
            continue
    return found


def instruction_files(agent: str, cwd: str) -> list[str]:
    """Where those files would be."""
    root = briefs.root_of(cwd)
    return [os.path.join(root, name) for name in _INSTRUCTIONS.get(agent, ())]


@contextmanager
def _opened(busy_seconds: float = BUSY_SECONDS) -> Iterator[Memory]:
    with open_memory(busy_timeout_seconds=busy_seconds, check_index=False, embed_in_background=False) as memory:
        yield memory


def _enter(cwd: str) -> None:
    """A project is the repository around the current folder, and the host says where it is."""
    try:
        os.chdir(cwd)
    except OSError:
        return


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """End the process, silently and with 0, when so much time has passed. Not on Windows, which has no such timer."""
    import signal

    if not hasattr(signal, "setitimer"):
        yield
        return

    def leave(*_: object) -> None:
        os._exit(0)

    before = signal.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _now_ms() -> int:
    from smara.core.clock import SystemClock

    return SystemClock().now_ms()
