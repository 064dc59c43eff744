"""Hold a tree's graph as arrays, and walk it both ways.

Nodes have places 0 … n-1 in the order of their numbers. Edges are sorted by their start and,
through an index, by their end, so that the neighbors of many nodes are found at once. `LoadedGraph`
reads only the files with a newer revision again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smara.codegraph.codec import (
    CONFIDENCE_STEPS,
    EDGE_DTYPE,
    KIND_NO,
    NODE_KIND_NO,
    unpack_edges,
)
from smara.codegraph.lookup import CodeLookup
from smara.codegraph.models import EDGE_KINDS, Node
from smara.core.escape import from_storable
from smara.core.items import grouped
from smara.core.startup.record import dataclass, field
from smara.database.database import Session

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Small = NDArray[np.int32]
FetchNodes = Callable[[Collection[int]], Mapping[int, Node]]

NODE_DTYPE = np.dtype(
    [("no", "<i8"), ("parent", "<i8"), ("kind", "u1"), ("first", "<i4"), ("last", "<i4")]
)
"""A node of a file: its number, that of what it lies in (0 for none), its kind and lines."""

_WEIGHTS = {
    "contains": 0.9,
    "imports": 0.7,
    "calls": 1.0,
    "inherits": 1.0,
    "references": 0.6,
    "tests": 0.9,
}
KIND_WEIGHTS: Floats = np.array([_WEIGHTS[kind] for kind in EDGE_KINDS])
"""How surely a change goes over an edge: a caller is touched, who merely names it perhaps."""


_TOUCHED = 0.5
"""How surely a change of a method concerns who uses its class."""
CONTAINMENT = -1
"""The edge of a step from what lies in something to that."""


_FEW, _VERY_FEW = 4, 200
"""Below these shares of all nodes, counting or sorting the few is quicker than looking at all."""
_NESTED = 255
_WITH_A_BODY = [NODE_KIND_NO[kind] for kind in ("function", "method", "test")]


class FilePart(NamedTuple):
    """One file's part of the graph.

    ``edges`` has the fields of ``edges.EDGE_DTYPE``.
    """

    no: int
    path: str
    is_test: bool
    nodes: Any
    edges: Any


class Pairs(NamedTuple):
    """Joined pairs, each once with its greatest weight, in order.

    ``starts`` says where the pairs of each place begin; ``near`` is that place again, for reading
    all at once.
    """

    starts: Ints
    near: Ints
    far: Ints
    weights: NDArray[np.float32]
    edges: Ints
    """The edge that has the weight; of several the first."""

    def of(self, places: Ints) -> Ints:
        """Return who is joined to some places, in their order."""
        found: Ints = self.far[_ranges(self.starts, places)]
        return found


@dataclass(frozen=True, eq=False)
class Rings:
    """The nodes around a start by place: depth and weight.

    Depth is 0 for the start, -1 for what is not reached.
    """

    depths: Small
    weights: NDArray[np.float32]
    places: tuple[Ints, ...]
    """The places of each ring, in order."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A tree's nodes and edges. Never changed.

    A newer revision is another graph.
    """

    nos: Ints
    kinds: NDArray[np.uint8]
    parents: Ints
    first_lines: Small
    last_lines: Small
    files: Ints
    """The place of each node's file in ``paths`` and ``file_is_test``."""
    paths: tuple[str, ...]
    file_is_test: Flags
    is_test: Flags
    """Which nodes are tests, or stand in a file of tests."""
    from_places: Ints
    to_places: Ints
    edge_kinds: NDArray[np.uint8]
    edge_sources: NDArray[np.uint8]
    edge_lines: Small
    confidences: NDArray[np.float32]
    out_starts: Ints
    child_starts: Ints
    children: Ints
    _pairs: dict[tuple[str, ...], tuple[Pairs, Pairs]] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        """Return how many nodes there are."""
        return len(self.nos)

    def places_of(self, nos: Iterable[int]) -> Ints:
        """Return the places of some nodes by their numbers.

        Unknown ones are left out.
        """
        return _places(self.nos, np.fromiter(nos, dtype=np.int64))[1]

    def within(self, places: Ints) -> Ints:
        """Return some nodes with everything that lies in them, at any depth.

        In the order of their numbers.
        """
        found, ring = [places], places
        while len(ring):
            ring = self.children[_ranges(self.child_starts, ring)]
            found.append(ring)
        return _distinct(np.concatenate(found), self.size)

    def edges_out(self, places: Ints) -> Ints:
        """Return the edges that start at some nodes."""
        return _ranges(self.out_starts, places)

    def pairs(self, kinds: tuple[str, ...] = ()) -> tuple[Pairs, Pairs]:
        """Return the pairs by who uses, and by who is used.

        Of some kinds of edges, or of all.
        """
        if kinds not in self._pairs:
            self._pairs[kinds] = _make_pairs(self, kinds)
        return self._pairs[kinds]

    def rings(
        self,
        start: Ints,
        depth: int,
        *,
        is_backward: bool,
        kinds: tuple[str, ...] = (),
        touched: Ints | None = None,
    ) -> Rings:
        """Return nodes around ``start`` at least depth and greatest weight.

        Backward are those that depend on the start, forward those it depends on. ``kinds`` limits
        the edges. ``touched`` are nodes whose surroundings stand in the first ring without an edge:
        the class around a method that changes.
        """
        depths = np.full(self.size, -1, dtype=np.int32)
        weights = np.zeros(self.size, dtype=np.float32)
        depths[start], weights[start] = 0, 1.0
        by_user, by_used = self.pairs(kinds)
        pull, push = (by_user, by_used) if is_backward else (by_used, by_user)
        found: list[Ints] = []
        frontier = start
        for number in range(1, depth + 1):
            reached = _spread(frontier, depths, weights, number=number, pull=pull, push=push)
            if number == 1 and touched is not None:
                # Reach the symbols around them too: a user of a class uses its methods.
                around = self.parents[touched]
                around = around[around >= 0]
                around = around[(self.kinds[around] != NODE_KIND_NO["file"]) & (depths[around] < 0)]
                weights[around] = np.maximum(weights[around], np.float32(_TOUCHED))
                reached = _distinct(np.concatenate([reached, around]), self.size)
            if not len(reached):
                break
            depths[reached] = number
            found.append(reached)
            frontier = reached
        return Rings(depths, weights, tuple(found))

    def way_back(
        self, rings: Rings, places: Ints, *, is_backward: bool, kinds: tuple[str, ...] = ()
    ) -> tuple[Ints, Ints]:
        """Return for each place its edge and the place before.

        The edge may be ``CONTAINMENT``.
        """
        joined = self.pairs(kinds)[0 if is_backward else 1]
        slots = _ranges(joined.starts, places)
        counts = joined.starts[places + 1] - joined.starts[places]
        owner = np.repeat(np.arange(len(places)), counts)
        far = joined.far[slots]
        carried = rings.weights[far] * joined.weights[slots]
        is_it = (rings.depths[far] == (rings.depths[places] - 1)[owner]) & (
            carried == rings.weights[places][owner]
        )
        edges = np.full(len(places), CONTAINMENT, dtype=np.int64)
        before = np.full(len(places), -1, dtype=np.int64)
        at = np.flatnonzero(is_it)[::-1]  # backward, so that of several the first is what remains
        edges[owner[at]], before[owner[at]] = joined.edges[slots[at]], far[at]
        for missing in np.flatnonzero(before < 0).tolist():
            inside = self.children[
                self.child_starts[places[missing]] : self.child_starts[places[missing] + 1]
            ]
            before[missing] = inside[rings.depths[inside] == 0][0]
        return edges, before


