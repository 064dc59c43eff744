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
from contextlib import contextmanager
from typing import Any, Protocol

import click

from smara.adapters.hosts.drain import DrainReport, drain
from smara.adapters.hosts.hook_store import refresh
from smara.adapters.hosts.precompute import finish
from smara.core import log
from smara.environment import spool_folder
from smara.errors import BusyError, DatabaseError, InvalidInputError, LeaseLostError, SmaraError
from smara.memory import Memory
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, common
from smara.surfaces.cli.render.observations import require_writing

LEASE_SECONDS = 60.0


@contextmanager
def hold_instance(
    memory: Memory, kind: str, stop: threading.Event, project: str | None
) -> Iterator[None]:
    """Hold the place of this kind for this machine and project, ``None`` for all; ``BusyError``
    says who has it.

    ``stop`` is set when the place went to somebody else, as it may when a machine has slept.
    """
    name = (
        f"{kind}:{socket.gethostname()}"
        if project is None
        else f"{kind}:{socket.gethostname()}:{project}"
    )
    owner = f"{socket.gethostname()}:{os.getpid()}"
    lease = memory.leases.acquire(name, owner, LEASE_SECONDS)
    if lease is None:
        holder = memory.leases.find(name)
        until = f", and is known to live until {output.moment(holder.expires_at)}" if holder else ""
        whose = "all projects of this store" if project is None else f"the project {project!r}"
        raise BusyError(
            f"A {kind} for {whose} runs on this machine already"
            f" ({holder.owner if holder else 'just started'}{until}). One is enough; a second "
            "would only wait for it."
        )
    left = threading.Event()

    def beat() -> None:
        nonlocal lease
        while lease is not None and not left.wait(LEASE_SECONDS / 3):
            try:
                lease = memory.leases.renew(lease, LEASE_SECONDS)
            except LeaseLostError:
                lease = _again(memory, name, owner)
                if lease is None:
                    stop.set()
            except DatabaseError as error:
                log.warning("lease.not_renewed", error=error.code)  # the next beat may do

    heart = threading.Thread(target=beat, name="smara-holding", daemon=True)
    heart.start()
    try:
        yield
    finally:
        left.set()
        heart.join(timeout=5)
        try:
            if lease is not None:
                memory.leases.release(lease)
        except DatabaseError as error:
            log.warning("lease.not_released", error=error.code)  # it expires by itself


def _again(memory: Memory, name: str, owner: str) -> Any:
    """The place once more, when it was lost to nobody; ``None`` when somebody else has it or nobody
    can tell.
    """
    try:
        return memory.leases.acquire(name, owner, LEASE_SECONDS)
    except DatabaseError:
        return None


_LOOK_SECONDS = 0.25


