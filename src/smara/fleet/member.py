"""Run the jobs of a fleet in one process.

A job calls what `smara worker` calls, behind the same leases and fences: the queue only says whose
turn it is. A job that is run twice, or by two processes at once, does its work once.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smara.core import log
from smara.core.scope import Scope
from smara.environment import fleet_sign
from smara.errors import SmaraError
from smara.fleet.queue import GONE_AFTER_SECONDS, QUEUES, JobQueue, Queue, parse_limits
from smara.observations.models import WorkerRound
from smara.observations.retries import retry_wait_ms
from smara.observations.worker import together
from smara.telemetry.trace import span, start_tracing

if TYPE_CHECKING:
    from smara.memory import Memory
    from smara.observations.worker import Worker

_MOST_PROJECTS = 256
_UPKEEP = "upkeep"
_PAUSE_SECONDS = 1.0
_LOOK_SECONDS = 0.2
_MEND_SECONDS = 10.0
_KEEP_FAILED_HOURS = 72


class Jobs:
    """The work behind the queues; safe to use from several threads."""

    def __init__(self, memory: Memory, queue: JobQueue) -> None:
        self._rooms = memory.internals
        self._queue = queue
        self._workers: OrderedDict[int, Worker] = OrderedDict()
        self._lock = threading.Lock()
        self.done: list[WorkerRound] = []
        """What the jobs did, as far as the caller has not taken it."""
        self.has_lost = False
        """True after a job ended without saying what is left to do."""

    def run(self, queue: Queue, project: int, key: int, attempt: int) -> None:
        """Run one job; put it again if something is left to do."""
        try:
            self._run(queue, project, key, attempt)
        except SmaraError as error:  # the store is away: what is left to do is found by a sweep
            log.warning("fleet.job_lost", queue=queue, key=key, error=error.code)
            self.has_lost = True

    def _run(self, queue: Queue, project: int, key: int, attempt: int) -> None:
        worker = self._worker(project)
        if worker is None:  # erased since
            return
        with span(f"job {queue}", project=project, key=key, attempt=attempt) as work:
            try:
                done = self._do(queue, worker, key)
            except SmaraError as error:
                log.warning("fleet.job_failed", queue=queue, key=key, error=error.code)
                work.fail(error.code)
                done = WorkerRound(failed=1)
            log.event("fleet.job_done", queue=queue, project=project, key=key, failed=done.failed)
        self.done.append(done)
        is_left = queue == "threads" and worker.is_due(key)
        if done.failed or (is_left and done.is_idle):  # the model is away, or another has the lease
            wait_seconds = retry_wait_ms(attempt) / 1000
            self._queue.put(queue, project, key, attempt + 1, wait_seconds)
        elif queue != "vectors":
            self._queue.look(queue, key)
        elif done.embedded:
            self._queue.put(queue, project, key, 0, 0.0)

    def _do(self, queue: Queue, worker: Worker, key: int) -> WorkerRound:
        if queue == "threads":
            return worker.visit(key)
        return worker.embed() if queue == "vectors" else worker.learn()

    def _worker(self, project_no: int) -> Worker | None:
        """The worker of a project, those of the last few hundred kept."""
        with self._lock:
            worker = self._workers.get(project_no)
            if worker is not None:
                self._workers.move_to_end(project_no)
                return worker
        with self._rooms.database.read() as session:
            row = session.one("SELECT id FROM projects WHERE no = ?", (project_no,))
        if row is None:
            return None
        worker = self._rooms.sibling(Scope(project_no, str(row[0])), self._rooms.given).worker
        with self._lock:
            self._workers[project_no] = worker
            if len(self._workers) > _MOST_PROJECTS:
                self._workers.popitem(last=False)
        return worker


class Member:
    """One process of a fleet."""

    def __init__(self, memory: Memory) -> None:
        self._queue = JobQueue(memory)
        self._jobs = Jobs(memory, self._queue)
        self._limits = parse_limits(memory.settings.fleet_limits)
        if memory.settings.tracing:
            start_tracing()

    def run(
        self,
        stop: threading.Event,
        is_once: bool = False,
        tell: Callable[[WorkerRound], None] | None = None,
    ) -> int:
        """Run jobs until stopped, or until none is left.

        Jobs that run when it is stopped are finished first.

        Args:
            stop: Ends it.
            is_once: True to sweep, to run what is due, and to end.
            tell: Hears what was done, at most once a second.

        Returns:
            The number of jobs.
        """
        self._queue.install()
        self._queue.sweep(is_full=True)
        return asyncio.run(self._run(stop, is_once, tell or (lambda _: None)))

    async def _run(
        self, stop: threading.Event, is_once: bool, tell: Callable[[WorkerRound], None]
    ) -> int:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(sum(self._limits.values()) + 2))
        app, count = self._app(), 0
        queues = (*(each for each in QUEUES if self._limits[each]), _UPKEEP)
        async with app.open_async():
            while not stop.is_set():
                before = count
                serving = [asyncio.create_task(self._serve(app, each, is_once)) for each in queues]
                mending = asyncio.create_task(self._mend())
                try:
                    while not stop.is_set() and not all(each.done() for each in serving):
                        await asyncio.wait(serving, timeout=_LOOK_SECONDS)
                        count += self._report(tell)
                finally:
                    for each in (*serving, mending):
                        each.cancel()
                    await asyncio.gather(*serving, mending, return_exceptions=True)
                    count += self._report(tell)
                if count == before:  # what was observed has to be embedded, and so on
                    break
        return count

    async def _mend(self) -> None:
        """Show that this process is alive; sweep when a job was lost and the store is back.

        The sign is a file: whether the store answers is no question of life, and a probe that
        asked it would restart every worker while it is away.
        """
        sign = Path(fleet_sign())
        while True:
            with suppress(OSError):  # a probe that finds no sign says so
                sign.parent.mkdir(parents=True, exist_ok=True)
                sign.touch()
            await asyncio.sleep(_MEND_SECONDS)
            if self._jobs.has_lost:
                with suppress(SmaraError):
                    await asyncio.to_thread(self._queue.sweep, is_full=True)
                    self._jobs.has_lost = False

    def _report(self, tell: Callable[[WorkerRound], None]) -> int:
        done, self._jobs.done = self._jobs.done, []
        if done:
            tell(together(done))
        return len(done)

    async def _serve(self, app: Any, queue: str, is_once: bool) -> None:
        """Serve one queue; a lost connection is waited for."""
        while True:
            try:
                await app.run_worker_async(
                    queues=[queue],
                    name=queue,
                    concurrency=1 if queue == _UPKEEP else self._limits[queue],  # type: ignore[index]
                    wait=not is_once,
                    # A person may wait for a thread to be observed; the others are looked for
                    # every few seconds, which spares a connection for each.
                    listen_notify=queue == "threads" and not is_once,
                    delete_jobs="successful",
                    install_signal_handlers=False,
                    update_heartbeat_interval=GONE_AFTER_SECONDS / 3,
                    stalled_worker_timeout=GONE_AFTER_SECONDS,
                )
                if is_once:
                    return
                log.warning("fleet.worker_stopped", queue=queue)
            except Exception as error:  # the edge: a queue is served again
                log.warning("fleet.worker_failed", queue=queue, error=type(error).__name__)
                if is_once:
                    raise
            await asyncio.sleep(_PAUSE_SECONDS)

    def _app(self) -> Any:
        """The tasks of procrastinate, with their times."""
        import procrastinate

        options = f"-c search_path={self._queue.schema}"
        app = procrastinate.App(
            connector=procrastinate.PsycopgConnector(
                conninfo=self._queue.conninfo, min_size=1, max_size=4, kwargs={"options": options}
            )
        )

        def add_task(queue: Queue) -> None:
            @app.task(name=queue, queue=queue)
            def run(project: int, key: int, attempt: int) -> None:
                self._jobs.run(queue, project, key, attempt)

        for queue in QUEUES:
            add_task(queue)

        # These have no lock of the queue's: one whose process was killed would be in the way of the
        # sweep that repairs it.
        @app.periodic(cron="* * * * *")
        @app.task(name="sweep", queue=_UPKEEP, queueing_lock="sweep")
        def sweep(timestamp: int) -> None:
            self._queue.sweep(is_full=timestamp // 60 % 10 == 0)

        @app.periodic(cron="7 * * * *")
        @app.task(name="daily", queue=_UPKEEP, queueing_lock="daily")
        def put_daily(timestamp: int) -> None:
            self._queue.put_daily(timestamp // 3600 % 24)

        @app.periodic(cron="23 4 * * *")
        @app.task(name="clear", queue=_UPKEEP, queueing_lock="clear")
        async def clear(timestamp: int) -> None:
            await app.job_manager.delete_old_jobs(_KEEP_FAILED_HOURS, include_failed=True)

        return app