def _spread(
    frontier: Ints,
    depths: Small,
    weights: NDArray[np.float32],
    number: int,
    pull: Pairs,
    push: Pairs,
) -> Ints:
    """Reach what is joined to the last ring, with greatest weights.

    Returns the places, in order. The ring pushes along its own pairs, or those not reached yet pull
    along theirs, whichever are fewer: from a hub that half of the code uses, the next ring is
    small.
    """
    pushed = int((push.starts[frontier + 1] - push.starts[frontier]).sum())
    if pushed * _FEW > len(depths):
        waiting = np.flatnonzero((depths < 0) & (pull.starts[1:] > pull.starts[:-1]))
        counts = pull.starts[waiting + 1] - pull.starts[waiting]
        if 0 < int(counts.sum()) < pushed:
            slots = _ranges(pull.starts, waiting)
            lit = np.where(depths == number - 1, weights, np.float32(0.0))
            best = np.maximum.reduceat(
                lit[pull.far[slots]] * pull.weights[slots], np.cumsum(counts) - counts
            )
            is_reached = best > 0
            reached: Ints = waiting[is_reached]
            weights[reached] = best[is_reached]
            return reached
    slots = _ranges(push.starts, frontier)
    far = push.far[slots]
    is_new = depths[far] < 0
    far = far[is_new]
    np.maximum.at(weights, far, weights[push.near[slots[is_new]]] * push.weights[slots[is_new]])
    return _distinct(far, len(depths))


def _distinct(places: Ints, size: int) -> Ints:
    """Return some places, each once and in order.

    Many of them are told apart by marking them, which sorts nothing.
    """
    if len(places) * _VERY_FEW < size:
        return np.unique(places)
    is_there = np.zeros(size, dtype=bool)
    is_there[places] = True
    return np.flatnonzero(is_there)


