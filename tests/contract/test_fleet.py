"""A queue on PostgreSQL: one job for what a write makes due, in its transaction; run once."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from smara.config import Settings
from smara.environment import fleet_sign
from smara.errors import BusyError, ConfigError, ModelUnavailableError
from smara.fleet.cluster import examine_cluster
from smara.fleet.member import Jobs, Member
from smara.fleet.queue import JobQueue, parse_limits
from smara.testing import FakeClock, ScriptedModel
from tests.agent_events import Script
from tests.contract.conftest import Place
from tests.contract.observing import SMALL, fill, problems
from tests.postgres import pooled, pooler

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.parametrize("place", ["postgres"], indirect=True),
    pytest.mark.usefixtures("uuids"),
]
QUIET = {**SMALL, "embedder": "off"}


@pytest.fixture
def clock() -> FakeClock:
    """The time of the server, which notes by its own clock what was written when."""
    return FakeClock(int(time.time() * 1000))


@pytest.fixture(autouse=True)
def no_job_of_the_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is due by the clock on the wall is put by no member: jobs are counted here."""
    name = "procrastinate.periodic.PeriodicDeferrer.get_previous_tasks"
    monkeypatch.setattr(name, lambda *_, **__: [])


@pytest.fixture
def memory(place: Place) -> Any:
    return place.open(**QUIET)


@pytest.fixture
def queue(memory: Any) -> JobQueue:
    made = JobQueue(memory)
    made.install()
    return made


def jobs(queue: JobQueue, status: str = "todo") -> list[tuple[Any, ...]]:
    """(queue, lock, args) of the jobs, in the order in which they are run.

    Without those that come every minute.
    """
    with queue.connection() as connection:
        return connection.execute(
            "SELECT queue_name, lock, args FROM procrastinate_jobs WHERE status = %s::text"
            "::procrastinate_job_status AND queue_name <> 'upkeep' ORDER BY priority DESC, id",
            (status,),
        ).fetchall()


def timers(queue: JobQueue) -> list[Any]:
    with queue.connection() as connection:
        return connection.execute("SELECT queue, key FROM timers ORDER BY 1, 2").fetchall()


def drain(memory: Any) -> int:
    return Member(memory).run(threading.Event(), is_once=True)


def thread_no(memory: Any, thread_id: str) -> int:
    with memory._rooms.database.read() as session:
        row = session.one(
            "SELECT no FROM threads WHERE id = ? AND project_no = ?",
            (thread_id, memory._rooms.scope.project_no),
        )
    return int(row[0])


def test_thread_that_becomes_due_has_one_job_of_numbers_alone(memory: Any, queue: JobQueue) -> None:
    fill(memory, 1)
    assert jobs(queue) == []
    fill(memory, 5)
    no, project = thread_no(memory, "t"), memory._rooms.scope.project_no
    args = {"project": project, "key": no, "attempt": 0}
    assert jobs(queue) == [("threads", f"threads:{no}", args)]


def test_write_that_is_rolled_back_leaves_no_job(memory: Any, queue: JobQueue) -> None:
    fill(memory, 1)
    with pytest.raises(RuntimeError), memory._rooms.database.write() as session:
        session.run("UPDATE threads SET tokens = 100000")
        raise RuntimeError
    assert jobs(queue) == []
    with memory._rooms.database.write() as session:
        session.run("UPDATE threads SET tokens = 100000")
        session.run("UPDATE threads SET tokens = 100001")
    assert len(jobs(queue)) == 1


def test_write_behind_a_pooler_puts_its_job(place: Place, memory: Any, queue: JobQueue) -> None:
    if pooler() is None:
        pytest.skip("PgBouncer is not installed")
    import smara

    with smara.open(pooled(str(place.address)), clock=place.clock, **QUIET) as behind:
        fill(behind, 6)
        assert len(jobs(queue)) == 1
        with pytest.raises(ConfigError, match="SMARA_FLEET_URL"):
            JobQueue(behind).install()
        direct = behind.with_settings(fleet_url=str(place.address))
        assert drain(direct) >= 1
        assert direct.observations.list()


def test_queue_in_trouble_costs_no_write_and_the_sweep_repairs_it(
    memory: Any, queue: JobQueue
) -> None:
    with queue.connection() as connection:
        connection.execute("ALTER TABLE procrastinate_jobs RENAME TO elsewhere")
    fill(memory, 6)
    with queue.connection() as connection:
        connection.execute("ALTER TABLE elsewhere RENAME TO procrastinate_jobs")
    assert memory.threads.find("t").message_count == 6
    assert jobs(queue) == []
    assert queue.sweep().put == 0
    assert queue.sweep(is_full=True).put == 1
    assert queue.sweep(is_full=True).put == 0


