"""Drain the spool into messages, behavior and jobs, exactly once.

One process at a time, by a lease. Repeatable steps come first (messages have ids, behavior
has event keys); the last step writes the keys behind the lease's fence; then the files are
deleted. A killed process leaves files, and the next one continues.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from zlib import crc32

from smara.adapters.hosts.event_queue import (
    ProjectRouter,
    SpoolFile,
    quarantine,
    read,
    remove,
    sweep,
)
from smara.adapters.hosts.exit_codes import with_exits
from smara.adapters.hosts.reply import NOTICE
from smara.adapters.hosts.session import ReadableTranscripts, jobs_of, run_jobs, store_turns
from smara.adapters.replay import end_at_silences
from smara.behavior.store import by_session
from smara.core import log
from smara.core.events import HostEvent
from smara.database.leases import Lease, host_name, is_gone
from smara.errors import DatabaseError, SmaraError
from smara.memory import Memory

BATCH = 200
LEASE_SECONDS = 60.0


@dataclass(slots=True)
class DrainReport:
    """The result of a drain: events, repeats, unreadable files and jobs."""

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
    is_quick: bool = False,
) -> DrainReport:
    """Drain the spool and run due jobs within the deadline.

    Raises a database's trouble; nothing is lost by it. ``is_quick`` leaves long transcripts and
    what is not urgent for another time.
    """
    done = DrainReport()
    lease = _lease(memory, folder)
    if lease is None:
        done.is_busy = True
        return done
    until = clock() + deadline_seconds
    walls = ProjectRouter(memory)
    try:
        # Transcripts that are due go first, because new events put their next reading off, again
        # and again. A session ends afterwards: events that wait may show that it goes on.
        run_jobs(memory, done, lambda: clock() < until, is_quick=is_quick, kinds=("transcript",))
        lease = _take_all(walls, folder, done, lease=lease, has_time=lambda: clock() < until)
        for project in walls.projects():
            run_jobs(project, done, lambda: clock() < until, is_quick=is_quick)
            if not is_quick and clock() < until:
                project.behavior.run_due()
        sweep(folder, time.time())
    finally:
        memory.leases.release(lease)
    done.folders, done.loaded = walls.folders(), walls.loaded
    return done


def _name(folder: str) -> str:
    return f"spool:{host_name()}:{crc32(folder.encode('utf-8', 'replace')):08x}"


def _lease(memory: Memory, folder: str) -> Lease | None:
    """Hold the right to drain.

    Hosts that leave kill what runs in their background, so a lease of a dead process is not waited
    for.
    """
    name, owner = _name(folder), f"{host_name()}:{os.getpid()}"
    lease = memory.leases.acquire(name, owner, LEASE_SECONDS)
    holder = memory.leases.find(name) if lease is None else None
    if holder is not None and is_gone(holder.owner):
        memory.leases.release(holder)
        lease = memory.leases.acquire(name, owner, LEASE_SECONDS)
    return lease


def _take_all(
    walls: ProjectRouter, folder: str, done: DrainReport, lease: Lease, has_time: Callable[[], bool]
) -> Lease:
    tried: set[str] = set()
    transcripts = ReadableTranscripts()
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
    project: Memory,
    files: Sequence[SpoolFile],
    transcripts: ReadableTranscripts,
    done: DrainReport,
    lease: Lease,
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
        quarantine(files[0].path)
        done.unreadable += 1


def _take_in(
    project: Memory,
    files: Sequence[SpoolFile],
    transcripts: ReadableTranscripts,
    done: DrainReport,
    lease: Lease,
) -> None:
    events = transcripts.locate(with_exits([event for file in files for event in file.events]))
    # A transcript tells its events under the same keys; these must not count as its repeats.
    told = [
        replace(event, key=f"hook:{event.key}") if transcripts(event.transcript_path) else event
        for event in events
    ]
    fresh = project.intake.fresh(told)
    untold = [event for event in fresh if not transcripts(event.transcript_path)]
    stored = store_turns(project, untold)
    for file in files:  # before the events: these may show that what was said is used
        if (file.agent, file.event) == NOTICE:
            # Something was said as it had been prepared: its receipt is written now.
            notice = json.loads(file.payload)
            project.moments.deliver(
                notice["told"],
                session_id=notice["session_id"],
                source=notice["source"],
                at_ms=file.at_ms,
                is_said=notice.get("is_said", True),
            )
    if fresh:  # safe to repeat, and so done before the events count as ingested
        project.moments.heed(fresh)
    jobs = jobs_of(fresh, transcripts)
    rest: list[HostEvent] = []
    for session_id, events in by_session(untold).items():
        rest += end_at_silences(project, session_id, events)[1]
    project.behavior.observe_batch(
        rest, also=lambda session: project.intake.end(session, told, fresh, jobs, lease=lease)
    )
    for file in files:
        remove(file.path)
    done.taken += len(fresh)
    done.repeated += len(told) - len(fresh)
    done.messages += stored
