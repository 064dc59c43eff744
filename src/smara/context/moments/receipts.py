"""Write the receipt of each injection and mark its use.

A receipt is written in the transaction that checks for a duplicate. A memory counts as
verified only when a command that it recommends was run and worked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from smara.context.models import (
    ON_REQUEST,
    POINTS,
    Injection,
    InjectionItem,
    Point,
    Receipt,
    ReceiptTotals,
)
from smara.context.moments.draft import InjectionDraft
from smara.context.moments.experiment import arm_of, may_say
from smara.context.moments.store import MomentStore, OpenItem, SessionCounts
from smara.context.moments.usage import PROOFS, ActionSign, runs_again, seen_in, shows_use
from smara.core import log
from smara.core.clock import Clock
from smara.core.events import HostEvent
from smara.core.ids import IdMaker
from smara.core.scope import is_id, require_id
from smara.core.validate import check_page
from smara.database.database import Session
from smara.errors import InvalidInputError, NotFoundError, SmaraError
from smara.knowledge.memories import Memories

EMPTYING = ("compact", "clear")
"""After a start for these reasons a session's context holds nothing of what was said before."""
_SHORT = 200
_LEAST_PREFIX = 4
_LATE_MS = 5_000
"""The receipt of what a host has passed on already may be dated after it: it is written by another
process.
"""


class SessionState(NamedTuple):
    """The counts of a session, and what it was told."""

    row: SessionCounts
    old_keys: set[str]

    def heard_in(self, session_id: str) -> str:
        """Return the thread in its context; empty once that was emptied."""
        return "" if self.row.epoch else session_id


