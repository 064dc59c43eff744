"""Find import cycles and a program's entry points.

Entry points come from manifests, from routes and from the names by which a language starts.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from smara.codegraph.language import tables
from smara.codegraph.models import EntryPoint, ImportCycle, Node
from smara.codegraph.query.memory_graph import KIND_NO, NODE_KIND_NO, Graph

Imports = dict[int, dict[int, int]]
"""For each file those it imports, with the line of the first such import."""


def cycles(graph: Graph, *, with_lazy: bool = False) -> list[ImportCycle]:
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
            found.append(ImportCycle(tuple(graph.paths[place] for place in around), lines, files))
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


_MAIN_NAMES = ("main", "Main", "__main__")
MANIFESTS = ("pyproject.toml", "package.json", "setup.cfg")
_REACH_DEPTH = 20
_MOST_JUDGED = 200
_SCRIPT = re.compile(r"^\s*[\w.-]+\s*=\s*([\w.]+):([\w.]+)\s*$", re.MULTILINE)


def declared(manifests: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """What manifests name as entries: a module's path without suffix, a name in it (or empty), and
    where that stands.

    >>> declared([("pyproject.toml", '[project.scripts]\\nsmara = "smara.cli:run"')])
    [('smara/cli', 'run', 'a command of pyproject.toml')]
    """
    found: list[tuple[str, str, str]] = []
    for path, text in manifests:
        folder = path.rpartition("/")[0]
        entries = (
            _json_entries(text) if path.endswith("package.json") else _python_entries(path, text)
        )
        found += [
            (f"{folder}/{module}".strip("/"), name, f"a command of {path}")
            for module, name in entries
        ]
    return found


def _python_entries(path: str, text: str) -> list[tuple[str, str]]:
    if path.endswith(".cfg"):
        section = text.partition("[options.entry_points]")[2].partition("\n[")[0]
        return [(module.replace(".", "/"), name) for module, name in _SCRIPT.findall(section)]
    import tomllib

    try:
        project = tomllib.loads(text).get("project", {})
    except (tomllib.TOMLDecodeError, AttributeError):
        return []
    tables = (
        [project.get("scripts"), project.get("gui-scripts")] if isinstance(project, dict) else []
    )
    values = [value for table in tables if isinstance(table, dict) for value in table.values()]
    pairs = [value.partition("[")[0].partition(":") for value in values if isinstance(value, str)]
    return [(module.strip().replace(".", "/"), name.strip()) for module, _, name in pairs]


def _json_entries(text: str) -> list[tuple[str, str]]:
    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(package, dict):
        return []
    bins = package.get("bin")
    named = [*bins.values()] if isinstance(bins, dict) else [bins]
    files = [
        each
        for each in (*named, package.get("main"), package.get("module"))
        if isinstance(each, str)
    ]
    return [(re.sub(r"\.\w+$", "", each.removeprefix("./")), "") for each in dict.fromkeys(files)]


def entry_candidates(
    graph: Graph, names: Sequence[str], manifests: Iterable[tuple[str, str]]
) -> dict[int, str]:
    """The places of likely entries, and why each is thought to be one."""
    found: dict[int, str] = {}
    for module, name, why in declared(manifests):
        for place in _declared_places(graph, names, module, name=name):
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


def _declared_places(graph: Graph, names: Sequence[str], module: str, name: str) -> list[int]:
    wanted = re.compile(rf"(?:^|.*/){re.escape(module)}(?:/__init__|/__main__|/index)?\.\w+$")
    files = [number for number, path in enumerate(graph.paths) if wanted.fullmatch(path)]
    inside = np.flatnonzero(np.isin(graph.files, files)).tolist()
    last = name.rpartition(".")[2]
    named = [place for place in inside if last and names[place] == last]
    return named or [place for place in inside if graph.kinds[place] == NODE_KIND_NO["file"]]


def reach(graph: Graph, place: int) -> int:
    """How many nodes are come to from one, and from all that lies in it."""
    start = graph.within(np.array([place]))
    return sum(len(ring) for ring in graph.rings(start, _REACH_DEPTH, is_backward=False).places)


def rank_entries(
    graph: Graph, candidates: dict[int, str], nodes: dict[int, Node]
) -> list[EntryPoint]:
    """Entries by how sure they are, then by how much is reached from them."""
    order = sorted(
        candidates, key=lambda place: (not candidates[place].startswith("a command"), place)
    )
    found = [
        EntryPoint(nodes[no], candidates[place], reach(graph, place))
        for place in order[:_MOST_JUDGED]
        if (no := int(graph.nos[place])) in nodes
    ]
    return sorted(
        found,
        key=lambda each: (not each.why.startswith("a command"), -each.reaches, each.node.label),
    )
