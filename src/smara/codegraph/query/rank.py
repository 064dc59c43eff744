"""Rank code by PageRank; find hot spots and draw the repository map.

Weight flows from the code that uses something to what it uses. A hot spot is central and changes
often. The map shows the heads of the most important definitions within a token budget.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from smara.codegraph.models import CodeMap, HotSpot, Node
from smara.codegraph.query.memory_graph import (
    KIND_NO,
    KIND_WEIGHTS,
    NODE_KIND_NO,
    Floats,
    Graph,
    Ints,
)

DAMPING = 0.85
_MOST_ROUNDS = 60
_CLOSE_ENOUGH = 1e-7


class WeightedLinks(NamedTuple):
    """Weighted links between things that have places; each pair once."""

    size: int
    sources: Ints
    targets: Ints
    weights: Floats


def links_of(graph: Graph, *, is_by_file: bool = False) -> WeightedLinks:
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


def merged(size: int, sources: Ints, targets: Ints, weights: Floats) -> WeightedLinks:
    """Links with those between the same two things made one, as heavy as the mean times the root of
    their number.
    """
    if not len(sources):
        return WeightedLinks(size, sources, targets, weights=weights)
    keys, places = np.unique(sources * size + targets, return_inverse=True)
    count = np.bincount(places)
    total = np.bincount(places, weights=weights)
    return WeightedLinks(size, keys // size, keys % size, weights=total / np.sqrt(count))


def rank(links: WeightedLinks, restart: Floats | None = None) -> Floats:
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


CountTokens = Callable[[str], int]
FetchNodes = Callable[[Collection[int]], Mapping[int, Node]]

_NAMED = 10.0
"""A name in play draws so many times the attention of another."""
_IN_PLAY = 0.85
"""The share of the weight that begins at what is in play; the rest begins everywhere, so that
pillars stay visible.
"""
_KNOWN = 0.1
"""What a file in play defines weighs less than what it uses: who asks has the file before him."""
_FACTORS = {"constant": 0.3, "test": 0.05, "module": 0.2}
_PRIVATE, _SPECIAL, _SHORT, _IN_TESTS = 0.1, 0.1, 0.3, 0.1
_LONGEST_HEAD = 120
_LEAST_TOKENS_OF_A_LINE = 2
_INDENT = "  "
_WORDS = {"class": "class", "function": "def", "method": "def", "test": "def"}


def make_map(
    graph: Graph,
    names: Sequence[str],
    fetch: FetchNodes,
    count: CountTokens,
    budget: int,
    files: Collection[str] = (),
    named: Collection[str] = (),
) -> CodeMap:
    """The map for some files and names in play. ``names`` are those of the graph's nodes, by place.

    Never over the budget: what is counted is the very text that is given back.
    """
    ranks = _symbol_ranks(graph, names, frozenset(files), named=frozenset(named))
    candidates = np.flatnonzero(ranks > 0)
    order = candidates[np.lexsort((candidates, -ranks[candidates]))]
    order = order[: max(0, budget) // _LEAST_TOKENS_OF_A_LINE]
    nodes = _with_containers(graph, order, fetch)
    ordered = [int(place) for place in order if int(place) in nodes]
    text, tokens, shown = _fitting(graph, ordered, nodes, count=count, budget=budget)
    return CodeMap(
        text,
        tokens,
        budget,
        files=len({nodes[place].path for place in shown}),
        symbols=len(shown),
        total_files=len(graph.paths),
        total_symbols=int((graph.kinds != NODE_KIND_NO["file"]).sum()),
    )


def _symbol_ranks(
    graph: Graph, names: Sequence[str], files: frozenset[str], named: frozenset[str]
) -> Floats:
    """How much each definition matters here; 0 for what is never shown."""
    if not graph.size:
        return np.empty(0)
    in_files = np.array([path in files for path in graph.paths], dtype=bool)[graph.files]
    is_named = (
        np.array([name in named for name in names], dtype=bool)
        if named
        else np.zeros(graph.size, dtype=bool)
    )
    links = links_of(graph)
    drawn = np.where(is_named[links.targets], links.weights * _NAMED, links.weights)
    links = WeightedLinks(links.size, links.sources, links.targets, weights=drawn)
    found = rank(links, _restart(graph, in_files, is_named)) * _worth(graph, names, in_files)
    return np.where(is_named & (graph.kinds != NODE_KIND_NO["file"]), found * _NAMED, found)


def _restart(graph: Graph, in_files: Ints, is_named: Ints) -> Floats:
    everywhere = np.full(graph.size, 1.0 / graph.size)
    shares = [flags / flags.sum() for flags in (in_files, is_named) if flags.any()]
    if not shares:
        return everywhere
    begin: Floats = _IN_PLAY * sum(shares) / len(shares) + (1 - _IN_PLAY) * everywhere
    return begin


def _worth(graph: Graph, names: Sequence[str], in_files: Ints) -> Floats:
    """What a definition is worth by itself: private names, constants and tests are rarely what a
    reader looks for.
    """
    by_kind = np.ones(len(NODE_KIND_NO))
    by_kind[NODE_KIND_NO["file"]] = 0.0
    for kind, factor in _FACTORS.items():
        by_kind[NODE_KIND_NO[kind]] = factor  # type: ignore[index]  # kinds of the table above
    worth = by_kind[graph.kinds] * np.array([_name_worth(name) for name in names])
    worth = np.where(in_files, worth * _KNOWN, worth)
    outside = graph.file_is_test[graph.files] & ~in_files
    found: Floats = np.where(outside, worth * _IN_TESTS, worth)
    return found


def _name_worth(name: str) -> float:
    if name.startswith("__") and name.endswith("__"):
        return _SPECIAL
    if name.startswith(("_", "#")):
        return _PRIVATE
    return _SHORT if len(name) < 3 else 1.0


def _with_containers(graph: Graph, places: Ints, fetch: FetchNodes) -> dict[int, Node]:
    """The rows of some nodes and of the classes they stand in, by place."""
    wanted = {int(place) for place in places}
    for place in list(wanted):
        above = int(graph.parents[place])
        while above >= 0 and above not in wanted:
            wanted.add(above)
            above = int(graph.parents[above])
    by_no = fetch([int(graph.nos[place]) for place in wanted])
    return {place: by_no[no] for place in wanted if (no := int(graph.nos[place])) in by_no}


def _fitting(
    graph: Graph, ordered: Sequence[int], nodes: Mapping[int, Node], count: CountTokens, budget: int
) -> tuple[str, int, list[int]]:
    """The longest beginning of the ranking whose text keeps to the budget."""
    fits, too_many = 0, len(ordered) + 1
    text, tokens = "", 0
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        # Files by path, in each the chosen definitions by line, under the classes they stand in.
        places = ordered[:middle]
        by_file: dict[str, dict[int, int]] = defaultdict(dict)
        for place in places:
            above: int = place
            while above >= 0 and above in nodes and nodes[above].kind != "file":
                by_file[nodes[above].path][above] = _depth(graph, above)
                above = int(graph.parents[above])
        lines = []
        for path in sorted(by_file):
            lines.append(path)
            for place in sorted(by_file[path], key=lambda each: (nodes[each].first_line, each)):
                lines.append(_INDENT * by_file[path][place] + definition_head(nodes[place]))
        tried = "\n".join(lines)
        cost = count(tried)
        if cost <= budget:
            fits, text, tokens = middle, tried, cost
        else:
            too_many = middle
    return text, tokens, list(ordered[:fits])


def _depth(graph: Graph, place: int) -> int:
    """1 for what stands in the file itself, 2 for what stands in that."""
    depth = 1
    above = int(graph.parents[place])
    while above >= 0 and graph.kinds[above] != NODE_KIND_NO["file"]:
        depth += 1
        above = int(graph.parents[above])
    return depth


def definition_head(node: Node) -> str:
    """A definition in one line, never its body: ``def login(self, user: str) -> Token``."""
    signature = " ".join(node.signature.split()).rstrip("{:; ")
    if not signature:
        head = f"{_WORDS.get(node.kind, '')} {node.name}".strip()
    elif node.name in signature:
        head = signature
    else:
        head = f"{_WORDS.get(node.kind, '')} {node.name}{signature}".strip()
    return head if len(head) <= _LONGEST_HEAD else head[: _LONGEST_HEAD - 1] + "…"
