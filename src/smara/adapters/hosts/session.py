"""Store the turns of a session and run its jobs.

A transcript has every turn in order, under the ids that ``smara import`` uses, so it is
preferred over the hooks' prompts and answers. `TranscriptLocator` finds it if no event names
it. Jobs read transcripts, detect which injections reached the model, and end sessions.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from smara.actions.intake import SILENT_SESSION_MS
from smara.actions.models import Job, JobKind
from smara.adapters.host_specs import TRANSCRIPTS, host_named
from smara.adapters.importer import Importer
from smara.adapters.lines import mapping_in, milliseconds
from smara.adapters.sniff import sniff
from smara.core import log
from smara.core.events import HostEvent
from smara.core.memory_block import CLOSING, OPENING
from smara.errors import DatabaseError, SmaraError
from smara.memory import Memory
from smara.messages.models import NewMessage, NewThread, Role


class TranscriptLocator:
    """A look-up of transcripts, done once for each session."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}

    def __call__(self, events: Sequence[HostEvent]) -> list[HostEvent]:
        """The events, with the transcript of their session where there is one."""
        return [replace(event, transcript_path=self._path(event)) for event in events]

    def _path(self, event: HostEvent) -> str:
        transcripts = host_named(event.agent).transcripts
        if event.transcript_path or transcripts is None or transcripts.locate is None:
            return event.transcript_path
        key = (event.agent, event.session_id)
        if key not in self._known:
            self._known[key] = transcripts.locate(event.session_id)
        return self._known[key]


READ_EVERY_MS = 300_000
_TELLING = ("turn_end", "turn_fail", "session_end", "compact_pre", "subagent_stop")


def store_turns(
    memory: Memory, events: Sequence[HostEvent], has_transcript: Callable[[str], bool]
) -> int:
    """Store the prompts and answers of events without a transcript.

    Returns how many; safe to repeat.
    """
    stored = 0
    for thread, messages in _turns(
        [event for event in events if not has_transcript(event.transcript_path)]
    ):
        stored += memory.messages.append_batch(
            thread, messages, may_differ=True, compact=False
        ).stored
    return stored


def _turns(events: Sequence[HostEvent]) -> list[tuple[NewThread, list[NewMessage]]]:
    found: dict[str, tuple[NewThread, list[NewMessage]]] = {}
    for event in events:
        message = _message(event)
        if message is not None:
            thread = _thread(event)
            found.setdefault(thread.id, (thread, []))[1].append(message)
    return list(found.values())


def _message(event: HostEvent) -> NewMessage | None:
    role: Role
    if event.kind == "prompt":
        role, words = "user", event.prompt
    elif event.kind in ("turn_end", "turn_fail", "step", "subagent_stop"):
        role, words = "assistant", event.text
    elif event.kind == "compact_post":
        role, words = "system", event.text
    else:
        return None
    if not words.strip():
        return None
    metadata = {"source": "hook", "agent": event.agent}
    return NewMessage(
        role,
        words,
        f"hook:{event.key}"[:500],
        created_at=event.at_ms,
        task_id=None,
        metadata=metadata,
    )


def _thread(event: HostEvent) -> NewThread:
    transcripts = host_named(event.agent).transcripts
    format = transcripts.format if transcripts is not None else event.agent
    metadata = {"host": format, "told_by": "hooks"}
    if event.cwd:
        metadata["cwd"] = event.cwd
    if event.subagent_id:
        return NewThread(
            f"{event.session_id}/agent-{event.subagent_id}"[:500],
            None,
            None,
            metadata=metadata,
            kind="subagent",
            parent_id=event.session_id,
        )
    return NewThread(event.session_id, metadata=metadata)


def jobs_of(events: Sequence[HostEvent], has_transcript: Callable[[str], bool]) -> list[Job]:
    """Return the jobs of events: read transcripts, end sessions that are over."""
    found: dict[tuple[str, str], Job] = {}
    for event in events:
        if event.kind == "session_end":
            found["finalize", event.session_id] = Job(
                "finalize", event.session_id, _facts(event), due_at=event.at_ms
            )
        elif event.kind in ("turn_end", "turn_fail", "session_start"):
            due_at = event.at_ms + SILENT_SESSION_MS
            found["finalize", event.session_id] = Job(
                "finalize", event.session_id, _facts(event), due_at=due_at
            )
        if _is_telling(event) and has_transcript(event.transcript_path):
            key = (
                f"{event.session_id}/agent-{event.subagent_id}"
                if event.subagent_id
                else event.session_id
            )
            due_at = (
                event.at_ms
                if event.kind not in ("turn_end", "turn_fail")
                else _next_reading(event.at_ms)
            )
            found["transcript", key] = Job("transcript", key[:500], _place(event), due_at=due_at)
    return list(found.values())