class _Round(Protocol):
    """What one round over all threads did."""

    @property
    def looked_at(self) -> int: ...
    @property
    def observed(self) -> int: ...
    @property
    def reflected(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def embedded(self) -> int: ...
    @property
    def projects(self) -> int: ...
    @property
    def learned(self) -> int: ...


@click.command("worker")
@click.option("--once", is_flag=True, help="Look at every thread once, and leave.")
@click.option(
    "--poll",
    "poll_seconds",
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    default=5.0,
    show_default=True,
    help="How long to rest between two rounds.",
)
@click.option(
    "--leave-after",
    "leave_after_minutes",
    type=click.FloatRange(0),
    metavar="MINUTES",
    default=10.0,
    show_default=True,
    help="Leave when there was nothing to do for so long; 0 stays.",
)
@click.option(
    "--all-projects", is_flag=True, help="Serve all projects, also where SMARA_PROJECT names one."
)
@common
def worker_command(
    call: Invocation,
    once: bool,
    poll_seconds: float,
    leave_after_minutes: float,
    all_projects: bool,
) -> None:
    """Observe the threads that nobody is talking in, and those that have grown; make missing
    vectors.

    It serves every project of the store, in turn; with --project (or SMARA_PROJECT) that one alone.
    One per machine; any number of machines. Ctrl-C and SIGTERM stop it when the round it is in
    has ended, a second Ctrl-C at once. Nothing is lost either way.
    """
    if all_projects and call.project is not None:
        raise InvalidInputError("Give either --all-projects or --project NAME.")
    stop = threading.Event()
    rounds: list[_Round] = []

    def tell(done: _Round) -> None:
        rounds.append(done)
        _drain(memory)
        if not call.as_json:
            output.say(_line(done))
            sys.stdout.flush()

    with call.memory() as memory:
        require_writing(memory)
        project = None if all_projects or memory.settings.project is None else memory.project
        worker = memory.workers if project is None else memory.worker
        if once:
            done = worker.run_once()
            tell(done)
            turned = 1
        else:
            leave = leave_after_minutes * 60 if leave_after_minutes else None
            with hold_instance(memory, "worker", stop, project=project):
                turned = _until_told(stop, lambda: worker.run(stop, poll_seconds, leave, tell))
        warnings = memory.warnings
    if call.as_json:
        output.envelope({"rounds": turned, **_sums(rounds)}, warnings)
        return
    output.warn(warnings)
    if not once:
        output.say(f"Left after {turned:,} rounds.")


def _drain(memory: Memory) -> None:
    """Take in what hooks left, after each round; another process may be at it, and then it is."""
    try:
        folder = spool_folder()
        for draft in refresh(memory, folder, drain(memory, folder)):
            finish(folder, draft)
    except SmaraError as error:
        log.warning(
            "spool.not_drained", error=error.code
        )  # the files stay, and the next round may do


def _until_told(stop: threading.Event, work: Callable[[], int]) -> int:
    """Run the work in a thread of its own until it ends or a signal says stop; what it returned."""
    answers: list[int] = []
    troubles: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # raised again in the main thread, where it can be reported
            troubles.append(error)
        finally:
            ended.set()

    with _heard(signal.SIGINT, signal.SIGTERM) as signals:
        threading.Thread(target=run, name="smara-worker", daemon=True).start()
        while not ended.wait(_LOOK_SECONDS):
            if signals and not stop.is_set():
                stop.set()
                click.echo("smara: stopping when this round has ended.", err=True)
    for error in troubles:
        raise error
    return answers[0]


@contextmanager
def _heard(*awaited: signal.Signals) -> Iterator[list[int]]:
    """The signals that arrived; the second one interrupts. Only a main thread can ask for them.

    They are noted and nothing else: an event that is set by a signal may wait for a lock
    which the interrupted thread itself holds.
    """
    arrived: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield arrived
        return

    def note(number: int, _: object) -> None:
        arrived.append(number)
        if len(arrived) > 1:
            raise KeyboardInterrupt

    before: list[tuple[signal.Signals, Any]] = [
        (each, signal.signal(each, note)) for each in awaited
    ]
    try:
        yield arrived
    finally:
        for each, handler in before:
            signal.signal(each, handler)


def _sums(rounds: list[_Round]) -> dict[str, int]:
    return {
        "lookedAt": sum(each.looked_at for each in rounds),
        "observed": sum(each.observed for each in rounds),
        "reflected": sum(each.reflected for each in rounds),
        "failed": sum(each.failed for each in rounds),
        "embedded": sum(each.embedded for each in rounds),
        "learned": sum(each.learned for each in rounds),
        "projects": max((each.projects for each in rounds), default=0),
    }


def _line(done: _Round) -> str:
    failed = (
        f", {done.failed:,} failed (`smara observations failures` says why)" if done.failed else ""
    )
    embedded = f", {done.embedded:,} records embedded" if done.embedded else ""
    learned = f", {done.learned:,} sessions and jobs of learning" if done.learned else ""
    where = f" in {done.projects:,} projects" if done.projects > 1 else ""
    told = (
        f"{done.looked_at:,} threads due{where}: {done.observed:,} observed, "
        f"{done.reflected:,} reflected"
    )
    return f"{told}{failed}{embedded}{learned}."


@click.command("hook")
@click.argument("agent")
@click.argument("event", required=False)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1),
    default=300.0,
    show_default=True,
    help="How long a drain may take.",
)
@common
def hook_command(call: Invocation, agent: str, event: str | None, seconds: float) -> None:
    """What agents call: `smara hook AGENT EVENT`, with the event as JSON on standard input.

    AGENT is a name that `smara setup` takes, EVENT the agent's own name of the event. It always
    leaves with 0 and writes nothing to standard error. Let `smara setup AGENT` register it.

    `smara hook drain` takes in the events that wait, reads the transcripts of their sessions,
    and ends those that are over.
    """
    if agent != "drain" or event is not None:
        raise InvalidInputError(
            "Give an agent and an event, or `drain`: smara hook claude Stop, smara hook drain."
        )
    with call.memory() as memory:
        done = drain(memory, spool_folder(), seconds)
        drafts = refresh(memory, spool_folder(), done)
        warnings = memory.warnings
    for draft in drafts:
        finish(spool_folder(), draft)
    if done.is_busy:
        raise BusyError(
            "Another process is draining the spool at the moment. Nothing is lost; try again later."
        )
    if call.as_json:
        output.envelope(_drain_json(done), warnings)
        return
    output.warn(warnings)
    output.say(
        f"{done.taken:,} events taken in, {done.repeated:,} told twice, {done.unreadable:,} "
        "unreadable;"
        f" {done.messages:,} messages, {done.jobs_done:,} jobs done, {done.jobs_failed:,} failed."
    )


def _drain_json(done: DrainReport) -> dict[str, int]:
    return {
        "taken": done.taken,
        "repeated": done.repeated,
        "unreadable": done.unreadable,
        "messages": done.messages,
        "jobsDone": done.jobs_done,
        "jobsFailed": done.jobs_failed,
    }