class ReceiptKeeper:
    """The receipts of one project's injections, and its experiment."""

    def __init__(self, store: MomentStore, clock: Clock, new_id: IdMaker, actor: str = "") -> None:
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._actor = actor

    def standing(self, session_id: str, is_emptied: bool = False) -> SessionState:
        """Return what a session was told since its context was last emptied.

        Args:
            session_id: The host's id of the session; one that is new was told nothing.
            is_emptied: True if its context was emptied just now; :meth:`empty` records that.
        """
        with self._store.database.read() as session:
            row = self._store.find_session(session, session_id)
            if row is None:
                arm = (
                    arm_of(session_id, self._store.scope.project_id)
                    if self._store.has_arms(session)
                    else None
                )
                return SessionState(SessionCounts(arm, int(is_emptied), 0), set())
            if is_emptied:
                return SessionState(row._replace(epoch=row.epoch + 1), set())
            return SessionState(row, self._store.told_keys(session, session_id, row.epoch))

    @property
    def has_arms(self) -> bool:
        """True if sessions of this project take part in an experiment."""
        return self._store.ask(self._store.has_arms)

    def set_arms(self, is_on: bool, *, actor: str | None = None) -> None:
        """Begin or end the experiment for the sessions of this project.

        Args:
            is_on: True to assign sessions to arms from now on.
            actor: Who decided it; without it, the actor of the settings.
        """
        if not isinstance(is_on, bool):
            raise InvalidInputError(f"is_on must be true or false; got {is_on!r}.", field="is_on")
        now, who = self._clock.now_ms(), (actor or self._actor)[:_SHORT]
        with self._store.database.write() as session:
            self._store.put_arms(session, is_on, now, actor=who)

    def keep(
        self,
        point: Point,
        session_id: str,
        draft: InjectionDraft,
        standing: SessionState,
        *,
        source: str = "",
        agent: str = "",
        elapsed_ms: int = 0,
    ) -> Injection | None:
        """Write a receipt; return what is to be said, or None.

        Nothing is said when another process has said it meanwhile, and in arms that are told
        nothing at this point, whose receipt tells what would have been said. A store that cannot be
        written to silences no session: the receipt can be written later, see :meth:`deliver`.

        Args:
            point: When it is said: ``start``, ``first_message``, ``before_tool`` …
            session_id: The host's id of the session.
            draft: The text and its items.
            standing: What the session was told before, from :meth:`standing`.
            source: Why the session began (``startup``, ``compact`` …).
            agent: The name of the agent that is told.
            elapsed_ms: How long the injection took to make, in milliseconds.
        """
        row = standing.row
        is_said = point in ON_REQUEST or may_say(row.arm, point)
        injection = Injection(
            draft.text,
            draft.tokens,
            point,
            items=draft.items,
            receipt_id=_receipt_id(self._new_id()),
            source=source[:_SHORT],
            agent=agent[:_SHORT],
            arm=row.arm,
        )
        now = self._clock.now_ms()
        keys = {item.key for item in injection.items}
        try:
            with self._store.database.write(is_derived=True) as session:
                locked = self._store.hold_session(session, session_id, row.arm, now_ms=now)
                row = locked._replace(epoch=max(locked.epoch, row.epoch))
                told_keys = self._store.told_keys(session, session_id, row.epoch)
                if point not in ON_REQUEST and not keys.isdisjoint(told_keys):
                    return None
                counts = row._replace(statements=locked.statements + is_statement(point))
                self._store.put_session(session, session_id, counts, now_ms=now)
                is_new = self._store.add(
                    session,
                    injection,
                    session_id,
                    epoch=row.epoch,
                    is_said=is_said,
                    elapsed_ms=elapsed_ms,
                    at_ms=now,
                )
        except SmaraError as error:
            log.warning("moments.not_kept", error=error.code)
            return replace(injection, is_kept=False) if is_said else None
        return injection if is_new and is_said else None

    def empty(self, session_id: str, standing: SessionState) -> None:
        """Record that a session's context was emptied.

        A store that cannot be written to is logged and not raised.

        Args:
            session_id: The host's id of the session.
            standing: Its new state, from :meth:`standing` with ``is_emptied``.
        """
        try:
            with self._store.database.write(is_derived=True) as session:
                self._store.put_session(
                    session, session_id, standing.row, now_ms=self._clock.now_ms()
                )
        except SmaraError as error:
            log.warning("moments.not_kept", error=error.code)

    def deliver(
        self,
        injection: Mapping[str, Any] | Injection,
        *,
        session_id: str,
        source: str = "",
        at_ms: int,
        is_said: bool = True,
    ) -> bool:
        """Write the receipt of a precomputed injection; safe to repeat.

        Args:
            injection: An :class:`Injection`, or the mapping of its fields.
            session_id: Who was told.
            source: Why the session began (``startup``, ``compact`` …).
            at_ms: When it was said.
            is_said: False for what a session of the control arm would have been told.

        Returns:
            False if the receipt was there already.

        Raises:
            InvalidInputError: If the mapping is no injection.
        """
        from smara.secrets import redact

        require_id(session_id, "session_id")
        given = injection if isinstance(injection, Injection) else injection_of(injection)
        if not given.text.strip() or not given.items:
            return False
        # It went through a file, where anything may have been written into it.
        # The same words are prepared for many sessions: the receipt is of this session at this
        # time.
        identity = f"{session_id}\0{at_ms}\0{given.point}\0{given.text}"
        made = replace(
            given,
            text=redact(given.text).text,
            items=tuple(
                replace(
                    each,
                    why=redact(each.why).text,
                    text=redact(each.text).text,
                    id=each.id[:512],
                    key=each.key[:512],
                )
                for each in given.items
            ),
            agent=given.agent[:_SHORT],
            receipt_id=given.receipt_id if not given.is_kept else _receipt_id(identity),
            source=(source or given.source)[:_SHORT],
            is_kept=True,
        )
        with self._store.database.write(is_derived=True) as session:
            has_arms = self._store.has_arms(session)
            arm = arm_of(session_id, self._store.scope.project_id) if has_arms else None
            row = self._store.hold_session(session, session_id, arm, now_ms=at_ms)
            if made.point == "start" and made.source in EMPTYING:
                # Its context was emptied: it knows nothing of before.
                row = row._replace(epoch=row.epoch + 1)
            is_new = self._store.add(
                session,
                replace(made, arm=row.arm),
                session_id,
                epoch=row.epoch,
                is_said=is_said,
                elapsed_ms=0,
                at_ms=at_ms,
                delivered_at=at_ms if is_said else None,
            )
            if is_new:
                counts = row._replace(statements=row.statements + is_statement(made.point))
                self._store.put_session(session, session_id, counts, now_ms=at_ms)
            return is_new

    def mark_delivered(self, receipt_id: str) -> bool:
        """Mark a receipt as handed to the host.

        Args:
            receipt_id: The whole id of the receipt.

        Returns:
            False if that was known, or if it was not to be said.
        """
        with self._store.database.write(is_derived=True) as session:
            return self._store.mark_delivered(session, receipt_id, self._clock.now_ms()) > 0

    def reached(self, session_id: str, words: Sequence[tuple[int, str]]) -> int:
        """Mark receipts whose words stand in the host's record.

        The same words may be said twice, and a host may pass them on once: each standing counts for
        one receipt, the last before it that has none.

        Args:
            session_id: The session.
            words: The words in the record, each with its time.

        Returns:
            How many receipts are marked now that were not before.
        """
        require_id(session_id, "session_id")
        found = 0
        with self._store.database.write(is_derived=True) as session:
            receipts = self._store.injections(session, session_id)
            taken = {(text, reached) for _, text, _, reached in receipts if reached is not None}
            left = [(no, text, at) for no, text, at, reached in receipts if reached is None]
            for at_ms, text in words:
                fitting = [each for each in left if each[1] == text and each[2] <= at_ms + _LATE_MS]
                if fitting and (text, at_ms) not in taken:
                    left.remove(fitting[-1])
                    found += self._store.mark_reached(session, fitting[-1][0], at_ms)
        return found

    def mark_used(self, receipt_id: str, how: str) -> Receipt:
        """Mark an injection as used; no memory counts as verified by it.

        Args:
            receipt_id: The receipt.
            how: By what the use is known, in a few words.

        Returns:
            The receipt, with its use.

        Raises:
            NotFoundError: If there is no such receipt.
            InvalidInputError: If ``how`` is empty.
        """
        from smara.secrets import redact

        if not isinstance(how, str) or not how.strip():
            raise InvalidInputError(
                "how must say by what the use is known; give a few words.", field="how"
            )
        found = self.receipt(receipt_id)
        words = " ".join(redact(how).text.split())[:_SHORT]
        now = self._clock.now_ms()
        with self._store.database.write(is_derived=True) as session:
            no = self._store.number_of(session, found.id)
            if no is not None:
                self._store.mark_used(session, no, words, now)
                self._store.settle(session, no, None, "used", words, now)
        return self.receipt(found.id)

    def receipt(self, receipt_id: str) -> Receipt:
        """Return a receipt by its id or the beginning of it.

        Args:
            receipt_id: The id, or at least its first four characters, with or without ``r-``.

        Raises:
            NotFoundError: If there is no such receipt.
            InvalidInputError: If several begin so.
        """
        if (
            isinstance(receipt_id, str)
            and len(receipt_id) >= _LEAST_PREFIX
            and receipt_id.isascii()
        ):
            beginning = receipt_id if receipt_id.startswith("r-") else f"r-{receipt_id}"
            found = self._store.ask(self._store.find, beginning.lower())
            if len(found) == 1:
                return found[0]
            if found:
                raise InvalidInputError(
                    f"Several receipts begin with {receipt_id!r}. Give more of the id.", field="id"
                )
        raise NotFoundError(
            f"There is no receipt {receipt_id!r} in this project. `smara receipts list` shows "
            "what there is.",
            receipt_id=receipt_id,
        )

    def receipts(
        self, session_id: str | None = None, limit: int = 50, offset: int = 0
    ) -> list[Receipt]:
        """Return receipts of one session or of all, the newest first.

        Args:
            session_id: The session; without it, all.
            limit: The most receipts to return, at least 1.
            offset: How many of the newest to skip.

        Raises:
            InvalidInputError: If the limit or the offset is impossible.
        """
        check_page(limit, offset)
        return self._store.ask(self._store.list, session_id, limit, offset)

    def totals(self) -> ReceiptTotals:
        """Return all receipts in numbers."""
        return self._store.ask(self._store.totals)


