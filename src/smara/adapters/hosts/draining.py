"""Draining the spool: what hooks wrote becomes messages, behavior and work to do, exactly once.

One process at a time, by a lease. For a batch of events the steps that are safe to repeat
come first (messages are known by their ids, behavior by the events' keys); the last step
writes the keys behind the lease's fence; only then the files are deleted. A process that
is killed anywhere leaves files, and the next one goes on.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from smara.adapters.hosts.exits import with_exits
from smara.adapters.hosts.jobs import run_due
from smara.adapters.hosts.prepared import NOTICE
from smara.adapters.hosts.projects import Walls
from smara.adapters.hosts.turns import Transcripts, jobs_of, store_turns
from smara.adapters.hosts.waiting import Waiting, put_aside, read, remove, sweep
from smara.core import log
from smara.database.leases import Lease, host_name, is_gone
from smara.errors import DatabaseError, SmaraError
from smara.intake.models import JobKind
from smara.memory import Memory

BATCH = 200
LEASE_SECONDS = 60.0


@dataclass(slots=True)
class Drained:
    """What became of the spool: events taken in, told twice, files put aside, jobs done and
    failed.
    """

    taken: int = 0
    repeated: int = 0
    unreadable: int = 0
    messages: int = 0
    jobs_done: int = 0
    jobs_failed: int = 0
    is_busy: bool = False
    """Whether another process was at it, so that nothing was done here."""
    folders: dict[str, tuple[str, set[str]]] = field(default_factory=dict)
    """The project of each folder that events came from, and the agents that told them."""
    loaded: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    """The instruction files that agents said they have read, by folder and agent."""


def drain(
    memory: Memory,
    folder: str,
    deadline_seconds: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
    kinds: tuple[JobKind, ...] = ("transcript", "finalize"),
) -> Drained:
    """Take in what waits, and do what is due of these kinds, within the deadline.

    Raises a database's trouble; nothing is lost by it.
    """
    done = Drained()
    lease = _lease(memory, folder)
    if lease is None:
        done.is_busy = True
        return done
    until = clock() + deadline_seconds
    walls = Walls(memory)
    try:
        # What is due by now goes first: new events put a transcript's next reading off, again and
        # again.
        run_due(memory, done, kinds, has_time=lambda: clock() < until)
        lease = _take_all(walls, folder, done, lease=lease, has_time=lambda: clock() < until)
        for project in walls.projects():
            run_due(project, done, kinds, has_time=lambda: clock() < until)
            if (
                "transcript" in kinds and clock() < until
            ):  # there is time for more than the most urgent
                project.behavior.run_due()
                project.intake.prune()
        sweep(folder, time.time())
    finally:
        memory.leases.release(lease)
    done.folders, done.loaded = walls.folders(), walls.loaded
    return done


def _name(folder: str) -> str:
    return f"spool:{host_name()}:{crc32(folder.encode('utf-8', 'replace')):08x}"


def _lease(memory: Memory, folder: str) -> Lease | None:
    """The right to drain; hosts that leave kill what runs in their background, and nobody waits for
    the dead.
    """
    name, owner = _name(folder), f"{host_name()}:{os.getpid()}"
    lease = memory.leases.acquire(name, owner, LEASE_SECONDS)
    holder = memory.leases.find(name) if lease is None else None
    if holder is not None and is_gone(holder.owner):
        memory.leases.release(holder)
        lease = memory.leases.acquire(name, owner, LEASE_SECONDS)
    return lease


def _take_all(
    walls: Walls, folder: str, done: Drained, lease: Lease, has_time: Callable[[], bool]
) -> Lease:
    tried: set[str] = set()
    transcripts = Transcripts()
    while has_time():
        batch, unreadable = read(folder, BATCH, tried)
        done.unreadable += unreadable
        if not batch:
            return lease
        tried |= {os.path.basename(each.path) for each in batch}
        for project, files in walls.divide(batch):
            _take(project, files, transcripts, done=done, lease=lease)
        lease = walls.memory.leases.renew(lease, LEASE_SECONDS)
    return lease


def _take(
    project: Memory, files: Sequence[Waiting], transcripts: Transcripts, done: Drained, lease: Lease
) -> None:
    try:
        _take_in(project, files, transcripts, done=done, lease=lease)
    except DatabaseError:
        raise  # the files stay, and are taken in when the store can be written again
    except Exception as error:  # noqa: BLE001 - one bad file must not hold up the others
        if len(files) > 1:
            for each in files:
                _take(project, [each], transcripts, done=done, lease=lease)
            return
        reason = error.code if isinstance(error, SmaraError) else type(error).__name__
        log.warning("spool.put_aside", reason=reason)
        put_aside(files[0].path)
        done.unreadable += 1


def _deliver(project: Memory, file: Waiting) -> None:
    """Something was said as it had been prepared: its receipt is written now."""
    notice = json.loads(file.payload)
    project.moments.deliver(
        notice["told"],
        session_id=notice["session_id"],
        source=notice["source"],
        at_ms=file.at_ms,
        is_said=notice.get("is_said", True),
    )


def _take_in(
    project: Memory, files: Sequence[Waiting], transcripts: Transcripts, done: Drained, lease: Lease
) -> None:
    told = transcripts.located(with_exits([event for file in files for event in file.events]))
    fresh = project.intake.fresh(told)
    stored = store_turns(project, fresh, transcripts)
    for file in files:  # before the events: these may show that what was said is used
        if (file.agent, file.event) == NOTICE:
            _deliver(project, file)
    if fresh:
        project.behavior.observe_batch(fresh)
        project.moments.heed(fresh)
    project.intake.end(told, fresh, jobs_of(fresh, transcripts), lease)
    for file in files:
        remove(file.path)
    done.taken += len(fresh)
    done.repeated += len(told) - len(fresh)
    done.messages += stored
