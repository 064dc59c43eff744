"""Rank files and symbols, find import cycles and entry points.

Ranks are PageRank over the edges, personalised for the files and names in play; the map of a tree
is its best names within a budget. Entry points come from manifests, routes and names of files.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from smara.codegraph.codec import KIND_NO, NODE_KIND_NO
from smara.codegraph.language import tables
from smara.codegraph.memory_graph import KIND_WEIGHTS, FetchNodes, Floats, Graph, Ints
from smara.codegraph.models import CodeMap, EntryPoint, HotSpot, ImportCycle, Node
from smara.core.extract import shorten
from smara.core.items import grouped
from smara.core.startup.regex import re, regex

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
    """Return who uses whom, between nodes or between their files.

    Within one file a use tells half as much.
    """
    from_files, to_files = graph.files[graph.from_places], graph.files[graph.to_places]
    weights = KIND_WEIGHTS[graph.edge_kinds] * graph.confidences
    if is_by_file:
        keep = from_files != to_files
        pairs = (from_files[keep], to_files[keep])
        return merged(len(graph.paths), *pairs, weights=weights[keep])
    weights = np.where(from_files == to_files, weights * 0.5, weights)
    # A test shows that something is used, but a hundred tests do not make it a pillar of the
    # program.
    weights = np.where(graph.file_is_test[from_files], weights * 0.3, weights)
    weights = np.where(graph.edge_kinds == KIND_NO["tests"], weights * 0.3, weights)
    return merged(graph.size, graph.from_places, graph.to_places, weights=weights)


def merged(size: int, sources: Ints, targets: Ints, weights: Floats) -> WeightedLinks:
    """Merge links of the same pair.

    As heavy as the mean times the root of their number.
    """
    if not len(sources):
        return WeightedLinks(size, sources, targets, weights=weights)
    keys, places = np.unique(sources * size + targets, return_inverse=True)
    count = np.bincount(places)
    total = np.bincount(places, weights=weights)
    return WeightedLinks(size, keys // size, keys % size, weights=total / np.sqrt(count))


def rank(links: WeightedLinks, restart: Floats | None = None) -> Floats:
    """Return each thing's share of attention (PageRank); sums to 1.

    Without ``restart`` it restarts everywhere alike.
    """
    if not links.size:
        return np.empty(0)
    begin = np.ones(links.size) if restart is None or not restart.sum() else restart.astype(float)
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
    """Return the centrality of each file among the files."""
    return rank(links_of(graph, is_by_file=True))


def hot_spots(graph: Graph, commits: Mapping[str, int], lines: Mapping[str, int]) -> list[HotSpot]:
    """Return code files by centrality and churn together, without tests.

    Both are ranks among the other files, from 0 to 1, and the score is the root of their product:
    one that everything uses but that never changes is as cool as one that changes daily and is not
    used. Without a history the centrality decides alone.
    """
    with_code = np.unique(graph.files[graph.kinds != NODE_KIND_NO["file"]])
    chosen = with_code[~graph.file_is_test[with_code]]
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
    """Return the share of the others that each is above.

    Equal ones stand alike, and nothing stands at 0.

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

