"""Files that import each other in a circle."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise

from smara.codegraph.models import Cycle
from smara.codegraph.walking import KIND_NO, NODE_KIND_NO, Graph

Imports = dict[int, dict[int, int]]
"""For each file those it imports, with the line of the first such import."""


def cycles(graph: Graph, *, with_lazy: bool = False) -> list[Cycle]:
    """Every circle of imports, the smallest first; each is shown as one way around.

    An import inside a function runs later and is mostly there to break a circle, so it counts
    only with ``with_lazy``.
    """
    imports = file_imports(graph, with_lazy=with_lazy)
    found = []
    for component in components(len(graph.paths), imports):
        if len(component) > 1:
            first = min(component, key=lambda place: graph.paths[place])
            around = _way_around(first, set(component), imports)
            lines = tuple(imports[one][other] for one, other in pairwise(around))
            files = tuple(sorted(graph.paths[place] for place in component))
            found.append(Cycle(tuple(graph.paths[place] for place in around), lines, files))
    return sorted(found, key=lambda cycle: (len(cycle.files), cycle.path))


def file_imports(graph: Graph, *, with_lazy: bool = False) -> Imports:
    """Which file imports which."""
    found: Imports = {}
    is_import = graph.edge_kinds == KIND_NO["imports"]
    if not with_lazy:
        is_import = is_import & (graph.kinds[graph.from_places] == NODE_KIND_NO["file"])
    sources = graph.files[graph.from_places[is_import]].tolist()
    targets = graph.files[graph.to_places[is_import]].tolist()
    for source, target, line in zip(
        sources, targets, graph.edge_lines[is_import].tolist(), strict=True
    ):
        if source != target:
            lines = found.setdefault(source, {})
            lines[target] = min(line, lines.get(target, line))
    return found


def components(size: int, links: Mapping[int, Mapping[int, int]]) -> list[list[int]]:
    """The strongly connected components (Tarjan's way, without recursion: chains of imports can be
    long).
    """
    index, low = [-1] * size, [0] * size
    is_held = [False] * size
    held: list[int] = []
    found: list[list[int]] = []
    count = 0
    for root in range(size):
        if index[root] >= 0:
            continue
        work = [(root, iter(sorted(links.get(root, ()))))]
        index[root] = low[root] = count
        count += 1
        held.append(root)
        is_held[root] = True
        while work:
            node, others = work[-1]
            for other in others:
                if index[other] < 0:
                    index[other] = low[other] = count
                    count += 1
                    held.append(other)
                    is_held[other] = True
                    work.append((other, iter(sorted(links.get(other, ())))))
                    break
                if is_held[other]:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    found.append(_released(node, held, is_held))
    return found


def _released(root: int, held: list[int], is_held: list[bool]) -> list[int]:
    component = []
    while True:
        node = held.pop()
        is_held[node] = False
        component.append(node)
        if node == root:
            return component


def _way_around(
    first: int, component: set[int], links: Mapping[int, Mapping[int, int]]
) -> Sequence[int]:
    """The shortest circle through a file, beginning and ending there."""
    before: dict[int, int] = {}
    waiting = deque([first])
    while waiting:
        node = waiting.popleft()
        for other in sorted(links.get(node, ())):
            if other == first:
                path = [first]
                while node != first:
                    path.append(node)
                    node = before[node]
                return [first, *reversed(path[1:]), first]
            if other in component and other not in before:
                before[other] = node
                waiting.append(other)
    raise AssertionError("a component without a circle")
