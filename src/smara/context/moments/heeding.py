"""Whether what was told is used: looked for in what a session does afterwards, and written to the
receipt.

A memory counts as verified by use only where a command that it recommends was run and worked; that
it was shown, named or its file opened proves nothing about it. What is tainted never counts, see
``knowledge.using``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from smara.context.moments.keeping import KEPT_DAYS
from smara.context.moments.signs import Sight, runs_again, seen_in, shows_use
from smara.context.moments.store import MomentStore, Waiting
from smara.core import log
from smara.core.clock import Clock
from smara.core.events import HostEvent
from smara.core.scope import is_id
from smara.database.database import Session
from smara.errors import SmaraError
from smara.knowledge.memories import Memories

_DAY_MS = 86_400_000


def _hearer(event: HostEvent) -> str:
    """Who was told: a helper of an agent has a context of its own, and is told apart from it."""
    return (
        f"{event.session_id}/agent-{event.subagent_id}"[:200]
        if event.subagent_id
        else event.session_id
    )


class Heeder:
    """Looks whether what was told is used."""

    def __init__(self, store: MomentStore, memories: Callable[[], Memories], clock: Clock) -> None:
        self._store = store
        self._memories = memories
        self._clock = clock

    def heed(self, events: Sequence[HostEvent]) -> int:
        """Look at what happened; of how much it shows that it was used, or that it was not."""
        settled = 0
        ordered = sorted(events, key=_hearer)
        for session_id, group in groupby(ordered, key=_hearer):
            if is_id(session_id):
                settled += self._heed(session_id, sorted(group, key=lambda event: event.at_ms))
        return settled

    def _heed(self, session_id: str, events: Sequence[HostEvent]) -> int:
        with self._store.database.read() as session:
            waiting = self._store.waiting(session, session_id)
        is_over = any(event.kind in ("session_end", "subagent_stop") for event in events)
        if not waiting:
            return 0
        sights = [(event.at_ms, seen_in(event)) for event in events]
        helped: list[str] = []
        settled = 0
        with self._store.database.write(is_derived=True) as session:
            for each in waiting:
                settled += self._settle(session, each, sights, is_over, helped)
            if is_over:
                self._store.delete_before(session, self._clock.now_ms() - KEPT_DAYS * _DAY_MS)
        for memory_id in helped:
            self._verify(memory_id, session_id)
        return settled

    def _settle(
        self,
        session: Session,
        each: Waiting,
        sights: Sequence[tuple[int, Sight]],
        is_over: bool,
        helped: list[str],
    ) -> bool:
        after = [(at_ms, sight) for at_ms, sight in sights if at_ms >= each.made_at]
        how = next((found for _, sight in after if (found := shows_use(each.signs, sight))), "")
        now = self._clock.now_ms()
        if how:
            self._store.settle(session, each.receipt_no, each.position, "used", how, now)
            self._store.mark_used(session, each.receipt_no, how, now)
            if how == "ran" and each.kind == "memory":
                helped.append(each.item_id)
            return True
        if not any(sign.startswith("again:") for sign in each.signs):
            return False
        return self._look_for_repetition(session, each, after, is_over=is_over, now=now)

    def _look_for_repetition(
        self,
        session: Session,
        each: Waiting,
        after: Sequence[tuple[int, Sight]],
        is_over: bool,
        now: int,
    ) -> bool:
        """The call that brought a warning up still runs: only a later one ignores it."""
        runs = [at_ms for at_ms, sight in after if runs_again(each.signs, sight)]
        first = each.ran_at if each.ran_at is not None else min(runs, default=None)
        if first is not None and any(at_ms > first for at_ms in runs):
            self._store.settle(session, each.receipt_no, each.position, "repeated", "repeated", now)
            return True
        if is_over:
            self._store.settle(session, each.receipt_no, each.position, "used", "avoided", now)
            self._store.mark_used(session, each.receipt_no, "avoided", now)
            return True
        if first is not None and each.ran_at is None:
            self._store.put_run(session, each.receipt_no, each.position, ran_at=first)
        return False

    def _verify(self, memory_id: str, session_id: str) -> None:
        try:
            self._memories().used(
                memory_id,
                "helped",
                note="a command that it recommends was run and worked",
                by="system",
                actor="smara",
                session_id=session_id,
            )
        except SmaraError as error:
            log.warning("moments.use_not_counted", error=error.code)
