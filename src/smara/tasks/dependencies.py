"""Walk the dependency graph: cycles, topological order, longest chain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from smara.database.database import Session
from smara.tasks.store import TaskStore

Edge = tuple[int, int, str]
"""A dependency: task, what it depends on, type."""


def waits_for(edge: Edge) -> tuple[int, int]:
    """(who waits, for whom) of a dependency."""
    task, depends_on, type_ = edge
    return (depends_on, task) if type_ == "parent-child" else (task, depends_on)


def find_cycle(session: Session, store: TaskStore, waiter: int, awaited: int) -> list[int] | None:
    """Return the circle that a dependency would close, or ``None``.

    From waiter to waiter.

    Searched from both ends, the smaller side first: a new task has nothing behind it, and
    then one look is enough, however large the graph.
    """
    if waiter == awaited:
        return [waiter, waiter]
    ahead = _Side(session, store, awaited, is_awaited=False)
    behind = _Side(session, store, waiter, is_awaited=True)
    while ahead.edge and behind.edge:
        side, other = (ahead, behind) if len(ahead.edge) <= len(behind.edge) else (behind, ahead)
        side.advance()
        meeting = next((no for no in side.edge if no in other.came_from), None)
        if meeting is not None:
            return [waiter, *reversed(ahead.path(meeting)), *behind.path(meeting)[1:]]
    return None


class _Side:
    """A search that spreads from one task, one step at a time."""

    def __init__(self, session: Session, store: TaskStore, start: int, is_awaited: bool) -> None:
        self.came_from: dict[int, int | None] = {start: None}
        self.edge = [start]
        self._session, self._store, self._is_awaited = session, store, is_awaited

    def advance(self) -> None:
        fresh = []
        for waiter, awaited, _ in self._store.waits(
            self._session, self.edge, is_awaited=self._is_awaited
        ):
            source, target = (awaited, waiter) if self._is_awaited else (waiter, awaited)
            if target not in self.came_from:
                self.came_from[target] = source
                fresh.append(target)
        self.edge = fresh

    def path(self, no: int) -> list[int]:
        """From a task back to where the search began."""
        path = [no]
        while (before := self.came_from[path[-1]]) is not None:
            path.append(before)
        return path


def topological_order(edges: Iterable[Edge]) -> list[int] | None:
    """Order tasks so that each follows those it waits for.

    ``None`` when there is a circle.

    >>> topological_order([(1, 2, "blocks"), (3, 1, "parent-child")])
    [2, 3, 1]
    >>> topological_order([(1, 2, "blocks"), (2, 1, "blocks")]) is None
    True
    """
    waiters: dict[int, list[int]] = defaultdict(list)
    open_ends: dict[int, int] = {}
    for waiter, awaited in map(waits_for, edges):
        waiters[awaited].append(waiter)
        open_ends[waiter] = open_ends.get(waiter, 0) + 1
        open_ends.setdefault(awaited, 0)
    done = sorted(no for no, count in open_ends.items() if not count)
    for no in done:
        for waiter in waiters[no]:
            open_ends[waiter] -= 1
            if not open_ends[waiter]:
                done.append(waiter)
    return done if len(done) == len(open_ends) else None


def longest_chain(edges: Sequence[Edge], last: int | None = None) -> list[int]:
    """Return the longest chain of waiting tasks, first to do first.

    With ``last``, the one that ends there.

    >>> longest_chain([(1, 2, "blocks"), (2, 3, "blocks"), (4, 3, "blocks")])
    [3, 2, 1]
    """
    ordered = topological_order(edges) or []
    length: dict[int, int] = dict.fromkeys(ordered, 1)
    before: dict[int, int] = {}
    awaited: dict[int, list[int]] = defaultdict(list)
    for waiter, target in map(waits_for, edges):
        awaited[waiter].append(target)
    for no in ordered:
        for target in sorted(awaited[no]):
            if length[target] + 1 > length[no]:
                length[no] = length[target] + 1
                before[no] = target
    end = last if last is not None else max(ordered, key=lambda no: (length[no], -no), default=None)
    if end is None:
        return []
    chain = [end]
    while chain[-1] in before:
        chain.append(before[chain[-1]])
    return chain[::-1]