def test_jobs_observe_the_threads_of_every_project_and_nothing_is_left(
    memory: Any, queue: JobQueue
) -> None:
    projects = [memory.in_project(name) for name in ("shop", "blog")]
    for each in projects:
        fill(each, 6, "a")
        fill(each, 6, "b")
    assert drain(memory) == 4
    for each in projects:
        assert problems(each) == []
        assert {row.thread_id for row in each.observations.list()} == {"a", "b"}
    assert jobs(queue) == jobs(queue, "failed") == []
    assert drain(memory) == 0


def test_thread_that_falls_silent_is_observed_to_its_end(
    memory: Any, queue: JobQueue, clock: FakeClock
) -> None:
    fill(memory, 2)
    assert timers(queue) == [("threads", thread_no(memory, "t"))]
    assert queue.sweep(is_full=True).put == 0
    clock.advance(3 * 3600)
    assert queue.sweep().put == 1
    drain(memory)
    assert len(memory.observations.list()) > 0
    assert timers(queue) == jobs(queue) == []


def test_project_with_one_thread_waits_for_one_job_of_a_project_with_many(
    memory: Any, queue: JobQueue
) -> None:
    many, few = memory.in_project("many"), memory.in_project("few")
    for number in range(9):
        fill(many, 3, f"m{number}")
    fill(few, 3, "f0")
    fill(few, 3, "f1")
    order = [args["project"] for _, _, args in jobs(queue)]
    first, second = many._rooms.scope.project_no, few._rooms.scope.project_no
    assert order[:4] == [first, second, first, second]
    assert order[4:] == [first] * 7


def test_next_job_of_a_long_queue_is_found_though_the_server_has_counted_nothing(
    queue: JobQueue,
) -> None:
    """A queue grows faster than the server counts: its planner takes the table for a small one."""
    with queue.connection() as connection:
        connection.execute("SELECT put_job('threads', no, no) FROM generate_series(1, 2000) no")
        fetch = "SELECT procrastinate_fetch_job_v2(ARRAY['threads'], NULL)"
        (found,) = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {fetch}").fetchone()
    pages = found[0]["Plan"]["Shared Hit Blocks"] + found[0]["Plan"]["Shared Read Blocks"]
    assert pages < 1_000, "it looks at the job whose turn it is, not at every pair of jobs"


def test_turns_go_on_where_they_were_so_that_no_project_gains_by_silence(
    memory: Any, queue: JobQueue
) -> None:
    many, few = memory.in_project("many"), memory.in_project("few")
    for number in range(6):
        fill(many, 3, f"m{number}")
    with queue.connection() as connection:  # four of the six are begun
        for _ in range(4):
            connection.execute("SELECT procrastinate_fetch_job_v2(ARRAY['threads'], NULL)")
    for number in range(6):
        fill(few, 3, f"f{number}")
    order = [args["project"] for _, _, args in jobs(queue)]
    first, second = many._rooms.scope.project_no, few._rooms.scope.project_no
    assert order[:4].count(first) == 2
    assert order[4:] == [second] * 4


def test_thread_for_which_a_turn_would_wait_goes_first(memory: Any, queue: JobQueue) -> None:
    for number in range(4):
        fill(memory, 3, f"t{number}")
    fill(memory, 15, "t3")
    assert jobs(queue)[0][1] == f"threads:{thread_no(memory, 't3')}"


def test_urgent_jobs_of_one_project_overtake_another_for_eight_turns_at_most(
    queue: JobQueue,
) -> None:
    """Its agents write on, so that its threads are urgent again as soon as they were observed."""
    begun = []
    with queue.connection() as connection:
        connection.execute("SELECT put_job('threads', 2, 100)")
        for number in range(30):
            connection.execute("SELECT put_job('threads', 1, %s, true)", (number,))
            job, project = connection.execute(
                "SELECT id, (args->'project')::bigint"
                " FROM procrastinate_fetch_job_v2(ARRAY['threads'], NULL)"
            ).fetchone()
            connection.execute("DELETE FROM procrastinate_jobs WHERE id = %s", (job,))
            begun.append(project)
    assert begun[0] == 1
    assert 2 in begun[:10], "a job whose turn it is gets it, however much is urgent elsewhere"