def _is_telling(event: HostEvent) -> bool:
    """Return True if a transcript has come to an end of sorts, and there is one."""
    transcripts = host_named(event.agent).transcripts
    has_own = transcripts is None or transcripts.has_subagent_files or not event.subagent_id
    return event.kind in _TELLING and has_own


def _next_reading(at_ms: int) -> int:
    """A transcript is read whole each time, so that of a session that goes on is read every few
    minutes at most.

    >>> _next_reading(1), _next_reading(299_999), _next_reading(300_000)
    (300000, 300000, 600000)
    """
    return (at_ms // READ_EVERY_MS + 1) * READ_EVERY_MS


def _place(event: HostEvent) -> dict[str, str]:
    """Where a transcript is; of a database that holds many the session that is meant."""
    transcripts = host_named(event.agent).transcripts
    if transcripts is None or not transcripts.has_many_sessions:
        return {"path": event.transcript_path}
    return {"path": event.transcript_path, "only": event.subagent_id or event.session_id}


def _facts(event: HostEvent) -> dict[str, str]:
    return {"agent": event.agent, "reason": event.source, "cwd": event.cwd}


class ReadableTranscripts:
    """A test of which transcripts can be read, each looked at once."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}
        self.located = TranscriptLocator()

    def __call__(self, path: str) -> bool:
        if path not in self._known:
            self._known[path] = bool(path) and _is_transcript(path)
        return self._known[path]


def _is_transcript(path: str) -> bool:
    try:
        return os.path.getsize(path) > 0 and sniff(path) in TRANSCRIPTS
    except Exception:  # noqa: BLE001 - a file of any content may stand there, and the hooks told the turns anyway
        return False


_BLOCK = re.compile(f"{OPENING}.*?{CLOSING}", re.S)
_MOST_LINE = 1 << 20
_ESCAPED = OPENING.replace("<", "&lt;").replace(">", "&gt;")


def told_in(path: str) -> list[tuple[int, str]]:
    """Return the blocks of memory in a transcript, each with its time."""
    marks = (OPENING.encode(), _ESCAPED.encode())
    found: list[tuple[int, str]] = []
    try:
        with open(path, "rb") as file:
            for line in file:
                if len(line) <= _MOST_LINE and any(mark in line for mark in marks):
                    found += _told(line)
    except OSError:
        return []
    return found


def _told(line: bytes) -> list[tuple[int, str]]:
    try:
        record = mapping_in(json.loads(line))
    except (ValueError, RecursionError):
        return []
    at_ms = milliseconds(record.get("timestamp"))
    # Only what a hook put there: anything else in the record may quote it.
    texts = (each.injection(record) for each in TRANSCRIPTS.values() if each.injection)
    words = next(filter(None, texts), "")
    return [(at_ms, block) for block in _BLOCK.findall(words)] if at_ms is not None else []


class Counts(Protocol):
    """The counters of jobs."""

    jobs_done: int
    jobs_failed: int


def run_jobs(
    memory: Memory, counts: Counts, kinds: Sequence[JobKind], has_time: Callable[[], bool]
) -> None:
    """Run due jobs one after the other while there is time.

    A job that fails is tried again later.
    """
    for job in memory.intake.due():
        if not has_time():
            return
        if job.kind not in kinds:
            continue
        try:
            _run(memory, job)
        except DatabaseError:
            raise  # the store itself has trouble: nothing else would go better
        except Exception as error:  # noqa: BLE001 - one bad job must not hold up the others
            reason = f"{type(error).__name__}: {log.redact_text(str(error))}"[:500]
            memory.intake.failed(job, str(error) if isinstance(error, SmaraError) else reason)
            counts.jobs_failed += 1
        else:
            memory.intake.done(job)
            counts.jobs_done += 1


def _run(memory: Memory, job: Job) -> None:
    if job.kind == "transcript":
        path = str(job.facts.get("path", ""))
        if os.path.exists(
            path
        ):  # a host may have cleaned up; the hooks' own words are then all there is
            Importer(memory).import_file(path, only=str(job.facts.get("only") or "") or None)
            if "only" not in job.facts and (
                told := told_in(path)
            ):  # a database is no record of lines
                memory.moments.reached(job.session_id[:200], told)
    else:
        memory.behavior.finalize(job.session_id)
