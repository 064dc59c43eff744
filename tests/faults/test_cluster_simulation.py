"""A cluster in trouble: clients behind a pooler, workers killed, PostgreSQL restarted.

Projects are skewed: a few get most of what is written. Clients write and search through PgBouncer
in transaction mode, and every message is due at once. Meanwhile workers of a fleet are killed,
connections are cut, and the server is restarted, until the workers have caught up. At the end
nothing acknowledged is lost, every message is observed exactly once, no row of a project speaks of
another, no search has shown one, and no project has waited for much more than its turn.
"""

from __future__ import annotations

import random
import re
import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

import smara
from smara.errors import SmaraError
from smara.fleet.member import Member
from smara.fleet.queue import JobQueue
from smara.testing import FakeClock
from tests import postgres
from tests.contract.observing import every_problem
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
MESSAGES = count(120, 10_000)
WORKERS = count(2, 8)
TROUBLES = count(4, 120)
"""How many times something goes wrong, evenly over what is written and what is observed."""
NEARLY_ALL = 0.97 if IS_LARGE else 0.85
"""What the workers are waited for; jobs of the killed come back after a minute or ten."""
RESTART_EVERY = count(4, 40)
LOOK_EVERY = 8
"""So many writes of a client to one search."""
MOST_TURNS = 3
"""A project's first job may wait for so many jobs of each other project that waits."""
SETTINGS = {
    "observe_after_tokens": 1_000,
    "observe_stale_minutes": 0,
    "embedder": "off",
    "token_model": "estimate",
}
WORDS = "It matters a lot for the release, and the tests have to stay green. " * 3

# What becomes of the jobs, to be read when all is over: counting in the trigger would make a queue
# of thousands slow.
_AUDIT = """
CREATE TABLE audit (no BIGSERIAL, event TEXT, job_id BIGINT, project BIGINT);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  job {fleet}.procrastinate_jobs := CASE WHEN TG_OP = 'DELETE' THEN old ELSE new END;
BEGIN
  INSERT INTO {fleet}.audit (event, job_id, project) VALUES (CASE
    WHEN TG_OP = 'INSERT' AND job.scheduled_at IS NULL THEN 'put'
    WHEN TG_OP = 'DELETE' OR job.status NOT IN ('todo', 'doing') THEN 'over'
    WHEN job.status = 'doing' THEN 'begun' ELSE 'again' END, job.id, (job.args->'project')::bigint);
  RETURN NULL;
END $$;
CREATE TRIGGER added AFTER INSERT ON procrastinate_jobs FOR EACH ROW
  WHEN (new.queue_name = 'threads') EXECUTE FUNCTION note();
CREATE TRIGGER changed AFTER UPDATE OF status ON procrastinate_jobs FOR EACH ROW
  WHEN (new.queue_name = 'threads' AND old.status <> new.status) EXECUTE FUNCTION note();
CREATE TRIGGER removed AFTER DELETE ON procrastinate_jobs FOR EACH ROW
  WHEN (old.queue_name = 'threads') EXECUTE FUNCTION note();
"""


class Wait(NamedTuple):
    """How long the first job of a project waited."""

    projects: int
    """The projects that had a waiting job when it was put, itself included."""
    jobs: int
    """The jobs that were begun before it."""


def waits(events: list[tuple[str, int, int]]) -> list[Wait]:
    """Read from (event, job, project) how long first jobs waited."""
    found: list[Wait] = []
    waiting: dict[int, set[int]] = {}
    alive: dict[int, set[int]] = {}
    firsts: dict[int, tuple[int, int]] = {}
    begun = 0
    for event, job, project in events:
        if event in ("put", "again"):
            waiting.setdefault(project, set()).add(job)
            if event == "put" and not alive.get(project):
                firsts[job] = len(waiting), begun
            alive.setdefault(project, set()).add(job)
            continue
        waiting.get(project, set()).discard(job)
        if not waiting.get(project):
            waiting.pop(project, None)
        if event == "begun":
            if job in firsts:
                projects, before = firsts.pop(job)
                found.append(Wait(projects, begun - before))
            begun += 1
        else:
            alive.get(project, set()).discard(job)
            firsts.pop(job, None)
    return found