_NAMED = 10.0
"""A name in play draws so many times the attention of another."""
_IN_PLAY = 0.85
"""The share of the weight that begins at what is in play; the rest begins everywhere, so that
pillars stay visible.
"""
_DEFINED_THERE = 0.1
"""What a file in play defines weighs less than what it uses: who asks has the file before him."""
_FACTORS = {"file": 0.0, "constant": 0.3, "test": 0.05, "module": 0.2}
_PRIVATE, _SHORT, _IN_TESTS = 0.1, 0.3, 0.1
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
    """Return the map for some files and names in play.

    ``names`` are those of the graph's nodes, by place.

    Never over the budget: what is counted is the very text that is given back.
    """
    ranks = _symbol_ranks(graph, names, frozenset(files), named=frozenset(named))
    candidates = np.flatnonzero(ranks > 0)
    order = candidates[np.lexsort((candidates, -ranks[candidates]))]
    order = order[: max(0, budget) // _LEAST_TOKENS_OF_A_LINE]
    # Of what is shown, the classes around it are shown too.
    places = set[int]().union(*(_around(graph, place) for place in order.tolist()))
    by_no = fetch([int(graph.nos[place]) for place in places])
    nodes = {place: by_no[no] for place in places if (no := int(graph.nos[place])) in by_no}
    ordered = [place for place in order.tolist() if place in nodes]
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
    """Return how much each definition matters here.

    0 for what is never shown.
    """
    if not graph.size:
        return np.empty(0)
    in_files = np.array([path in files for path in graph.paths], dtype=bool)[graph.files]
    is_named = np.array([name in named for name in names], dtype=bool)
    links = links_of(graph)
    drawn = np.where(is_named[links.targets], links.weights * _NAMED, links.weights)
    links = links._replace(weights=drawn)
    begin: Floats = np.full(graph.size, 1.0 / graph.size)
    if shares := [flags / flags.sum() for flags in (in_files, is_named) if flags.any()]:
        begin = _IN_PLAY * sum(shares) / len(shares) + (1 - _IN_PLAY) * begin
    # What a definition is worth by itself: private names, constants and tests are rarely what a
    # reader looks for.
    by_kind = np.ones(len(NODE_KIND_NO))
    for kind, factor in _FACTORS.items():
        by_kind[NODE_KIND_NO[kind]] = factor  # type: ignore[index]  # kinds of the table above
    worth = by_kind[graph.kinds] * np.array(list(map(_name_worth, names)))
    worth = np.where(in_files, worth * _DEFINED_THERE, worth)
    outside = graph.file_is_test[graph.files] & ~in_files
    ranks: Floats = rank(links, begin) * np.where(outside, worth * _IN_TESTS, worth)
    return np.where(is_named & (graph.kinds != NODE_KIND_NO["file"]), ranks * _NAMED, ranks)


def _name_worth(name: str) -> float:
    if name.startswith(("_", "#")):
        return _PRIVATE
    return _SHORT if len(name) < 3 else 1.0


def _fitting(
    graph: Graph, ordered: Sequence[int], nodes: Mapping[int, Node], count: CountTokens, budget: int
) -> tuple[str, int, list[int]]:
    """Return the longest beginning of the ranking whose text keeps to the budget."""
    fits, too_many = 0, len(ordered) + 1
    text, tokens = "", 0
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        # Files by path, in each the chosen definitions by line, under the classes they stand in.
        places = set[int]().union(*(_around(graph, place) for place in ordered[:middle]))
        by_line = sorted(places & nodes.keys(), key=lambda each: (nodes[each].first_line, each))
        by_file = grouped(
            (
                nodes[place].path,
                _INDENT * len(_around(graph, place)) + definition_head(nodes[place]),
            )
            for place in by_line
        )
        tried = "\n".join(line for path in sorted(by_file) for line in (path, *by_file[path]))
        cost = count(tried)
        if cost <= budget:
            fits, text, tokens = middle, tried, cost
        else:
            too_many = middle
    return text, tokens, list(ordered[:fits])


def _around(graph: Graph, place: int) -> set[int]:
    places = set()
    while place >= 0 and graph.kinds[place] != NODE_KIND_NO["file"]:
        places.add(place)
        place = int(graph.parents[place])
    return places


def definition_head(node: Node) -> str:
    """Return a definition in one line, never its body.

    ``def login(self, user: str) -> Token``.
    """
    signature = " ".join(node.signature.split()).rstrip("{:; ")
    head = f"{_WORDS.get(node.kind, '')} {node.name}{signature}".strip()
    return shorten(signature if signature and node.name in signature else head, _LONGEST_HEAD)


Imports = dict[int, dict[int, int]]
"""For each file those it imports, with the line of the first such import."""


def cycles(graph: Graph, *, with_lazy: bool = False) -> list[ImportCycle]:
    """Return every circle of imports, the smallest first.

    Each is shown as one way around.

    An import inside a function runs later and is mostly there to break a circle, so it counts
    only with ``with_lazy``.
    """
    imports: Imports = {}
    is_eager = graph.kinds[graph.from_places] == NODE_KIND_NO["file"]
    is_import = (graph.edge_kinds == KIND_NO["imports"]) & (is_eager | with_lazy)
    sources = graph.files[graph.from_places[is_import]].tolist()
    targets = graph.files[graph.to_places[is_import]].tolist()
    for source, target, line in zip(
        sources, targets, graph.edge_lines[is_import].tolist(), strict=True
    ):
        if source != target:
            first_lines = imports.setdefault(source, {})
            first_lines[target] = min(line, first_lines.get(target, line))
    found = []
    for component in components(len(graph.paths), imports):
        if len(component) > 1:
            first = min(component, key=lambda place: graph.paths[place])
            around = _way_around(first, set(component), imports)
            lines = tuple(imports[one][other] for one, other in pairwise(around))
            files = tuple(sorted(graph.paths[place] for place in component))
            found.append(ImportCycle(tuple(graph.paths[place] for place in around), lines, files))
    return sorted(found, key=lambda cycle: (len(cycle.files), cycle.path))


def components(size: int, links: Mapping[int, Mapping[int, int]]) -> list[list[int]]:
    """Return the strongly connected components (Tarjan's way, without recursion: chains of
    imports can be long).
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: dict[int, None] = {}
    found: list[list[int]] = []
    for root in range(size):
        waiting = [root] if root not in index else []
        work: list[tuple[int, Iterator[int]]] = []
        while waiting or work:
            for node in waiting:
                index[node] = low[node] = len(index)
                stack[node] = None
                work.append((node, iter(sorted(links.get(node, ())))))
            node, others = work[-1]
            waiting = []
            for other in others:
                if other not in index:
                    waiting = [other]
                    break
                if other in stack:
                    low[node] = min(low[node], index[other])
            if waiting:
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == index[node]:
                found.append([])
                while node in stack:
                    found[-1].append(stack.popitem()[0])
    return found


def _way_around(
    first: int, component: set[int], links: Mapping[int, Mapping[int, int]]
) -> Sequence[int]:
    """Return the shortest circle through a file, beginning and ending there."""
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


_MAIN_NAMES = ("main", "Main", "__main__")
MANIFESTS = ("pyproject.toml", "package.json", "setup.cfg")
_REACH_DEPTH = 20
_MOST_JUDGED = 200
_SCRIPT = regex(r"^\s*[\w.-]+\s*=\s*([\w.]+):([\w.]+)\s*$", re.MULTILINE)


def declared(manifests: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Return the entries that manifests declare.

    A module's path without suffix, a name in it (or empty), and where that stands.

    >>> declared([("pyproject.toml", '[project.scripts]\\nsmara = "smara.cli:run"')])
    [('smara/cli', 'run', 'a command of pyproject.toml')]
    """
    found: list[tuple[str, str, str]] = []
    for path, text in manifests:
        folder = path.rpartition("/")[0]
        if path.endswith(".cfg"):
            section = text.partition("[options.entry_points]")[2].partition("\n[")[0]
            scripts = _SCRIPT.findall(section)
            entries = [(module.replace(".", "/"), name) for module, name in scripts]
        else:
            entries = (_json_entries if path.endswith(".json") else _toml_entries)(text)
        found += [
            (f"{folder}/{module}".strip("/"), name, f"a command of {path}")
            for module, name in entries
        ]
    return found


def _toml_entries(text: str) -> list[tuple[str, str]]:
    import tomllib

    try:
        project = tomllib.loads(text).get("project", {})
    except (tomllib.TOMLDecodeError, AttributeError):
        return []
    project = project if isinstance(project, dict) else {}
    scripts = (project.get("scripts"), project.get("gui-scripts"))
    values = [value for table in scripts if isinstance(table, dict) for value in table.values()]
    pairs = [value.partition("[")[0].partition(":") for value in values if isinstance(value, str)]
    return [(module.strip().replace(".", "/"), name.strip()) for module, _, name in pairs]


def _json_entries(text: str) -> list[tuple[str, str]]:
    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        return []
    package = package if isinstance(package, dict) else {}
    bins = package.get("bin")
    named = [*bins.values()] if isinstance(bins, dict) else [bins]
    entries = (*named, package.get("main"), package.get("module"))
    files = dict.fromkeys(each for each in entries if isinstance(each, str))
    return [(re.sub(r"\.\w+$", "", each.removeprefix("./")), "") for each in files]


def entry_candidates(
    graph: Graph, names: Sequence[str], manifests: Iterable[tuple[str, str]]
) -> dict[int, str]:
    """Return likely entry points and their reasons."""
    found: dict[int, str] = {}
    for module, name, why in declared(manifests):
        file = re.compile(rf"(?:^|.*/){re.escape(module)}(?:/__init__|/__main__|/index)?\.\w+$")
        files = [number for number, path in enumerate(graph.paths) if file.fullmatch(path)]
        inside = np.flatnonzero(np.isin(graph.files, files)).tolist()
        last = name.rpartition(".")[2]
        named = [place for place in inside if last and names[place] == last]
        for place in named or inside:
            if named or graph.kinds[place] == NODE_KIND_NO["file"]:
                found.setdefault(place, why)
    for place in np.flatnonzero(graph.kinds == NODE_KIND_NO["route"]).tolist():
        found.setdefault(place, "a route")
    is_test, entry_files = graph.is_test, tables().entry_files
    for place, name in enumerate(names):
        if is_test[place]:
            continue
        kind = graph.kinds[place]
        if kind == NODE_KIND_NO["file"]:
            called = graph.paths[graph.files[place]].rpartition("/")[2]
            if called in entry_files:
                found.setdefault(place, entry_files[called])
        elif name in _MAIN_NAMES and kind in (NODE_KIND_NO["function"], NODE_KIND_NO["method"]):
            found.setdefault(place, "a main function")
    return found


def rank_entries(
    graph: Graph, candidates: dict[int, str], nodes: dict[int, Node]
) -> list[EntryPoint]:
    """Rank entry points by certainty, then by reach."""
    order = sorted(
        candidates, key=lambda place: (not candidates[place].startswith("a command"), place)
    )
    entries = []
    for place in order[:_MOST_JUDGED]:
        if (no := int(graph.nos[place])) in nodes:
            # What is reached from a node and everything in it.
            start = graph.within(np.array([place]))
            rings = graph.rings(start, _REACH_DEPTH, is_backward=False).places
            entries.append(EntryPoint(nodes[no], candidates[place], sum(map(len, rings))))
    return sorted(
        entries,
        key=lambda each: (not each.why.startswith("a command"), -each.reaches, each.node.label),
    )
