"""Find the code that depends on a target, and draw it.

A change of a file or a class changes everything inside it. From there the walk follows calls,
imports, inheritance and references backwards, each result with the path that leads to it.
Overriding methods have no edge to each other and are found through their classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smara.codegraph.codec import NODE_KIND_NO
from smara.codegraph.memory_graph import CONTAINMENT, FetchNodes, Graph, Ints, Pairs, Rings
from smara.codegraph.models import EDGE_KINDS, EDGE_SOURCES, Hop, ImpactWalk, Node, Reached
from smara.core.items import grouped
from smara.core.startup.record import dataclass

MOST_DEPTH = 20


@dataclass(frozen=True, slots=True)
class ImpactStep:
    """A node of a walk by its place.

    How far, how surely, and by which edges back to the start.
    """

    place: int
    depth: int
    weight: float
    path: tuple[tuple[int, int], ...]
    """Pairs of an edge (or ``CONTAINMENT``) and the place it leads to."""


@dataclass(frozen=True, slots=True)
class ImpactSteps:
    """A walk by places.

    The nearest and surest first, as many as were asked for.
    """

    shown: tuple[ImpactStep, ...]
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
) -> ImpactSteps:
    """Walk from some nodes and all that lies in them."""
    rings = graph.rings(
        graph.within(targets),
        min(depth, MOST_DEPTH),
        is_backward=is_backward,
        kinds=kinds,
        touched=targets if is_backward and not kinds else None,
    )
    shown: list[Ints] = []
    by_depth: dict[int, int] = {}
    is_shown, files = (np.zeros(len(graph.paths), dtype=bool) for _ in range(2))
    is_file = graph.kinds == NODE_KIND_NO["file"]
    if only_tests:
        # The file of a test may be nearer than the test itself, by its imports; it is the test that
        # is asked for.
        for ring in rings.places:
            is_shown[graph.files[ring[~is_file[ring]]]] = True
    tests = 0
    for number, ring in enumerate(rings.places, 1):
        # All but files of which something was reached no later: ``f imports x`` says less than
        # ``f:g calls x``.
        is_shown[graph.files[ring[~is_file[ring]]]] = True
        places: Ints = ring[~is_file[ring] | ~is_shown[graph.files[ring]]]
        if only_tests:
            # Tests themselves, and files of tests; not what helps them.
            is_test = graph.kinds[places] == NODE_KIND_NO["test"]
            places = places[is_test | (is_file[places] & graph.is_test[places])]
        if not len(places):
            continue
        by_depth[number] = len(places)
        tests += int(graph.is_test[places].sum())
        files[graph.files[places]] = True
        # Tests come last in their ring: what breaks in the program matters more, and there may be
        # hundreds of them.
        weights = rings.weights[places] - graph.is_test[places]
        shown.append(_heaviest(places, weights, limit - sum(map(len, shown))))
    chosen = np.concatenate([np.empty(0, dtype=np.int64), *shown])
    paths = _paths(graph, rings, chosen, is_backward=is_backward, kinds=kinds)
    steps = tuple(
        ImpactStep(place, int(rings.depths[place]), float(rings.weights[place]), path=path)
        for place, path in zip(chosen.tolist(), paths, strict=True)
    )
    return ImpactSteps(steps, sum(by_depth.values()), by_depth, files=int(files.sum()), tests=tests)


def _heaviest(places: Ints, weights: NDArray[np.float32], count: int) -> Ints:
    """Return the heaviest places, in order; of equal ones the first.

    Only as many are sorted as are wanted.
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


def dress(
    graph: Graph, targets: Ints, depth: int, steps: ImpactSteps, fetch: FetchNodes
) -> ImpactWalk:
    """Return a walk with its nodes instead of their places."""
    pairs = {pair for step in steps.shown for pair in step.path}
    places = list(
        {*targets.tolist(), *(step.place for step in steps.shown), *(place for _, place in pairs)}
    )
    nos = graph.nos[np.array(places, dtype=np.int64)].tolist()
    nodes = fetch(nos)
    # A file may have been taken out since the graph was read: then a node is missing, and so are
    # the paths over it.
    at = {place: nodes[no] for place, no in zip(places, nos, strict=True) if no in nodes}
    # Most paths end alike: every step is made once.
    hops: dict[tuple[int, int], Hop] = {}
    for edge, place in pairs:
        if place in at and edge == CONTAINMENT:
            node = at[place]
            hops[edge, place] = Hop(node, "contains", node.first_line, confidence=1.0, source="ast")
        elif place in at:
            hops[edge, place] = Hop(
                at[place],
                EDGE_KINDS[graph.edge_kinds[edge]],
                int(graph.edge_lines[edge]),
                confidence=round(float(graph.confidences[edge]), 3),
                source=EDGE_SOURCES[graph.edge_sources[edge]],
            )
    reached = [
        Reached(
            at[step.place],
            step.depth,
            round(step.weight, 4),
            path=tuple([hops[pair] for pair in step.path]),
            is_test=bool(graph.is_test[step.place]),
        )
        for step in steps.shown
        if step.place in at and hops.keys() >= set(step.path)
    ]
    return ImpactWalk(
        tuple(at[place] for place in targets.tolist() if place in at),
        depth,
        tuple(reached),
        total=steps.total,
        by_depth=steps.by_depth,
        files=steps.files,
        tests=steps.tests,
    )


