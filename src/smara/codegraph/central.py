"""How central code is: PageRank over who uses whom, by power iteration.

Weight flows along edges, from who uses something to what is used; what much depends on collects
it. Edges between the same two nodes count by the root of their number, so that a loop of a
hundred calls is not a hundred reasons. With a *restart* the weight begins, and begins anew, at
the nodes in play: what they use ranks first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smara.codegraph.walking import KIND_NO, KIND_WEIGHTS, Floats, Graph, Ints

DAMPING = 0.85
_MOST_ROUNDS = 60
_CLOSE_ENOUGH = 1e-7


class Links(NamedTuple):
    """Weighted links between things that have places; each pair once."""

    size: int
    sources: Ints
    targets: Ints
    weights: Floats


def links_of(graph: Graph, *, is_by_file: bool = False) -> Links:
    """Who uses whom, between nodes or between their files. Within one file a use tells half as
    much.
    """
    from_files, to_files = graph.files[graph.from_places], graph.files[graph.to_places]
    weights = KIND_WEIGHTS[graph.edge_kinds] * graph.confidences
    sources, targets, size = graph.from_places, graph.to_places, graph.size
    if is_by_file:
        keep = from_files != to_files
        sources, targets, weights, size = (
            from_files[keep],
            to_files[keep],
            weights[keep],
            len(graph.paths),
        )
    else:
        weights = np.where(from_files == to_files, weights * 0.5, weights)
        # A test shows that something is used, but a hundred tests do not make it a pillar of the
        # program.
        weights = np.where(graph.file_is_test[from_files], weights * 0.3, weights)
        weights = np.where(graph.edge_kinds == KIND_NO["tests"], weights * 0.3, weights)
    return merged(size, sources, targets, weights=weights)


def merged(size: int, sources: Ints, targets: Ints, weights: Floats) -> Links:
    """Links with those between the same two things made one, as heavy as the mean times the root of
    their number.
    """
    if not len(sources):
        return Links(size, sources, targets, weights=weights)
    keys, places = np.unique(sources * size + targets, return_inverse=True)
    count = np.bincount(places)
    total = np.bincount(places, weights=weights)
    return Links(size, keys // size, keys % size, weights=total / np.sqrt(count))


def rank(links: Links, restart: Floats | None = None) -> Floats:
    """The share of attention each thing has; sums to 1. Without ``restart`` it begins anew
    everywhere alike.
    """
    if not links.size:
        return np.empty(0)
    begin = (
        np.full(links.size, 1.0) if restart is None or not restart.sum() else restart.astype(float)
    )
    begin = begin / begin.sum()
    out = np.bincount(links.sources, weights=links.weights, minlength=links.size)
    share = np.divide(
        links.weights,
        out[links.sources],
        out=np.zeros(len(links.weights)),
        where=out[links.sources] > 0,
    )
    is_end = out == 0
    ranks: Floats = begin
    for _ in range(_MOST_ROUNDS):
        flow = np.bincount(
            links.targets, weights=ranks[links.sources] * share, minlength=links.size
        )
        following = DAMPING * (flow + ranks[is_end].sum() * begin) + (1 - DAMPING) * begin
        moved = float(np.abs(following - ranks).sum())
        ranks = following
        if moved < _CLOSE_ENOUGH:
            break
    return ranks


def file_ranks(graph: Graph) -> Floats:
    """The centrality of each file among the files."""
    return rank(links_of(graph, is_by_file=True))


def node_ranks(graph: Graph) -> Floats:
    """The centrality of each node among the nodes."""
    return rank(links_of(graph))
