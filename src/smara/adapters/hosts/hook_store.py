"""Open the store for hooks: compute a reply, or drain the spool.

All text comes from ``memory.moments``. If the store is missing, locked, read-only, too new
or slow, the reply is empty: the deadline ends the process, and the database rolls back.
Some hosts run no background hooks, but all of them run ``smara mcp`` while a session lasts;
`ServerDrain` is a thread in that server that drains the spool and refreshes the brief.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING

from smara.adapters.hook_output import emit
from smara.adapters.host_specs import HOOKS
from smara.adapters.hosts.brief import heads, root_of
from smara.adapters.hosts.exit_codes import with_exits
from smara.adapters.hosts.normalize import events_of
from smara.adapters.hosts.precompute import (
    BriefDraft,
    enter,
    finish,
    has_aged,
    instructions_of,
    is_current,
    prepare,
    store_of,
    write_absence,
)
from smara.adapters.hosts.session_log import (
    ROUND,
    ROUND_SECONDS,
    SessionLog,
    leave_mark,
    names_of,
    note,
    remember_start,
)
from smara.adapters.hosts.spool import names
from smara.config import default_store, load_settings, store_exists
from smara.core import log
from smara.core.background import Background
from smara.core.events import HostEvent
from smara.environment import patience, store_file
from smara.errors import SmaraError
from smara.memory import Memory, open_memory

if TYPE_CHECKING:
    from smara.adapters.hosts.session import DrainReport
    from smara.context.models import Injection
    from smara.context.moments.moments import Moments


START_SECONDS = 3.0
STEP_SECONDS = 1.5
BUSY_SECONDS = 0.2
"""How long a hook waits for another process that writes."""
CATCH_UP_SECONDS = 0.8
BACKGROUND_SECONDS = 50.0
OPEN_SECONDS = 5.0
"""How long a drain waits for a store that is held by another; the next one may do."""
_MOST_ROOTS = 20
WAITED_SECONDS = 1.5
"""How long a drain may take at the start of a session of a host that waits for it; the rest is for
the next one.
"""


def speak(agent: str, name: str, payload: bytes, folder: str, is_later: bool = False) -> bytes:
    """Return the standard output for an event; empty for silence.

    To a message that ``is_later`` than the first, only what was decided about its subject.
    """
    from smara.core.clock import SystemClock

    events = events_of(agent, name, payload, at_ms=SystemClock().now_ms(), cwd=os.getcwd())
    if not events:
        return b""
    event = with_exits(events)[0]
    ready: list[bytes] = []
    is_start = event.kind in ("session_start", "subagent_start")
    with _deadline(START_SECONDS if is_start else STEP_SECONDS, ready):
        if not enter(event.cwd):
            return b""  # it would be the project of another folder that speaks
        settings = load_settings()
        store = os.path.abspath(store_file(settings.db or str(default_store())) or "")
        if not store_exists(settings):
            write_absence(folder, event.cwd, store)
            return b""
        with open_memory(
            busy_timeout_seconds=BUSY_SECONDS * patience(),
            check_index=False,
            embed_in_background=False,
        ) as memory:
            is_known = memory.projects.at(event.cwd, settings.project) is not None
            brief = (
                _tell(
                    memory, event, agent, name=name, folder=folder, ready=ready, is_later=is_later
                )
                if is_known
                else None
            )
        # The stamp of the store is taken when nothing of ours changes it any more.
        if not is_known:
            # Outside git, and nobody has asked for this folder to be remembered.
            write_absence(folder, event.cwd, store)
        elif brief is not None:
            finish(folder, brief)
    return b"".join(ready)


def _tell(
    memory: Memory,
    event: HostEvent,
    agent: str,
    name: str,
    folder: str,
    ready: list[bytes],
    is_later: bool,
) -> BriefDraft | None:
    """Make ready what is to be said now, and draft what may be said next."""
    # One of those that wait is this start. Hosts that run a drain beside it are not kept
    # waiting for another.
    if (
        event.kind == "session_start"
        and not HOOKS[event.agent].has_background
        and len(names(folder)) > 1
    ):
        from smara.adapters.hosts.drain import drain  # it loads all that reads transcripts

        drain(memory, folder, CATCH_UP_SECONDS * patience(), is_quick=True)
    injection = _ask(memory.moments, event, folder, is_later)
    _hand_over(memory.moments, injection, event, folder=folder)
    if injection is not None and injection.text.strip():
        ready.append(emit(agent, name, injection.text))
    try:
        # The brief of a store without a file never says what is still so: its age was not
        # why the store was asked.
        if store_of(memory) or not is_current(memory, folder, event.cwd, agent=event.agent):
            return prepare(memory, folder, event.cwd, agents=[event.agent])
    except Exception as error:  # noqa: BLE001 - what is ready to be said must not be lost by preparing the next
        log.warning("brief.not_made", error=type(error).__name__)
    return None


def _ask(moments: Moments, event: HostEvent, folder: str, is_later: bool) -> Injection | None:
    if event.kind == "prompt":
        return moments.first_message(event.session_id, event.prompt, is_first=not is_later)
    known_texts = instructions_of(event.agent, event.cwd, folder)
    if event.kind in ("session_start", "subagent_start"):
        return moments.start(
            event.hearer,
            source=event.source or "startup",
            agent=event.agent,
            cwd=event.cwd,
            known_texts=known_texts,
        )
    given = dict(event.tool_input)
    if event.kind == "tool_pre":
        return moments.before_tool(event.hearer, event.tool, given, known_texts=known_texts)
    return moments.after_tool(
        event.hearer,
        event.tool,
        given,
        output=event.tool_output,
        error=event.error,
        known_texts=known_texts,
    )


def _hand_over(
    moments: Moments, injection: Injection | None, event: HostEvent, folder: str
) -> None:
    """Record that words are on their way: in the store if it can be written, or in the spool."""
    if event.kind == "session_start":
        remember_start(folder, event.session_id, event.source, made_at=0.0)
    if injection is None or not injection.text.strip():
        return
    facts, hearer = asdict(injection), event.hearer
    if not injection.is_kept:
        source = event.source or "startup"
        note(folder, event.agent, hearer, source=source, cwd=event.cwd, injection=facts)
        return
    if injection.items:
        SessionLog.add(folder, hearer, injection.point, names=sorted(names_of(facts)))
    with suppress(SmaraError):  # it is said all the same
        moments.mark_delivered(injection.receipt_id)


def drain_in_background(folder: str, seconds: float = BACKGROUND_SECONDS) -> None:
    """Drain the spool, then refresh the briefs of the projects met.

    A host that leaves ends what it had started: then the lease is given back, so that the next
    one can go on.
    """
    import signal

    def leave(*_: object) -> None:
        raise SystemExit

    is_main = threading.current_thread() is threading.main_thread()  # only it gets signals
    before = signal.signal(signal.SIGTERM, leave) if is_main else None
    try:
        with _deadline(OPEN_SECONDS):
            if not names(folder) and not store_exists(load_settings()):
                return
            memory = open_memory(
                busy_timeout_seconds=patience(), check_index=False, embed_in_background=False
            )
        with _deadline(seconds + 5):
            take_in(memory, folder, seconds)
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)


def take_in(
    memory: Memory, folder: str, seconds: float, clock: Callable[[], float] = time.monotonic
) -> None:
    """Drain the spool within the seconds given, then close the memory.

    With as much time as a background has, a worker's round is made, too, when none was for a while.
    """
    from smara.adapters.hosts.drain import drain

    with memory:
        until = clock() + seconds * patience()
        done = drain(memory, folder, seconds * patience(), clock=clock)
        left = until - clock() if seconds >= BACKGROUND_SECONDS else 0.0
        drafts = refresh(memory, folder, done, history_seconds=left)
        is_patient = seconds >= BACKGROUND_SECONDS and not done.is_busy
        if is_patient and leave_mark(folder, ROUND, ROUND_SECONDS, if_unwritable=False):
            projects = {memory.project, *(project for project, _ in done.folders.values())}
            for _ in chain.from_iterable(memory.in_project(p).worker.steps() for p in projects):
                if clock() >= until:
                    break
    # The stamp of the store is taken when nothing of ours changes it any more.
    for each in drafts:
        finish(folder, each)


def refresh(
    memory: Memory, folder: str, done: DrainReport, history_seconds: float = 0.0
) -> list[BriefDraft]:
    """Draft new briefs for repositories with events, and for aged ones.

    With ``history_seconds``, what is new in each one's history of git is read first.
    """
    from smara.adapters.importer import project_of

    roots = {
        root_of(cwd): (cwd, project, agents)
        for cwd, (project, agents) in done.folders.items()
        # Hooks that name another project read no brief of this environment.
        if project == project_of(memory, "", cwd)
    }
    projects = {memory.project, *(project for project, _ in done.folders.values())}
    for root, head in heads(folder).items():
        # Texts of what was taken back must not lie about in the briefs of folders that nobody works
        # in.
        for each in projects if root not in roots and len(roots) < _MOST_ROOTS else ():
            if has_aged(memory.in_project(each), head):
                roots[root] = (root, each, set())
                break
    drafts = [
        prepare(
            memory.in_project(project),
            folder,
            cwd,
            agents=agents,
            loaded=done.loaded.get(cwd),
            history_seconds=history_seconds / len(roots),
        )
        for cwd, project, agents in roots.values()
    ]
    return [each for each in drafts if each is not None]


@contextmanager
def _deadline(seconds: float, ready: Sequence[bytes] = ()) -> Iterator[None]:
    """End the process with 0 when so much time has passed; what is ready to be said by then is
    said.

    Not on Windows, which has no such timer.
    """
    import signal

    if not hasattr(signal, "setitimer"):
        yield
        return

    def leave(*_: object) -> None:
        for each in ready:
            os.write(1, each)
        os._exit(0)

    before = signal.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, seconds * patience())
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


FIRST_SECONDS = 3.0
"""A host waits for the server's first answers; until then nothing else is done."""
EVERY_SECONDS = 300.0
_LEAVE_SECONDS = 2.0


class ServerDrain:
    """Drain a spool from time to time, in a background thread."""

    def __init__(
        self, folder: str, first: float = FIRST_SECONDS, every: float = EVERY_SECONDS
    ) -> None:
        self._folder = folder
        self._first, self._every = first, every
        self._background = Background("smara-beside")

    def start(self) -> None:
        """Begin; returns at once."""
        self._background.submit("drain", self._drain, self._first)

    def stop(self) -> None:
        """Stop after the current batch; a slow one is left alone."""
        self._background.close(_LEAVE_SECONDS)

    def _drain(self) -> None:
        """Drain what waits; what cannot be drained stays, and the next time may do."""
        try:
            if names(self._folder):
                memory = open_memory(
                    busy_timeout_seconds=1.0, check_index=False, embed_in_background=False
                )
                take_in(memory, self._folder, BACKGROUND_SECONDS, clock=self._clock)
        finally:
            self._background.submit("drain", self._drain, self._every)

    def _clock(self) -> float:
        """The time, of which none is left once it was told to stop."""
        return math.inf if self._background.stop.is_set() else time.monotonic()