def is_statement(point: Point) -> bool:
    """Return True if a point counts for the limit."""
    return point not in ON_REQUEST and point != "start"


def _receipt_id(seed: str) -> str:
    """A receipt's id: drawn from something that is its own, short enough to be typed."""
    return "r-" + hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def injection_of(plain: Mapping[str, Any]) -> Injection:
    """Return an injection from the JSON it was stored as.

    Raises:
        InvalidInputError: If it is no injection.
    """
    try:
        names = {each.name for each in fields(InjectionItem)}
        point = str(plain["point"])
        if point not in POINTS:
            raise ValueError(point)
        return Injection(
            str(plain["text"]),
            int(plain["tokens"]),
            point,
            items=tuple(
                InjectionItem(
                    **{
                        **{name: value for name, value in each.items() if name in names},
                        "signs": tuple(map(str, each.get("signs", ()))),
                    }
                )
                for each in plain.get("items", ())
            ),
            receipt_id=str(plain.get("receipt_id", "")),
            source=str(plain.get("source", "")),
            agent=str(plain.get("agent", "")),
            arm=None,
            is_kept=bool(plain.get("is_kept", True)),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError(
            f"This is nothing that was prepared to be said: {error!r}.", field="told"
        ) from None


@dataclass(frozen=True, eq=False)
class UseDetector:
    """Looks whether what was told is used."""

    store: MomentStore
    memories: Callable[[], Memories]
    clock: Clock

    def heed(self, events: Sequence[HostEvent]) -> int:
        """Settle what events show; return how much was settled."""
        settled = 0
        by_hearer = attrgetter("hearer")
        for session_id, group in groupby(sorted(events, key=by_hearer), key=by_hearer):
            if not is_id(session_id):
                continue
            waiting = self.store.ask(self.store.waiting, session_id)
            if waiting:
                in_order = sorted(group, key=lambda event: event.at_ms)
                settled += self._heed(session_id, in_order, waiting)
        return settled

    def _heed(
        self, session_id: str, events: Sequence[HostEvent], waiting: Sequence[OpenItem]
    ) -> int:
        sights = [(event.at_ms, seen_in(event)) for event in events]
        helped: list[str] = []
        settled = 0
        with self.store.database.write(is_derived=True) as session:
            for each in waiting:
                settled += self._settle(session, each, sights, helped)
        for memory_id in helped:
            try:
                self.memories().used(
                    memory_id,
                    "helped",
                    note="a command that it recommends was run and worked",
                    by="system",
                    actor="smara",
                    session_id=session_id,
                )
            except SmaraError as error:
                log.warning("moments.use_not_counted", error=error.code)
        return settled

    def _settle(
        self,
        session: Session,
        each: OpenItem,
        sights: Sequence[tuple[int, ActionSign]],
        helped: list[str],
    ) -> bool:
        """Settle one item if it was used or repeated; return True if it is settled."""
        after = [(at_ms, sight) for at_ms, sight in sights if at_ms >= each.made_at]
        uses = [(use, at_ms) for at_ms, sight in after if (use := shows_use(each.signs, sight))]
        now, place = self.clock.now_ms(), (each.receipt_no, each.position)
        is_warning = any(sign.startswith("again:") for sign in each.signs)
        again = [(at_ms, sight) for at_ms, sight in after if runs_again(each.signs, sight)]
        # Many hosts show a warning with the result of that very call: its failure was not spared.
        failed = [at_ms for at_ms, sight in after if sight.is_run and not sight.worked]
        first = min([at_ms for at_ms, _ in again] + failed, default=None) if is_warning else None
        first = each.ran_at if each.ran_at is not None else first
        how, used_at = next((use for use in uses if use[0] in PROOFS), ("", 0))
        if how:
            if how == "ran" and each.kind == "memory":
                helped.append(each.item_id)
            is_saving = is_warning and how == "ran" and (first is None or first > used_at)
            self.store.settle(session, *place, "used", how=how, at_ms=now, is_saving=is_saving)
            self.store.mark_used(session, each.receipt_no, how, now)
            return True
        if first is not None and any(at > first and not sight.worked for at, sight in again):
            self.store.settle(session, *place, "repeated", how="repeated", at_ms=now)
            return True
        trace = each.how or next((use for use, _ in uses), "")
        if (first, trace) != (each.ran_at, each.how):
            self.store.put_trace(session, *place, ran_at=first, how=trace)
        return False