class Clients:
    """Threads that write, each with a memory of its own, and what was acknowledged to them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.stored: list[tuple[int, str]] = []
        self.refused: defaultdict[str, int] = defaultdict(int)
        self.seen = 0
        """How many hits the searches had."""
        self.leaks: list[str] = []
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
                if place % LOOK_EVERY == 0:
                    with suppress(SmaraError):  # a search may be refused like a write
                        self.look(into, project)

    def look(self, into: Any, project: int) -> None:
        """Search a project, and see whether anything found is of another."""
        for hit in into.search("what matters for the release and the tests"):
            self.seen += 1
            self.leaks += [
                f"p{project} sees {mark}"
                for mark in re.findall(r"mark-(\d+)-", hit.content)
                if mark != str(project)
            ]

    @property
    def done(self) -> int:
        return len(self.stored) + sum(self.refused.values())


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


def _eventually(is_so: Any, seconds: float = 300, pause: float = 0.05) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(pause)


def _observed(cluster: Cluster) -> int:
    """How many messages are observed."""
    with suppress(psycopg.Error), psycopg.connect(cluster.url()) as connection:
        row = connection.execute(
            "SELECT sum(observed_seq) FROM smara.observation_cursors"
        ).fetchone()
        return int(row[0] or 0) if row else 0
    return 0  # cut, as the others are


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
    if number % RESTART_EVERY == RESTART_EVERY // 2:
        cluster.stop()
        cluster.start()
    elif number % 3 == 1:
        with psycopg.connect(cluster.url(), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
                " AND random() < 0.3"
            )
    else:
        workers.kill_one(draw)


def test_nothing_is_lost_doubled_or_mixed_up_when_everything_goes_wrong(tmp_path: Path) -> None:
    """1. Clients write while workers observe and things break, until the workers have caught up.
    2. The workers end; what is left is observed to its end. 3. What is stored is compared with what
    was acknowledged.
    """
    draw = random.Random(SEED)
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster())
        url = stack.enter_context(pooler(cluster))
        first = stack.enter_context(smara.open(url, fleet_url=cluster.url(), **SETTINGS))
        queue = JobQueue(first)
        queue.install()
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
            share = NEARLY_ALL * (number + 1) / (TROUBLES + 1)
            _reach(cluster, workers, clients, share)
            trouble(cluster, workers, draw, number)
        for each in clients.threads:
            each.join()
        _tell("written", clients)
        _eventually(lambda: _are_serving(queue, workers))
        _reach(cluster, workers, clients, NEARLY_ALL)
        # One that was still starting has no handler yet.
        codes = set(workers.stop())
        assert codes <= {0, -signal.SIGTERM}, (tmp_path / "workers.log").read_text()[-2000:]
        _tell("caught up", clients)
        later = FakeClock(int(time.time() * 1000) + 600_000)  # leases of the killed are over
        given = {**SETTINGS, "fleet_url": cluster.url()}
        memory = stack.enter_context(smara.open(url, clock=later, **given))
        _observe_the_rest(memory, JobQueue(memory))
        _check(memory, queue, clients)
        _tell("checked", clients)


def _reach(cluster: Cluster, workers: Workers, clients: Clients, share: float) -> None:
    """Wait until such a share is written and observed, whichever goes first."""

    def is_so() -> bool:
        workers.revive()
        refused = sum(clients.refused.values())
        return clients.done + refused + _observed(cluster) >= 2 * MESSAGES * share

    _eventually(is_so, 3600, pause=0.2)


def _observe_the_rest(memory: Any, queue: JobQueue) -> None:
    """Run jobs until nothing is pending; those that wait for a retry need not."""
    for _ in range(20):
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
    assert clients.seen
    assert clients.leaks == [], "no search shows a row of another project"
    assert pending == []
    assert every_problem(memory) == []
    with queue.connection() as connection:
        jobs = connection.execute(
            "SELECT id, status, args FROM procrastinate_jobs WHERE queue_name = 'threads'"
        ).fetchall()
        events = connection.execute(
            "SELECT event, job_id, project FROM audit ORDER BY no"
        ).fetchall()
    assert jobs == []
    found = waits(events)
    running = 4 * (WORKERS + 1)
    unfair = [each for each in found if each.jobs > MOST_TURNS * each.projects + 2 * running]
    assert found
    assert unfair == [], f"{unfair[:5]}: a first job waits for its turn, not for a backlog"
    longest = max(each.jobs / each.projects for each in found)
    begun = sum(event == "begun" for event, _, _ in events)
    _tell(
        f"{len(rows):,} messages of {len({row[0] for row in rows}):,} projects, {begun:,} jobs,"
        f" {clients.seen:,} hits seen; {len(found):,} first jobs, the longest wait {longest:.1f}"
        f" turns, the most projects that waited {max(each.projects for each in found):,}",
        clients,
    )


def _tell(what: str, clients: Clients) -> None:
    if IS_LARGE:
        print(  # noqa: T201 - a large run says what it did
            f"{time.process_time():,.0f} s of processor time: {what}; {len(clients.stored):,}"
            f" acknowledged, refused {dict(clients.refused)}",
            flush=True,
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


def test_a_search_that_shows_another_project_is_a_leak() -> None:
    with postgres.fresh_store() as url, smara.open(url, **SETTINGS) as memory:
        into = memory.in_project("p1")
        into.messages.add(thread_id="t", role="user", content=f"mark-1-0-0: change it. {WORDS}")
        clients = Clients(url)
        clients.look(into, 1)
        assert (clients.seen, clients.leaks) == (1, [])
        clients.look(into, 0)
    assert clients.leaks == ["p0 sees 1"]


def test_a_project_that_waits_for_the_backlog_of_another_is_noticed() -> None:
    put = [("put", job, 1) for job in range(9)]
    begun = [("begun", job, 1) for job in range(9)]
    fair = [*put, ("put", 9, 2), begun[0], ("begun", 9, 2), *begun[1:]]
    assert waits(fair) == [Wait(1, 0), Wait(2, 1)]
    assert waits([*put, ("put", 9, 2), *begun, ("begun", 9, 2)]) == [Wait(1, 0), Wait(2, 9)]
