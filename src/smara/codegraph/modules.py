"""The parts of a program: what each folder is for, what matters in it, and whom it has to do with.

All of it is read from the structure, so it is there without a model and never out of date. A
model, where one is configured, says the purpose better; see ``describing``.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from smara.codegraph.central import file_ranks, node_ranks
from smara.codegraph.models import CodeModule, Node
from smara.codegraph.walking import KIND_NO, NODE_KIND_NO, Floats, Graph, Ints

FetchNodes = Callable[[Collection[int]], Mapping[int, Node]]
FirstWords = Callable[[str], str]
"""What a file says of itself in its first lines, or nothing."""

MOST_CENTRAL, MOST_NEIGHBORS, MOST_FLOWS, LONGEST_FLOW = 5, 6, 2, 6
LONGEST_PURPOSE = 200
_READMES = ("README.md", "readme.md", "README.rst", "README.txt", "README")
_DOORS = (
    "__init__.py", "mod.rs", "lib.rs", "index.ts", "index.js", "doc.go", "package-info.java",
    "main.go", "main.rs",
)  # fmt: skip
_CALLS = KIND_NO["calls"]
_CODE_KINDS = [NODE_KIND_NO[kind] for kind in ("class", "function", "method")]


@dataclass(frozen=True, slots=True)
class Parts:
    """A graph with all that the modules are read from."""

    graph: Graph
    names: Sequence[str]
    fetch: FetchNodes
    first_words: FirstWords
    paths: Sequence[str]
    """Every file of the tree, those without code included."""
    entries: Mapping[int, str]


def folder_of(path: str) -> str:
    """The module of a file: its folder, ``.`` for the root."""
    return path.rpartition("/")[0] or "."


def make_modules(parts: Parts, only: Collection[str] = ()) -> list[CodeModule]:
    """The modules of a tree, the most central first; with ``only``, just those folders."""
    graph = parts.graph
    ranks, by_file = node_ranks(graph), file_ranks(graph)
    folders: dict[str, list[int]] = defaultdict(list)
    has_code = np.zeros(len(graph.paths), dtype=bool)
    has_code[graph.files[graph.kinds != NODE_KIND_NO["file"]]] = True
    for number in np.flatnonzero(has_code).tolist():
        folders[folder_of(graph.paths[number])].append(number)
    uses = _uses(graph)
    found = [
        (float(by_file[files].sum()), _module(parts, folder, files, ranks=ranks, uses=uses))
        for folder, files in sorted(folders.items())
        if not only or folder in only
    ]
    return [module for _, module in sorted(found, key=lambda pair: (-pair[0], pair[1].path))]


def _module(
    parts: Parts, folder: str, files: list[int], ranks: Floats, uses: Mapping[str, Counter[str]]
) -> CodeModule:
    graph = parts.graph
    inside = np.flatnonzero(np.isin(graph.files, files))
    central = _central(parts, inside, ranks)
    used_by = Counter({other: counts[folder] for other, counts in uses.items() if counts[folder]})
    doors = [place for place in parts.entries if int(graph.files[place]) in set(files)]
    starts = [
        *doors,
        *(int(graph.places_of([node.no])[0]) for node in central if node.kind != "class"),
    ]
    named = parts.fetch([int(graph.nos[place]) for place in doors])
    return CodeModule(
        folder,
        _purpose(parts, folder, files, central=central),
        "structure",
        files=len(files),
        symbols=int((graph.kinds[inside] != NODE_KIND_NO["file"]).sum()),
        central=tuple(central),
        uses=tuple(_most(uses.get(folder, Counter()))),
        used_by=tuple(_most(used_by)),
        entry_points=tuple(sorted(node.label for node in named.values())),
        flows=_flows(parts, starts, ranks),
    )


def _central(parts: Parts, inside: Ints, ranks: Floats) -> list[Node]:
    """The classes and functions that are used most, private ones last."""
    graph = parts.graph
    code = inside[np.isin(graph.kinds[inside], _CODE_KINDS)]
    worth = ranks[code] * np.array(
        [0.1 if parts.names[place].startswith("_") else 1.0 for place in code.tolist()]
    )
    chosen = code[np.lexsort((code, -worth))][:MOST_CENTRAL] if len(code) else code
    nodes = parts.fetch(graph.nos[chosen].tolist())
    return [nodes[no] for no in graph.nos[chosen].tolist() if no in nodes]


def _uses(graph: Graph) -> dict[str, Counter[str]]:
    """For each folder how many edges lead to each other folder."""
    folders = [folder_of(path) for path in graph.paths]
    pairs = np.stack([graph.files[graph.from_places], graph.files[graph.to_places]], axis=1)
    found: dict[str, Counter[str]] = defaultdict(Counter)
    if len(pairs):
        distinct, counts = np.unique(pairs, axis=0, return_counts=True)
        for (one, other), count in zip(distinct.tolist(), counts.tolist(), strict=True):
            if folders[one] != folders[other]:
                found[folders[one]][folders[other]] += count
    return found


def _most(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_NEIGHBORS]


def _flows(parts: Parts, starts: Sequence[int], ranks: Floats) -> tuple[tuple[str, ...], ...]:
    """A few ways that a call takes, each step to the callee that matters most and leads on."""
    found: list[tuple[int, ...]] = []
    for start in dict.fromkeys(starts):
        path = _flow(parts.graph, start, ranks)
        if len(path) > 2 and not any(set(path) <= set(other) for other in found):
            found.append(path)
        if len(found) == MOST_FLOWS:
            break
    nodes = parts.fetch([int(parts.graph.nos[place]) for path in found for place in path])
    return tuple(
        tuple(nodes[no].label for place in path if (no := int(parts.graph.nos[place])) in nodes)
        for path in found
    )


def _flow(graph: Graph, start: int, ranks: Floats) -> tuple[int, ...]:
    path = [start]
    while len(path) < LONGEST_FLOW:
        edges = graph.edges_out(
            graph.within(np.array([path[-1]])) if len(path) == 1 else np.array([path[-1]])
        )
        called = np.unique(graph.to_places[edges[graph.edge_kinds[edges] == _CALLS]])
        called = called[~np.isin(called, path)]
        if not len(called):
            break
        leads_on = graph.out_starts[called + 1] > graph.out_starts[called]
        path.append(int(called[np.lexsort((called, -ranks[called], ~leads_on))][0]))
    return tuple(path)


def _purpose(parts: Parts, folder: str, files: Sequence[int], central: Sequence[Node]) -> str:
    """What a folder says of itself: its README, its door, its main file; else what is in it."""
    graph = parts.graph
    here = "" if folder == "." else f"{folder}/"
    known = set(parts.paths)
    own = [graph.paths[number] for number in files]
    tried = [f"{here}{name}" for name in (*_READMES, *_DOORS) if f"{here}{name}" in known]
    tried += [node.path for node in central] + own[:1]
    for path in dict.fromkeys(tried):
        if said := first_sentence(parts.first_words(path)):
            return said
    names = ", ".join(node.name for node in central[:3])
    return (
        f"{len(files)} "
        f"{'file' if len(files) == 1 else 'files'}{f' around {names}' if names else ''}."
    )


def first_sentence(text: str) -> str:
    """The first sentence of a text, on one line, of bounded length.

    >>> first_sentence("Keeps sessions. They expire.")
    'Keeps sessions.'
    """
    plain = " ".join(text.split())
    found = re.match(r"(.+?[.!?。])(?:\s|$)", plain)
    said = found[1] if found else plain
    return (
        said
        if len(said) <= LONGEST_PURPOSE
        else said[: LONGEST_PURPOSE - 1].rpartition(" ")[0] + "…"
    )


def fingerprint(graph: Graph, names: Sequence[str], folder: str) -> str:
    """Changes when the names in a folder do, not when a body does: a purpose outlives most
    edits.
    """
    files = [number for number, path in enumerate(graph.paths) if folder_of(path) == folder]
    inside = np.flatnonzero(np.isin(graph.files, files)).tolist()
    told = sorted(f"{graph.paths[graph.files[place]]}\x00{names[place]}" for place in inside)
    return hashlib.sha256("\n".join(told).encode("utf-8", "replace")).hexdigest()[:32]
