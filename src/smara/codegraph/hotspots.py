"""Hot spots: files that much depends on and that change often. There a mistake costs most."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from smara.codegraph.central import file_ranks, links_of
from smara.codegraph.models import HotSpot
from smara.codegraph.walking import NODE_KIND_NO, Floats, Graph


def hot_spots(graph: Graph, commits: Mapping[str, int], lines: Mapping[str, int]) -> list[HotSpot]:
    """Files of code by centrality and churn together, tests left out.

    Both are ranks among the other files, from 0 to 1, and the score is the root of their product:
    one that everything uses but nobody touches is as cool as one that changes daily and nobody
    uses. Without a history the centrality decides alone.
    """
    is_code = np.zeros(len(graph.paths), dtype=bool)
    is_code[graph.files[graph.kinds != NODE_KIND_NO["file"]]] = True
    chosen = np.flatnonzero(is_code & ~graph.file_is_test)
    if not len(chosen):
        return []
    central = _standing(file_ranks(graph)[chosen])
    changed = np.array(
        [commits.get(graph.paths[number], 0) for number in chosen.tolist()], dtype=float
    )
    churn = _standing(changed) if changed.any() else np.zeros(len(chosen))
    scores = np.sqrt(central * churn) if changed.any() else central
    used_by = np.bincount(links_of(graph, is_by_file=True).targets, minlength=len(graph.paths))
    found = [
        HotSpot(
            graph.paths[number],
            round(float(scores[at]), 3),
            round(float(central[at]), 3),
            churn=round(float(churn[at]), 3),
            dependents=int(used_by[number]),
            commits=int(changed[at]),
            lines=lines.get(graph.paths[number], 0),
        )
        for at, number in enumerate(chosen.tolist())
    ]
    return sorted(found, key=lambda each: (-each.score, each.path))


def _standing(values: Floats) -> Floats:
    """The share of the others that each is above; equal ones stand alike, and nothing stands at 0.

    >>> _standing(np.array([3.0, 0.0, 7.0, 3.0])).tolist()
    [0.5, 0.0, 1.0, 0.5]
    """
    if len(values) < 2:
        return np.where(values > 0, 1.0, 0.0)
    _, places = np.unique(values, return_inverse=True)
    below = np.concatenate([[0], np.cumsum(np.bincount(places))[:-1]])
    middle = below[places] + (np.bincount(places)[places] - 1) / 2
    return np.where(values > 0, middle / (len(values) - 1), 0.0)
