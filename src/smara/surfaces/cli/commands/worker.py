"""Define `smara worker` and `smara hook drain`: run background work.

One worker runs for each project of a machine; a lease in the database holds its place.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager

import click

from smara.adapters.hosts.drain import drain
from smara.adapters.hosts.hook_store import refresh
from smara.adapters.hosts.precompute import finish
from smara.core import log
from smara.environment import spool_folder
from smara.errors import BusyError, InvalidInputError, SmaraError
from smara.fleet.fleet import run_fleet
from smara.memory import Memory
from smara.observations.models import WorkerRound
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.observations import require_writing
from smara.surfaces.cli.options import Invocation, Reply, common

LEASE_SECONDS = 60.0
HISTORY_SECONDS = 30.0


@contextmanager
def hold_instance(
    memory: Memory, kind: str, stop: threading.Event, project: str | None
) -> Iterator[None]:
    """Hold the only instance on this machine, for one or all.

    Args:
        memory: The memory whose leases are used.
        kind: The kind of process, such as ``worker``.
        stop: Set when the place is lost to another process, as after a machine slept.
        project: The project, or None for all.

    Raises:
        BusyError: If another process holds the place.
    """
    machine = socket.gethostname()
    name = f"{kind}:{machine}" + ("" if project is None else f":{project}")
    lease = memory.internals.leases.acquire_from_gone(
        name, f"{machine}:{os.getpid()}", LEASE_SECONDS
    )
    if lease is None:
        holder = memory.internals.leases.find(name)
        until = f", lease until {output.moment(holder.expires_at)}" if holder else ""
        whose = "all projects of this store" if project is None else f"the project {project!r}"
        raise BusyError(
            f"A {kind} for {whose} runs on this machine already"
            f" ({holder.owner if holder else 'just started'}{until}). One is enough."
        )
    with memory.internals.leases.hold(lease, LEASE_SECONDS, on_lost=stop.set):
        yield


_LOOK_SECONDS = 0.25


@click.command("worker")
@click.option("--once", is_flag=True, help="Run one round over all threads and exit.")
@click.option(
    "--poll",
    "poll_seconds",
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    default=5.0,
    show_default=True,
    help="The pause between two rounds.",
)
@click.option(
    "--leave-after",
    "leave_after_minutes",
    type=click.FloatRange(0),
    metavar="MINUTES",
    default=10.0,
    show_default=True,
    help="Exit after so long without work; 0 never exits.",
)
@click.option(
    "--all-projects", is_flag=True, help="Serve all projects even if SMARA_PROJECT names one."
)
@click.option(
    "--fleet",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Serve all projects with N processes, through a queue (PostgreSQL).",
)
@common
def worker_command(
    call: Invocation,
    once: bool,
    poll_seconds: float,
    leave_after_minutes: float,
    all_projects: bool,
    fleet: int | None,
) -> Reply:
    """Observe idle and grown threads in the background; create vectors.

    It serves every project of the store in turn, or only the one of --project
    (or SMARA_PROJECT). One worker runs per machine, on any number of machines.
    Ctrl-C and SIGTERM stop it after the current round, a second Ctrl-C at once.
    Nothing is lost either way.

    With --fleet N, any number of machines share one queue in PostgreSQL. The
    processes run until stopped; those that end are replaced.
    """
    if all_projects and call.project is not None:
        raise InvalidInputError("Give either --all-projects or --project NAME.")
    if fleet is not None and call.project is not None:
        raise InvalidInputError("A fleet serves every project. Leave out --project, or --fleet.")
    stop = threading.Event()
    rounds: list[WorkerRound] = []

    def keep_up(done: WorkerRound) -> None:
        try:
            memory.commits.keep_up(HISTORY_SECONDS)
            if memory.code.status().state != "none":
                memory.code.index()  # only what was indexed before, and of that what changed
            memory.retention.run_due(is_patient=True)
            folder = spool_folder()
            for draft in refresh(memory, folder, drain(memory, folder), HISTORY_SECONDS):
                finish(folder, draft)
        except SmaraError as error:
            log.warning("spool.not_drained", error=error.code)  # the next round tries again
        tell(done)

    def tell(done: WorkerRound) -> None:
        rounds.append(done)
        if call.as_json:
            return
        where = f" in {done.projects:,} projects" if done.projects > 1 else ""
        parts = [
            f"{output.count(done.looked_at, 'thread')} due{where}: {done.observed:,} observed",
            f"{done.reflected:,} reflected",
            f"{done.failed:,} failed (see `smara observations failures`)" if done.failed else "",
            f"{output.count(done.embedded, 'vector')} created" if done.embedded else "",
            f"{output.count(done.learned, 'learning job')} done" if done.learned else "",
        ]
        output.sentence(f"{', '.join(filter(None, parts))}.")
        sys.stdout.flush()

    with call.memory() as memory:
        if memory.settings.keep == "text":
            require_writing(memory)
        if fleet is not None:
            turned = _until_stopped(stop, lambda: run_fleet(memory, fleet, stop, once, tell))
        else:
            memory.commits.keep_up(HISTORY_SECONDS)
            project = None if all_projects or memory.settings.project is None else memory.project
            worker = memory.internals.workers if project is None else memory.worker
            leave = leave_after_minutes * 60 if leave_after_minutes else None
            if once:
                keep_up(worker.run_once())
                turned = 1
            else:
                with hold_instance(memory, "worker", stop, project=project):
                    turned = _until_stopped(
                        stop, lambda: worker.run(stop, poll_seconds, leave, keep_up)
                    )
    yield {
        "rounds": turned,
        "lookedAt": sum(each.looked_at for each in rounds),
        "observed": sum(each.observed for each in rounds),
        "reflected": sum(each.reflected for each in rounds),
        "failed": sum(each.failed for each in rounds),
        "embedded": sum(each.embedded for each in rounds),
        "learned": sum(each.learned for each in rounds),
        "projects": max((each.projects for each in rounds), default=0),
    }
    if not once:
        noun = "round" if fleet is None else "job" if fleet == 1 else "start"
        output.say(f"Stopped after {output.count(turned, noun)}.")


def _until_stopped(stop: threading.Event, work: Callable[[], int]) -> int:
    """Run the work in a thread until it ends or a signal stops it; return its result.

    Signals are only collected: an event that a signal sets may wait for a lock which the
    interrupted thread itself holds. Outside the main thread none arrive.
    """
    signals: list[int] = []

    def note(number: int, _: object) -> None:
        signals.append(number)
        if len(signals) > 1:
            raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    awaited = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    before = [(each, signal.signal(each, note)) for each in awaited]
    result: Future[int] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # raised again in the main thread, where it is reported
            result.set_exception(error)

    try:
        threading.Thread(target=run, name="smara-worker", daemon=True).start()
        while not wait([result], _LOOK_SECONDS).done:
            if signals and not stop.is_set():
                stop.set()
                click.echo("smara: stopping after this round.", err=True)
    finally:
        for each, handler in before:
            signal.signal(each, handler)
    return result.result()


@click.command("hook")
@click.argument("agent")
@click.argument("event", required=False)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1),
    default=300.0,
    show_default=True,
    help="The time limit of a drain.",
)
@common
def hook_command(call: Invocation, agent: str, event: str | None, seconds: float) -> Reply:
    """Handle an event of an agent: `smara hook AGENT EVENT`.

    Agents call it with the event as JSON on standard input; `smara setup AGENT`
    registers it. AGENT is a name that `smara setup` takes, EVENT the agent's own
    name of the event. The exit code is always 0, and nothing is written to
    standard error.

    `smara hook drain` imports the waiting events, reads the transcripts of their
    sessions, and ends the sessions that are over.
    """
    if agent != "drain" or event is not None:
        raise InvalidInputError(
            "Give an agent and an event, or `drain`: smara hook claude Stop, smara hook drain."
        )
    with call.memory() as memory:
        done = drain(memory, spool_folder(), seconds)
        drafts = refresh(memory, spool_folder(), done, HISTORY_SECONDS)
    for draft in drafts:
        finish(spool_folder(), draft)
    if done.is_busy:
        raise BusyError(
            "Another process is importing the events. Nothing is lost; try again later."
        )
    yield {
        "taken": done.taken,
        "repeated": done.repeated,
        "unreadable": done.unreadable,
        "messages": done.messages,
        "jobsDone": done.jobs_done,
        "jobsFailed": done.jobs_failed,
    }
    output.sentence(
        f"Imported {output.count(done.taken, 'event')} ({done.repeated:,} duplicates, "
        f"{done.unreadable:,} unreadable) and {output.count(done.messages, 'message')}; "
        f"{output.count(done.jobs_done, 'job')} done, {done.jobs_failed:,} failed."
    )
