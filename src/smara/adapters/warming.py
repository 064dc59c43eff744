"""Learning from imported sessions: their events are watched as if they happened now.

So past transcripts make the first day warm: what they show becomes memories that wait for
review. Safe to repeat, and bounded: of a run only so many sessions and events are watched; what
was left out is told, and is learned from by importing again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from smara.adapters.records import Record
from smara.adapters.transcripts import EventReader
from smara.core.clock import Clock, SystemClock
from smara.core.events import HostEvent
from smara.errors import NotFoundError, SmaraError
from smara.memory import Memory

MOST_SESSIONS = 200
MOST_EVENTS = 100_000
BATCH = 500
SILENT_MS = 2 * 3_600_000
"""A session that was heard of since then may go on: it is watched, and decided on when it has
ended.
"""
_WITHOUT_CALL_IDS = ("gemini", "copilot", "cursor")
"""Hosts whose hooks name no call: nothing shows that a call in a transcript is the one that a hook
has told of.
"""
_TOOL_KINDS = ("tool_pre", "tool_post", "tool_fail")


@dataclass(slots=True)
class Learned:
    """What came of watching imported sessions."""

    sessions: int = 0
    """In which something new was seen."""
    events: int = 0
    memories: int = 0
    """That were made of it and wait for review."""
    left_out: int = 0
    """Sessions that were too many for one run."""
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Watched:
    """A session of this run: what may be taken of it, and what was."""

    after_ms: int = -1
    """Only what happened later is new."""
    is_open: bool = False
    """It was heard of and not decided on. Hooks may have told it: of calls alone both tellings are
    known to be one.
    """
    heard_ms: int = -1
    """When it was last heard of; of hosts that give calls no id, only what happened later is new
    even so.
    """
    is_left_out: bool = False
    is_new: bool = False
    """Nothing was known of it before this run."""
    taken: int = 0
    last_ms: int = 0


class Learner:
    """Watches the sessions that one run imports, and decides on them at its end."""

    def __init__(
        self,
        memory: Memory,
        *,
        most_sessions: int = MOST_SESSIONS,
        most_events: int = MOST_EVENTS,
        clock: Clock | None = None,
    ) -> None:
        self._memory = memory
        self._clock = clock or SystemClock()
        self._most_sessions = most_sessions
        self._most_events = most_events
        self._sessions: dict[str, _Watched] = {}
        self._reader = EventReader()
        self._pending: list[HostEvent] = []
        self.learned = Learned()

    def begin_file(self, at_ms: int = 0) -> None:
        """Another transcript; what has no time of its own happened when it was written."""
        self._reader = EventReader(at_ms)

    def take(self, record: Record) -> None:
        """Watch what one record tells."""
        for event in self._reader.read(record):
            watched = self._sessions.get(event.session_id)
            if watched is None:
                watched = self._sessions[event.session_id] = self._look(event.session_id)
            if self._wants(watched, event):
                watched.last_ms = max(watched.last_ms, event.at_ms)
                self._pending.append(event)
        if len(self._pending) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what was seen so far; trouble here must not fail what is imported."""
        pending, self._pending = self._pending, []
        by_session: dict[str, list[HostEvent]] = {}
        for event in pending:
            by_session.setdefault(event.session_id, []).append(event)
        for session_id, events in by_session.items():
            try:
                taken = self._memory.behavior.observe_batch(events).taken
            except SmaraError as error:
                self._trouble(session_id, error)
                continue
            self._sessions[session_id].taken += taken
            self.learned.events += taken

    def finish(self, progress: Callable[[int, int], None] | None = None) -> Learned:
        """Decide on every session that has ended and showed something new, the oldest first."""
        self.flush()
        fresh = {name: watched for name, watched in self._sessions.items() if watched.taken}
        silent_since = self._clock.now_ms() - SILENT_MS
        # One that an earlier run was stopped in the middle of is still open, though nothing of it
        # is new now.
        undecided = {
            name: each for name, each in self._sessions.items() if each.taken or each.is_open
        }
        due = sorted(
            (each.last_ms, name) for name, each in undecided.items() if each.last_ms <= silent_since
        )
        for number, (_, session_id) in enumerate(due, 1):
            try:
                done = self._memory.behavior.finalize(session_id)
                self.learned.memories += _promoted(done)
            except SmaraError as error:
                self._trouble(session_id, error)
            if progress:
                progress(number, len(due))
        self.learned.sessions = len(fresh)
        self.learned.left_out = sum(watched.is_left_out for watched in self._sessions.values())
        return self.learned

    def _look(self, session_id: str) -> _Watched:
        try:
            known = self._memory.behavior.session(session_id)
        except NotFoundError:
            count = sum(each.is_new for each in self._sessions.values())
            is_too_much = (
                count >= self._most_sessions
                or self.learned.events + len(self._pending) >= self._most_events
            )
            return _Watched(is_left_out=is_too_much, is_new=not is_too_much)
        except SmaraError as error:
            self._trouble(session_id, error)
            return _Watched(is_left_out=True)
        if known.state == "final":
            return _Watched(after_ms=known.last_event_at)
        return _Watched(is_open=True, heard_ms=known.last_event_at)

    def _wants(self, watched: _Watched, event: HostEvent) -> bool:
        if watched.is_left_out or event.at_ms <= watched.after_ms:
            return False
        if watched.is_open and event.agent in _WITHOUT_CALL_IDS and event.at_ms <= watched.heard_ms:
            return False
        return not watched.is_open or event.kind in _TOOL_KINDS

    def _trouble(self, session_id: str, error: SmaraError) -> None:
        if len(self.learned.problems) < 10:
            self.learned.problems.append(f"nothing was learned from session {session_id}: {error}")


def _promoted(done: Any) -> int:
    return 0 if done is None else len(done.promoted)