def test_model_that_is_away_is_asked_again_later_and_ever_more_rarely(
    place: Place, queue: JobQueue
) -> None:
    away = ModelUnavailableError("timeout", reason="timeout")
    memory = place.open(**QUIET, chat_model=ScriptedModel([away] * 9))
    fill(memory, 6)
    no = thread_no(memory, "t")
    with queue.connection() as connection:
        connection.execute("DELETE FROM procrastinate_jobs")
        Jobs(memory, queue).run("threads", memory._rooms.scope.project_no, no, attempt=2)
        ((args, seconds),) = connection.execute(
            "SELECT args, extract(epoch FROM scheduled_at - now()) FROM procrastinate_jobs"
        ).fetchall()
    assert args["attempt"] == 3
    assert 0 < seconds <= 60


def test_job_of_a_killed_worker_is_given_to_another(memory: Any, queue: JobQueue) -> None:
    fill(memory, 6)
    with queue.connection() as connection:
        connection.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 hour')"
        )
        connection.execute(
            "SELECT procrastinate_fetch_job_v2(ARRAY['threads'],"
            " (SELECT max(id) FROM procrastinate_workers))"
        )
    assert jobs(queue) == []
    assert queue.sweep().retried == 1
    assert len(jobs(queue)) == 1
    assert queue.workers() == (0, 0)
    drain(memory)
    assert len(memory.observations.list()) > 0


def test_stalled_job_gives_way_to_a_newer_one_of_the_same_thread(
    memory: Any, queue: JobQueue
) -> None:
    fill(memory, 6)
    with queue.connection() as connection:
        connection.execute("SELECT procrastinate_fetch_job_v2(ARRAY['threads'], NULL)")
    fill(memory, 6)
    assert len(jobs(queue)) == len(jobs(queue, "doing")) == 1
    assert queue.sweep().retried == 1
    assert (len(jobs(queue)), jobs(queue, "doing")) == (1, [])


def test_vectors_and_sessions_have_jobs_of_their_project(place: Place, queue: JobQueue) -> None:
    memory = place.open(**SMALL)
    JobQueue(memory).install()  # with an embedder now
    fill(memory, 2)
    project = memory._rooms.scope.project_no
    assert [job[:2] for job in jobs(queue)] == [("vectors", f"vectors:{project}")]
    drain(memory)
    assert memory.embeddings.status().spaces[0].waiting == 0
    script = Script("s1", place.clock.now_ms()).prompt("hello")
    memory.behavior.observe_batch(script.events)
    assert ("learning", project) in timers(queue)
    memory.behavior.observe_batch(script.end().events)
    assert [job[:2] for job in jobs(queue)] == [("learning", f"learning:{project}")]
    drain(memory)
    assert jobs(queue) == []


def test_every_project_is_learned_from_once_a_day(memory: Any, queue: JobQueue) -> None:
    for number in range(5):
        memory.in_project(f"p{number}")
    assert sum(queue.put_daily(hour) for hour in range(24)) == 6
    assert drain(memory) == 6


def test_process_of_a_fleet_shows_that_it_is_alive(memory: Any, queue: JobQueue) -> None:
    sign = Path(fleet_sign())
    sign.parent.mkdir(parents=True, exist_ok=True)
    sign.touch()
    os.utime(sign, (0, 0))
    drain(memory)
    assert sign.stat().st_mtime > 0


def test_jobs_of_an_erased_project_end(place: Place, memory: Any, queue: JobQueue) -> None:
    fill(memory, 6)
    memory.privacy.erase(is_project=True)
    assert len(jobs(queue)) == 1
    drain(place.open(**QUIET))
    assert jobs(queue) == jobs(queue, "failed") == []


def test_queue_is_not_in_copies_and_dropping_it_stops_nothing(memory: Any, queue: JobQueue) -> None:
    fill(memory, 6)
    with memory._rooms.database.read() as session:
        tables = memory._rooms.database.tables(session)
    assert not [name for name in tables if "procrastinate" in name or name in ("timers", "rules")]
    with queue.connection() as connection:
        connection.execute(f"DROP SCHEMA {queue.schema} CASCADE")
    fill(memory, 6)
    assert memory.threads.find("t").message_count == 12
    queue.install()
    assert queue.sweep(is_full=True).put == 1


def test_process_that_keeps_the_lock_of_the_queue_delays_others_no_longer_than_set(
    place: Place, memory: Any, queue: JobQueue
) -> None:
    hurried = JobQueue(place.open(**QUIET, busy_timeout_seconds=0.2))
    with queue.connection() as other, other.transaction():
        other.execute("SELECT pg_advisory_xact_lock(1397571923, hashtext(%s))", (queue.store,))
        with pytest.raises(BusyError, match=r"0\.2 seconds \(busy_timeout_seconds\)"):
            hurried.install()
    hurried.install()


