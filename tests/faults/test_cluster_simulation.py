"""A cluster in trouble: clients behind a pooler, workers killed, PostgreSQL restarted.

Projects are skewed: a few get most of what is written. Clients write through PgBouncer in
transaction mode. Meanwhile workers of a fleet are killed, connections are cut, and the server is
restarted. At the end nothing acknowledged is lost, every message is observed exactly once, no row
of a project speaks of another, and no project has waited for much more than its turn.
"""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

import smara
from smara.errors import SmaraError
from smara.fleet.member import Member
from smara.fleet.queue import JobQueue
from smara.testing import FakeClock
from tests import postgres
from tests.contract.observing import problems
from tests.faults.sizes import IS_LARGE, SEED, count
from tests.postgres_cluster import Cluster
from tests.surfaces.shell import command, environment

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(postgres.missing() is not None, reason=str(postgres.missing())),
    pytest.mark.skipif(postgres.pooler() is None, reason="PgBouncer is not installed"),
]
PROJECTS = count(12, 5_000)
CLIENTS = count(4, 64)
MESSAGES = count(120, 12_000)
WORKERS = count(2, 8)
TROUBLES = count(4, 60)
"""How many times something goes wrong, evenly over the run."""
MOST_TURNS = 3
"""A project's first job may wait for so many jobs of each other project that waits."""
SETTINGS = {"observe_after_tokens": 1_000, "embedder": "off", "token_model": "estimate"}
WORDS = "It matters a lot for the release, and the tests have to stay green. " * 3

_AUDIT = """
CREATE TABLE audit (no BIGSERIAL, event TEXT, job_id BIGINT, others BIGINT);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO {fleet}.audit (event, job_id, others) SELECT lower(TG_OP), new.id,
    CASE WHEN TG_OP = 'INSERT' AND new.scheduled_at IS NULL AND NOT EXISTS (
      SELECT FROM {fleet}.procrastinate_jobs j WHERE j.status IN ('todo', 'doing')
      AND j.id <> new.id AND j.queue_name = 'threads' AND j.args->'project' = new.args->'project')
    THEN (SELECT count(DISTINCT j.args->'project') FROM {fleet}.procrastinate_jobs j
      WHERE j.status = 'todo' AND j.queue_name = 'threads') END;
  RETURN NULL;
END $$;
CREATE TRIGGER put AFTER INSERT ON procrastinate_jobs FOR EACH ROW
  WHEN (new.queue_name = 'threads') EXECUTE FUNCTION note();
CREATE TRIGGER begun AFTER UPDATE OF status ON procrastinate_jobs FOR EACH ROW
  WHEN (new.queue_name = 'threads' AND old.status = 'todo' AND new.status = 'doing')
  EXECUTE FUNCTION note();
"""
_WAITED = """
SELECT p.job_id, p.others, (SELECT count(*) FROM audit b WHERE b.event = 'update'
  AND b.no > p.no AND b.no < s.no) AS between
FROM audit p JOIN LATERAL (SELECT min(no) AS no FROM audit a
  WHERE a.event = 'update' AND a.job_id = p.job_id) s ON s.no IS NOT NULL
WHERE p.event = 'insert' AND p.others IS NOT NULL
"""