def _make_pairs(graph: Graph, kinds: tuple[str, ...]) -> tuple[Pairs, Pairs]:
    """Return the pairs of a graph in both orders.

    The edges lie sorted by user and used, so equal pairs stand together.
    """
    edges = np.arange(len(graph.from_places))
    if kinds:
        edges = edges[np.isin(graph.edge_kinds, [KIND_NO[kind] for kind in kinds])]  # type: ignore[index]
    users, used = graph.from_places[edges], graph.to_places[edges]
    # Nothing weighs nothing: a walk could not tell it from what is not reached.
    weights = np.maximum(
        KIND_WEIGHTS[graph.edge_kinds[edges]] * graph.confidences[edges], 1e-6
    ).astype(np.float32)
    is_first = np.ones(len(edges), dtype=bool)
    is_first[1:] = (users[1:] != users[:-1]) | (used[1:] != used[:-1])
    heads = np.flatnonzero(is_first)
    if not len(heads):
        none = Pairs(
            np.zeros(graph.size + 1, dtype=np.int64), users, used, weights=weights, edges=edges
        )
        return none, none
    greatest = np.maximum.reduceat(weights, heads)
    group = np.cumsum(is_first) - 1
    at = np.flatnonzero(weights == greatest[group])
    first = at[np.concatenate([[True], group[at][1:] != group[at][:-1]])]
    users, used, edges = users[heads], used[heads], edges[first]
    order = np.argsort(used, kind="stable")
    return (
        Pairs(_starts(users, graph.size), users, used, weights=greatest, edges=edges),
        Pairs(
            _starts(used[order], graph.size),
            used[order],
            users[order],
            weights=greatest[order],
            edges=edges[order],
        ),
    )


def _ranges(starts: Ints, places: Ints) -> Ints:
    """Return the positions ``starts[p] … starts[p + 1]`` of each place, one after the other."""
    first, count = starts[places], starts[places + 1] - starts[places]
    if not (total := int(count.sum())):
        return np.empty(0, dtype=np.int64)
    ends = np.cumsum(count)
    positions: Ints = np.arange(total) + np.repeat(first - ends + count, count)
    return positions


def _places(nos: Ints, some: Ints) -> tuple[Flags, Ints]:
    """Return which of some numbers exist, and the places of those."""
    if not len(nos):
        return np.zeros(len(some), dtype=bool), np.empty(0, dtype=np.int64)
    places = np.minimum(np.searchsorted(nos, some), len(nos) - 1)
    is_there = nos[places] == some
    return is_there, places[is_there]


def build_graph(parts: Sequence[FilePart]) -> Graph:
    """Return the graph of some files.

    Edges to or from nodes that are in none of them are left out.
    """
    parts = sorted(parts, key=lambda part: part.no)
    nodes = np.concatenate([np.empty(0, NODE_DTYPE), *(part.nodes for part in parts)])
    files = np.repeat(np.arange(len(parts)), [len(part.nodes) for part in parts])
    order = np.argsort(nodes["no"], kind="stable")
    nodes, files = nodes[order], files[order]
    nos = nodes["no"].astype(np.int64)
    parents = np.full(len(nos), -1, dtype=np.int64)
    is_there, places = _places(nos, nodes["parent"].astype(np.int64))
    parents[is_there] = places
    has_parent = np.flatnonzero(parents >= 0)
    # An edge from each function to what is defined in it: that is a part of what it does.
    inner = has_parent[np.isin(nodes["kind"][parents[has_parent]], _WITH_A_BODY)]
    nested = np.zeros(len(inner), dtype=np.dtype(EDGE_DTYPE))
    nested["from_no"], nested["to_no"] = nodes["no"][parents[inner]], nodes["no"][inner]
    nested["line"], nested["kind"] = nodes["first"][inner], _NESTED
    nested["confidence"] = CONFIDENCE_STEPS
    children = has_parent[np.argsort(parents[has_parent], kind="stable")]
    file_is_test = np.array([part.is_test for part in parts], dtype=bool)
    is_test = nodes["kind"] == NODE_KIND_NO["test"]
    return Graph(
        nos=nos,
        kinds=nodes["kind"].copy(),
        parents=parents,
        is_test=is_test | file_is_test[files] if len(nos) else is_test,
        first_lines=nodes["first"].astype(np.int32),
        last_lines=nodes["last"].astype(np.int32),
        files=files.astype(np.int64),
        paths=tuple(part.path for part in parts),
        file_is_test=file_is_test,
        child_starts=_starts(parents[has_parent], len(nos)),
        children=children,
        **_edge_arrays(nos, [*(part.edges for part in parts if len(part.edges)), nested]),
    )