def test_one_sweeps_at_a_time(memory: Any, queue: JobQueue, clock: FakeClock) -> None:
    fill(memory, 2)
    clock.advance(3 * 3600)
    with queue.connection() as other, other.transaction():
        other.execute("SELECT pg_advisory_xact_lock(1397571923, hashtext(%s))", (queue.schema,))
        assert queue.sweep().put == 0
    assert queue.sweep().put == 1


def test_the_doctor_tells_of_servers_partitions_and_the_queue(
    place: Place, memory: Any, queue: JobQueue
) -> None:
    def told() -> dict[str, tuple[str, str]]:
        found = examine_cluster(Settings(db=str(place.address)))
        return {each.check: (each.level, each.text) for each in found}

    healthy = told()
    assert {level for level, _ in healthy.values()} == {"ok"}
    assert healthy["pooler"][1] == "The store is reached directly."
    assert "message_index 16 parts" in healthy["partitions"][1]
    fill(memory, 6)
    assert told()["workers"] == ("problem", "No worker is alive, and 1 jobs wait.")
    if pooler() is not None:  # where only servers run, nothing asks for the URL of workers
        behind = examine_cluster(Settings(db=pooled(str(place.address))))
        assert [(each.level, each.text) for each in behind if each.check == "pooler"] == [
            ("ok", "The store is reached through a pooler.")
        ]
        assert "SMARA_FLEET_URL" in "".join(e.advice for e in behind if e.check == "workers")
    with queue.connection() as connection:
        connection.execute("SELECT procrastinate_fetch_job_v2(ARRAY['threads'], NULL)")
    assert "1 belong to workers that are gone" in told()["queue threads"][1]
    with queue.connection() as connection:
        connection.execute("UPDATE procrastinate_jobs SET status = 'failed'")
        connection.execute(
            f"UPDATE pg_index SET indisvalid = false"
            f" WHERE indexrelid = '{queue.store}.threads_by_update'::regclass"
        )
    assert told()["queue threads"][0] == "warning"
    assert told()["indexes"][0] == "problem"
    assert examine_cluster(Settings(db="/nowhere/smara.db")) == []


def test_limits_of_queues_are_read_and_checked() -> None:
    assert parse_limits("") == {"threads": 4, "learning": 1, "vectors": 1}
    assert parse_limits("threads = 16; vectors=0")["vectors"] == 0
    for wrong in ("thread=1", "threads", "threads=many", "threads=65"):
        with pytest.raises(ConfigError):
            parse_limits(wrong)


def test_lease_of_another_worker_is_waited_for(memory: Any, queue: JobQueue) -> None:
    fill(memory, 6)
    no, project = thread_no(memory, "t"), memory._rooms.scope.project_no
    held = memory._rooms.leases.acquire(f"observations:{project}:thread:t", "gone:1", 600)
    assert held is not None
    with queue.connection() as connection:
        connection.execute("DELETE FROM procrastinate_jobs")
    Jobs(memory, queue).run("threads", project, no, attempt=0)
    assert memory.observations.list() == []
    assert [args["attempt"] for _, _, args in jobs(queue)] == [1]


def test_job_whose_store_is_away_is_no_failure_and_is_put_again(
    place: Place, memory: Any, queue: JobQueue
) -> None:
    fill(memory, 6)
    no, project = thread_no(memory, "t"), memory._rooms.scope.project_no
    other = place.open(**QUIET)
    work = Jobs(other, JobQueue(other))
    other.close()
    work.run("threads", project, no, attempt=0)
    assert work.has_lost
    member = Member(memory)
    member._jobs.has_lost = True
    with queue.connection() as connection:
        connection.execute("DELETE FROM procrastinate_jobs")
    assert member.run(threading.Event(), is_once=True) == 1


def test_job_that_a_living_worker_has_lost_track_of_is_given_to_another(
    memory: Any, queue: JobQueue
) -> None:
    fill(memory, 6)
    with queue.connection() as connection:
        connection.execute("INSERT INTO procrastinate_workers DEFAULT VALUES")
        connection.execute(
            "SELECT procrastinate_fetch_job_v2(ARRAY['threads'],"
            " (SELECT max(id) FROM procrastinate_workers))"
        )
        assert queue.sweep().retried == 0
        connection.execute("UPDATE procrastinate_events SET at = at - interval '11 minutes'")
    assert queue.sweep().retried == 1
    assert len(jobs(queue)) == 1
