"""Store the turns of a session and run its jobs.

A transcript has every turn in order, under the ids that ``smara import`` uses. A session with
a readable transcript is therefore stored and learned from by the transcript alone, as an
import would do it; hooks only say when to read it. Without one, the hooks' own prompts,
calls and answers are used. `ReadableTranscripts` finds transcripts that no event names. Jobs
read transcripts, detect which injections reached the model, and end sessions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from smara.actions.intake import SILENT_SESSION_MS
from smara.actions.models import Job, JobKind
from smara.adapters.host_specs import TRANSCRIPTS, host_named
from smara.adapters.importer import Importer, sniff
from smara.adapters.lines import given, json_in, mapping_in, milliseconds
from smara.adapters.replay import Learner
from smara.core import log
from smara.core.events import HostEvent
from smara.core.files import open_regular
from smara.core.memory_block import CLOSING, OPENING
from smara.core.startup.record import dataclass, field, replace
from smara.core.startup.regex import re, regex
from smara.errors import ConflictError, DatabaseError, SmaraError
from smara.memory import Memory
from smara.messages.models import NewMessage, NewThread, Role

READ_EVERY_MS = 300_000
"""A transcript is read whole, so that of a session that goes on is read no more often."""
QUICK_BYTES = 4 << 20
"""The longest transcript that is read while a host waits; it takes about half a second."""
_READ_NOW = ("session_end", "compact_pre", "subagent_stop")
_ROLES: dict[str, Role] = {
    "prompt": "user",
    "turn_end": "assistant",
    "turn_fail": "assistant",
    "step": "assistant",
    "subagent_stop": "assistant",
    "compact_post": "system",
}


class ReadableTranscripts:
    """A test of which transcripts can be read, each looked at once."""

    def __init__(self) -> None:
        self._readable: dict[str, bool] = {"": False}
        self._paths: dict[tuple[str, str], str] = {}

    def __call__(self, path: str) -> bool:
        if path not in self._readable:
            try:
                self._readable[path] = os.path.getsize(path) > 0 and sniff(path) in TRANSCRIPTS
            except Exception:  # noqa: BLE001 - a file of any content may stand there, and the hooks told the turns anyway
                self._readable[path] = False
        return self._readable[path]

    def locate(self, events: Sequence[HostEvent]) -> list[HostEvent]:
        """Return the events with the transcript of their session, if any."""
        located = []
        for event in events:
            transcripts = host_named(event.agent).transcripts
            if not event.transcript_path and transcripts is not None and transcripts.locate:
                key = (event.agent, event.session_id)
                if key not in self._paths:
                    self._paths[key] = transcripts.locate(event.session_id)
                event = replace(event, transcript_path=self._paths[key])
            located.append(event)
        return located


def store_turns(memory: Memory, events: Sequence[HostEvent]) -> int:
    """Store the prompts and answers of events without a transcript.

    Returns how many; safe to repeat.
    """
    turns: dict[str, tuple[NewThread, list[NewMessage]]] = {}
    for event in events:
        words = event.prompt if event.kind == "prompt" else event.text
        if event.kind not in _ROLES or not words.strip():
            continue
        message = NewMessage(
            _ROLES[event.kind],
            words,
            f"hook:{event.key}"[:500],
            created_at=event.at_ms,
            task_id=None,
            metadata={"source": "hook", "agent": event.agent},
        )
        thread = _thread(event)
        turns.setdefault(thread.id, (thread, []))[1].append(message)
    return sum(
        memory.messages.append_batch(thread, messages, may_differ=True, compact=False).stored
        for thread, messages in turns.values()
    )


def _thread(event: HostEvent) -> NewThread:
    transcripts = host_named(event.agent).transcripts
    format = transcripts.format if transcripts is not None else event.agent
    metadata = given(host=format, told_by="hooks", cwd=event.cwd)
    if event.subagent_id:
        return NewThread(
            f"{event.session_id}/agent-{event.subagent_id}"[:500],
            metadata=metadata,
            kind="subagent",
            parent_id=event.session_id,
        )
    return NewThread(event.session_id, metadata=metadata)


def jobs_of(events: Sequence[HostEvent], has_transcript: Callable[[str], bool]) -> list[Job]:
    """Return the jobs of events: read transcripts, end sessions that are over."""
    jobs: dict[tuple[str, str], Job] = {}
    for event in events:
        session_id, at_ms = event.session_id, event.at_ms
        if event.kind in ("session_end", "turn_end", "turn_fail", "session_start"):
            due_at = at_ms if event.kind == "session_end" else at_ms + SILENT_SESSION_MS
            facts = {"agent": event.agent, "reason": event.source, "cwd": event.cwd}
            jobs["finalize", session_id] = Job("finalize", session_id, facts, due_at=due_at)
        if not has_transcript(event.transcript_path):
            continue
        transcripts = host_named(event.agent).transcripts
        has_many = transcripts is not None and transcripts.has_many_sessions
        has_own = transcripts is None or transcripts.has_subagent_files
        # Only its last event names a sub-agent's file; a database has a session for each.
        is_own = has_own and (has_many or event.kind == "subagent_stop") and event.subagent_id
        key = f"{session_id}/agent-{event.subagent_id}"[:500] if is_own else session_id
        only = {"only": event.subagent_id or session_id} if has_many else {}
        next_at = at_ms if event.kind in _READ_NOW else (at_ms // READ_EVERY_MS + 1) * READ_EVERY_MS
        jobs["transcript", key] = Job(
            "transcript", key, {"path": event.transcript_path, **only}, due_at=next_at
        )
    return list(jobs.values())


_BLOCK = regex(f"{OPENING}.*?{CLOSING}", re.S)
_MOST_LINE = 1 << 20
_MARKS = (OPENING.encode(), OPENING.replace("<", "&lt;").replace(">", "&gt;").encode())


def blocks_in(path: str) -> list[tuple[int, str]]:
    """Return the blocks of memory in a transcript, each with its time."""
    blocks: list[tuple[int, str]] = []
    try:
        with open_regular(path) as file:
            for line in file:
                if len(line) > _MOST_LINE or not any(mark in line for mark in _MARKS):
                    continue
                record = mapping_in(json_in(line.decode("utf-8", "replace")))
                at_ms = milliseconds(record.get("timestamp"))
                # Only what a hook put there: anything else in the record may quote it.
                texts = (each.injection(record) for each in TRANSCRIPTS.values() if each.injection)
                words = next(filter(None, texts), "")
                if at_ms is not None:
                    blocks += [(at_ms, block) for block in _BLOCK.findall(words)]
    except OSError:
        return []
    return blocks


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
    """The project of each folder that events came from, and the agents that sent them."""
    loaded: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    """The instruction files that agents said they have read, by folder and agent."""


def run_jobs(
    memory: Memory,
    report: DrainReport,
    has_time: Callable[[], bool],
    *,
    kinds: Sequence[JobKind] = ("transcript", "finalize"),
    is_quick: bool = False,
) -> None:
    """Run due jobs one after the other while there is time.

    A job that fails is tried again later. ``is_quick`` leaves long transcripts for later, and
    with them the end of their sessions: what they tell would come too late for it.
    """
    postponed: set[str] = set()
    for job in memory.internals.intake.due():
        if not has_time():
            return
        session_id = job.session_id.partition("/agent-")[0]
        path = str(job.facts.get("path", ""))
        if is_quick and os.path.exists(path) and os.path.getsize(path) > QUICK_BYTES:
            postponed.add(session_id)
        if session_id in postponed or job.kind not in kinds:
            continue
        try:
            if job.kind == "finalize" and memory.settings.keep == "text":
                memory.behavior.finalize(job.session_id)
                memory.decisions.read(job.session_id)
            elif job.kind == "transcript" and os.path.exists(path):
                # A host may have cleaned up; then there is nothing more to be had.
                _read_transcript(memory, job, path)
        except DatabaseError:
            raise  # the store itself has trouble: nothing else would go better
        except Exception as error:  # noqa: BLE001 - one bad job must not hold up the others
            # What could not be read may be quoted there.
            quote = log.redact_text(str(error)) if memory.settings.keep == "text" else ""
            reason = f"{type(error).__name__}: {quote}"[:500]
            memory.internals.intake.failed(
                job, str(error) if isinstance(error, SmaraError) else reason
            )
            report.jobs_failed += 1
        else:
            memory.internals.intake.done(job)
            report.jobs_done += 1


def _read_transcript(memory: Memory, job: Job, path: str) -> None:
    learner = Learner(memory)
    only = str(job.facts.get("only") or "") or None
    Importer(memory, learner=learner).import_file(path, only=only)
    if learner.learned.problems:
        raise ConflictError(learner.learned.problems[0])
    # A database is no record of lines.
    if only is None and (blocks := blocks_in(path)):
        memory.moments.reached(job.session_id[:200], blocks)
