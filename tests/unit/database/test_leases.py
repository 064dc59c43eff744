"""The fence inside the transaction: what a late worker wrote is undone; and what happens without
the fence.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from smara.database.leases import Leases
from smara.errors import LeaseLostError
from smara.testing import CountingIds, FakeClock


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def leases(database, clock):
    return Leases(database, clock, CountingIds())


def write_under(database, leases, lease, name, guarded=True):
    with database.write() as session:
        session.run("INSERT INTO projects (id, name, created_at) VALUES (?, ?, 1)", (name, name))
        if guarded:
            leases.guard(session, lease)


def names(database):
    with database.read() as session:
        return [row[0] for row in session.all("SELECT id FROM projects ORDER BY id")]


def test_a_worker_that_holds_its_lease_writes(database, leases):
    write_under(database, leases, leases.acquire("job", "w1"), name="a")
    assert names(database) == ["a"]


def test_what_a_worker_paused_past_its_expiry_wrote_is_undone(database, leases, clock):
    late = leases.acquire("job", "w1", lease_seconds=5)
    clock.advance(5)
    with pytest.raises(LeaseLostError):
        write_under(database, leases, late, name="late")
    assert names(database) == []


def test_the_late_writer_gets_through_without_the_guard(database, leases, clock):
    """The mutant: with the fence off, the test above would see the late write."""
    late = leases.acquire("job", "w1", lease_seconds=5)
    clock.advance(5)
    write_under(database, leases, late, name="late", guarded=False)
    assert names(database) == ["late"]


def test_of_many_that_ask_at_once_one_is_told_yes(database, leases):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: leases.acquire("job", f"w{number}"), range(16)))
    assert len([lease for lease in answers if lease]) == 1


def test_of_many_that_take_over_at_once_one_is_told_yes(database, leases, clock):
    leases.acquire("job", "gone", lease_seconds=1)
    clock.advance(1)
    with ThreadPoolExecutor(8) as pool:
        answers = [
            lease
            for lease in pool.map(lambda number: leases.acquire("job", f"w{number}"), range(16))
            if lease
        ]
    assert [(lease.fence, lease.taken_over_from) for lease in answers] == [(2, "gone")]