_FAR = 8
_MOST_CLASSES = 400
_INHERITS = ("inherits",)
Members = Callable[[Sequence[int], str], Iterable[Node]]
"""What some classes, by their numbers, have by a name."""


def bases_and_heirs(
    graph: Graph, method: Node, members: Members
) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """Return a method's overridden and overriding methods, nearest first."""
    owner = graph.parents[graph.places_of([method.no])]
    if method.kind == "file" or not len(owner) or owner[0] < 0:
        return (), ()
    by_heir, by_base = graph.pairs(_INHERITS)
    above, below = _around(by_heir, int(owner[0])), _around(by_base, int(owner[0]))
    # What breaks in the program matters more than in its tests, of which there may be hundreds.
    below.sort(key=lambda place: bool(graph.is_test[place]))
    both: list[tuple[Node, ...]] = []
    for classes in (above, below):
        order = {int(graph.nos[at]): number for number, at in enumerate(classes[:_MOST_CLASSES])}
        nodes = members(list(order), method.name) if order else []
        ranked = sorted(nodes, key=lambda node: (order[node.parent_no or 0], node.first_line))
        both.append(tuple(ranked))
    return both[0], both[1]


def _around(pairs: Pairs, owner: int) -> list[int]:
    """Return the classes that are reached from one, the nearest first.

    They are few: no walk over arrays of all nodes.
    """
    classes = ring = [owner]
    for _ in range(_FAR):
        near = pairs.of(np.array(ring, dtype=np.int64)).tolist()
        ring = [place for place in dict.fromkeys(near) if place not in classes]
        classes = classes + ring
        if not ring:
            break
    return classes[1:]


Picture = Literal["dot", "mermaid"]
PICTURES: tuple[Picture, ...] = ("dot", "mermaid")
_UNSURE = 0.75
Line = tuple[int, int, str, bool]


def draw(walk: ImpactWalk, picture: Picture) -> str:
    """Return a walk to what depends on its targets as a graph.

    Files as boxes around their symbols, the targets marked, unsure edges dashed.
    """
    nodes = {node.no: node for node in walk.targets}
    steps: dict[tuple[int, int, str], bool] = {}
    for reached in walk.reached:
        at = reached.node
        nodes[at.no] = at
        for hop in reached.path:
            nodes[hop.node.no] = hop.node
            step = (at.no, hop.node.no, hop.kind)
            is_unsure = hop.source == "guess" or hop.confidence < _UNSURE
            steps[step] = steps.get(step, True) and is_unsure
            at = hop.node
    ordered = sorted(nodes.values(), key=lambda each: (each.path, each.first_line, each.no))
    by_file = grouped((node.path, node) for node in ordered)
    targets = {node.no for node in walk.targets}
    lines = [(*step, is_unsure) for step, is_unsure in sorted(steps.items())]
    return (_dot if picture == "dot" else _mermaid)(targets, by_file, lines)


def _dot(targets: set[int], by_file: dict[str, list[Node]], lines: list[Line]) -> str:
    text = [
        "digraph impact {",
        '  rankdir="LR";',
        '  node [shape=box, style=rounded, fontname="Helvetica"];',
    ]
    for number, (path, inside) in enumerate(by_file.items()):
        text += [f"  subgraph cluster_{number} {{", f"    label={_quoted(path)}; color=gray;"]
        for node in inside:
            mark = ', style="rounded,filled", fillcolor="#ffd54f"' if node.no in targets else ""
            text.append(f"    n{node.no} [label={_quoted(_label(node))}{mark}];")
        text.append("  }")
    for one, other, kind, is_unsure in lines:
        style = ", style=dashed" if is_unsure else ""
        text.append(f"  n{one} -> n{other} [label={_quoted(kind)}{style}];")
    return "\n".join([*text, "}"])


def _mermaid(targets: set[int], by_file: dict[str, list[Node]], lines: list[Line]) -> str:
    text = ["flowchart LR"]
    for number, (path, inside) in enumerate(by_file.items()):
        text.append(f'  subgraph f{number}["{_entities(path)}"]')
        text += [f'    n{node.no}["{_entities(_label(node))}"]' for node in inside]
        text.append("  end")
    text += [
        f"  n{one} {'-.->' if is_unsure else '-->'}|{kind}| n{other}"
        for one, other, kind, is_unsure in lines
    ]
    text += [f"  style n{no} fill:#ffd54f,stroke:#b28704" for no in sorted(targets)]
    return "\n".join(text)


def _label(node: Node) -> str:
    return node.path.rpartition("/")[2] if node.kind == "file" else node.qualname


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


def _entities(text: str) -> str:
    """Characters that mean something to Mermaid, as entities."""
    return "".join(
        each if each.isalnum() or each in " _-./:" else f"#{ord(each)};" for each in text
    )
