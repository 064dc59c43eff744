"""Watch sessions: turn their events into stored scratchpads.

Scratchpads outlive the processes that fill them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from smara.actions.intake import IntakeStore
from smara.behavior.methodology import Phase
from smara.behavior.record import take
from smara.behavior.scratchpad import Pad
from smara.behavior.store import BehaviorStore, by_session
from smara.core import log
from smara.core.clock import Clock
from smara.core.events import HostEvent
from smara.core.scope import is_id
from smara.core.startup.record import dataclass, field
from smara.database.database import Session
from smara.errors import SmaraError


def phase_of(pads: Sequence[Pad]) -> Phase | None:
    """Return the phase of a session's work, by what it did last.

    Nothing changed yet is to explore, or to define once there is a plan; red tests are to refine,
    other tests after the last change to validate.
    """
    if not pads:
        return None
    facts = pads[0].facts
    if facts.last_test_ok is False:
        return "refine"
    if facts.last_test > facts.edit.step:
        return "validate"
    if facts.edits:
        return "implement"
    return "define" if facts.plan else "explore"


FLUSH_AFTER_EVENTS = 256
_BOUNDARIES = frozenset(
    {"turn_end", "turn_fail", "session_end", "compact_pre", "subagent_stop", "task"}
)
"""Where a scratchpad is written: the agent pauses there anyway."""
_MOST_LIVE = 16
_MOST_PENDING = 4_096
"""So many events wait for a store that cannot be written to; then the oldest are given up."""
_SLOW_SECONDS = 0.002
"""An event that takes longer is told of in the log; nothing is ever refused for it."""


class WatchResult(NamedTuple):
    """The result of a batch: new and duplicate events."""

    taken: int = 0
    known: int = 0


@dataclass(slots=True)
class _Live:
    """A session that this process watches: its scratchpads, and what the store does not have
    yet.
    """

    pads: defaultdict[str, Pad] = field(default_factory=lambda: defaultdict(Pad))
    pending: dict[str, HostEvent] = field(default_factory=dict)
    version: int | None = None


class Watcher:
    """A watcher of events that keeps scratchpads, thread-safe."""

    def __init__(self, store: BehaviorStore, clock: Clock) -> None:
        self._store = store
        self._keys = IntakeStore(store.database, store.scope)
        self._clock = clock
        self._live: OrderedDict[str, _Live] = OrderedDict()
        self._guard = threading.RLock()

    def observe(self, event: HostEvent) -> None:
        """Observe one event in memory until its turn ends.

        Or until :meth:`flush`.
        """
        if not is_id(event.session_id):
            return
        began = self._clock.monotonic()
        with self._guard:
            live = self._resume(event.session_id)
            if event.key in live.pending:
                return
            live.pending[event.key] = event
            take(live.pads[event.subagent_id], event)
            elapsed = self._clock.monotonic() - began
            if elapsed > _SLOW_SECONDS:
                log.event(
                    "behavior.slow_event", kind=event.kind, milliseconds=round(elapsed * 1000, 1)
                )
            if event.kind in _BOUNDARIES or len(live.pending) % FLUSH_AFTER_EVENTS == 0:
                self._try_flush(event.session_id)

    def _try_flush(self, session_id: str) -> None:
        """Write what is pending; when the store is locked or away the agent goes on, and it is
        tried again later.
        """
        try:
            self._flush(session_id, is_forced=False)
        except SmaraError as error:
            pending = self._live[session_id].pending
            log.warning(
                "behavior.not_kept", session=session_id, events=len(pending), error=error.code
            )
            while len(pending) > _MOST_PENDING:
                del pending[next(iter(pending))]

    def observe_batch(
        self, events: Iterable[HostEvent], also: Callable[[Session], None] | None = None
    ) -> WatchResult:
        """Ingest many events and store them; drop duplicates.

        Args:
            events: The events of any number of sessions.
            also: Writes what belongs to them in the same transaction.
        """
        sessions = by_session(event for event in events if is_id(event.session_id))
        if not sessions and also is None:
            return WatchResult()
        with self._guard:
            for session_id in sessions:
                self._flush(session_id)
                self._live.pop(session_id, None)
            with self._store.database.write() as session:
                results = [self._take(session, batch) for batch in sessions.values()]
                if also is not None:
                    also(session)
        return WatchResult(sum(each.taken for each in results), sum(each.known for each in results))

    def flush(self, session_id: str | None = None) -> None:
        """Write what is only in memory, of one session or of all."""
        with self._guard:
            for each in [session_id] if session_id is not None else list(self._live):
                self._flush(each)

    def forget(self, session_id: str) -> None:
        """Drop a session's memory: another process decided on it."""
        with self._guard:
            self._live.pop(session_id, None)

    def pads(self, session_id: str) -> list[Pad]:
        """Return a session's current scratchpads, the agent's own first."""
        with self._guard:
            live = self._live.get(session_id)
            if live is not None and live.pads:
                return [live.pads[part] for part in sorted(live.pads)]
        with self._store.database.read() as session:
            row = self._store.find(session, session_id)
            return [] if row is None else self.stored(session, row.no)

    def stored(self, session: Session, no: int) -> list[Pad]:
        """The scratchpads of a session in the store."""
        return [Pad.load(each) for each in self._store.pads(session, no).values()]

    def _resume(self, session_id: str) -> _Live:
        """Return a session as another process, or an earlier turn, has left it."""
        live = self._live.get(session_id)
        if live is not None:
            self._live.move_to_end(session_id)
            return live
        live = _Live()
        try:
            with self._store.database.read() as session:
                row = self._store.find(session, session_id)
                stored = self._store.pads(session, row.no) if row is not None else {}
        except SmaraError as error:
            log.warning("behavior.not_resumed", session=session_id, error=error.code)
            # No version of a row: what is in memory is never taken for the newest.
            live.version = -1
        else:
            live.version = row.version if row is not None else None
            live.pads.update((part, Pad.load(each)) for part, each in stored.items())
        self._live[session_id] = live
        while len(self._live) > _MOST_LIVE:
            oldest = next(iter(self._live))
            self._try_flush(oldest)
            self._live.pop(oldest, None)
        return live

    def _flush(self, session_id: str, is_forced: bool = True) -> None:
        """Write what is pending; unless it is forced, the disk is not waited for, and a power cut
        may lose it.
        """
        live = self._live.get(session_id)
        if live is None or not live.pending:
            return
        events = list(live.pending.values())
        with self._store.database.write(is_derived=not is_forced) as session:
            self._take(session, events, live)
        live.pending.clear()
        if live.version is None:
            self._live.pop(
                session_id, None
            )  # what is in memory was overtaken; the next event reads it anew

    def _take(
        self, session: Session, events: Sequence[HostEvent], live: _Live | None = None
    ) -> WatchResult:
        row = fresh = None
        if self._keys.unerased(session, events):
            row = self._store.lock(session, events[0])
            fresh = self._keys.fresh(session, events)
        if row is None or not fresh:
            if live is not None:
                live.version = None
            return WatchResult(0, len(events))
        now = self._clock.now_ms()
        self._keys.insert_events(session, fresh, now)
        is_ahead = live is not None and live.version == (row.version - 1 if row.version else None)
        pads: dict[str, Pad] = {}
        if live is not None and is_ahead and len(fresh) == len(events):
            # No other process wrote, and all events are new: memory has the newest.
            pads = {part: live.pads[part] for part in {event.subagent_id for event in events}}
            live.version = row.version
        else:
            stored = self._store.pads(session, row.no)
            for event in fresh:
                part = event.subagent_id
                if part not in pads:
                    pads[part] = Pad.load(stored.get(part, ()))
                take(pads[part], event)
            if live is not None:
                live.version = None
        for part, pad in sorted(pads.items()):
            self._store.put_pad(session, row.no, part, saved=pad.save(), now_ms=now)
        is_ended = any(event.kind == "session_end" and not event.subagent_id for event in fresh)
        is_ended = is_ended or (row.state == "ended" and fresh[-1].kind != "session_start")
        self._store.count_events(
            session,
            row.no,
            len(fresh),
            last_at=max(event.at_ms for event in fresh),
            is_ended=is_ended,
        )
        return WatchResult(len(fresh), len(events) - len(fresh))
