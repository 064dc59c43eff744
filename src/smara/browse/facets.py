"""Count records by their facets, in the database.

One statement reads a *cube*: for each combination of values that occurs, the number of records with
it. There are few combinations however many records there are, and the counts of every facet under
the filters of the others come from it. The cube of memories is read again when a memory changed.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from smara.browse.models import FacetCount, FacetCounts, Kind
from smara.core.clock import Clock
from smara.core.escape import from_storable, to_storable
from smara.core.startup.record import dataclass, field
from smara.database.database import Session
from smara.database.project_store import ProjectStore
from smara.errors import InvalidInputError
from smara.knowledge.store import KnowledgeStore

T = TypeVar("T")
MOST_VALUES = 12
_MOST_REMEMBERED = 64
_TIMES = 20
_LOCAL = "('tool', 'file', 'file tool')"
_STATE = "CASE WHEN m.deprecated_at IS NULL THEN 'active' ELSE 'deprecated' END"
_KEYS = ("module", "file", "tag", "session")
_WITH_KEY = (
    " AND m.no IN (SELECT k.memory_no FROM memory_keys k WHERE k.project_no = :project"
    " AND k.kind = ? AND k.value = ?)"
)


@dataclass(frozen=True, slots=True)
class CountedKind:
    """One kind of record: its table, and each facet with its SQL."""

    table: str
    facets: Mapping[str, str]
    keys: tuple[str, ...] = ()
    """Filters that are looked up in `memory_keys`."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Values that hold where no filter is given."""


COUNTED: Mapping[Kind, CountedKind] = {
    "memories": CountedKind(
        "memories m",
        {
            "state": _STATE,
            "type": "m.type",
            "source": "m.source",
            "tier": "CASE WHEN m.is_verified = 1 THEN 'confirmed' WHEN m.taint = ''"
            f" THEN 'unconfirmed' WHEN m.taint IN {_LOCAL} THEN 'observed' ELSE 'quarantined' END",
            "needs_review": "CASE WHEN m.needs_review = 1 THEN 'yes' ELSE 'no' END",
            "is_stale": "CASE WHEN m.stale_at IS NULL THEN 'no' ELSE 'yes' END",
            "is_pinned": "CASE WHEN m.is_pinned = 1 THEN 'yes' ELSE 'no' END",
        },
        keys=_KEYS,
        defaults={"state": "active"},
    ),
    "decisions": CountedKind(
        "memories m JOIN decisions d ON d.memory_no = m.no",
        {"state": _STATE},
        defaults={"state": "active"},
    ),
    "observations": CountedKind(
        "observations m",
        {"state": "m.state", "category": "m.category", "priority": "m.priority"},
    ),
    "tasks": CountedKind(
        "tasks m", {"status": "m.status", "priority": "m.priority", "type": "m.type"}
    ),
    "working": CountedKind("working_memory m", {"scope": "m.scope"}),
}
"""The kinds whose facets are counted from their own table. Messages are counted by threads."""


