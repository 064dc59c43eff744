"""Work in the background, on both databases: seen by all, told by the feed, lost with a process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from smara.database.leases import host_name
from smara.jobs.jobs import LOST_MS
from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE


def kinds(memory, after):
    return [event.kind for event in memory.feed.list(after)]


def test_a_job_is_seen_with_its_progress_and_told_by_the_feed(memory, clock):
    start = memory.feed.newest()
    with memory.jobs.run("import") as job, job.bar("1/2 claude") as progress:
        clock.advance(2)
        progress(3, 10)
        [seen] = memory.jobs.list()
        assert (seen.state, seen.what, seen.done, seen.total) == ("running", "1/2 claude", 3, 10)
        assert kinds(memory, start) == ["job.running"]
        middle = memory.feed.newest()
        job.facts["stored"] = 7
    [seen] = memory.jobs.list()
    assert (seen.state, dict(seen.facts)) == ("done", {"stored": 7})
    assert kinds(memory, middle) == ["job.done"]


def test_one_job_of_a_kind_runs_at_a_time(memory):
    with memory.jobs.run("import") as first, memory.jobs.run("import") as second:
        assert first is not None
        assert second is None
    with memory.jobs.run("import") as third:
        assert third is not None


def test_a_job_that_fails_says_why(memory):
    with pytest.raises(KeyError), memory.jobs.run("import"):
        raise KeyError("x")
    [seen] = memory.jobs.list()
    assert (seen.state, seen.error) == ("failed", "KeyError")
    assert memory.jobs.running("import") is None


def test_a_job_whose_process_died_makes_room(memory, clock):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with memory.jobs.run("import") as job:
        for owner in (f"{host_name()}:{dead.pid}", "another-machine:1"):
            with memory.internals.database.write() as session:
                session.run("UPDATE jobs SET owner = ?, state = 'running'", (owner,))
            if owner.startswith("another"):
                assert memory.jobs.running("import") is not None
                clock.advance(LOST_MS / 1_000)
            assert memory.jobs.running("import") is None
            assert "start it again" in memory.jobs.list()[0].error
        assert job is not None


def test_a_round_of_the_worker_is_recorded_if_it_did_something(memory, say, clock):
    memory.worker.run_once()
    assert memory.jobs.list() == []
    say("We use argon2 for hashes, never bcrypt.")
    start = memory.feed.newest()
    clock.advance(10 * 3_600)
    memory.worker.run_once()
    [seen] = memory.jobs.list()
    assert (seen.kind, seen.facts["observed"]) == ("worker", 1)
    assert "job.done" in kinds(memory, start)