class Clients:
    """Threads that write, each with a memory of its own, and what was acknowledged to them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.stored: list[tuple[int, str]] = []
        self.refused: defaultdict[str, int] = defaultdict(int)
        self._left = iter(range(MESSAGES))
        self._lock = threading.Lock()
        self.threads = [
            threading.Thread(target=self._write, args=(number,), daemon=True)
            for number in range(CLIENTS)
        ]

    def _write(self, number: int) -> None:
        draw = random.Random(f"{SEED} {number}")
        with smara.open(self._url, **SETTINGS) as memory:
            while True:
                with self._lock:
                    place = next(self._left, None)
                if place is None:
                    return
                # Every project gets something; a few get most.
                project = (
                    place
                    if place < PROJECTS
                    else min(PROJECTS - 1, int(draw.paretovariate(0.7)) - 1)
                )
                text = f"mark-{project}-{number}-{place}: change src/file{place}.py. {WORDS}"
                thread = f"t{draw.randrange(4)}"
                try:
                    into = memory.in_project(f"p{project}")
                    into.messages.add(thread_id=thread, role="user", content=text)
                except SmaraError as error:
                    self.refused[error.code if error.is_retryable else f"{error}"] += 1
                    continue
                self.stored.append((project, text))


class Workers:
    """The processes of a fleet, each of its own, so that any can be killed."""

    def __init__(self, url: str, direct: str, folder: Path) -> None:
        named = {f"SMARA_{name.upper()}": str(value) for name, value in SETTINGS.items()}
        self._environment = environment(**named, SMARA_FLEET_URL=direct)
        self._words = command("worker", "--fleet", "1", "--db", url)
        self._log = (folder / "workers.log").open("wb")
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self.running.append(
            subprocess.Popen(
                self._words,
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=self._log,
            )
        )

    def revive(self) -> None:
        """Replace those that ended by themselves, as whatever runs them would."""
        ended = [process for process in self.running if process.poll() is not None]
        for process in ended:
            self.running.remove(process)
            self.start()

    def kill_one(self, draw: random.Random) -> None:
        process = self.running.pop(draw.randrange(len(self.running)))
        process.kill()
        process.wait()
        self.start()

    def kill(self) -> None:
        """Leave none behind, however the test ends."""
        for process in self.running:
            process.kill()
            process.wait()

    def stop(self) -> list[int]:
        """Let all end in order; return their exit codes."""
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(300) for process in self.running]
        self._log.close()
        return codes


@contextmanager
def pooler(cluster: Cluster) -> Iterator[str]:
    """PgBouncer in transaction mode before a cluster; yield the URL through it."""
    process = postgres._serve_pooler(cluster._folder / "primary")
    assert process is not None
    url = postgres.pooled(cluster.url())
    try:
        _eventually(lambda: _answers(url))
        yield url
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=5, prepare_threshold=None) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.Error:
        return False


def _eventually(is_so: Any, seconds: float = 300) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def _are_serving(queue: JobQueue, workers: Workers) -> bool:
    """Whether every process serves its queues."""
    workers.revive()
    with queue.connection() as connection:
        row = connection.execute(
            "SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - interval"
            " '15 seconds'"
        ).fetchone()
    return bool(row and row[0] >= 4 * WORKERS)


def trouble(cluster: Cluster, workers: Workers, draw: random.Random, number: int) -> None:
    """Kill a worker, cut connections, or restart the server."""
    if number == TROUBLES // 2:
        cluster.stop()
        cluster.start()
    elif number % 2:
        with psycopg.connect(cluster.url(), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
                " AND random() < 0.3"
            )
    else:
        workers.kill_one(draw)


def test_nothing_is_lost_doubled_or_mixed_up_when_everything_goes_wrong(tmp_path: Path) -> None:
    """1. Clients write while workers observe and things break. 2. The workers end; what is left is
    observed to its end. 3. What is stored is compared with what was acknowledged.
    """
    draw = random.Random(SEED)
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster())
        url = stack.enter_context(pooler(cluster))
        later = FakeClock(int(time.time() * 1000) + 600_000)  # leases of the killed are over
        memory = stack.enter_context(
            smara.open(
                url, clock=later, fleet_url=cluster.url(), observe_stale_minutes=0, **SETTINGS
            )
        )
        queue = JobQueue(memory)
        with smara.open(url, fleet_url=cluster.url(), **SETTINGS) as first:
            JobQueue(first).install()
        with queue.connection() as connection:
            connection.execute(_AUDIT.format(fleet=queue.schema))
        workers = Workers(url, cluster.url(), tmp_path)
        stack.callback(workers.kill)
        for _ in range(WORKERS):
            workers.start()
        _eventually(lambda: _are_serving(queue, workers))
        clients = Clients(url)
        for each in clients.threads:
            each.start()
        for number in range(TROUBLES):
            done = MESSAGES * (number + 1) // (TROUBLES + 1)
            _eventually(
                lambda done=done: len(clients.stored) + sum(clients.refused.values()) >= done, 3600
            )
            workers.revive()
            trouble(cluster, workers, draw, number)
        for each in clients.threads:
            each.join()
        _eventually(lambda: _are_serving(queue, workers))
        # One that was still starting has no handler yet.
        codes = set(workers.stop())
        assert codes <= {0, -signal.SIGTERM}, (tmp_path / "workers.log").read_text()[-2000:]
        _observe_the_rest(memory, queue)
        _check(memory, queue, clients)


def _observe_the_rest(memory: Any, queue: JobQueue) -> None:
    """Run jobs until nothing is pending; those that wait for a retry need not."""
    for _ in range(20):
        queue.install()  # every thread counts as silent now
        queue.sweep(is_full=True, gone_after_seconds=0.0)
        with queue.connection() as connection:
            connection.execute("UPDATE procrastinate_jobs SET scheduled_at = NULL")
        if Member(memory).run(threading.Event(), is_once=True) == 0:
            return


def _check(memory: Any, queue: JobQueue, clients: Clients) -> None:
    database = memory._rooms.database
    with database.read() as session:
        rows = session.all(
            "SELECT p.id, m.raw_content FROM messages m JOIN projects p ON p.no = m.project_no"
        )
        pending = session.all(
            "SELECT t.id FROM threads t LEFT JOIN observation_cursors c ON c.thread_no = t.no"
            " WHERE t.tokens > coalesce(c.observed_tokens, 0)"
        )
        mixed = {
            table: found
            for table, columns in database.tables(session).items()
            if any(column.name == "project_no" for column in columns)
            and (found := session.all(_foreign_marks(table)))
        }
    stored = {(f"p{project}", text) for project, text in clients.stored}
    assert set(clients.refused) <= {"busy", "connection_lost"}
    assert stored <= set(rows), "what was acknowledged is there, in its project"
    assert len(rows) == len(set(rows)), "nothing is there twice"
    assert mixed == {}, "no row speaks of another project"
    assert pending == []
    projects = {project for project, _ in clients.stored}
    for project in sorted(projects):
        assert problems(memory.in_project(f"p{project}")) == []
    with queue.connection() as connection:
        jobs = connection.execute(
            "SELECT queue_name, status, args FROM procrastinate_jobs WHERE queue_name <> 'upkeep'"
        ).fetchall()
        waited = connection.execute(_WAITED).fetchall()
    assert [each for each in jobs if each[0] == "threads"] == []
    running = 4 * (WORKERS + 1)
    unfair = [each for each in waited if each[2] > MOST_TURNS * each[1] + 2 * running]
    assert waited
    assert unfair == [], f"{unfair[:5]}: a first job waits for its turn, not for a backlog"
    if IS_LARGE:
        print(  # noqa: T201 - a large run says what it did
            f"{len(rows):,} messages, {len(clients.stored):,} acknowledged, refused"
            f" {dict(clients.refused)}; {len(waited):,} first jobs, the longest wait"
            f" {max(between / max(1, others) for _, others, between in waited):.1f} turns"
        )


def _foreign_marks(table: str) -> str:
    """Rows of a table that hold the mark of another project than theirs."""
    return (
        f"SELECT t.project_no, found[1] FROM {table} t,"
        " regexp_matches(t::text, 'mark-([0-9]+)-', 'g') AS found"
        " JOIN projects p ON p.id = 'p' || found[1] WHERE p.no <> t.project_no LIMIT 5"
    )


def test_the_checker_of_foreign_marks_sees_one() -> None:
    with postgres.fresh_store() as url, smara.open(url, **SETTINGS) as memory:
        for name in ("p0", "p1"):
            memory.in_project(name).messages.add(
                thread_id="t", role="user", content="mark-1-0-0: change it"
            )
        with memory._rooms.database.read() as session:
            found = session.all(_foreign_marks("messages"))
            (first,) = session.all("SELECT no FROM projects WHERE id = 'p0'")
    assert found == [(first[0], "1")]
