"""Dependencies: which of beads' types say what ours say, and which of them can stand together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from smara.core.shortids import key_of
from smara.tasks.models import DependencyType


class Edge(NamedTuple):
    """``task`` needs ``depends_on``; for ``parent-child`` the latter is the parent."""

    task: str
    depends_on: str
    type: DependencyType

    @property
    def waits(self) -> tuple[str, str] | None:
        """Who waits for whom: a task for its blocker, a parent for its child."""
        if self.type == "related":
            return None
        return (
            (self.depends_on, self.task)
            if self.type == "parent-child"
            else (self.task, self.depends_on)
        )


# Each type of beads with ours, and whether the two ends change places. What makes an issue wait
# there blocks here; what only ties two issues together is related; what is not listed has no
# counterpart.
TYPES: Mapping[str, tuple[DependencyType, bool]] = {
    "blocks": ("blocks", False),
    "blocked-by": ("blocks", False),
    "depends-on": ("blocks", False),
    "conditional-blocks": ("blocks", False),
    "waits-for": ("blocks", False),
    "parent-child": ("parent-child", False),
    "child-of": ("parent-child", False),
    "parent-of": ("parent-child", True),
    **dict.fromkeys(
        ("related", "relates-to", "discovered-from", "tracks", "duplicates", "supersedes",
        "replies-to", "caused-by",
         "validates", "until", "delegated-from"),
        ("related", False),
    ),
}  # fmt: skip


def edge_of(issue_id: str, dependency: Any) -> Edge | None:
    """What a dependency of an issue says here; ``None`` when it says nothing that we know."""
    if not isinstance(dependency, dict):
        return None
    target, name = dependency.get("depends_on_id"), dependency.get("type", "blocks")
    if not isinstance(target, str) or not target or not isinstance(name, str) or name not in TYPES:
        return None
    type_, is_reversed = TYPES[name]
    return Edge(target, issue_id, type_) if is_reversed else Edge(issue_id, target, type_)


def keyed(edge: Edge) -> Edge:
    """The same edge by keys: ids may be written in any case."""
    return Edge(key_of(edge.task), key_of(edge.depends_on), edge.type)


def implied_parent(issue_id: str) -> str | None:
    """The parent that a hierarchical id names: ``bd-1.2`` is a child of ``bd-1``."""
    parent, dot, number = issue_id.rpartition(".")
    return parent if dot and parent and number.isdigit() else None


def circular(edges: Iterable[Edge], standing: Iterable[Edge]) -> set[Edge]:
    """Those of the edges, first come first served, that would make tasks wait for each other for
    ever.

    ``standing`` are taken as they are. An edge from a task to itself is refused whatever its type.
    """
    given = list(dict.fromkeys(edges))
    before = [pair for edge in standing if (pair := edge.waits)]
    knot = _knotted([*before, *(pair for edge in given if (pair := edge.waits))])
    graph: dict[str, set[str]] = {}
    for waiting, awaited in before:
        graph.setdefault(waiting, set()).add(awaited)
    refused = set()
    for edge in given:
        if edge.task == edge.depends_on:
            refused.add(edge)
        elif (pair := edge.waits) and knot.issuperset(pair):
            if _reaches(graph, pair[1], pair[0]):
                refused.add(edge)
            else:
                graph.setdefault(pair[0], set()).add(pair[1])
    return refused


def _knotted(pairs: list[tuple[str, str]]) -> set[str]:
    """The tasks that may be part of a circle.

    It is what is left when all that waits for nothing is taken away, again and again: mostly
    nothing, and then no edge has to be looked at on its own.
    """
    awaiting: dict[str, int] = {}
    waiters: dict[str, list[str]] = {}
    for waiting, awaited in pairs:
        awaiting[waiting] = awaiting.get(waiting, 0) + 1
        awaiting.setdefault(awaited, 0)
        waiters.setdefault(awaited, []).append(waiting)
    free = [task for task, count in awaiting.items() if not count]
    for task in free:  # grows while it is walked
        for waiting in waiters.get(task, ()):
            awaiting[waiting] -= 1
            if not awaiting[waiting]:
                free.append(waiting)
    return set(awaiting).difference(free)


def _reaches(graph: Mapping[str, set[str]], start: str, goal: str) -> bool:
    stack, seen = [start], {start}
    while stack:
        task = stack.pop()
        if task == goal:
            return True
        new = graph.get(task, set()) - seen
        seen |= new
        stack += new
    return False
