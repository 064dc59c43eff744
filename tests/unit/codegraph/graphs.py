"""Small graphs for tests: files, symbols and edges written down by hand or drawn at random."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from smara.codegraph.codec import CONFIDENCE_STEPS, EDGE_DTYPE
from smara.codegraph.memory_graph import NODE_DTYPE, FilePart, Graph, build_graph
from smara.codegraph.models import EDGE_KINDS, NODE_KINDS, Node


class Drawn(NamedTuple):
    """A graph, and the rows of its nodes by number and by label."""

    graph: Graph
    nodes: dict[int, Node]

    def no(self, label: str) -> int:
        return next(no for no, node in self.nodes.items() if node.label == label)

    def places(self, *labels: str) -> np.ndarray:
        return self.graph.places_of(self.no(label) for label in labels)

    def fetch(self, nos: Collection[int]) -> dict[int, Node]:
        return {no: self.nodes[no] for no in nos if no in self.nodes}

    @property
    def names(self) -> list[str]:
        return [self.nodes[int(no)].name for no in self.graph.nos]


def drawn(
    files: Sequence[tuple[str, Sequence[str]]], edges: Iterable[tuple[str, str, str] | tuple]
) -> Drawn:
    """A graph of files with their symbols (``"Class.method"``) and edges (from, kind, to[,
    confidence[, line]]).
    """
    nodes: dict[int, Node] = {}
    numbers: dict[str, int] = {}
    rows: dict[str, list[tuple[int, int, int, int, int]]] = {}
    for path, symbols in files:
        for label in (path, *(f"{path}:{each}" for each in symbols)):
            no = 10 + 3 * len(nodes)
            node = _node(no, path, label, numbers=numbers)
            numbers[label] = no
            nodes[no] = node
            rows.setdefault(path, []).append(
                (
                    no,
                    node.parent_no or 0,
                    NODE_KINDS.index(node.kind),
                    node.first_line,
                    node.last_line,
                )
            )
    arrays: dict[str, list[tuple[int, ...]]] = {path: [] for path, _ in files}
    for one, kind, other, *more in edges:
        confidence, line = (*more, *(1.0, 1)[len(more) :])
        path = one.split(":")[0]
        arrays[path].append(
            (
                numbers[one],
                numbers[other],
                line,
                EDGE_KINDS.index(kind),
                0,
                round(confidence * CONFIDENCE_STEPS),
                0,
            )
        )
    parts = [
        FilePart(
            place,
            path,
            path.startswith("tests/"),
            nodes=np.array(rows[path], dtype=NODE_DTYPE),
            edges=np.array(arrays[path], dtype=np.dtype(EDGE_DTYPE)),
        )
        for place, (path, _) in enumerate(files, 1)
    ]
    return Drawn(build_graph(parts), nodes)


def _node(no: int, path: str, label: str, numbers: dict[str, int]) -> Node:
    if label == path:
        return Node(
            no, "file", path.rpartition("/")[2], qualname="", path=path, first_line=1, last_line=1
        )
    qualname = label.split(":")[1]
    above, _, name = qualname.rpartition(".")
    parent = numbers[f"{path}:{above}"] if above else numbers[path]
    kind = (
        "test"
        if name.startswith("test_")
        else "class"
        if name[0].isupper()
        else "method"
        if above
        else "function"
    )
    return Node(
        no,
        kind,
        name,
        qualname=qualname,
        path=path,
        first_line=no,
        last_line=no + 1,
        parent_no=parent,
        signature=f"def {name}(self)" if above else "",
    )  # type: ignore[arg-type]


def random_graph(seed: int, files: int = 6, symbols: int = 5, edges: int = 40) -> Drawn:
    """A graph without order, always the same for a seed."""
    rng = random.Random(seed)
    listed = []
    for number in range(files):
        names = [
            f"C{each}" if rng.random() < 0.3 else f"f{each}"
            for each in range(rng.randrange(symbols + 1))
        ]
        members = [
            f"{name}.m{each}"
            for name in names
            if name[0] == "C"
            for each in range(rng.randrange(3))
        ]
        folder = "tests" if rng.random() < 0.3 else "src"
        listed.append((f"{folder}/{number}.py", [*names, *members]))
    labels = [path for path, _ in listed] + [
        f"{path}:{each}" for path, names in listed for each in names
    ]
    kinds = [kind for kind in EDGE_KINDS if kind != "contains"]
    drawn_edges = [
        (
            rng.choice(labels),
            rng.choice(kinds),
            rng.choice(labels),
            rng.randrange(1, 201) / 200,
            rng.randrange(1, 99),
        )
        for _ in range(rng.randrange(edges + 1))
    ]
    return drawn(listed, drawn_edges)
