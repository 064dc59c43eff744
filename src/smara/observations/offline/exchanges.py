"""A conversation as exchanges: what a person said, then what the agent said and did about it.

Calls are joined with their results, wherever in the messages these stand. Sequence
numbers and times are kept throughout, so that every note can name its source.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from smara.messages.models import Message, Part
from smara.observations.offline.noise import (
    is_host_command,
    is_interruption,
    is_program_text,
    without_blocks,
)
from smara.observations.offline.phrases import TOOL
from smara.observations.offline.wording import clean, excerpt

Voice = Literal["user", "caller", "assistant", "reasoning"]


@dataclass(frozen=True, slots=True)
class Said:
    """Words of one message. A ``caller`` is the agent that gave a sub-agent its task."""

    voice: Voice
    text: str
    seq: int
    at: int
    is_last: bool = False
    """Whether the model ended its turn with these words."""


@dataclass(slots=True)
class Call:
    """A tool call and, once it has come, its result."""

    name: str
    arguments: Any
    seq: int
    at: int
    call_id: str | None = None
    output: str | None = None
    is_error: bool = False
    last_seq: int = 0

    @property
    def is_answered(self) -> bool:
        return self.output is not None

    def answer(self, part: Part, seq: int) -> None:
        """Take a result; a second one for the same call is added."""
        text = clean(part.text)
        self.output = text if self.output is None else f"{self.output}\n{text}"
        self.is_error = self.is_error or part.is_error
        self.last_seq = max(self.last_seq, seq)

    def argument(self, *names: str) -> str:
        """The first of these arguments that is a text."""
        if isinstance(self.arguments, Mapping):
            for name in names:
                value = self.arguments.get(name)
                if isinstance(value, str) and value:
                    return clean(value)
        return ""


Step = Said | Call


@dataclass(slots=True)
class Exchange:
    """One or more messages of a person and everything that followed until the next."""

    said: list[Said] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    placeholders: list[tuple[Part, int, int]] = field(default_factory=list)
    interrupted: tuple[int, int] | None = None
    """Sequence number and time at which a person stopped the work."""
    is_closed: bool = False
    """Whether another exchange follows."""


@dataclass(slots=True)
class Reading:
    """What was read: the exchanges, and the folder in which the work takes place."""

    exchanges: list[Exchange]
    folder: str = ""


def read(messages: Iterable[Message]) -> Reading:
    """The exchanges of one thread's messages, oldest first. The first may begin in the middle."""
    reader = _Reader()
    for message in messages:
        reader.take(message)
    return Reading(reader.exchanges, reader.folder)


class _Reader:
    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.folder = ""
        self._open: dict[str, Call] = {}
        self._nameless: deque[Call] = deque()

    def take(self, message: Message) -> None:
        folder = message.metadata.get("cwd")
        self.folder = self.folder or (folder if isinstance(folder, str) else "")
        if is_interruption(message):
            self._current().interrupted = (message.seq, message.created_at)
        elif not is_program_text(message):
            for part in message.parts:
                self._take_part(message, part)

    def _take_part(self, message: Message, part: Part) -> None:
        if part.type == "tool_call":
            self._call(message, part)
        elif part.type == "tool_result":
            self._result(message, part)
        elif part.type == "reasoning":
            self._say("reasoning", message, part)
        elif part.type == "text" and message.role in ("user", "assistant"):
            voice: Voice = "assistant" if message.role == "assistant" else _voice_of_user(message)
            self._say(voice, message, part)
        elif part.type in ("image", "file") and message.role == "user":
            self._listen().placeholders.append((part, message.seq, message.created_at))

    def _say(self, voice: Voice, message: Message, part: Part) -> None:
        text = excerpt(without_blocks(part.text) if voice == "user" else part.text).strip()
        if not text or (voice == "user" and is_host_command(text)):
            return
        if voice in ("user", "caller"):
            self._listen().said.append(Said(voice, text, message.seq, at=message.created_at))
        else:
            is_last = message.metadata.get("stop_reason") in ("end_turn", "stop")
            self._current().steps.append(
                Said(voice, text, message.seq, at=message.created_at, is_last=is_last)
            )

    def _call(self, message: Message, part: Part) -> None:
        arguments = part.arguments if part.arguments is not None else (part.text or None)
        if isinstance(arguments, str):
            arguments = clean(arguments)
        call = Call(
            clean(part.name or TOOL),
            arguments,
            message.seq,
            at=message.created_at,
            call_id=part.call_id,
            last_seq=message.seq,
        )
        self._current().steps.append(call)
        if part.call_id:
            self._open[part.call_id] = call
        else:
            self._nameless.append(call)

    def _result(self, message: Message, part: Part) -> None:
        call = self._open.get(part.call_id or "") or (
            self._nameless.popleft() if self._nameless else None
        )
        if call is None:
            # Its call was observed before; the result alone can still tell of a failure.
            call = Call(
                clean(part.name or TOOL),
                None,
                message.seq,
                at=message.created_at,
                last_seq=message.seq,
            )
            self._current().steps.append(call)
        call.answer(part, message.seq)

    def _current(self) -> Exchange:
        if not self.exchanges:
            self.exchanges.append(Exchange())
        return self.exchanges[-1]

    def _listen(self) -> Exchange:
        """The exchange that a person's words belong to: the open one until the agent has begun to
        act.
        """
        current = self._current()
        if current.steps or current.interrupted:
            current.is_closed = True
            self.exchanges.append(Exchange())
        return self.exchanges[-1]


def _voice_of_user(message: Message) -> Voice:
    return "caller" if message.metadata.get("kind") == "agent_prompt" else "user"


def output_lines(call: Call, most: int = 4_000) -> Iterator[str]:
    """The lines of a call's result; of a huge one the first and the last."""
    text = call.output or ""
    half = most * 40
    if len(text) > 2 * half:
        text = f"{text[:half]}\n{text[-half:]}"
    lines = text.split("\n")
    if len(lines) > most:
        lines = [*lines[: most // 2], *lines[-most // 2 :]]
    for line in lines:
        yield line[:1_000]
