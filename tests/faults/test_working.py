"""Many processes at one page: changes of different sections all survive; of whole pages, exactly
one wins a round.
"""

from __future__ import annotations

from multiprocessing.connection import Connection

import pytest

import smara
from smara.errors import ConflictError
from smara.working.markdown import replace_section, sections
from tests.faults.conftest import Start
from tests.faults.sizes import count
from tests.faults.workers import READY


def update_own_section(pipe: Connection, where: str, name: str, times: int) -> None:
    """Change one section again and again, beginning when told; any error is told instead of
    raised.
    """
    try:
        with smara.open(where) as memory:
            pipe.send(READY)
            pipe.recv()
            for number in range(times):
                memory.working.update(f"Section {name}", f"{name} {number}", actor=name)
        pipe.send("done")
    except Exception as error:
        pipe.send(repr(error))


def put_when_told(pipe: Connection, where: str, name: str) -> None:
    """Put a whole page that expects the version one is told, until told nothing more."""
    with smara.open(where) as memory:
        pipe.send(READY)
        while (version := pipe.recv()) is not None:
            try:
                memory.working.put(f"{name} {version}", expected_version=version, actor=name)
                pipe.send("won")
            except ConflictError as error:
                pipe.send(error.current_version)
            except Exception as error:
                pipe.send(repr(error))


def read_then_put(pipe: Connection, where: str, name: str) -> None:
    """The mutant: reads the page, changes its section by hand, and puts it without saying what it
    had read.
    """
    with smara.open(where) as memory:
        page = memory.working.get()
        pipe.send(READY)
        pipe.recv()
        memory.working.put(
            replace_section(page.content, f"Section {name}", f"{name} 0"), actor=name
        )
        pipe.send("done")


def lost(where: str, names: list[str], times: int) -> list[str]:
    """The processes whose last change is not in the page."""
    with smara.open(where) as memory:
        lines = memory.working.get().content.split("\n")
    bodies = {each.path[-1]: lines[each.line + 1] for each in sections(lines)}
    return [name for name in names if bodies.get(f"Section {name}") != f"{name} {times - 1}"]


def all_at_once(
    start: Start, where: str, function: object, names: list[str], *more: object
) -> None:
    workers = [start(function, where, name, *more) for name in names]
    assert [worker.first(1) for worker in workers] == [[READY]] * len(names)
    for worker in workers:
        worker.pipe.send("go")
    assert [worker.rest() for worker in workers] == [["done"]] * len(names)


def assert_all_sections_survive(start: Start, where: str, processes: int, times: int) -> None:
    smara.open(where).close()
    names = [f"p{number}" for number in range(processes)]
    all_at_once(start, where, update_own_section, names, times)
    assert lost(where, names, times) == []
    with smara.open(where) as memory:
        history = memory.working.history(limit=10_000)
    assert [each.version for each in history] == list(range(processes * times, 0, -1))
    for name in names:
        written = [each.version for each in history if each.actor == name]
        assert len(written) == times


def assert_one_wins_each_round(start: Start, where: str, processes: int, rounds: int) -> None:
    smara.open(where).close()
    workers = [start(put_when_told, where, f"p{number}") for number in range(processes)]
    assert [worker.first(1) for worker in workers] == [[READY]] * processes
    for version in range(rounds):
        for worker in workers:
            worker.pipe.send(version)
        told = [worker.pipe.recv() for worker in workers]
        assert sorted(told, key=str) == [version + 1] * (processes - 1) + ["won"]
    for worker in workers:
        worker.pipe.send(None)
    with smara.open(where) as memory:
        assert [each.version for each in memory.working.history(limit=10_000)] == list(
            range(rounds, 0, -1)
        )


def test_changes_of_different_sections_at_once_all_survive(store: str, start: Start) -> None:
    assert_all_sections_survive(start, store, count(3, 8), times=count(8, 100))


@pytest.mark.postgres
def test_changes_of_different_sections_at_once_all_survive_on_postgres(
    postgres_url: str, start: Start
) -> None:
    assert_all_sections_survive(start, postgres_url, count(3, 8), times=count(8, 100))


def test_of_many_that_put_the_version_they_read_exactly_one_wins(store: str, start: Start) -> None:
    assert_one_wins_each_round(start, store, count(3, 8), rounds=count(6, 100))


@pytest.mark.postgres
def test_of_many_that_put_the_version_they_read_exactly_one_wins_on_postgres(
    postgres_url: str, start: Start
) -> None:
    assert_one_wins_each_round(start, postgres_url, count(3, 8), rounds=count(6, 100))


def test_loss_is_noticed_when_a_change_is_not_one_transaction(store: str, start: Start) -> None:
    """The detector is proved by a mutant: two processes that read, then write."""
    with smara.open(store) as memory:
        memory.working.put("# Page\n")
    all_at_once(start, store, read_then_put, ["p0", "p1"])
    assert len(lost(store, ["p0", "p1"], 1)) == 1
