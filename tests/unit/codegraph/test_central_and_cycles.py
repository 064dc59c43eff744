"""What is central, and what imports itself in a circle."""

from __future__ import annotations

import random

import numpy as np
import pytest

from smara.codegraph.structure import (
    WeightedLinks,
    components,
    cycles,
    file_ranks,
    links_of,
    merged,
    rank,
)
from tests.unit.codegraph.graphs import drawn, random_graph


@pytest.mark.parametrize("seed", range(20))
def test_ranks_are_shares_of_one(seed):
    graph = random_graph(seed).graph
    assert rank(links_of(graph)).sum() == pytest.approx(1.0)
    assert (rank(links_of(graph)) >= 0).all()


@pytest.mark.parametrize("seed", range(10))
def test_ranks_are_those_of_the_matrix(seed):
    """The power iteration over links finds what solving the equations finds."""
    rng = np.random.default_rng(seed)
    links = merged(6, rng.integers(0, 6, 12), rng.integers(0, 6, 12), weights=rng.random(12) + 0.1)
    restart = rng.random(6)
    begin = restart / restart.sum()
    flow = np.zeros((6, 6))
    for source, target, weight in zip(links.sources, links.targets, links.weights, strict=True):
        flow[target, source] += weight
    for source in range(6):
        total = flow[:, source].sum()
        flow[:, source] = flow[:, source] / total if total else begin
    expected = np.linalg.solve(np.eye(6) - 0.85 * flow, 0.15 * begin)
    assert rank(links, restart) == pytest.approx(expected, abs=1e-5)


def test_what_more_files_use_is_more_central():
    files = [("a.py", ["f"]), ("b.py", ["g"]), *((f"u{number}.py", ["run"]) for number in range(5))]
    edges = [(f"u{number}.py:run", "calls", "a.py:f") for number in range(5)] + [
        ("u0.py:run", "calls", "b.py:g")
    ]
    graph = drawn(files, edges).graph
    ranks = dict(zip(graph.paths, file_ranks(graph), strict=True))
    assert max(ranks, key=ranks.__getitem__) == "a.py"


def test_many_uses_by_one_count_less_than_uses_by_many():
    files = [("a.py", ["f"]), ("b.py", ["g"]), *((f"u{number}.py", ["run"]) for number in range(4))]
    edges = [("u0.py:run", "calls", "a.py:f", 1.0, line) for line in range(1, 60)]
    edges += [(f"u{number}.py:run", "calls", "b.py:g") for number in range(1, 4)]
    graph = drawn(files, edges).graph
    ranks = dict(zip(graph.paths, file_ranks(graph), strict=True))
    assert ranks["b.py"] > ranks["a.py"]


def test_nothing_has_no_ranks():
    assert len(rank(WeightedLinks(0, np.empty(0, int), np.empty(0, int), weights=np.empty(0)))) == 0


def imports(*pairs: tuple[str, str]):
    paths = sorted({each for pair in pairs for each in pair})
    return drawn(
        [(path, ["f"]) for path in paths],
        [(one, "imports", other, 1.0, number) for number, (one, other) in enumerate(pairs, 1)],
    ).graph


def test_a_circle_of_imports_is_shown_as_a_path_with_lines():
    found = cycles(imports(("b.py", "c.py"), ("a.py", "b.py"), ("c.py", "a.py"), ("c.py", "d.py")))
    assert len(found) == 1
    assert found[0].path == ("a.py", "b.py", "c.py", "a.py")
    assert found[0].lines == (2, 1, 3)
    assert found[0].files == ("a.py", "b.py", "c.py")


def test_imports_without_a_circle_have_none():
    assert cycles(imports(("a.py", "b.py"), ("b.py", "c.py"), ("a.py", "c.py"))) == []


def test_the_shortest_way_around_is_shown_of_a_large_knot():
    found = cycles(
        imports(
            ("a.py", "b.py"), ("b.py", "c.py"), ("c.py", "a.py"), ("a.py", "d.py"), ("d.py", "a.py")
        )
    )
    assert found[0].path == ("a.py", "d.py", "a.py")
    assert len(found[0].files) == 4


def test_an_import_inside_a_function_closes_a_circle_only_when_asked():
    graph = drawn(
        [("a.py", ["f"]), ("b.py", [])],
        [("a.py", "imports", "b.py"), ("b.py", "imports", "a.py:f")],
    ).graph
    assert len(cycles(graph)) == 1
    lazy = drawn(
        [("a.py", ["f"]), ("b.py", [])],
        [("a.py:f", "imports", "b.py"), ("b.py", "imports", "a.py")],
    ).graph
    assert cycles(lazy) == []
    assert len(cycles(lazy, with_lazy=True)) == 1


@pytest.mark.parametrize("seed", range(40))
def test_components_are_what_reaches_each_other(seed):
    rng = random.Random(seed)
    size = rng.randrange(1, 12)
    links = {
        one: dict.fromkeys(rng.sample(range(size), rng.randrange(0, min(4, size))), 1)
        for one in range(size)
    }

    def reach(start: int) -> set[int]:
        seen, waiting = {start}, [start]
        while waiting:
            for other in links[waiting.pop()]:
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return seen

    reached = [reach(each) for each in range(size)]
    expected = {
        frozenset(other for other in reached[one] if one in reached[other]) for one in range(size)
    }
    assert {frozenset(each) for each in components(size, links)} == expected


def test_a_long_chain_of_imports_does_not_exhaust_the_stack():
    size = 30_000
    links = {one: {(one + 1) % size: 1} for one in range(size)}
    assert len(components(size, links)) == 1
