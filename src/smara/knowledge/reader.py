"""Read memories: look them up, list them, judge and explain them."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from smara.core.freshness import Freshness
from smara.knowledge import queries
from smara.knowledge import trust as levels
from smara.knowledge.decay import (
    ConfidenceNow,
    FileHistory,
    Staleness,
    confidence_now,
    staleness_of,
)
from smara.knowledge.journal import MemoryJournal, require
from smara.knowledge.models import (
    MemoryEvent,
    MemoryPage,
    MemoryTotals,
    MemoryType,
    Order,
    State,
    TypedMemory,
)
from smara.knowledge.provenance import NamedCode, NoCode, NoSources, Sources
from smara.knowledge.trust import (
    Tellable,
    TrustStatus,
    Verdict,
    find_tellable,
    may_inject,
    trust_report,
)

if TYPE_CHECKING:
    from smara.database.database import Session
    from smara.knowledge.audit import Audit
    from smara.knowledge.provenance import Why

_EVENTS_SHOWN = 50


class MemoryReader:
    """The readings of one project's memories; nothing here changes them."""

    def __init__(
        self,
        turns: MemoryJournal,
        sources: Sources | None = None,
        files: FileHistory | None = None,
        code: NamedCode | None = None,
    ) -> None:
        self._turns = turns
        self._store = turns.store
        self._sources = sources or NoSources()
        self._files = files
        self._code = code or NoCode()

    def get(self, memory_id: str) -> TypedMemory:
        """Return a memory.

        Raises:
            NotFoundError: If no memory, or more than one, is called so.
        """
        with self._store.database.read() as session:
            return require(session, self._store, memory_id).memory

    def find(self, memory_id: str) -> TypedMemory | None:
        """Return a memory, or None if there is none of this id."""
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
        """Return a page of memories.

        Args:
            state: ``active``, ``deprecated`` or ``all``.
            order: ``newest`` first, or the surest first (``confidence``).
            limit: The most memories on the page.
            offset: How many to skip.
            **filters: ``type`` or ``types``, ``source``, ``scope``, ``visibility``, ``tier``,
                ``tag``, ``file``, ``module``, ``session_id``, ``evidence_path``, ``message_id``,
                ``observation_id``, ``is_pinned``, ``is_verified``, ``needs_review``.

        Raises:
            InvalidInputError: If a filter is unknown or has an impossible value.
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
        """Return active memories about files or the folders around them.

        One look-up by index, for hooks.

        Args:
            paths: The files.
            types: Only memories of these types.
            limit: The most memories.
            min_confidence: Only memories that are worth at least this today.
            root: The folder that absolute paths are read relative to.
            is_injectable_only: Only memories that may be injected without being asked for.

        Returns:
            The closest first, then the most trusted, then the surest.
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

    def to_review(
        self,
        *,
        session_id: str | None = None,
        type: MemoryType | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> MemoryPage:
        """Return what waits for a person, the newest first.

        Args:
            session_id: Only what this session noted.
            type: Only memories of this type.
            limit: The most memories on the page.
            offset: How many to skip.
        """
        return self.list(
            needs_review=True, session_id=session_id, type=type, limit=limit, offset=offset
        )

    def history(self, memory_id: str, *, limit: int = 50) -> builtins.list[MemoryEvent]:
        """Return what happened to a memory, the newest event first.

        Raises:
            NotFoundError: If there is no such memory.
        """
        queries.check_page(limit, 0)
        with self._store.database.read() as session:
            stored = require(session, self._store, memory_id)
            return self._store.events(session, stored.no, stored.memory.id, limit)

    def chain(self, memory_id: str) -> builtins.list[TypedMemory]:
        """Return all memories that replaced one another around this one.

        Returns:
            The oldest first; empty if it neither replaced another nor was replaced.

        Raises:
            NotFoundError: If there is no such memory.
        """
        with self._store.database.read() as session:
            return queries.chain_of(session, self._store, require(session, self._store, memory_id))

    def why(self, memory_id: str) -> Why:
        """Explain a memory: sources, trust, worth today, history.

        Raises:
            NotFoundError: If there is no such memory.
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
        """Return what a memory is worth now, with the calculation."""
        return confidence_now(memory, self._turns.clock.now_ms(), *self.staleness(memory).factors)

    def staleness(self, memory: TypedMemory) -> Staleness:
        """Return the signs that a memory may no longer hold."""
        code = self.freshness([memory]).get(memory.id)
        return staleness_of(memory, self._turns.clock.now_ms(), self._files, code=code)

    def freshness(self, memories: Iterable[TypedMemory]) -> dict[str, Freshness]:
        """Compare memories with the code they name, in the caller's folder.

        It reads only, and counts as no verification.

        Returns:
            The state of the code by memory id; memories that name no code are left out.
        """
        with self._store.database.read() as session:
            return self._freshness(session, [memory.id for memory in memories])

    def _freshness(self, session: Session, ids: Sequence[str]) -> dict[str, Freshness]:
        numbers = self._store.numbers_of_ids(session, ids)
        found = self._code.freshness(session, list(numbers.values())) if numbers else {}
        return {each: found[no] for each, no in numbers.items() if no in found}

    def may_inject(self, memory: TypedMemory) -> Verdict:
        """Decide if a memory may be injected without being asked for.

        Returns:
            The decision, its reason, and if the memory may be told as an instruction.
        """
        with self._store.database.read() as session:
            level = self._store.state(session).trust_level
        stale = self.staleness(memory)
        worth = confidence_now(memory, self._turns.clock.now_ms(), *stale.telling_factors)
        return may_inject(memory, worth.value, level, is_gone=stale.is_gone)

    def tellable(self, memories: Sequence[TypedMemory]) -> builtins.list[Tellable]:
        """Return the memories that may be injected without being asked for.

        Returns:
            In their order, each with the reservation that has to stand beside it.
        """
        now = self._turns.clock.now_ms()
        with self._store.database.read() as session:
            level = self._store.state(session).trust_level
            code = self._freshness(session, [memory.id for memory in memories])
        found = (find_tellable(memory, now, level, code=code.get(memory.id)) for memory in memories)
        return [told for told in found if told is not None]

    def audit(self, *, examples: int = 5) -> Audit:
        """Count the memories that need care, with examples of each fault.

        Counted are junk, repetitions, contradictions, and what is stale, unreviewed, tainted or
        without evidence.

        Args:
            examples: The most examples of each fault.
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
        """Return how many memories there are, and how many wait for review."""
        with self._store.database.read() as session:
            return self._store.totals(session)

    def export(self) -> Iterator[TypedMemory]:
        """Yield every memory, the oldest first, also the deprecated ones."""
        yield from queries.pages(self._store)

    def problems(self) -> builtins.list[str]:
        """Return the faults of the totals; counts every memory, for the doctor."""
        with self._store.database.snapshot() as session:
            kept, counted = self._store.totals(session), self._store.recount(session)
        return (
            []
            if kept == counted
            else [f"The totals of memories say {kept}, and there are {counted}."]
        )

    def trust(self) -> TrustStatus:
        """Return the project's level of trust and its reasons."""
        with self._store.database.read() as session:
            return levels.status(session, self._store, self._store.state(session))
