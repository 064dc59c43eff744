"""Manage memories: add, change, review, list and explain them.

:class:`Memories` is the room's public face. Every change writes an event.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from smara.core import log
from smara.core.freshness import CODE_CHANGED, Freshness
from smara.core.validate import one_of
from smara.errors import SmaraError
from smara.knowledge import change, lifecycle, prepare, queries
from smara.knowledge import trust as levels
from smara.knowledge.change import edited_fields
from smara.knowledge.decay import (
    DAY_MS,
    ConfidenceNow,
    FileHistory,
    Staleness,
    confidence_now,
    staleness_of,
)
from smara.knowledge.journal import MemoryChange, MemoryJournal, require
from smara.knowledge.models import (
    AcceptResult,
    AddResult,
    By,
    Evidence,
    MemoryEvent,
    MemoryPage,
    MemoryTotals,
    MemoryType,
    NewMemory,
    Order,
    PruneResult,
    Relation,
    State,
    TypedMemory,
    UseOutcome,
    Visibility,
)
from smara.knowledge.provenance import NamedCode, NoCode, NoSources, Sources, notify_code
from smara.knowledge.store import StoredMemory
from smara.knowledge.trust import (
    Tellable,
    TrustStatus,
    Verdict,
    find_tellable,
    may_inject,
    trust_report,
)
from smara.secrets.redact import clean_name

if TYPE_CHECKING:
    from smara.database.database import Session
    from smara.knowledge.add import PreparedMemory, SimilarMemories
    from smara.knowledge.audit import Audit
    from smara.knowledge.gate import SessionType
    from smara.knowledge.provenance import Why


_REVIEWED_AT_ONCE = 1_000
_EVENTS_SHOWN = 50


class Memories:
    """The memories of one project.

    ``memory_id`` takes whatever a memory is called: its UUID, its short id with or without what
    stands before the hyphen, or the beginning of one of these, as long as only one fits. ``by``
    says who acts: a ``person``, an ``agent`` or the ``system`` itself. Only a person can verify,
    accept, reject, pin, and undo what a person did. ``version``, when given, must still be the
    memory's: ``ConflictError`` when somebody was faster.
    """

    def __init__(
        self,
        turns: MemoryJournal,
        sources: Sources | None = None,
        files: FileHistory | None = None,
        similar: SimilarMemories | None = None,
        code: NamedCode | None = None,
    ) -> None:
        self._code = code or NoCode()
        self._turns = turns
        self._store = turns.store
        self._sources = sources or NoSources()
        self._files = files
        self._similar = similar

    # making

    def remember(
        self,
        text: str,
        *,
        type: MemoryType | None = None,
        files: Sequence[str] = (),
        modules: Sequence[str] = (),
        tags: Sequence[str] = (),
        citation: str | None = None,
        visibility: Visibility = "project",
        is_pinned: bool = False,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> AddResult:
        """What a person teaches: confirmed at once. Without a type, the words decide."""
        new = NewMemory(
            prepare.clean_content(text),
            type or self.guess_type(text),
            "user_taught",
            tags=tags,
            files=files,
            modules=modules,
            citation=citation,
            visibility=visibility,
            is_pinned=is_pinned,
        )
        return self.add_many([new], by="person", actor=actor, session_id=session_id)[0]

    def add(
        self,
        content: str,
        *,
        type: MemoryType,
        by: By = "agent",
        actor: str | None = None,
        session_id: str | None = None,
        session_type: SessionType = "build",
        thread_id: str | None = None,
        already_told: Sequence[str] = (),
        **fields: Any,
    ) -> AddResult:
        """Remember a statement; ``fields`` are those of :class:`NewMemory`. See
        :meth:`add_many`.
        """
        return self.add_many(
            [NewMemory(content, type, **fields)],
            by=by,
            actor=actor,
            session_id=session_id,
            session_type=session_type,
            thread_id=thread_id,
            already_told=already_told,
        )[0]

    def add_many(
        self,
        new: Iterable[NewMemory],
        *,
        by: By = "agent",
        actor: str | None = None,
        session_id: str | None = None,
        session_type: SessionType = "build",
        thread_id: str | None = None,
        already_told: Sequence[str] = (),
        put_aside: Mapping[str, str] | None = None,
        also: Callable[[Session, Sequence[AddResult]], object] | None = None,
    ) -> builtins.list[AddResult]:
        """Remember statements, all in one transaction; what came of each, in their order.

        ``thread_id`` is the conversation in which they were noted: what came into it from outside
        taints them. ``already_told`` are texts that the agent was given, such as boot files: a
        statement that only repeats them is refused. ``put_aside`` gives the ids of memories that
        are forgotten with it, and why; those that are put aside already are left. ``also`` is
        called within the transaction, with what came of them; when it raises, nothing was changed.
        """
        from smara.knowledge.add import Adder, prepare_new
        from smara.knowledge.gate import SESSION_TYPES

        one_of(session_type, SESSION_TYPES, "session_type")
        has_session = session_id is not None or self._turns.default_session is not None
        prepared = [
            self._with_cosines(prepare_new(each, already_told, has_session)) for each in new
        ]
        with self._turns.begin(actor, session_id, by) as turn:
            if turn.session_id is not None:
                levels.see_session(turn, turn.session_id)
            adder = Adder(turn, self._sources, session_type, thread_id=thread_id)
            added = [adder.add(each) for each in prepared]
            new_ids = [
                each.memory.id
                for each in added
                if each.outcome == "added" and each.memory is not None
            ]
            numbers = self._store.numbers_of_ids(turn.session, new_ids)
            ended = change.put_aside(turn, put_aside or {})
            if also is not None:
                also(turn.session, added)
        made = [
            each.memory for each in added if each.memory is not None and each.memory.id in numbers
        ]
        if made:
            self._code.written([StoredMemory(numbers[each.id], each) for each in made])
        for before, after in ended:
            notify_code(self._code, before.memory, after)
        outcomes = [each.outcome for each in added]
        log.event(
            "memory.added",
            **{name: outcomes.count(name) for name in ("added", "duplicate", "refused")},
        )
        return added

    def guess_type(self, text: str) -> MemoryType:
        """The type of memory that a statement seems to be, by its words."""
        from smara.knowledge.guess import type_of

        return prepare.clean_type(type_of(text).type)

    def _with_cosines(self, prepared: PreparedMemory) -> PreparedMemory:
        """What is close in meaning, looked up before anything is locked; trouble there never keeps
        a memory out.

        What a person teaches is held against what is there by its words alone: it is wanted at
        once.
        """
        if self._similar is None or prepared.against or prepared.fields["source"] == "user_taught":
            return prepared
        try:
            return replace(prepared, cosines=dict(self._similar(prepared.draft)))
        except SmaraError as error:
            log.warning("memory.similar_failed", error=error.code)
            return prepared

    # changing

    def update(
        self,
        memory_id: str,
        *,
        version: int | None = None,
        by: By = "agent",
        actor: str | None = None,
        session_id: str | None = None,
        thread_id: str | None = None,
        taint: Sequence[str] = (),
        **changes: Any,
    ) -> TypedMemory:
        """Change named fields, of those of :class:`NewMemory`; a list is replaced, ``data`` merged,
        ``""`` clears.

        New evidence, ``taint`` and what came into the conversation ``thread_id`` from outside add
        to what the memory is tainted with; nothing here takes taint away.
        """
        found = set(prepare.clean_taint(taint))
        with self._changing(memory_id, version, by, actor, session_id) as (turn, stored):
            fields = edited_fields(stored.memory, changes)
            if thread_id is not None and by != "person":
                found.update(self._sources.ambient_taint(turn.session, thread_id))
            if "evidence" in fields:
                found.update(self._taint_of(turn, fields["evidence"]))
            return change.update(turn, stored, fields, taint=found).memory

    def pin(self, memory_id: str, *, by: By = "person", **who: Any) -> TypedMemory:
        """Keep a memory from fading and from being pruned."""
        return self._change(
            memory_id, lambda turn, stored: change.pin(turn, stored, True), by, **who
        )

    def unpin(self, memory_id: str, *, by: By = "person", **who: Any) -> TypedMemory:
        """Let it fade again."""
        return self._change(
            memory_id, lambda turn, stored: change.pin(turn, stored, False), by, **who
        )

    def verify(self, memory_id: str, *, by: By = "person", **who: Any) -> TypedMemory:
        """A person says that it is true: its taint is cleared, and it counts as used now."""
        return self._change(memory_id, change.verify, by, **who)

    def forget(self, memory_id: str, why: str = "", *, by: By = "agent", **who: Any) -> TypedMemory:
        """Put a memory aside; it can be restored, and after a month of grace it is removed."""
        return self._change(
            memory_id, lambda turn, stored: change.forget(turn, stored, why), by, **who
        )

    def restore(self, memory_id: str, *, by: By = "agent", **who: Any) -> TypedMemory:
        """Bring back what was put aside, however that was; an agent only what was pruned."""
        return self._change(memory_id, change.restore, by, **who)

    def used(
        self, memory_id: str, outcome: UseOutcome, *, note: str = "", by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Say what came of using a memory; being shown is no use. One use per session counts."""

        def act(turn: MemoryChange, stored: StoredMemory) -> StoredMemory:
            if turn.session_id is not None:
                levels.see_session(turn, turn.session_id)
            return lifecycle.use(turn, stored, outcome, note=note)

        return self._change(memory_id, act, by, **who)

    def supersede(
        self, old_id: str, new_id: str, *, why: str = "", by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Put a memory in the place of another that is no longer true; both are kept. The newer
        one.
        """

        def act(turn: MemoryChange, new: StoredMemory) -> StoredMemory:
            old = require(turn.session, self._store, old_id)
            return change.supersede(
                turn, old, new, why=prepare.clean_optional(why, "why", 500) or "somebody said so"
            )

        return self._change(new_id, act, by, **who)

    def merge(
        self, keep_id: str, other_ids: Sequence[str], *, by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Make one of memories that say the same: the one that is kept, with what the others know
        besides.
        """

        def act(turn: MemoryChange, keep: StoredMemory) -> StoredMemory:
            others = [require(turn.session, self._store, each) for each in other_ids]
            return change.merge(turn, keep, others)

        return self._change(keep_id, act, by, **who)

    def relate(
        self, memory_id: str, relation: Relation, *, by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Say what a memory has to do with another, or with a file."""

        def act(turn: MemoryChange, stored: StoredMemory) -> StoredMemory:
            change.relate(turn, stored, relation)
            return stored

        return self._change(memory_id, act, by, **who)

    def unrelate(
        self, memory_id: str, relation: Relation, *, by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Take such a relation away."""

        def act(turn: MemoryChange, stored: StoredMemory) -> StoredMemory:
            change.unrelate(turn, stored, relation)
            return stored

        return self._change(memory_id, act, by, **who)

    def mark_stale(self, memory_id: str, why: str, *, by: By = "agent", **who: Any) -> TypedMemory:
        """Say that a memory no longer holds; it is kept and found, and told to nobody unasked."""
        return self._change(
            memory_id, lambda turn, stored: change.mark_stale(turn, stored, why), by, **who
        )

    def mark_fresh(self, memory_id: str, *, by: By = "agent", **who: Any) -> TypedMemory:
        """Take that back."""
        return self._change(memory_id, change.mark_fresh, by, **who)

    def undo(self, memory_id: str, *, by: By = "agent", **who: Any) -> TypedMemory:
        """Take back the newest change that was not taken back yet, with its other half; again to go
        further back.
        """
        return self._change(memory_id, change.undo, by, **who)

    # review

    def to_review(
        self,
        *,
        session_id: str | None = None,
        type: MemoryType | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> MemoryPage:
        """What waits for a person, the newest first."""
        return self.list(
            needs_review=True, session_id=session_id, type=type, limit=limit, offset=offset
        )

    def accept(
        self,
        memory_id: str,
        *,
        version: int | None = None,
        by: By = "person",
        actor: str | None = None,
        session_id: str | None = None,
        **changes: Any,
    ) -> TypedMemory:
        """A person says that it is true, perhaps after mending it; what it surely contradicts gives
        way.
        """
        from smara.knowledge import review

        with self._changing(memory_id, version, by, actor, session_id) as (turn, stored):
            return review.accept(turn, stored, edited_fields(stored.memory, changes)).memory

    def accept_all(
        self, *, session_id: str | None = None, by: By = "person", actor: str | None = None
    ) -> AcceptResult:
        """Accept what waits, of one session or of all; the tainted, disputed and flagged are left,
        with the reason.
        """
        from smara.knowledge import review

        filters = queries.filters_for(self._store, {"needs_review": True, "session_id": session_id})
        with self._turns.begin(actor, None, by) as turn:
            active = ("m.deprecated_at IS NULL", ())
            waiting = queries.select(
                turn.session, self._store, [active, *filters], order="m.no", limit=_REVIEWED_AT_ONCE
            )
            return review.accept_all(turn, waiting)

    def reject(
        self, memory_id: str, why: str = "", *, by: By = "person", **who: Any
    ) -> TypedMemory:
        """A person says that it is not to be remembered; the same words are not learned again."""
        from smara.knowledge import review

        return self._change(
            memory_id, lambda turn, stored: review.reject(turn, stored, why), by, **who
        )

    # asking

    def get(self, memory_id: str) -> TypedMemory:
        """The memory, or ``NotFoundError``."""
        with self._store.database.read() as session:
            return require(session, self._store, memory_id).memory

    def find(self, memory_id: str) -> TypedMemory | None:
        """The memory, or ``None``."""
        with self._store.database.read() as session:
            no = self._store.find_no(session, memory_id)
            return None if no is None else self._store.by_number(session, no)

    def list(
        self,
        *,
        state: State = "active",
        order: Order = "newest",
        limit: int = 50,
        offset: int = 0,
        **filters: Any,
    ) -> MemoryPage:
        """Memories, the newest first.

        Filters: ``type`` or ``types``, ``source``, ``scope``, ``visibility``, ``tier``, ``tag``,
        ``file``, ``module``, ``session_id``, ``evidence_path``, ``message_id``, ``observation_id``,
        ``is_pinned``, ``is_verified``, ``needs_review``.
        """
        queries.check_page(limit, offset)
        conditions = queries.filters_for(self._store, filters)
        with self._store.database.read() as session:
            return queries.list_page(
                session,
                self._store,
                conditions,
                state=state,
                order=order,
                limit=limit,
                offset=offset,
            )

    def for_files(
        self,
        paths: Sequence[str],
        *,
        types: Sequence[MemoryType] | None = None,
        limit: int = 10,
        min_confidence: float = 0.0,
        root: str | None = None,
        is_injectable_only: bool = False,
    ) -> builtins.list[TypedMemory]:
        """Active memories about files or the folders around them: the closest, most trusted and
        surest first.

        One look-up by index, for hooks. With ``is_injectable_only``, those that may be told
        unasked.
        """
        queries.check_page(limit, 0)
        now, most = self._turns.clock.now_ms(), 10 * limit if is_injectable_only else limit
        with self._store.database.read() as session:
            found = queries.for_files(
                session,
                self._store,
                paths,
                types=types,
                root=root,
                now_ms=now,
                min_confidence=min_confidence,
                limit=most,
            )
            level = self._store.state(session).trust_level if is_injectable_only else 1
            code = (
                self._freshness(session, [each.id for each in found]) if is_injectable_only else {}
            )
        if is_injectable_only:
            found = [
                each
                for each in found
                if find_tellable(each, now, level, code=code.get(each.id)) is not None
            ]
        return found[:limit]

    def history(self, memory_id: str, *, limit: int = 50) -> builtins.list[MemoryEvent]:
        """What happened to a memory, newest first."""
        queries.check_page(limit, 0)
        with self._store.database.read() as session:
            stored = require(session, self._store, memory_id)
            return self._store.events(session, stored.no, stored.memory.id, limit)

    def chain(self, memory_id: str) -> builtins.list[TypedMemory]:
        """Everything that took the place of one another around a memory, the oldest first; empty
        without any.
        """
        with self._store.database.read() as session:
            return queries.chain_of(session, self._store, require(session, self._store, memory_id))

    def why(self, memory_id: str) -> Why:
        """Where a memory came from, how far it is trusted, what it is worth today, and what
        happened to it.
        """
        from smara.knowledge.provenance import Why

        with self._store.database.snapshot() as session:
            stored = require(session, self._store, memory_id)
            memory = stored.memory
            origins = [
                each.memory_id
                for each in memory.relations
                if each.type == "derived_from" and each.memory_id
            ]
            numbers = self._store.numbers_of_ids(session, origins).values()
            now, code = (
                self._turns.clock.now_ms(),
                self._freshness(session, [memory.id]).get(memory.id),
            )
            stale = staleness_of(memory, now, self._files, code=code)
            worth = confidence_now(memory, now, *stale.factors)
            telling = confidence_now(memory, now, *stale.telling_factors).value
            return Why(
                memory,
                tuple(self._sources.shown(session, memory.evidence)),
                trust_report(memory),
                confidence=worth,
                staleness=stale,
                injection=may_inject(
                    memory, telling, self._store.state(session).trust_level, is_gone=stale.is_gone
                ),
                chain=tuple(queries.chain_of(session, self._store, stored)),
                origins=tuple(self._store.by_numbers(session, numbers).values()),
                events=tuple(self._store.events(session, stored.no, memory.id, _EVENTS_SHOWN)),
                code=code,
            )

    def confidence(self, memory: TypedMemory) -> ConfidenceNow:
        """What a memory is worth now, and how that is worked out."""
        return confidence_now(memory, self._turns.clock.now_ms(), *self.staleness(memory).factors)

    def staleness(self, memory: TypedMemory) -> Staleness:
        """Whether what a memory says may no longer hold, by four layers."""
        code = self.freshness([memory]).get(memory.id)
        return staleness_of(memory, self._turns.clock.now_ms(), self._files, code=code)

    def freshness(self, memories: Iterable[TypedMemory]) -> dict[str, Freshness]:
        """How memories stand to the code they name, in the folder that asks, by id; those that name
        none are left out.

        A reading: it changes nothing, and counts as no verification.
        """
        with self._store.database.read() as session:
            return self._freshness(session, [memory.id for memory in memories])

    def _freshness(self, session: Session, ids: Sequence[str]) -> dict[str, Freshness]:
        numbers = self._store.numbers_of_ids(session, ids)
        found = self._code.freshness(session, list(numbers.values())) if numbers else {}
        return {each: found[no] for each, no in numbers.items() if no in found}

    def may_inject(self, memory: TypedMemory) -> Verdict:
        """Whether a memory may be told to an agent that did not ask, and whether as an
        instruction.
        """
        with self._store.database.read() as session:
            level = self._store.state(session).trust_level
        stale = self.staleness(memory)
        worth = confidence_now(memory, self._turns.clock.now_ms(), *stale.telling_factors)
        return may_inject(memory, worth.value, level, is_gone=stale.is_gone)

    def tellable(self, memories: Sequence[TypedMemory]) -> builtins.list[Tellable]:
        """Those of some memories that may be told unasked, in their order, each with what has to be
        said beside it.
        """
        now = self._turns.clock.now_ms()
        with self._store.database.read() as session:
            level = self._store.state(session).trust_level
            code = self._freshness(session, [memory.id for memory in memories])
        found = (find_tellable(memory, now, level, code=code.get(memory.id)) for memory in memories)
        return [told for told in found if told is not None]

    def audit(self, *, examples: int = 5) -> Audit:
        """How much is junk, said twice, contradicted, stale, unreviewed, tainted or without
        evidence.
        """
        from smara.knowledge.audit import audit

        queries.check_page(examples, 0)
        active = [memory for memory in self.export() if memory.is_active]
        code = self.freshness(active)
        return audit(
            active,
            self.totals().total,
            self._turns.clock.now_ms(),
            files=self._files,
            examples=examples,
            code=code,
        )

    def totals(self) -> MemoryTotals:
        """How many memories there are, and how many wait for review."""
        with self._store.database.read() as session:
            return self._store.totals(session)

    def export(self) -> Iterator[TypedMemory]:
        """Every memory, the oldest first, also those that were put aside."""
        yield from queries.pages(self._store)

    def problems(self) -> builtins.list[str]:
        """What is wrong with the totals; counts every memory, for the doctor."""
        with self._store.database.snapshot() as session:
            kept, counted = self._store.totals(session), self._store.recount(session)
        return (
            []
            if kept == counted
            else [f"The totals of memories say {kept}, and there are {counted}."]
        )

    def recount(self) -> MemoryTotals:
        """Count the totals again and put them right; for when a backup or a hand has changed the
        tables.
        """
        with self._turns.begin(None, None, "system") as turn:
            counted = self._store.recount(turn.session)
            turn.state = turn.state._replace(
                total=counted.total, active=counted.active, to_review=counted.to_review
            )
            return counted

    # trust and upkeep

    def trust(self) -> TrustStatus:
        """The level of trust of this project, what it rests on, and what would change it."""
        with self._store.database.read() as session:
            return levels.status(session, self._store, self._store.state(session))

    def set_trust_level(
        self, level: int, *, by: By = "person", actor: str | None = None
    ) -> TrustStatus:
        """Choose the level of trust; the fourth is reached in no other way."""
        with self._turns.begin(actor, None, by) as turn:
            levels.set_level(turn, level)
            return levels.status(turn.session, self._store, turn.state)

    def decline_offer(self, *, by: By = "person", actor: str | None = None) -> TrustStatus:
        """Stay with the level although a more careful one is offered."""
        with self._turns.begin(actor, None, by) as turn:
            levels.decline(turn)
            return levels.status(turn.session, self._store, turn.state)

    def end_session(self, session_id: str) -> TrustStatus:
        """A session is over: it counts for the trust that is earned, and once a day what has faded
        is pruned.
        """
        name = clean_name(session_id, "session_id")
        with self._turns.begin(None, name, "system") as turn:
            levels.end_session(turn, name)
            if turn.now_ms - turn.state.pruned_at >= DAY_MS:
                lifecycle.prune(turn)
            return levels.status(turn.session, self._store, turn.state)

    def prune(self, *, dry_run: bool = False) -> PruneResult:
        """Put aside what has faded, and remove what was put aside a month ago; ``dry_run`` only
        tells.
        """
        if dry_run:
            with self._store.database.snapshot() as session:
                return lifecycle.preview(session, self._store, self._turns.clock.now_ms())
        with self._turns.begin(None, None, "system") as turn:
            return lifecycle.prune(turn)

    def check_files(self, files: FileHistory | None = None) -> builtins.list[TypedMemory]:
        """Ask what became of the files that memories speak of; those that are stale now, or to be
        looked at again.
        """
        history = files or self._files
        found: builtins.list[TypedMemory] = []
        if history is None:
            return found
        now = self._turns.clock.now_ms()
        for memory in self.export():
            if not memory.is_active or not memory.files or memory.is_stale:
                continue
            verdict = staleness_of(memory, now, history)
            if not verdict.is_gone and (not verdict.needs_review or memory.needs_review):
                continue
            with self._turns.begin(None, None, "system") as turn:
                stored = require(turn.session, self._store, memory.id)
                found.append(change.note_staleness(turn, stored, verdict).memory)
        return found

    def check_code(self, paths: Sequence[str] | None = None) -> builtins.list[TypedMemory]:
        """Ask what became of the code that memories name, in some files or anywhere: those whose
        review changed.

        What has drifted or is orphaned in the folder that asks waits for a person from now on; what
        is as it was again waits no longer for that.
        """
        with self._store.database.read() as session:
            found = self._code.freshness(session, self._code.named_in(session, paths))
            there = self._store.by_numbers(session, found, has_relations=False)
        asked = [
            no
            for no, memory in there.items()
            if memory.is_active and _may_be_asked(memory, found[no])
        ]
        changed: builtins.list[TypedMemory] = []
        for no in asked:
            with self._turns.begin(None, None, "system") as turn:
                before = StoredMemory(no, self._store.by_number(turn.session, no))
                after = change.note_code(turn, before, found[no])
            if after is not before:
                changed.append(after.memory)
        return changed

    # how a change begins and ends

    @contextmanager
    def _changing(
        self, memory_id: str, version: int | None, by: By, actor: str | None, session_id: str | None
    ) -> Iterator[tuple[MemoryChange, StoredMemory]]:
        with self._turns.begin(actor, session_id, by) as turn:
            stored = require(turn.session, self._store, memory_id)
            turn.refuse_other_version(stored.memory, version)
            yield turn, stored
            changed = self._store.by_number(turn.session, stored.no)
        notify_code(self._code, stored.memory, StoredMemory(stored.no, changed))

    def _change(
        self,
        memory_id: str,
        act: Callable[[MemoryChange, StoredMemory], StoredMemory],
        by: By,
        *,
        version: int | None = None,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> TypedMemory:
        with self._changing(memory_id, version, by, actor, session_id) as (turn, stored):
            changed = act(turn, stored)
            return self._store.by_number(turn.session, changed.no)

    def _taint_of(self, turn: MemoryChange, evidence: Iterable[Mapping[str, Any]]) -> set[str]:
        pieces = [Evidence(**each) for each in evidence]
        return {word for shown in self._sources.shown(turn.session, pieces) for word in shown.taint}


def _may_be_asked(memory: TypedMemory, code: Freshness) -> bool:
    """Whether the state of its code may change what is asked of a person."""
    return code.needs_review or any(
        reason.startswith(CODE_CHANGED) for reason in memory.review_reasons
    )
