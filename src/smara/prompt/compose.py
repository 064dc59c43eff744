"""Compose messages into turns that every vendor takes.

A call is followed at once by its results, each with the id of its call. A result whose call is
not among the messages becomes text, and a call without a result is told to have none. Reasoning
is left out, and images and files become placeholders. The order of what was said stays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from smara.core.startup.record import dataclass, field, replace
from smara.core.startup.regex import re, regex
from smara.messages.models import Part, Role

NO_RESULT = "No result of this call was recorded."
NO_OUTPUT = "(no output)"
_ID = regex(r"[A-Za-z0-9_-]{1,40}")
_NAME_CHARACTERS = 64


class ChatEntry(NamedTuple):
    """A message on its way to a model.

    ``is_note`` if memory itself wrote it.
    """

    role: str
    parts: Sequence[Part]
    key: str = ""
    """What is the same whenever the message is sent again."""
    is_note: bool = False


@dataclass(frozen=True, slots=True)
class ChatBlock:
    """One text, call or result of an utterance."""

    kind: Literal["text", "call", "result"]
    text: str = ""
    call_id: str = ""
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    is_error: bool = False
    note: str = ""
    """What memory says behind a result."""

    @property
    def output(self) -> str:
        """The text of a result with the note behind it."""
        return f"{self.text}\n\n{self.note}" if self.note else self.text


@dataclass(slots=True)
class ChatTurn:
    """Blocks of one speaker that are sent together."""

    role: Role
    blocks: list[ChatBlock]


def compose(entries: Sequence[ChatEntry]) -> list[ChatTurn]:
    """Return the turns of messages, every call with its result."""
    spoken: list[tuple[Role, ChatBlock, bool]] = []
    waiting: list[tuple[str | None, ChatBlock]] = []
    results: dict[str, ChatBlock] = {}
    used: set[str] = set()
    for position, entry in enumerate(entries):
        key = entry.key or f"at {position}"
        for number, part in enumerate(_parts(entry)):
            if part.type == "tool_call":
                call = _call(part, f"{key} {number}", used)
                used.add(call.call_id)
                waiting.append((part.call_id, call))
                spoken.append(("assistant", call, False))
            elif part.type == "tool_result":
                found = _call_of(part, waiting)
                if found is None:
                    text = f"[Result of {part.name or 'a tool'}, called earlier]\n{part.text}"
                    spoken.append(("user", ChatBlock("text", text.strip()), False))
                    continue
                waiting.remove(found)
                text = part.text if part.text.strip() else NO_OUTPUT
                results[found[1].call_id] = replace(
                    found[1], kind="result", text=text, is_error=part.is_error
                )
            elif part.type != "reasoning" and (text := part.render()).strip():
                role: Role = entry.role if entry.role in ("assistant", "system") else "user"  # type: ignore[assignment]  # narrowed by the test
                spoken.append((role, ChatBlock("text", text), entry.is_note))
    return _turns(spoken, results)


def _parts(entry: ChatEntry) -> list[Part]:
    """Return the parts of a message; all that a tool says belongs to its result."""
    if entry.role != "tool":
        return list(entry.parts)
    found: list[Part] = []
    for part in entry.parts:
        if part.type == "reasoning":
            continue
        if part.type == "tool_result":
            found.append(part)
        elif part.type == "tool_call" or not found:
            found.append(part if part.type == "tool_call" else Part("tool_result", part.render()))
        elif words := part.render().strip():
            found[-1] = replace(found[-1], text=f"{found[-1].text}\n{words}".strip())
    return found


def _call(part: Part, key: str, used: set[str]) -> ChatBlock:
    call_id = part.call_id or ""
    while not _ID.fullmatch(call_id) or call_id in used:
        digest = hashlib.sha256(f"{call_id} {key}".encode("utf-8", "surrogatepass")).hexdigest()
        call_id = f"call_{digest[:24]}"
    name = re.sub(r"[^A-Za-z0-9_-]", "_", part.name or "tool")[:_NAME_CHARACTERS]
    arguments = part.arguments
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = {"input": arguments}
    if not isinstance(arguments, Mapping):
        arguments = {} if arguments is None else {"input": arguments}
    return ChatBlock("call", part.text, call_id, name=name, arguments=arguments)


def _call_of(part: Part, waiting: Sequence[tuple[str | None, ChatBlock]]) -> Any:
    """Return the oldest call that a result may belong to."""
    if part.call_id:
        return next((each for each in waiting if each[0] == part.call_id), None)
    by_name = (each for each in waiting if part.name and each[1].name == part.name)
    return next(by_name, waiting[0] if waiting and not part.name else None)


def _turns(
    spoken: Sequence[tuple[Role, ChatBlock, bool]], results: Mapping[str, ChatBlock]
) -> list[ChatTurn]:
    found: list[ChatTurn] = []
    calls: list[ChatBlock] = []

    def answer() -> None:
        if calls:
            empty = ChatBlock("result", NO_RESULT, is_error=True)
            blocks = [
                results.get(call.call_id) or replace(empty, call_id=call.call_id, name=call.name)
                for call in calls
            ]
            found.append(ChatTurn("tool", blocks))
            calls.clear()

    for role, block, is_note in spoken:
        if block.kind != "call":
            answer()
        last = found[-1] if found else None
        if is_note and last is not None and last.role == "tool":
            # Text behind results makes some models end their turn; within the last one it is read.
            last.blocks[-1] = replace(last.blocks[-1], note=block.text)
        elif last is not None and last.role == role == "assistant":
            last.blocks.append(block)
        else:
            found.append(ChatTurn(role, [block]))
        if block.kind == "call":
            calls.append(block)
    answer()
    return found
