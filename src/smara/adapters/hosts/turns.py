"""What of the events becomes messages, and what is to be done for their session.

A host that keeps a transcript we can read is believed over its hooks: the transcript has
every turn in its order, under the ids that ``smara import`` gives it too, so nothing is
stored twice. Without one, the prompts and answers that the hooks told are stored word for
word.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from smara.adapters.hosts.located import Located
from smara.adapters.sniff import HOST_FORMATS, sniff
from smara.core.events import HostEvent
from smara.intake.models import Job
from smara.memory import Memory
from smara.messages.models import NewMessage, NewThread, Role

SILENT_SESSION_MS = 2 * 3_600_000
"""A session that was not heard of for so long has ended, also where a host never says so."""
READ_EVERY_MS = 300_000
_TELLING = ("turn_end", "turn_fail", "session_end", "compact_pre", "subagent_stop")
_HOSTS = {"claude": "claude-code"}


def store_turns(
    memory: Memory, events: Sequence[HostEvent], has_transcript: Callable[[str], bool]
) -> int:
    """Store the prompts and answers of events whose session has no transcript; how many. Safe to
    repeat.
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
    metadata = {"host": _HOSTS.get(event.agent, event.agent), "told_by": "hooks"}
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
    """What these events ask for: their transcripts read, and their sessions ended when they are
    over.
    """
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
    """Whether a transcript has come to an end of sorts. Copilot CLI has none of its own for a
    helper.
    """
    return event.kind in _TELLING and not (event.agent == "copilot" and event.subagent_id)


def _next_reading(at_ms: int) -> int:
    """A transcript is read whole each time, so that of a session that goes on is read every few
    minutes at most.

    >>> _next_reading(1), _next_reading(299_999), _next_reading(300_000)
    (300000, 300000, 600000)
    """
    return (at_ms // READ_EVERY_MS + 1) * READ_EVERY_MS


def _place(event: HostEvent) -> dict[str, str]:
    """Where a transcript is; of a database that holds many the session that is meant."""
    only = {"only": event.subagent_id or event.session_id} if event.agent == "opencode" else {}
    return {"path": event.transcript_path, **only}


def _facts(event: HostEvent) -> dict[str, str]:
    return {"agent": event.agent, "reason": event.source, "cwd": event.cwd}


class Transcripts:
    """Which transcripts can be read; each is looked at once."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}
        self.located = Located()

    def __call__(self, path: str) -> bool:
        if path not in self._known:
            self._known[path] = bool(path) and _is_transcript(path)
        return self._known[path]


def _is_transcript(path: str) -> bool:
    try:
        return os.path.getsize(path) > 0 and sniff(path) in HOST_FORMATS
    except Exception:  # noqa: BLE001 - a file of any content may stand there, and the hooks told the turns anyway
        return False