def _edge_arrays(nos: Ints, arrays: Sequence[Any]) -> dict[str, Any]:
    """Return the edges in the order of where they start and end.

    Stored containment is left out: parents say it already.
    """
    edges = np.concatenate(arrays)
    edges = edges[(edges["kind"] != KIND_NO["contains"]) & (edges["from_no"] != edges["to_no"])]
    edges["kind"][edges["kind"] == _NESTED] = KIND_NO["contains"]
    is_from, from_places = _places(nos, edges["from_no"].astype(np.int64))
    is_to, to_places = _places(nos, edges["to_no"].astype(np.int64))
    keep = is_from & is_to
    from_places, to_places, edges = from_places[keep[is_from]], to_places[keep[is_to]], edges[keep]
    order = np.argsort(from_places * len(nos) + to_places, kind="stable")
    from_places, to_places, edges = from_places[order], to_places[order], edges[order]
    return {
        "from_places": from_places,
        "to_places": to_places,
        "edge_kinds": edges["kind"].copy(),
        "edge_sources": edges["source"].copy(),
        "edge_lines": edges["line"].astype(np.int32),
        "confidences": (edges["confidence"] / CONFIDENCE_STEPS).astype(np.float32),
        "out_starts": _starts(from_places, len(nos)),
    }


def _starts(sorted_places: Ints, size: int) -> Ints:
    """Return where the entries of each place begin in a sorted array.

    One more at the end.
    """
    return np.concatenate([[0], np.cumsum(np.bincount(sorted_places, minlength=size))]).astype(
        np.int64
    )


MOST_NODES = 20_000
"""So many nodes are kept with their texts, about 20 MB; then it begins again."""


class LoadedGraph:
    """The graph of one tree. Safe to use from several threads.

    A graph that was handed out never changes.
    """

    def __init__(self, lookup: CodeLookup) -> None:
        self._lookup = lookup
        self._lock = threading.Lock()
        self._parts: dict[int, tuple[int, FilePart]] = {}
        self._revision = -1
        self._graph = build_graph(())
        self._nodes: tuple[Graph, dict[int, Node]] = (self._graph, {})
        self._names: tuple[Graph, tuple[str, ...]] = (self._graph, ())

    def current(self) -> Graph:
        """Return the graph as it is stored now."""
        database = self._lookup.database
        with self._lock:
            with database.read() as session:
                if self._lookup.tree_state(session)[0] == self._revision:
                    return self._graph
            # One moment for all files: an edge into a file that is read a moment later might lead
            # nowhere.
            with database.snapshot() as session:
                revision, _ = self._lookup.tree_state(session)
                stored: dict[int, int] = dict(self._lookup.files(session, "no, revision"))
                changed = [
                    no
                    for no, at in stored.items()
                    if no not in self._parts or self._parts[no][0] != at
                ]
                self._parts = {no: part for no, part in self._parts.items() if no in stored}
                if changed:
                    # Reading all of a tree at once is quicker than naming most of its files.
                    some = changed if len(changed) * 4 < len(stored) else None
                    self._parts |= {
                        part.no: (stored.get(part.no, -1), part)
                        for part in self._read(session, some)
                    }
                self._graph = build_graph([part for _, part in self._parts.values()])
                self._revision = revision
            return self._graph

    def nodes(self, nos: Collection[int]) -> dict[int, Node]:
        """Return some nodes by their numbers, those met before from memory.

        What became stale since is not marked in these.
        """
        with self._lock:
            if self._nodes[0] is not self._graph or len(self._nodes[1]) > MOST_NODES:
                self._nodes = (self._graph, {})
            cache = self._nodes[1]
            missing = [no for no in nos if no not in cache]
        if missing:
            nodes = self._lookup.ask(self._lookup.nodes, missing)
            with self._lock:
                cache.update(nodes)
        return {no: cache[no] for no in nos if no in cache}

    def names(self, graph: Graph) -> tuple[str, ...]:
        """Return the names of a graph's nodes, by place."""
        last, names = self._names
        if last is not graph:
            rows = self._lookup.ask(self._lookup.node_rows, "no, name")
            by_no = {no: from_storable(name) for no, name in rows}
            names = tuple(by_no.get(no, "") for no in graph.nos.tolist())
            self._names = (graph, names)
        return names

    def _read(self, session: Session, file_nos: Sequence[int] | None) -> list[FilePart]:
        kinds: Mapping[Any, int] = NODE_KIND_NO
        nodes = grouped(
            (file_no, (no, parent or 0, kinds[kind], first, last))
            for file_no, no, parent, kind, first, last in self._lookup.node_rows(
                session, "file_no, no, parent_no, kind, first_line, last_line", file_nos
            )
        )
        return [
            FilePart(
                int(no),
                from_storable(path),
                bool(is_test),
                nodes=np.array(nodes.get(no, []), dtype=NODE_DTYPE),
                edges=unpack_edges(edges),
            )
            for no, path, is_test, edges in self._lookup.files(
                session, "no, path, is_test, edges", file_nos
            )
        ]
