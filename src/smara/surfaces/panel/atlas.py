"""Lay out the whole code graph as islands, one for each module.

The same code gives the same picture, so that a person finds a place again: nothing is random and
nothing moves. A module is a disc with its most used names in the middle; discs stand as close to
the modules they are linked with as they can without touching. The browser only draws it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import cos, pi, sin, sqrt
from typing import Any

from smara.browse.models import WholeGraph

MOST_MODULES = 150
_TURN = pi * (3 - sqrt(5))
"""Turned by this angle again and again, points never stand in rays."""
_SPACING, _GAP = 10, 30
_RAYS = 24


@lru_cache(maxsize=2)
def lay_out(graph: WholeGraph) -> dict[str, Any]:
    """Return the places of modules and nodes in compact lists.

    ``nodes`` has file, module, x, y and number of links of each; ``links`` has two places each.
    """
    folders = folders_of(graph.paths)
    uses = Counter(place for link in graph.links for place in link)
    members: dict[str, list[int]] = {}
    for node, file in enumerate(graph.files):
        members.setdefault(folders[file], []).append(node)
    for each in members.values():
        each.sort(key=lambda node: (-uses[node], node))
    linked: Counter[tuple[str, str]] = Counter()
    for start, end in graph.links:
        linked[folders[graph.files[start]], folders[graph.files[end]]] += 1
    places = place_discs({name: _radius(len(each)) for name, each in members.items()}, linked)
    nodes: list[list[int]] = [[]] * len(graph.files)
    for number, (name, (left, top)) in enumerate(places.items()):
        for rank, node in enumerate(members[name]):
            far, angle = _SPACING * sqrt(rank), rank * _TURN
            x, y = round(left + far * cos(angle)), round(top + far * sin(angle))
            nodes[node] = [graph.files[node], number, x, y, uses[node]]
    return {
        "modules": [
            {
                "path": name,
                "x": round(x),
                "y": round(y),
                "radius": round(_radius(count)),
                "nodes": count,
            }
            for name, (x, y) in places.items()
            if (count := len(members[name]))
        ],
        "paths": graph.paths,
        "names": graph.names,
        "nodes": nodes,
        "links": [place for link in graph.links for place in link],
    }


def folders_of(paths: Sequence[str], most: int = MOST_MODULES) -> list[str]:
    """Return the folder of each file, or one above it.

    >>> folders_of(["a/b/x.py", "a/c/y.py", "z.py"]), folders_of(["a/b/x.py", "a/c/y.py"], most=1)
    (['a/b', 'a/c', '.'], ['a', 'a'])
    """
    folders = [path.rpartition("/")[0] or "." for path in paths]
    depth = max((each.count("/") for each in folders), default=0)
    while len(set(folders)) > most and depth:
        folders = ["/".join(each.split("/")[:depth]) for each in folders]
        depth -= 1
    return folders


def place_discs(
    radii: Mapping[str, float], linked: Mapping[tuple[str, str], int]
) -> dict[str, tuple[float, float]]:
    """Return a place for each disc, near those it is linked with.

    The largest are placed first.
    """
    near: dict[str, Counter[str]] = {name: Counter() for name in radii}
    for (start, end), count in linked.items():
        if start != end:
            near[start][end] += count
            near[end][start] += count
    places: dict[str, tuple[float, float]] = {}
    for name in sorted(radii, key=lambda each: (-radii[each], each)):
        around = sorted(near[name].items())  # a sum of fractions depends on its order
        weights = [(count, places[each]) for each, count in around if each in places]
        total = sum(count for count, _ in weights) or 1
        wish = (
            sum(count * x for count, (x, _) in weights) / total,
            sum(count * y for count, (_, y) in weights) / total,
        )
        others = [(x, y, radii[name] + radii[each] + _GAP) for each, (x, y) in places.items()]
        places[name] = _free_place(wish, others)
    return places


def _free_place(
    wish: tuple[float, float], others: Sequence[tuple[float, float, float]]
) -> tuple[float, float]:
    """Return the free place nearest to a wish, looking into a few directions."""
    found = []
    for ray in range(_RAYS):
        angle = 2 * pi * ray / _RAYS + len(others) * _TURN
        right, down = cos(angle), sin(angle)
        # Each other disc blocks a stretch of the way; the first gap is free.
        stretches = []
        for left, top, least in others:
            x, y = left - wish[0], top - wish[1]
            along = x * right + y * down
            if (rest := least * least - (x * x + y * y - along * along)) > 0:
                stretches.append((along - sqrt(rest), along + sqrt(rest)))
        far = 0.0
        for start, end in sorted(stretches):
            if start >= far:
                break
            far = max(far, end)
        found.append((far, ray, (wish[0] + far * right, wish[1] + far * down)))
    return min(found)[2]


def _radius(count: int) -> float:
    return _SPACING * (sqrt(count) + 1)