class Facets:
    """Counts the records of one project."""

    def __init__(self, store: ProjectStore, knowledge: KnowledgeStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._knowledge = knowledge
        self._lock = threading.Lock()
        self._remembered: dict[Any, tuple[Any, float, Any]] = {}

    def count(self, session: Session, kind: Kind, filters: Mapping[str, str]) -> FacetCounts:
        """Return the counts of a kind under some filters.

        Raises:
            InvalidInputError: If the kind has no such facet.
        """
        if kind == "messages":
            return self._messages(session, filters)
        spec = COUNTED[kind]
        if strange := set(filters) - set(spec.facets) - set(spec.keys):
            raise InvalidInputError(f"{kind} have no facet {min(strange)}.", field=min(strange))
        keys = {name: filters[name] for name in spec.keys if name in filters}
        chosen = {
            **spec.defaults,
            **{name: filters[name] for name in spec.facets if name in filters},
        }

        def read() -> list[tuple[Any, ...]]:
            return self._cube(session, spec, keys)

        is_knowledge = kind in ("memories", "decisions")
        cube = self.remembered(session, (kind, *keys.items()), read) if is_knowledge else read()
        return counts_of(kind, tuple(spec.facets), cube, chosen)

    def _cube(
        self, session: Session, spec: CountedKind, keys: Mapping[str, str]
    ) -> list[tuple[Any, ...]]:
        table, columns = spec.table, ", ".join(spec.facets.values())
        order = ", ".join(str(place + 1) for place in range(len(spec.facets)))
        is_memory = table.startswith("memories ")
        where = (self._knowledge.wall if is_memory else "") + _WITH_KEY * len(keys)
        values = [*(self._knowledge.viewer if is_memory else ())]
        for name, value in keys.items():
            values += (name, to_storable(value))
        statement = (
            f"SELECT {columns}, count(*) FROM {table} WHERE m.project_no = :project{where}"
            f" GROUP BY {order}"
        )
        return [tuple(row) for row in self._store.rows(session, statement, *values)]

    def _messages(self, session: Session, filters: Mapping[str, str]) -> FacetCounts:
        """Count messages by what their threads say of themselves: no message is read."""
        statement = (
            "SELECT t.id, t.last_seq FROM threads t WHERE t.project_no = :project"
            " ORDER BY t.updated_at DESC LIMIT ?"
        )
        newest = self._store.rows(session, statement, MOST_VALUES)
        thread = filters.get("thread_id")
        where = " AND t.id = ?" if thread else ""
        total = self._store.number(
            session,
            "SELECT coalesce(sum(t.last_seq), 0) FROM threads t"
            f" WHERE t.project_no = :project{where}",
            *([to_storable(thread)] if thread else []),
        )
        threads = tuple(FacetCount(from_storable(row[0]), int(row[1])) for row in newest if row[1])
        return FacetCounts("messages", total, {"thread_id": threads})

    def remembered(self, session: Session, name: Any, read: Callable[[], T]) -> T:
        """Return what was read of the memories, until one of them changes.

        What took long to read serves twenty times as long, changed or not: a second of counting
        for twenty seconds. In a small store that is no time at all.
        """
        knowledge, started = self._knowledge, self._clock.monotonic()
        newest = self._store.number(
            session,
            "SELECT no FROM memory_events WHERE project_no = :project ORDER BY no DESC LIMIT 1",
        )
        key, as_of = (name, knowledge.viewer), (newest, knowledge.state(session))
        with self._lock:
            stored = self._remembered.get(key)
        if stored is not None and (stored[0] == as_of or started < stored[1]):
            return stored[2]  # type: ignore[no-any-return]  # of the same name, so of the same kind
        fresh = read()
        now = self._clock.monotonic()
        with self._lock:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = (as_of, now + _TIMES * (now - started), fresh)
        return fresh


def counts_of(
    kind: Kind,
    names: Sequence[str],
    cube: Sequence[tuple[Any, ...]],
    chosen: Mapping[str, str],
) -> FacetCounts:
    """Return the counts of each facet under the filters of the others.

    >>> cube = [("gotcha", "yes", 2), ("gotcha", "no", 3), ("decision", "no", 4)]
    >>> counts = counts_of("memories", ("type", "pinned"), cube, {"type": "gotcha"})
    >>> counts.total, [each.count for each in counts.facets["type"]]
    (5, [5, 4])
    """
    facets: dict[str, Counter[str]] = {name: Counter() for name in names}
    total = 0
    for *values, count in cube:
        row = dict(zip(names, map(str, values), strict=True))
        wrong = [name for name, value in chosen.items() if value != "all" and row[name] != value]
        if not wrong:
            total += count
        for name in names:
            if not wrong or wrong == [name]:
                facets[name][row[name]] += count
    return FacetCounts(
        kind,
        total,
        {
            name: tuple(
                FacetCount(value, count)
                for value, count in sorted(found.items(), key=lambda each: (-each[1], each[0]))
            )
            for name, found in facets.items()
        },
    )
