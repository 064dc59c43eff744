"""Which dependencies of a tracker can stand, and which are set apart with their issues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from smara.adapters.beads.edges import Edge, circular, edge_of, implied_parent, keyed
from smara.adapters.beads.models import Record
from smara.adapters.decoding import list_in

NO_COUNTERPART = "of a type that has no counterpart"
NOT_THERE = "on an issue that is not there"
CIRCLE = "that would close a circle"


@dataclass(slots=True)
class Settled:
    """The dependencies of a tracker, by keys."""

    edges: set[Edge] = field(default_factory=set)
    implied: set[str] = field(default_factory=set)
    """Issues whose parent is known by their ids alone."""
    apart: dict[str, dict[int, str]] = field(default_factory=dict)
    """Issue → position of a dependency that cannot stand → why."""
    _by_task: dict[str, set[Edge]] = field(default_factory=dict)

    def add(self, edge: Edge) -> None:
        self.edges.add(edge)
        self._by_task.setdefault(edge.task, set()).add(edge)

    def edges_of(self, key: str) -> AbstractSet[Edge]:
        """What a task needs."""
        return self._by_task.get(key, frozenset())


def settle(
    issues: Mapping[str, Record],
    known: AbstractSet[str],
    standing: Iterable[Edge],
    orphans: AbstractSet[str],
) -> Settled:
    """Take the dependencies of the issues over, in their order, as far as they fit with each other
    and what stands.

    ``orphans`` were taken from the parents that their ids name, and are not given back to them.
    """
    settled = Settled()
    found: list[tuple[str, int, Edge]] = []
    for key, record in issues.items():
        for position, dependency in enumerate(list_in(record.get("dependencies"))):
            edge = edge_of(record["id"], dependency)
            if edge is None:
                settled.apart.setdefault(key, {})[position] = NO_COUNTERPART
            elif not {(edge := keyed(edge)).task, edge.depends_on} <= known:
                settled.apart.setdefault(key, {})[position] = NOT_THERE
            else:
                found.append((key, position, edge))
    told = {edge.task for _, _, edge in found if edge.type == "parent-child"}
    implied = _implied(issues, known, told | orphans)
    refused = circular([*(edge for _, _, edge in found), *implied], standing)
    for key, position, edge in found:
        if edge in refused:
            settled.apart.setdefault(key, {})[position] = CIRCLE
        else:
            settled.add(edge)
    for edge in implied:
        if edge not in refused:
            settled.add(edge)
            settled.implied.add(edge.task)
    return settled


def _implied(
    issues: Mapping[str, Record], known: AbstractSet[str], others: AbstractSet[str]
) -> list[Edge]:
    """Parents named by ids, but for some issues: they have others, or none."""
    parents = {key: implied_parent(key) for key in issues if key not in others}
    return [
        Edge(key, parent, "parent-child")
        for key, parent in parents.items()
        if parent is not None and parent in known
    ]
