"""Lay out small graphs in columns, to be drawn as SVG.

A node stands one column to the right of all that point to it, so that arrows go one way; what is in
a circle is placed where it was met first. Inside a column nodes are ordered by where their
neighbors stand, so that few lines cross.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

COLUMN, ROW, NODE_WIDTH, NODE_HEIGHT = 240, 34, 200, 26
_LABEL_CHARACTERS = 26
_SWEEPS = 3


def columns_of(names: Sequence[str], edges: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the column of each node: the longest way to it.

    >>> columns_of(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    {'a': 0, 'b': 1, 'c': 2}
    >>> columns_of(["a", "b"], [("a", "b"), ("b", "a")])
    {'a': 0, 'b': 1}
    """
    followers: dict[str, list[str]] = {name: [] for name in names}
    waiting = dict.fromkeys(names, 0)
    for start, end in edges:
        if start in waiting and end in waiting and start != end:
            followers[start].append(end)
            waiting[end] += 1
    columns: dict[str, int] = {}
    depth = 0
    while len(columns) < len(waiting):
        left = [name for name in waiting if name not in columns]
        # In a circle nothing is free: the first one met begins.
        free = [name for name in left if waiting[name] <= 0] or left[:1]
        for name in free:
            columns[name] = depth
            for each in followers[name]:
                waiting[each] -= 1
        depth += 1
    return columns


def draw(
    nodes: Sequence[Mapping[str, Any]],
    edges: Sequence[tuple[str, str]],
    columns: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return a graph with the places of its nodes and edges.

    Args:
        nodes: Each with a ``name`` and a ``label``; other facts are given back.
        edges: Pairs of names.
        columns: The column of each node, if it is known.
    """
    names = [str(node["name"]) for node in nodes]
    there = set(names)
    shown = [(start, end) for start, end in edges if start in there and end in there]
    column = dict(columns) if columns is not None else columns_of(names, shown)
    order: dict[int, list[str]] = {}
    for name in names:
        order.setdefault(column[name], []).append(name)
    _untangle(order, shown)
    height = max((len(each) for each in order.values()), default=0)
    place = {
        name: (at, row + (height - len(each)) / 2)  # short columns stand in the middle
        for at, each in order.items()
        for row, name in enumerate(each)
    }
    drawn = []
    for node in nodes:
        at, row = place[str(node["name"])]
        label = str(node["label"])
        short = label if len(label) <= _LABEL_CHARACTERS else f"…{label[-_LABEL_CHARACTERS + 1 :]}"
        drawn.append({**node, "label": short, "x": at * COLUMN + 4, "y": int(row * ROW) + 4})
    return {
        "nodes": drawn,
        "edges": [_curve(place[start], place[end]) for start, end in shown],
        "width": max(order, default=0) * COLUMN + NODE_WIDTH + 8,
        "height": height * ROW + 8,
        "nodeWidth": NODE_WIDTH,
        "nodeHeight": NODE_HEIGHT,
    }


def _untangle(order: dict[int, list[str]], edges: Sequence[tuple[str, str]]) -> None:
    """Order each column by the middle of its neighbors in the one before."""
    for _ in range(_SWEEPS):
        rows = {name: row for each in order.values() for row, name in enumerate(each)}
        for at in sorted(order):
            middle: dict[str, list[int]] = {name: [] for name in order[at]}
            for start, end in edges:
                if end in middle:
                    middle[end].append(rows[start])
            order[at].sort(
                key=lambda name: (
                    sum(middle[name]) / len(middle[name]) if middle[name] else rows[name]
                )
            )
            rows |= {name: row for row, name in enumerate(order[at])}


def _curve(start: tuple[int, float], end: tuple[int, float]) -> str:
    half = NODE_HEIGHT // 2 + 4
    left, right = start[0] * COLUMN + NODE_WIDTH + 4, end[0] * COLUMN + 4
    top, bottom = int(start[1] * ROW) + half, int(end[1] * ROW) + half
    bend = max(30, (right - left) // 2) if right > left else 60
    return f"M{left} {top}C{left + bend} {top} {right - bend} {bottom} {right} {bottom}"
