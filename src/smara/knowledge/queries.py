"""List memories by filters, and look them up by file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from smara.core.escape import to_storable
from smara.core.validate import one_of
from smara.database.database import Session, marks
from smara.errors import InvalidInputError
from smara.knowledge import prepare
from smara.knowledge.decay import confidence_now
from smara.knowledge.models import (
    ORDERS,
    SCOPES,
    SOURCES,
    STATES,
    TIERS,
    VISIBILITIES,
    MemoryPage,
    TypedMemory,
    rank_of,
)
from smara.knowledge.store import KnowledgeStore, StoredMemory

Filter = tuple[str, tuple[Any, ...]]
_PAGE = 200
_MOST_OF_A_FILE = 500
_LOCAL = ("tool", "file", "file tool")
_STATE = {
    "active": "m.deprecated_at IS NULL",
    "deprecated": "m.deprecated_at IS NOT NULL",
    "all": "1 = 1",
}
_TIER: dict[str, Filter] = {
    "confirmed": ("m.is_verified = 1", ()),
    "unconfirmed": ("m.is_verified = 0 AND m.taint = ''", ()),
    "observed": ("m.is_verified = 0 AND m.taint IN (?, ?, ?)", _LOCAL),
    "quarantined": ("m.is_verified = 0 AND m.taint <> '' AND m.taint NOT IN (?, ?, ?)", _LOCAL),
}
_ORDER = {"newest": "m.no DESC", "confidence": "m.confidence DESC, m.no DESC"}
_CHOICES = {
    "source": ("m.source", SOURCES), "scope": ("m.scope", SCOPES), "visibility": ("m.visibility",
    VISIBILITIES),
}  # fmt: skip
_FLAGS = ("is_pinned", "is_verified", "needs_review")
_KEYS = {
    "tag": "tag", "file": "file", "module": "module", "session_id": "session",
    "evidence_path": "evidence",
    "message_id": "message", "observation_id": "observation",
}  # fmt: skip
_WITH_KEY = (
    "m.no IN (SELECT k.memory_no FROM memory_keys k"
    " WHERE k.project_no = :project AND k.kind = ? AND k.value = ?)"
)


def filters_for(store: KnowledgeStore, given: dict[str, Any]) -> list[Filter]:
    """Return the conditions of filters; an unknown one is an error."""
    found: list[Filter] = []
    for name, value in given.items():
        if value is None:
            continue
        if name in ("type", "types"):
            types = (value,) if isinstance(value, str) else tuple(value)
            wanted = tuple(prepare.clean_type(each) for each in types)
            found.append((f"m.type IN ({marks(len(wanted))})" if wanted else "1 = 0", wanted))
        elif name in _CHOICES:
            column, allowed = _CHOICES[name]
            found.append((f"{column} = ?", (one_of(value, allowed, name),)))
        elif name in _FLAGS:
            # Written out: SQLite takes an index of some rows only for a condition that it can read.
            found.append((f"m.{name} = {int(bool(value))}", ()))
        elif name == "tier":
            found.append(_TIER[one_of(value, TIERS, "tier")])
        elif name in _KEYS:
            key = (
                prepare.clean_path(value, name)
                if name in ("file", "evidence_path")
                else prepare.clean_line(value, name, 512)
            )
            found.append((store.sql(_WITH_KEY), (_KEYS[name], to_storable(key))))
        else:
            raise InvalidInputError(f"Memories are not listed by {name}.", field=name)
    return found


def list_page(
    session: Session,
    store: KnowledgeStore,
    filters: Sequence[Filter],
    state: str,
    order: str,
    limit: int,
    offset: int,
) -> MemoryPage:
    """Return a page of memories."""
    one_of(state, STATES, "state")
    one_of(order, ORDERS, "order")
    found = select(
        session,
        store,
        [(_STATE[state], ()), *filters],
        order=_ORDER[order],
        limit=limit + 1,
        offset=offset,
    )
    memories = tuple(stored.memory for stored in found[:limit])
    return MemoryPage(memories, offset + limit if len(found) > limit else None)


def select(
    session: Session,
    store: KnowledgeStore,
    filters: Sequence[Filter],
    order: str,
    limit: int,
    offset: int = 0,
) -> list[StoredMemory]:
    conditions = "".join(f" AND {condition}" for condition, _ in filters)
    values = [value for _, given in filters for value in given]
    return store.select(
        session, f"{conditions} ORDER BY {order} LIMIT ? OFFSET ?", (*values, limit, offset)
    )


def for_files(
    session: Session,
    store: KnowledgeStore,
    paths: Sequence[str],
    types: Sequence[str] | None,
    root: str | None,
    now_ms: int,
    min_confidence: float,
    limit: int,
) -> list[TypedMemory]:
    """Return active memories about files or their folders, the closest first."""
    closeness: dict[str, int] = {}
    for path in paths:
        for depth, name in enumerate(names_of(str(path), root)):
            stored = to_storable(name)
            closeness[stored] = min(depth, closeness.get(stored, depth))
    if not closeness:
        return []
    values = list(closeness)[:_MOST_OF_A_FILE]
    rows = session.all(
        store.sql(
            "SELECT k.memory_no, k.value FROM memory_keys k WHERE k.project_no = :project AND "
            "k.kind = 'file'"
            f" AND k.value IN ({marks(len(values))}) ORDER BY k.memory_no DESC LIMIT "
            f"{_MOST_OF_A_FILE}"
        ),
        values,
    )
    nearest: dict[int, int] = {}
    for no, value in rows:
        nearest[no] = min(closeness[value], nearest.get(no, 99))
    wanted = None if types is None else {prepare.clean_type(each) for each in types}
    found = [
        (no, memory, confidence_now(memory, now_ms).value)
        for no, memory in store.by_numbers(session, nearest).items()
        if memory.is_active and not memory.is_stale and (wanted is None or memory.type in wanted)
    ]
    found = [each for each in found if each[2] >= min_confidence]
    found.sort(key=lambda each: (nearest[each[0]], -rank_of(each[1].tier), -each[2], -each[0]))
    return [memory for _, memory, _ in found[:limit]]


def names_of(path: str, root: str | None) -> list[str]:
    """Return the names of a file and its folders, the closest first.

    An absolute path is read relative to ``root``. Without a root, every end of it that has a folder
    in it counts, since the beginning of the project is unknown.

    >>> names_of("src/auth/login.py", None)
    ['src/auth/login.py', 'src/auth', 'src']
    >>> names_of("/home/ann/app/src/a.py", "/home/ann/app")
    ['src/a.py', 'src']
    """
    name = prepare.plain_path(path)
    if root is not None and name.startswith(prepare.plain_path(root) + "/"):
        name = name[len(prepare.plain_path(root)) + 1 :]
    parts = name.split("/")
    if not name.startswith("/"):
        return ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return [name, *("/".join(parts[start:]) for start in range(1, len(parts) - 1))]


def pages(store: KnowledgeStore) -> Iterator[TypedMemory]:
    """Yield every memory, the oldest first, a few hundred at a time."""
    after = 0
    while True:
        with store.database.read() as session:
            page = store.select(session, f" AND m.no > ? ORDER BY m.no LIMIT {_PAGE}", (after,))
        if not page:
            return
        yield from (stored.memory for stored in page)
        after = page[-1].no


def chain_of(session: Session, store: KnowledgeStore, stored: StoredMemory) -> list[TypedMemory]:
    """Return all memories that replaced one another around one, the oldest first."""
    known = {stored.no}
    level = [stored.no]
    while level:
        rows = session.all(
            store.sql(
                "SELECT m.no, m.replaced_by_no FROM memories m WHERE m.project_no = :project"
                " AND m.deprecated_because = 'superseded' AND m.replaced_by_no IS NOT NULL"
                f" AND (m.no IN ({marks(len(level))}) OR m.replaced_by_no IN ({marks(len(level))}))"
            ),
            (*level, *level),
        )
        level = sorted({no for row in rows for no in row} - known)
        known.update(level)
    found = store.by_numbers(session, sorted(known))
    return list(found.values()) if len(found) > 1 else []


def check_page(limit: object, offset: object) -> None:
    """Raise ``InvalidInputError`` for an impossible page."""
    for name, value, least in (("limit", limit, 1), ("offset", offset, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**31:
            raise InvalidInputError(
                f"{name} must be a whole number, at least {least}; got {value!r}.", field=name
            )
