"""Who depends on some code, and what it depends on: by depth and weight, each with the path that
leads there.

A change of a file or a class changes all that lies in it; a change of a method touches its class
as well. From there the walk follows calls, imports, inheritance, references and tests; it does
not go up to the file of each dependent, or everything would depend on everything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smara.codegraph.models import EDGE_KINDS, EDGE_SOURCES, Hop, Node, Reached, Walk
from smara.codegraph.walking import CONTAINMENT, NODE_KIND_NO, Flags, Graph, Ints, Rings

FetchNodes = Callable[[Collection[int]], Mapping[int, Node]]
MOST_DEPTH = 20
Floats32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Step:
    """A node of a walk by its place: how far, how surely, and by which edges back to the start."""

    place: int
    depth: int
    weight: float
    path: tuple[tuple[int, int], ...]
    """Pairs of an edge (or ``CONTAINMENT``) and the place it leads to."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A walk by places: the nearest and surest first, as many as were asked for."""

    shown: tuple[Step, ...]
    total: int
    by_depth: dict[int, int]
    files: int
    tests: int


def walk(
    graph: Graph,
    targets: Ints,
    *,
    depth: int,
    limit: int,
    is_backward: bool,
    kinds: tuple[str, ...] = (),
    only_tests: bool = False,
) -> Steps:
    """Walk from some nodes and all that lies in them."""
    touched = targets if is_backward and not kinds else None
    rings = graph.rings(
        graph.within(targets),
        min(depth, MOST_DEPTH),
        is_backward=is_backward,
        kinds=kinds,
        touched=touched,
    )
    shown: list[Ints] = []
    by_depth: dict[int, int] = {}
    has_told, files = np.zeros(len(graph.paths), dtype=bool), np.zeros(len(graph.paths), dtype=bool)
    if only_tests:
        # The file of a test may be nearer than the test itself, by its imports; it is the test that
        # is wanted.
        for ring in rings.places:
            _worth_telling(graph, ring, has_told)
    tests = 0
    for number, ring in enumerate(rings.places, 1):
        worth = _worth_telling(graph, ring, has_told)
        told = worth[_is_a_test(graph, worth)] if only_tests else worth
        if not len(told):
            continue
        by_depth[number] = len(told)
        tests += int(graph.is_test[told].sum())
        files[graph.files[told]] = True
        # Tests come last in their ring: what breaks in the program matters more, and there may be
        # hundreds of them.
        worths = rings.weights[told] - graph.is_test[told]
        shown.append(_heaviest(told, worths, limit - sum(map(len, shown))))
    chosen = np.concatenate([np.empty(0, dtype=np.int64), *shown])
    paths = _paths(graph, rings, chosen, is_backward=is_backward, kinds=kinds)
    steps = tuple(
        Step(place, int(rings.depths[place]), float(rings.weights[place]), path=path)
        for place, path in zip(chosen.tolist(), paths, strict=True)
    )
    return Steps(steps, sum(by_depth.values()), by_depth, files=int(files.sum()), tests=tests)


def _worth_telling(graph: Graph, ring: Ints, has_told: Flags) -> Ints:
    """All but files of which something was reached no later: ``f imports x`` says less than ``f:g
    calls x``.
    """
    is_file = graph.kinds[ring] == NODE_KIND_NO["file"]
    has_told[graph.files[ring[~is_file]]] = True
    worth: Ints = ring[~is_file | ~has_told[graph.files[ring]]]
    return worth


def _is_a_test(graph: Graph, places: Ints) -> Flags:
    """Tests themselves, and files of tests; not what helps them."""
    kinds = graph.kinds[places]
    is_file: Flags = kinds == NODE_KIND_NO["file"]
    found: Flags = (kinds == NODE_KIND_NO["test"]) | (is_file & graph.is_test[places])
    return found


def _heaviest(places: Ints, weights: Floats32, count: int) -> Ints:
    """The heaviest places, in order; of equal ones the first. Only as many are sorted as are
    wanted.
    """
    if count <= 0:
        return places[:0]
    if len(places) > count:
        least = np.partition(weights, len(weights) - count)[len(weights) - count]
        above = np.flatnonzero(weights > least)
        chosen = np.concatenate([above, np.flatnonzero(weights == least)[: count - len(above)]])
        places, weights = places[chosen], weights[chosen]
    return places[np.lexsort((places, -weights))]


def _paths(
    graph: Graph, rings: Rings, places: Ints, is_backward: bool, kinds: tuple[str, ...]
) -> list[tuple[tuple[int, int], ...]]:
    """For each of some places the steps back to the start."""
    paths: list[list[tuple[int, int]]] = [[] for _ in range(len(places))]
    at, whose = places, np.arange(len(places))
    while len(at):
        edges, before = graph.way_back(rings, at, is_backward=is_backward, kinds=kinds)
        for number, edge, place in zip(
            whose.tolist(), edges.tolist(), before.tolist(), strict=True
        ):
            paths[number].append((edge, place))
        goes_on = rings.depths[before] > 0
        at, whose = before[goes_on], whose[goes_on]
    return [tuple(path) for path in paths]


def dress(graph: Graph, targets: Ints, depth: int, steps: Steps, fetch: FetchNodes) -> Walk:
    """A walk with its nodes instead of their places."""
    wanted = {*targets.tolist(), *(step.place for step in steps.shown)}
    pairs = {pair for step in steps.shown for pair in step.path}
    wanted |= {place for _, place in pairs}
    places = list(wanted)
    nos = graph.nos[np.array(places, dtype=np.int64)].tolist()
    nodes = fetch(nos)
    # A file may have been taken out since the graph was read: then a node is missing, and so are
    # the paths over it.
    at = {place: nodes[no] for place, no in zip(places, nos, strict=True) if no in nodes}
    hops = _hops(graph, [pair for pair in pairs if pair[1] in at], at)
    is_test = graph.is_test
    shown = steps.shown
    if len(at) < len(places):
        shown = tuple(
            step for step in shown if step.place in at and all(pair in hops for pair in step.path)
        )
    reached = tuple(
        [
            Reached(
                at[step.place],
                step.depth,
                round(step.weight, 4),
                path=tuple([hops[pair] for pair in step.path]),
                is_test=bool(is_test[step.place]),
            )
            for step in shown
        ]
    )
    named = tuple(at[place] for place in targets.tolist() if place in at)
    return Walk(
        named,
        depth,
        reached,
        total=steps.total,
        by_depth=steps.by_depth,
        files=steps.files,
        tests=steps.tests,
    )


def _hops(
    graph: Graph, pairs: Sequence[tuple[int, int]], at: Mapping[int, Node]
) -> dict[tuple[int, int], Hop]:
    """The steps of all paths, each made once: most paths end alike."""
    edges = np.array([max(edge, 0) for edge, _ in pairs], dtype=np.int64)
    if not len(edges) or not graph.edge_count:
        return {pair: _held(at[pair[1]]) for pair in pairs}
    kinds, sources = graph.edge_kinds[edges].tolist(), graph.edge_sources[edges].tolist()
    lines, confidences = graph.edge_lines[edges].tolist(), graph.confidences[edges].tolist()
    return {
        pair: _held(at[pair[1]])
        if pair[0] == CONTAINMENT
        else Hop(
            at[pair[1]],
            EDGE_KINDS[kind],
            line,
            confidence=round(confidence, 3),
            source=EDGE_SOURCES[source],
        )
        for pair, kind, source, line, confidence in zip(
            pairs, kinds, sources, lines, confidences, strict=True
        )
    }


def _held(node: Node) -> Hop:
    return Hop(node, "contains", node.first_line, confidence=1.0, source="ast")
