"""Walking the graph: rings are what a naive search finds, with the greatest weight at the least
depth.
"""

from __future__ import annotations

import numpy as np
import pytest

from smara.codegraph.impact import dress, walk
from smara.codegraph.memory_graph import KIND_WEIGHTS
from smara.codegraph.models import EDGE_KINDS
from tests.unit.codegraph.graphs import Drawn, drawn, random_graph


def naive(
    graph, start: set[int], depth: int, is_backward: bool, touched: set[int]
) -> dict[int, tuple[int, float]]:
    """Depth and weight of every node around the start, one node at a time."""
    found: dict[int, tuple[int, float]] = {}
    ring = dict.fromkeys(start, 1.0)
    for number in range(1, depth + 1):
        following: dict[int, float] = {}
        for edge in range(len(graph.from_places)):
            one, other = int(graph.from_places[edge]), int(graph.to_places[edge])
            near, far = (other, one) if is_backward else (one, other)
            if near in ring and far not in start and far not in found:
                weight = ring[near] * KIND_WEIGHTS[graph.edge_kinds[edge]] * graph.confidences[edge]
                following[far] = max(following.get(far, 0.0), float(weight))
        if number == 1:
            for place in touched:
                above = int(graph.parents[place])
                if above >= 0 and above not in start and graph.kinds[above] != 0:
                    following[above] = max(following.get(above, 0.0), 0.5)
        found |= {place: (number, weight) for place, weight in following.items()}
        ring = following
    return found


@pytest.mark.parametrize("seed", range(150))
def test_rings_are_what_a_naive_search_finds(seed):
    graph = random_graph(seed).graph
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, graph.size, size=1)
    start, is_backward = graph.within(targets), bool(seed % 2)
    touched = targets if is_backward else None
    rings = graph.rings(start, 3, is_backward=is_backward, touched=touched)
    found = {
        int(place): (depth, weight)
        for depth, ring in enumerate(rings.places, 1)
        for place, weight in zip(ring, rings.weights[ring], strict=True)
    }
    expected = naive(
        graph,
        set(start.tolist()),
        3,
        is_backward=is_backward,
        touched=set(targets.tolist()) if is_backward else set(),
    )
    assert found.keys() == expected.keys()
    assert all(found[place][0] == expected[place][0] for place in found)
    assert all(found[place][1] == pytest.approx(expected[place][1], rel=1e-4) for place in found)


@pytest.mark.parametrize("seed", range(60))
def test_every_path_is_made_of_edges_and_leads_to_what_was_asked_about(seed):
    whole = random_graph(seed)
    graph = whole.graph
    edges = set(zip(graph.from_places.tolist(), graph.to_places.tolist(), strict=True))
    target = np.array([seed % graph.size])
    start = set(graph.within(target).tolist())
    for step in walk(graph, target, depth=3, limit=1000, is_backward=True).shown:
        at = step.place
        assert len(step.path) == step.depth
        for edge, place in step.path:
            assert (at, place) in edges if edge >= 0 else int(graph.parents[place]) == at
            at = place
        assert at in start


AUTH = (
    [
        ("src/auth.py", ["Session", "Session.login", "Session.close", "verify"]),
        ("src/api.py", ["Handler", "Handler.post", "helper"]),
        ("src/cli.py", ["main"]),
        ("src/util.py", []),
        ("tests/test_auth.py", ["test_login"]),
    ],
    [
        ("src/api.py", "imports", "src/auth.py:Session", 1.0, 2),
        ("src/api.py:Handler.post", "calls", "src/auth.py:Session.login", 1.0, 20),
        ("src/cli.py:main", "calls", "src/api.py:Handler.post", 0.5, 7),
        ("src/cli.py", "imports", "src/util.py", 1.0, 1),
        ("tests/test_auth.py:test_login", "tests", "src/auth.py:Session.login", 0.9, 4),
        ("src/auth.py:Session.login", "calls", "src/auth.py:verify", 1.0, 9),
    ],
)


def told(whole: Drawn, *targets: str, **options) -> dict[str, int]:
    places = whole.places(*targets)
    steps = walk(whole.graph, places, **{"depth": 3, "limit": 100, "is_backward": True, **options})
    return {
        each.node.label: each.depth
        for each in dress(whole.graph, places, 3, steps=steps, fetch=whole.fetch).reached
    }


