"""Drain the spool into messages, behavior and jobs, exactly once.

A spool file is facts and a payload; an invalid one is quarantined. Each file belongs to the
project its hook named, or to the repository it happened in. One process drains at a time, by
a lease. Repeatable steps come first (messages have ids, behavior has event keys); the last
step writes the keys behind the lease's fence; then the files are deleted. A killed process
leaves files, and the next one continues.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from zlib import crc32

from smara.adapters.hosts import brief
from smara.adapters.hosts.exit_codes import with_exits
from smara.adapters.hosts.normalize import events_of
from smara.adapters.hosts.redact import safe
from smara.adapters.hosts.session import (
    DrainReport,
    ReadableTranscripts,
    jobs_of,
    run_jobs,
    store_turns,
)
from smara.adapters.hosts.session_log import MARKS, NOTICE
from smara.adapters.hosts.spool import ASIDE, FORMAT, MOST_BYTES, names
from smara.adapters.importer import project_of
from smara.adapters.replay import end_at_silences
from smara.behavior.store import by_session
from smara.core import log
from smara.core.events import HostEvent
from smara.core.files import is_ours, make_private, open_regular
from smara.core.startup.record import dataclass, replace
from smara.database.leases import Lease, host_name
from smara.decisions.decisions import IDLE_SECONDS
from smara.errors import DatabaseError, SmaraError
from smara.memory import Memory

BATCH = 200
LEASE_SECONDS = 60.0
_MOST_ASIDE = 200


@dataclass(frozen=True, slots=True)
class SpoolFile:
    """One file of the spool, and its events."""

    path: str
    agent: str
    event: str
    at_ms: int
    project: str
    cwd: str
    events: tuple[HostEvent, ...]
    payload: bytes
    """What the host sent, without secrets."""


def lease_name(folder: str) -> str:
    """Return the name of the lease to drain a spool."""
    return f"spool:{host_name()}:{crc32(folder.encode('utf-8', 'replace')):08x}"


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
    if os.path.isdir(folder):
        with suppress(OSError):
            make_private(folder)
    name, owner = lease_name(folder), f"{host_name()}:{os.getpid()}"
    lease = memory.internals.leases.acquire_from_gone(name, owner, LEASE_SECONDS)
    if lease is None:
        done.is_busy = True
        return done
    until = clock() + deadline_seconds
    projects = {memory.project: memory}
    transcripts = ReadableTranscripts()
    tried: set[str] = set()
    try:
        # Transcripts that are due go first, because new events put their next reading off, again
        # and again. A session ends afterwards: events that wait may show that it goes on.
        run_jobs(memory, done, lambda: clock() < until, is_quick=is_quick, kinds=("transcript",))
        while clock() < until:
            batch, unreadable = read(folder, BATCH, tried)
            done.unreadable += unreadable
            if not batch:
                break
            tried |= {os.path.basename(each.path) for each in batch}
            for project_id, files in _divide(memory, batch, done).items():
                if project_id not in projects:
                    projects[project_id] = memory.in_project(project_id)
                _take(projects[project_id], files, transcripts, done=done, lease=lease)
            lease = memory.internals.leases.renew(lease, LEASE_SECONDS)
        for project in projects.values():
            run_jobs(project, done, lambda: clock() < until, is_quick=is_quick)
            if not is_quick and clock() < until:
                project.behavior.run_due()
                project.retention.run_due()
                project.decisions.update(
                    idle_seconds=IDLE_SECONDS, has_time=lambda: clock() < until
                )
        sweep(folder, time.time())
    finally:
        memory.internals.leases.release(lease)
    return done


def read(folder: str, limit: int, already: set[str]) -> tuple[list[SpoolFile], int]:
    """Read the oldest waiting files; count those put aside as unreadable.

    Files in ``already`` are left out.
    """
    waiting: list[SpoolFile] = []
    unreadable = 0
    for name in [each for each in names(folder) if each not in already][:limit]:
        path = os.path.join(folder, name)
        try:
            with open_regular(path) as file:
                # Anyone who could write here might speak in the person's name.
                is_foreign = not is_ours(os.fstat(file.fileno()))
                content = b"" if is_foreign else file.read()
        except OSError:
            continue  # another process has taken it in meanwhile, or it is not ours to read
        spooled = parse(path, content)
        if spooled is None:
            quarantine(path)
            unreadable += 1
        else:
            waiting.append(spooled)
    return waiting, unreadable


def parse(path: str, content: bytes) -> SpoolFile | None:
    """Parse a spool file; ``None`` if it is not one of ours.

    A payload that is no JSON object is refused as well.
    """
    head, newline, payload = content.partition(b"\n")
    facts = [fact.decode("utf-8", "surrogateescape") for fact in head.split(b"\t")]
    if not newline or len(facts) != 6 or facts[0].encode() != FORMAT or not facts[3].isdigit():
        return None
    try:
        if not isinstance(json.loads(payload), dict):
            return None
    except (ValueError, RecursionError):
        return None
    _, agent, event, at, project, cwd = facts
    # What was written had no mark of a secret in it, or was redacted; here everything is looked at
    # properly.
    payload = safe(payload, MOST_BYTES)
    return SpoolFile(
        path,
        agent,
        event,
        at_ms=int(at),
        project=project,
        cwd=cwd,
        events=tuple(events_of(agent, event, payload, at_ms=int(at), cwd=cwd)),
        payload=payload,
    )


def quarantine(path: str) -> None:
    """Put aside a file that cannot be taken in; drop the oldest."""
    folder = os.path.join(os.path.dirname(path), ASIDE)
    with suppress(OSError):  # it stays where it is, and is tried again
        make_private(folder)
        os.replace(path, os.path.join(folder, os.path.basename(path)))
        for name in sorted(os.listdir(folder))[:-_MOST_ASIDE]:
            os.unlink(os.path.join(folder, name))


def sweep(folder: str, now_seconds: float) -> int:
    """Remove leftovers from the spool; return the number of files.

    Halves of killed hooks go after an hour, marks of sessions and briefs that were not renewed
    after a week.
    """
    gone = 0
    for place, beginning, seconds in (
        (folder, ".", 3_600),
        (os.path.join(folder, MARKS), "", 7 * 86_400),
        (os.path.join(folder, brief.FOLDER), "", 7 * 86_400),
    ):
        try:
            entries = [each for each in os.scandir(place) if each.is_file(follow_symlinks=False)]
        except OSError:
            continue
        for entry in entries:
            with suppress(OSError):
                is_old = now_seconds - entry.stat().st_mtime > seconds
                if is_old and entry.name.startswith(beginning):
                    os.unlink(entry.path)
                    gone += 1
    return gone


def _divide(
    memory: Memory, files: Sequence[SpoolFile], done: DrainReport
) -> dict[str, list[SpoolFile]]:
    """Group files by the project they belong to; report their folders and agents."""
    groups: dict[str, list[SpoolFile]] = {}
    projects: dict[tuple[str, str], str | None] = {}
    for file in files:
        cwd = next((event.cwd for event in file.events if event.cwd), file.cwd)
        if (file.project, cwd) not in projects:
            projects[file.project, cwd] = project_of(memory, file.project, cwd)
        project = projects[file.project, cwd]
        if project is None:  # this folder was not asked to be remembered
            with suppress(OSError):
                os.unlink(file.path)
            continue
        groups.setdefault(project, []).append(file)
        agents = done.folders[cwd][1] if cwd in done.folders else set()
        agents.update(event.agent for event in file.events)
        if cwd:
            done.folders[cwd] = (project, agents)
        for event in file.events:
            if event.kind == "instructions" and event.tool_input.get("file_path"):
                done.loaded.setdefault(cwd, {}).setdefault(event.agent, set()).add(
                    os.path.join(event.cwd, str(event.tool_input["file_path"]))
                )
    return groups


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
        if project.settings.keep == "text":
            quarantine(files[0].path)
        else:  # where no words are kept, none are put aside
            os.unlink(files[0].path)
        done.unreadable += 1


def _take_in(
    project: Memory,
    files: Sequence[SpoolFile],
    transcripts: ReadableTranscripts,
    done: DrainReport,
    lease: Lease,
) -> None:
    located = transcripts.locate(with_exits([event for file in files for event in file.events]))
    # A transcript, and an SDK that hands it over while it grows, tells its events under the same
    # keys; these must not count as its repeats.
    streamed = project.frameworks.holders(sorted({event.session_id for event in located}))

    def is_read(event: HostEvent) -> bool:
        return event.session_id in streamed or transcripts(event.transcript_path)

    events = [
        replace(event, key=f"hook:{event.key}") if is_read(event) else event for event in located
    ]
    fresh = project.internals.intake.fresh(events)
    has_texts = project.settings.keep == "text"
    # Without a transcript nothing but the spool has their words, and no words are kept.
    hooked = [event for event in fresh if has_texts and not is_read(event)]
    done.messages += store_turns(project, hooked)
    for file in files:  # before the events: these may show that what was said is used
        if (file.agent, file.event) == NOTICE:
            # Something was said as it had been prepared: its receipt is written now.
            notice = json.loads(file.payload)
            erased = project.internals.intake.erased("thread", [notice["session_id"]])
            if file.at_ms <= max(erased.values(), default=-1):
                continue
            project.moments.deliver(
                notice["told"],
                session_id=notice["session_id"],
                source=notice["source"],
                at_ms=file.at_ms,
                is_said=notice.get("is_said", True),
            )
    if fresh and has_texts:  # safe to repeat, and so done before the events count as ingested
        project.moments.heed(fresh)
    jobs = jobs_of(fresh, transcripts)
    rest: list[HostEvent] = []
    for session_id, group in by_session(hooked).items():
        rest += end_at_silences(project, session_id, group)[1]
    project.behavior.observe_batch(
        rest,
        also=lambda session: project.internals.intake.end(
            session, events, fresh, jobs, lease=lease
        ),
    )
    for file in files:
        with suppress(OSError):  # a missing one is fine
            os.unlink(file.path)
    done.taken += len(fresh)
    done.repeated += len(events) - len(fresh)
