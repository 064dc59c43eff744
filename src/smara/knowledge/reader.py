"""Read memories: look them up, list them, judge and explain them."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from smara.actions.paths import is_at_module
from smara.core.escape import to_storable
from smara.core.freshness import Freshness
from smara.core.validate import check_page, one_of
from smara.database.database import marks
from smara.errors import InvalidInputError
from smara.knowledge import prepare
from smara.knowledge import trust as levels
from smara.knowledge.change import MemoryJournal
from smara.knowledge.decay import (
    ConfidenceNow,
    FileHistory,
    Staleness,
    confidence_now,
    staleness_of,
)
from smara.knowledge.models import (
    ORDERS,
    SCOPES,
    SOURCES,
    STATES,
    TIERS,
    VISIBILITIES,
    MemoryEvent,
    MemoryPage,
    MemoryTotals,
    MemoryType,
    Order,
    State,
    TypedMemory,
    rank_of,
)
from smara.knowledge.prepare import plain_path
from smara.knowledge.provenance import NamedCode, Sources
from smara.knowledge.store import StoredMemory
from smara.knowledge.trust import (
    Tellable,
    TrustStatus,
    Verdict,
    find_tellable,
    may_inject,
    trust_report,
)
from smara.secrets.redact import clean_line

if TYPE_CHECKING:
    from smara.database.database import Session
    from smara.knowledge.audit import Audit
    from smara.knowledge.provenance import Why

_EVENTS_SHOWN = 50
_PAGE = 200
_MOST_OF_A_FILE = 500
_LOCAL = ("tool", "file", "file tool")
_STATE = {
    "active": "m.deprecated_at IS NULL",
    "deprecated": "m.deprecated_at IS NOT NULL",
    "all": "1 = 1",
}
_TIER: dict[str, tuple[str, tuple[str, ...]]] = {
    "confirmed": ("m.is_verified = 1", ()),
    "unconfirmed": ("m.is_verified = 0 AND m.taint = ''", ()),
    "observed": ("m.is_verified = 0 AND m.taint IN (?, ?, ?)", _LOCAL),
    "quarantined": ("m.is_verified = 0 AND m.taint <> '' AND m.taint NOT IN (?, ?, ?)", _LOCAL),
}
_ORDER = {"newest": "m.no DESC", "confidence": "m.confidence DESC, m.no DESC"}
_CHOICES = {"source": SOURCES, "scope": SCOPES, "visibility": VISIBILITIES}
# Written out: SQLite takes an index of some rows only for a condition it can read.
_FLAGS = {
    **{
        name: (f"m.{name} = 0", f"m.{name} = 1")
        for name in ("is_pinned", "is_verified", "needs_review")
    },
    "is_stale": ("m.stale_at IS NULL", "m.stale_at IS NOT NULL"),
}
_KEYS = {
    "tag": "tag", "file": "file", "module": "module", "session_id": "session",
    "evidence_path": "evidence",
    "message_id": "message", "observation_id": "observation",
}  # fmt: skip
_WITH_KEY = (
    "m.no IN (SELECT k.memory_no FROM memory_keys k"
    " WHERE k.project_no = :project AND k.kind = ? AND k.value = ?)"
)


class MemoryReader:
    """The readings of one project's memories; nothing here changes them."""

    def __init__(
        self,
        journal: MemoryJournal,
        sources: Sources | None = None,
        files: FileHistory | None = None,
        code: NamedCode | None = None,
    ) -> None:
        self._journal = journal
        self._store = journal.store
        self._sources = sources or Sources()
        self._files = files
        self._code = code or NamedCode()

    def get(self, memory_id: str) -> TypedMemory:
        """Return a memory.

        Raises:
            NotFoundError: If no memory, or more than one, is called so.
        """
        return self._store.ask(self._store.require, memory_id).memory

    def find(self, memory_id: str) -> TypedMemory | None:
        """Return a memory, or None if there is none of this id."""
        return self._store.ask(self._store.find, memory_id)

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
                ``observation_id``, ``is_pinned``, ``is_verified``, ``needs_review``, ``is_stale``.

        Raises:
            InvalidInputError: If a filter is unknown or has an impossible value.
        """
        check_page(limit, offset)
        one_of(state, STATES, "state")
        one_of(order, ORDERS, "order")
        where, values = self._filter(**filters)
        rest = f" AND {_STATE[state]}{where} ORDER BY {_ORDER[order]} LIMIT ? OFFSET ?"
        found = self._store.ask(self._store.select, rest, (*values, limit + 1, offset))
        memories = tuple(stored.memory for stored in found[:limit])
        return MemoryPage(memories, offset + limit if len(found) > limit else None)

    def _filter(self, **given: Any) -> tuple[str, builtins.list[Any]]:
        """Return filters as the rest of a ``WHERE``, and its values; an unknown one is an error."""
        conditions: builtins.list[str] = []
        values: builtins.list[Any] = []
        for name, value in given.items():
            if value is None:
                continue
            if name in ("type", "types"):
                types = (value,) if isinstance(value, str) else tuple(value)
                condition = f"m.type IN ({marks(len(types))})" if types else "1 = 0"
                values += [prepare.clean_type(each) for each in types]
            elif name in _CHOICES:
                condition = f"m.{name} = ?"
                values.append(one_of(value, _CHOICES[name], name))
            elif name in _FLAGS:
                condition = _FLAGS[name][bool(value)]
            elif name == "tier":
                condition, more = _TIER[one_of(value, TIERS, "tier")]
                values += more
            elif name in _KEYS:
                is_path = name in ("file", "evidence_path")
                condition = _WITH_KEY
                key = prepare.clean_path(value, name) if is_path else clean_line(value, name, 512)
                values += (_KEYS[name], to_storable(key))
            else:
                raise InvalidInputError(f"Memories are not listed by {name}.", field=name)
            conditions.append(f" AND {condition}")
        return "".join(conditions), values

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
        """Return active memories about files, the folders around them, or their module.

        One look-up by index for each, for hooks.

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
        check_page(limit)
        closeness: dict[str, int] = {}
        here = [names_of(str(path), root)[0] for path in paths]
        for path in paths:
            for depth, name in enumerate(names_of(str(path), root)):
                stored = to_storable(name)
                closeness[stored] = min(depth, closeness.get(stored, depth))
        values = list(closeness)[:_MOST_OF_A_FILE]
        if not values:
            return []
        now = self._journal.project.clock.now_ms()
        among = None if types is None else {prepare.clean_type(each) for each in types}
        with self._store.database.read() as session:
            rows = session.all(
                self._store.sql(
                    "SELECT k.memory_no, k.value FROM memory_keys k WHERE k.project_no = :project"
                    f" AND k.kind = 'file' AND k.value IN ({marks(len(values))})"
                    f" ORDER BY k.memory_no DESC LIMIT {_MOST_OF_A_FILE}"
                ),
                values,
            )
            nearest: dict[int, int] = {}
            for no, value in rows:
                nearest[no] = min(closeness[value], nearest.get(no, 99))
            for no, module in self._store.module_keys(session, _MOST_OF_A_FILE):
                if any(is_at_module(path, module) for path in here):
                    nearest.setdefault(no, 99)
            found = [
                (no, memory, confidence_now(memory, now).value)
                for no, memory in self._store.by_numbers(session, nearest).items()
                if (nearest[no] < 99 or (memory.scope == "module" and not memory.files))
                and memory.is_active
                and not memory.is_stale
                and (among is None or memory.type in among)
            ]
            found = [each for each in found if each[2] >= min_confidence]
            found.sort(
                key=lambda each: (nearest[each[0]], -rank_of(each[1].tier), -each[2], -each[0])
            )
            memories = [memory for _, memory, _ in found]
            if not is_injectable_only:
                return memories[:limit]
            level = self._store.state(session).trust_level
            code = self._freshness(session, [each.id for each in memories[: 10 * limit]])
        tellable = (
            each
            for each in memories[: 10 * limit]
            if each.applies_at(here)
            and find_tellable(each, now, level, code=code.get(each.id)) is not None
        )
        return list(islice(tellable, limit))

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

        Args:
            limit: The most events to return, at least 1.

        Raises:
            NotFoundError: If there is no such memory.
        """
        check_page(limit)
        with self._store.database.read() as session:
            return self._events(session, self._store.require(session, memory_id), limit)

    def _events(
        self, session: Session, stored: StoredMemory, limit: int
    ) -> builtins.list[MemoryEvent]:
        return [
            MemoryEvent(memory_id=stored.memory.id, by=event.by, **event.facts)
            for event in self._store.history(session, stored.no, limit)
        ]

    def chain(self, memory_id: str) -> builtins.list[TypedMemory]:
        """Return all memories that replaced one another around this one.

        Returns:
            The oldest first; empty if it neither replaced another nor was replaced.

        Raises:
            NotFoundError: If there is no such memory.
        """
        with self._store.database.read() as session:
            return self._chain(session, self._store.require_no(session, memory_id))

    def _chain(self, session: Session, no: int) -> builtins.list[TypedMemory]:
        numbers, level = {no}, [no]
        while level:
            rows = session.all(
                self._store.sql(
                    "SELECT m.no, m.replaced_by_no FROM memories m WHERE m.project_no = :project"
                    " AND m.deprecated_because = 'superseded' AND m.replaced_by_no IS NOT NULL"
                    f" AND (m.no IN ({marks(len(level))})"
                    f" OR m.replaced_by_no IN ({marks(len(level))}))"
                ),
                (*level, *level),
            )
            level = sorted({no for row in rows for no in row} - numbers)
            numbers.update(level)
        found = self._store.by_numbers(session, sorted(numbers))
        return list(found.values()) if len(found) > 1 else []

    def why(self, memory_id: str) -> Why:
        """Explain a memory: sources, trust, worth today, history.

        Returns:
            The memory with its evidence, trust, confidence, staleness and newest events.

        Raises:
            NotFoundError: If there is no such memory.
        """
        from smara.knowledge.provenance import Why

        with self._store.database.snapshot() as session:
            stored = self._store.require(session, memory_id)
            memory = stored.memory
            origins = [
                each.memory_id
                for each in memory.relations
                if each.type == "derived_from" and each.memory_id
            ]
            numbers = self._store.numbers_of_ids(session, origins).values()
            now, code = (
                self._journal.project.clock.now_ms(),
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
                chain=tuple(self._chain(session, stored.no)),
                origins=tuple(self._store.by_numbers(session, numbers).values()),
                events=tuple(self._events(session, stored, _EVENTS_SHOWN)),
                code=code,
            )

    def confidence(
        self, memory: TypedMemory, freshness: Mapping[str, Freshness] | None = None
    ) -> ConfidenceNow:
        """Return what a memory is worth now, with the calculation.

        Args:
            memory: The memory.
            freshness: What :meth:`freshness` said of it and others, if it was asked.

        Returns:
            The confidence now, and each factor of it.
        """
        stale = self.staleness(memory, freshness)
        return confidence_now(memory, self._journal.project.clock.now_ms(), *stale.factors)

    def staleness(
        self, memory: TypedMemory, freshness: Mapping[str, Freshness] | None = None
    ) -> Staleness:
        """Return the signs that a memory may no longer hold.

        Args:
            memory: The memory.
            freshness: What :meth:`freshness` said of it and others, if it was asked.

        Returns:
            Its age and the state of the code it names.
        """
        code = (self.freshness([memory]) if freshness is None else freshness).get(memory.id)
        return staleness_of(memory, self._journal.project.clock.now_ms(), self._files, code=code)

    def freshness(self, memories: Iterable[TypedMemory]) -> dict[str, Freshness]:
        """Compare memories with the code they name, in the caller's folder.

        It reads only, and counts as no verification.

        Args:
            memories: The memories to compare.

        Returns:
            The state of the code by memory id; memories that name no code are left out.
        """
        return self._store.ask(self._freshness, [memory.id for memory in memories])

    def _freshness(self, session: Session, ids: Sequence[str]) -> dict[str, Freshness]:
        numbers = self._store.numbers_of_ids(session, ids)
        found = self._code.freshness(session, list(numbers.values())) if numbers else {}
        return {each: found[no] for each, no in numbers.items() if no in found}

    def may_inject(self, memory: TypedMemory) -> Verdict:
        """Decide if a memory may be injected without being asked for.

        Returns:
            The decision, its reason, and if the memory may be told as an instruction.
        """
        level, stale = self._store.ask(self._store.state).trust_level, self.staleness(memory)
        worth = confidence_now(memory, self._journal.project.clock.now_ms(), *stale.telling_factors)
        return may_inject(memory, worth.value, level, is_gone=stale.is_gone)

    def tellable(
        self,
        memories: Sequence[TypedMemory],
        *,
        is_requested: bool = False,
        places: Sequence[str] | None = (),
        trust_level: int | None = None,
    ) -> builtins.list[Tellable]:
        """Return the memories that may be injected without being asked for.

        Args:
            memories: The candidates; their order is kept.
            is_requested: Also those that are told when asked for: unconfirmed ones that are
                neither stale nor very unsure.
            places: The files, folders and modules at hand: without them what is about a module is
                told on request alone. None for all places.
            trust_level: The level of trust, instead of the one in force.

        Returns:
            In their order, each with the reservation that has to stand beside it.
        """
        now = self._journal.project.clock.now_ms()
        if places is not None and not is_requested:
            memories = [memory for memory in memories if memory.applies_at(places)]
        with self._store.database.read() as session:
            level = self._store.state(session).trust_level if trust_level is None else trust_level
            code = self._freshness(session, [memory.id for memory in memories])
        found = (
            find_tellable(memory, now, level, code=code.get(memory.id), is_requested=is_requested)
            for memory in memories
        )
        return [tellable for tellable in found if tellable is not None]

    def audit(self, *, examples: int = 5) -> Audit:
        """Count the memories that need care, with examples of each fault.

        Counted are junk, repetitions, contradictions, and what is stale, unreviewed, tainted or
        without evidence.

        Args:
            examples: The most examples of each fault.
        """
        from smara.knowledge.audit import audit

        check_page(examples)
        active = [memory for memory in self.export() if memory.is_active]
        return audit(
            active,
            self.totals().total,
            self._journal.project.clock.now_ms(),
            files=self._files,
            examples=examples,
            code=self.freshness(active),
        )

    def totals(self) -> MemoryTotals:
        """Return how many memories there are, and how many wait for review."""
        return self._store.ask(self._store.totals)

    def export(self) -> Iterator[TypedMemory]:
        """Yield every memory, the oldest first, also the deprecated ones."""
        after = 0
        rest = f" AND m.no > ? ORDER BY m.no LIMIT {_PAGE}"
        while page := self._store.ask(self._store.select, rest, (after,)):
            yield from (stored.memory for stored in page)
            after = page[-1].no

    def problems(self) -> builtins.list[str]:
        """Return the faults of the totals; counts every memory, for the doctor."""
        with self._store.database.snapshot() as session:
            totals = MemoryTotals(*self._store.state(session)[:3])
            counted = self._store.recount(session)
        fault = f"The totals of memories say {totals}, and there are {counted}."
        return [] if totals == counted else [fault]

    def trust(self) -> TrustStatus:
        """Return the project's level of trust and its reasons."""
        with self._store.database.read() as session:
            return levels.status(session, self._store, self._store.state(session))


def names_of(path: str, root: str | None) -> list[str]:
    """Return the names of a file and its folders, the closest first.

    An absolute path is read relative to ``root``. Without a root, every end of it that has a folder
    in it counts, since the beginning of the project is unknown.

    >>> names_of("src/auth/login.py", None)
    ['src/auth/login.py', 'src/auth', 'src']
    >>> names_of("/home/ann/app/src/a.py", "/home/ann/app")
    ['src/a.py', 'src']
    """
    name = plain_path(path)
    if root is not None and name.startswith(plain_path(root) + "/"):
        name = name[len(plain_path(root)) + 1 :]
    parts = name.split("/")
    if not name.startswith("/"):
        return ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return [name, *("/".join(parts[start:]) for start in range(1, len(parts) - 1))]