def test_a_change_of_a_method_reaches_callers_its_class_and_the_tests():
    whole = drawn(*AUTH)
    assert told(whole, "src/auth.py:Session.login") == {
        "src/api.py:Handler.post": 1,
        "tests/test_auth.py:test_login": 1,
        "src/auth.py:Session": 1,
        "src/cli.py:main": 2,
    }


def test_a_file_that_is_told_of_through_its_function_is_not_told_of_again():
    """``src/api.py`` imports the class, but its method calls it: that says it all."""
    whole = drawn(*AUTH)
    assert "src/api.py" not in told(whole, "src/auth.py:Session")
    assert told(whole, "src/util.py") == {"src/cli.py": 1}


def test_a_change_of_a_file_is_a_change_of_all_that_is_in_it():
    whole = drawn(*AUTH)
    assert told(whole, "src/auth.py") == {
        "src/api.py:Handler.post": 1,
        "tests/test_auth.py:test_login": 1,
        "src/cli.py:main": 2,
    }


def test_a_path_says_kinds_lines_and_confidences_up_to_the_target():
    whole = drawn(*AUTH)
    places = whole.places("src/auth.py:Session.login")
    steps = walk(whole.graph, places, depth=3, limit=10, is_backward=True)
    main = next(
        each
        for each in dress(whole.graph, places, 3, steps=steps, fetch=whole.fetch).reached
        if each.depth == 2
    )
    assert [(hop.node.label, hop.kind, hop.line, hop.confidence) for hop in main.path] == [
        ("src/api.py:Handler.post", "calls", 7, 0.5),
        ("src/auth.py:Session.login", "calls", 20, 1.0),
    ]
    assert main.weight == 0.5


def test_tests_come_last_in_their_ring():
    whole = drawn(*AUTH)
    assert (
        list(told(whole, "src/auth.py:Session.login")).index("tests/test_auth.py:test_login") == 2
    )


def test_what_a_function_defines_inside_is_a_part_of_it():
    whole = drawn(
        [("a.py", ["outer", "outer.inner", "used"]), ("b.py", ["main"])],
        [("a.py:outer.inner", "calls", "a.py:used"), ("b.py:main", "calls", "a.py:outer")],
    )
    assert told(whole, "a.py:used") == {"a.py:outer.inner": 1, "a.py:outer": 2, "b.py:main": 3}


def test_the_nearest_and_surest_come_first_and_the_rest_is_counted():
    whole = drawn(*AUTH)
    places = whole.places("src/auth.py:Session.login")
    steps = walk(whole.graph, places, depth=3, limit=2, is_backward=True)
    found = dress(whole.graph, places, 3, steps=steps, fetch=whole.fetch)
    assert [each.node.label for each in found.reached] == [
        "src/api.py:Handler.post",
        "src/auth.py:Session",
    ]
    assert (found.total, found.is_cut, found.by_depth, found.tests) == (4, True, {1: 3, 2: 1}, 1)


def test_what_code_depends_on_is_walked_forward():
    whole = drawn(*AUTH)
    assert told(whole, "src/cli.py:main", is_backward=False) == {
        "src/api.py:Handler.post": 1,
        "src/auth.py:Session.login": 2,
        "src/auth.py:verify": 3,
    }


def test_only_some_kinds_of_edges_are_followed_when_asked():
    whole = drawn(*AUTH)
    assert told(whole, "src/auth.py:Session.login", kinds=("calls",), depth=1) == {
        "src/api.py:Handler.post": 1
    }
    assert told(whole, "src/auth.py:verify", only_tests=True) == {
        "tests/test_auth.py:test_login": 2
    }


def test_edges_to_nodes_that_are_gone_are_left_out():
    files, edges = AUTH
    whole = drawn(files, edges)
    parts = [("src/api.py", ["Handler"]), ("src/auth.py", ["Session"])]
    smaller = drawn(parts, [("src/api.py:Handler", "inherits", "src/auth.py:Session")])
    assert smaller.graph.from_places.size == 1
    assert whole.graph.from_places.size == len(edges)


def test_a_graph_without_files_answers_nothing():
    empty = drawn([], [])
    assert empty.graph.size == 0
    assert (
        walk(empty.graph, empty.graph.places_of([7]), depth=3, limit=5, is_backward=True).total == 0
    )


def test_every_kind_of_edge_has_a_weight():
    assert len(KIND_WEIGHTS) == len(EDGE_KINDS)
