"""Where a program is entered: what manifests name, routes, and names by which languages begin."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

import numpy as np

from smara.codegraph.models import EntryPoint, Node
from smara.codegraph.walking import NODE_KIND_NO, Graph

ENTRY_FILES = {
    "__main__.py": "run by python -m", "manage.py": "a script of its project",
    "wsgi.py": "a web server's door",
    "asgi.py": "a web server's door", "main.rs": "the program of its crate", "main.go": "a program",
}  # fmt: skip
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
    is_test = graph.is_test
    for place, name in enumerate(names):
        if is_test[place]:
            continue
        kind = graph.kinds[place]
        if kind == NODE_KIND_NO["file"]:
            called = graph.paths[graph.files[place]].rpartition("/")[2]
            if called in ENTRY_FILES:
                found.setdefault(place, ENTRY_FILES[called])
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


def ranked(graph: Graph, candidates: dict[int, str], nodes: dict[int, Node]) -> list[EntryPoint]:
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
