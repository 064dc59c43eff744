"""What waits for what, against the obvious way to find out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import smara
from smara.errors import DependencyCycleError
from smara.tasks.dependencies import Edge, longest_chain, topological_order, waits_for
from smara.testing import open_temporary

EDGES = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7), st.sampled_from(["blocks", "parent-child"])),
    max_size=14,
    unique=True,
)


def reaches(edges: list[Edge], start: int, wanted: int) -> bool:
    """Whether one task waits for another, however far away."""
    seen, todo = set(), [start]
    while todo:
        no = todo.pop()
        if no == wanted:
            return True
        if no not in seen:
            seen.add(no)
            todo += [
                awaited for edge in edges for waiter, awaited in [waits_for(edge)] if waiter == no
            ]
    return False


@pytest.fixture(scope="module")
def memory() -> Iterator[smara.Memory]:
    with open_temporary(durability="normal") as memory:
        yield memory


@given(edges=EDGES)
def test_a_dependency_is_refused_exactly_when_it_closes_a_circle(memory, edges):
    tasks = [memory.tasks.add(f"task {number}") for number in range(8)]
    accepted: list[Edge] = []
    for edge in edges:
        no, other, kind = edge
        waiter, awaited = waits_for(edge)
        closes = reaches(accepted, awaited, waiter)
        try:
            memory.tasks.depend(tasks[no].id, tasks[other].id, type=kind)
            assert not closes
            accepted.append(edge)
        except DependencyCycleError as error:
            assert closes
            assert_is_a_circle(
                error.path, waiter, awaited, edges=accepted, names=[task.short_id for task in tasks]
            )


def assert_is_a_circle(
    path: list[str], waiter: int, awaited: int, edges: list[Edge], names: list[str]
) -> None:
    """Every step of the path is a dependency that is there, but the first, which was asked for."""
    steps = [(names.index(one), names.index(other)) for one, other in pairwise(path)]
    assert path[0] == path[-1]
    assert steps[0] == (waiter, awaited)
    assert set(steps[1:]) <= {waits_for(edge) for edge in edges}


@given(edges=EDGES)
def test_an_order_puts_nobody_before_what_it_waits_for(edges):
    order = topological_order(edges)
    has_circle = any(reaches(edges, awaited, waiter) for waiter, awaited in map(waits_for, edges))
    assert (order is None) is has_circle
    if order is not None:
        assert all(
            order.index(awaited) < order.index(waiter) for waiter, awaited in map(waits_for, edges)
        )


@given(edges=EDGES)
def test_the_longest_chain_is_a_chain_and_none_is_longer(edges):
    if topological_order(edges) is None:
        return
    pairs = set(map(waits_for, edges))

    def longest(no: int) -> int:
        return 1 + max((longest(awaited) for waiter, awaited in pairs if waiter == no), default=0)

    chain = longest_chain(edges)
    assert len(chain) == max((longest(waiter) for waiter, _ in pairs), default=0)
    assert all((after, before) in pairs for before, after in pairwise(chain))


def test_a_chain_of_thousands_is_looked_through(memory):
    """A circle is found over any distance, and a new task costs one look."""
    from smara.tasks.models import NewTask

    size = 3_000
    made = memory.tasks.put_many(
        NewTask(
            f"step {n}", short_id=f"long-{n}", depends_on=[(f"long-{n - 1}", "blocks")] if n else []
        )
        for n in range(size)
    )
    assert (made.added, made.dependencies) == (size, size - 1)
    with pytest.raises(DependencyCycleError) as refused:
        memory.tasks.depend("long-0", f"long-{size - 1}")
    assert len(refused.value.path) == size + 1
    assert "…" in str(refused.value)
    assert len(memory.tasks.critical_path(f"long-{size - 1}")) == size
