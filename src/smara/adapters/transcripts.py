"""What an agent did, read from its transcript: the same events that its hooks would have told.

All formats go through here, from the messages that their readers make of them. A call that a
hook told, too, has the same key in both tellings, so that it counts once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from smara.adapters.hosts.results import bare
from smara.adapters.records import Imported, Record
from smara.adapters.sniff import Format, read_records
from smara.core.events import Agent, HostEvent, Kind, event_key
from smara.core.tool_names import tool_arguments, tool_name
from smara.messages.models import NewMessage, NewThread, Part

OUTPUT_CHARACTERS = 200_000
_MOST_CALLS = 10_000
# What Codex writes above the output of a command; of the exit code the kind of the event tells.
_HEADING = re.compile(
    r"(?:(?:Chunk ID|Exit code|Wall time|Process exited|Original token "
    r"count)[^\n]{0,100}\n){1,6}Output:\n"
)
_AGENTS: dict[str, Agent] = {
    "claude-code": "claude",
    "codex": "codex",
    "gemini": "gemini",
    "copilot": "copilot",
    "opencode": "opencode",
}
_SAID_BY_A_PERSON = (None, "command", "queued_prompt", "shell_input", "user_message")


def events_of(path: str | os.PathLike[str], format: Format | None = None) -> Iterator[HostEvent]:
    """The events of a transcript, in the order of the file."""
    reader = EventReader()
    for record in read_records(path, format=format):
        yield from reader.read(record)


def events_of_records(records: Iterable[Record]) -> Iterator[HostEvent]:
    """The events that messages tell, in their order."""
    reader = EventReader()
    for record in records:
        yield from reader.read(record)


@dataclass(slots=True)
class _Place:
    """Where a thread stands: its folder, its time, and whether a turn is open."""

    cwd: str
    at_ms: int
    is_in_turn: bool = False
    calls: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)


class EventReader:
    """Turns records into events; remembers of each thread the calls that have no result yet."""

    def __init__(self, otherwise_at_ms: int = 0) -> None:
        self._places: dict[str, _Place] = {}
        self._otherwise = otherwise_at_ms

    def read(self, record: Record) -> Iterator[HostEvent]:
        """The events of one record: none of what is no message, was copied, or is a mere log of
        prompts.
        """
        if not isinstance(record, Imported) or record.message.metadata.get("inherited") is True:
            return
        thread, message = record.thread, record.message
        if thread.kind == "compaction" or "told_by" in thread.metadata:
            return
        place = self._places.get(thread.id)
        if place is None and "host" not in thread.metadata and not _has_call(message):
            return  # a talk without tools is no agent's work
        teller = _Teller(thread, message)
        if place is None:
            place = self._places[thread.id] = _Place(
                str(thread.metadata.get("cwd") or ""), thread.created_at or self._otherwise
            )
            if thread.kind == "conversation":
                yield teller.event("session_start", place, source="import", what="start")
        place.at_ms = message.created_at or place.at_ms
        place.cwd = str(message.metadata.get("cwd") or place.cwd)
        yield from _of_message(teller, place, message)


class _Teller:
    """Makes the events of one message."""

    def __init__(self, thread: NewThread, message: NewMessage) -> None:
        self._agent: Agent = _AGENTS.get(str(thread.metadata.get("host")), "generic")
        is_agent = thread.kind == "subagent"
        above = thread.metadata.get("session") or thread.parent_id
        self.session_id = str(above or thread.id) if is_agent else thread.id
        self._subagent = str(thread.metadata.get("agent_id") or thread.id) if is_agent else ""
        self._name = message.client_id or ""
        self._model = str(message.metadata.get("model") or "")

    @property
    def is_subagent(self) -> bool:
        return bool(self._subagent)

    def event(
        self, kind: Kind, place: _Place, *, what: str = "", key: str = "", **told: Any
    ) -> HostEvent:
        given = key or event_key(
            self.session_id, kind, f"import:{self._subagent}:{self._name}:{what}"
        )
        return HostEvent(
            self._agent,
            kind,
            self.session_id,
            at_ms=place.at_ms,
            cwd=place.cwd,
            subagent_id=self._subagent,
            model=self._model,
            key=given,
            **told,
        )


def _of_message(teller: _Teller, place: _Place, message: NewMessage) -> Iterator[HostEvent]:
    parts = (
        (Part("text", message.content),)
        if isinstance(message.content, str)
        else tuple(message.content)
    )
    words = "\n".join(part.text for part in parts if part.type == "text")
    kind = message.metadata.get("kind")
    if (
        message.role == "user"
        and words.strip()
        and kind in _SAID_BY_A_PERSON
        and not teller.is_subagent
    ):
        if place.is_in_turn:
            yield teller.event("turn_end", place, what="turn")
        place.is_in_turn = True
        yield teller.event("prompt", place, prompt=words)
    elif message.role == "assistant":
        thoughts = "\n".join(part.text for part in parts if part.type == "reasoning")
        if thoughts.strip():
            yield teller.event("reasoning", place, text=thoughts, what="thought")
        if words.strip():
            yield teller.event("step", place, text=words)
    elif message.role == "system" and kind == "compaction_summary":
        yield teller.event("compact_post", place, text=words)
    for number, part in enumerate(parts):
        if part.type == "tool_call":
            yield _asked(teller, place, part, number=number)
        elif part.type == "tool_result" and part.name not in ("stdout", "stderr", "message"):
            yield from _answered(teller, place, part, message=message)


def _has_call(message: NewMessage) -> bool:
    return not isinstance(message.content, str) and any(
        part.type == "tool_call" for part in message.content
    )


def _asked(teller: _Teller, place: _Place, part: Part, number: int) -> HostEvent:
    tool = tool_name(part.name or "")
    given = tool_arguments(tool, part.arguments if isinstance(part.arguments, dict) else {})
    use_id = part.call_id or ""
    if use_id:
        if len(place.calls) >= _MOST_CALLS:
            del place.calls[next(iter(place.calls))]
        place.calls[use_id] = (tool, given)
    key = event_key(teller.session_id, "tool_pre", use_id) if use_id else ""
    return teller.event(
        "tool_pre",
        place,
        tool=tool,
        tool_input=given,
        tool_use_id=use_id,
        key=key,
        what=f"call-{number}",
    )


def _answered(
    teller: _Teller, place: _Place, part: Part, message: NewMessage
) -> Iterator[HostEvent]:
    """A result; without its call nothing can be learned from it, and of a running command it comes
    later.
    """
    use_id = part.call_id or ""
    call = (
        place.calls.pop(use_id, None) if message.metadata.get("kind") != "running_output" else None
    )
    if call is None:
        return
    tool, given = call
    heading = _HEADING.match(part.text)
    output = bare(part.text[heading.end() if heading else 0 :])[:OUTPUT_CHARACTERS]
    yield teller.event(
        "tool_fail" if part.is_error else "tool_post",
        place,
        tool=tool,
        tool_input=given,
        tool_use_id=use_id,
        tool_output=output,
        error=output if part.is_error else None,
        key=event_key(teller.session_id, "tool_post", use_id),
    )
