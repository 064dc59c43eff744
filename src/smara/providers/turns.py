"""Turns as messages and back: one message in, one with calls and words, one with the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from smara.messages.models import Message, NewMessage, Part
from smara.providers.models import ToolUse, Turn


def as_messages(turn: Turn) -> list[NewMessage]:
    """The messages of a turn, each with an id of its own, so that saving it twice keeps it once."""
    about = {"turn": turn.id, **({"source": turn.input_source} if turn.input_source else {})}
    found: list[NewMessage] = []

    def add(role: Any, name: str, parts: list[Part]) -> None:
        if parts:
            found.append(
                NewMessage(
                    role,
                    parts,
                    f"{turn.id}-{name}",
                    created_at=turn.timestamp,
                    task_id=None,
                    metadata=about,
                )
            )

    add("user", "input", [Part("text", turn.input)] if turn.input else [])
    calls = [
        Part(
            "tool_call",
            name=use.name,
            arguments=dict(use.arguments),
            call_id=_call_id(turn, n, use),
        )
        for n, use in enumerate(turn.tool_uses)
    ]
    results = [
        Part(
            "tool_result",
            use.result,
            name=use.name,
            call_id=_call_id(turn, n, use),
            is_error=use.is_error,
        )
        for n, use in enumerate(turn.tool_uses)
    ]
    thought = [Part("reasoning", turn.thinking)] if turn.thinking else []
    add("assistant", "calls", [*thought, *calls] if calls else [])
    add("tool", "results", results)
    said = [Part("text", turn.output)] if turn.output else []
    add("assistant", "output", said if calls else [*thought, *said])
    return found


def as_turns(messages: Iterable[Message]) -> Iterator[Turn]:
    """The turns that messages belong to, in order; a message of no turn is a turn of its own."""
    for turn_id, group in groupby(
        messages, key=lambda message: str(message.metadata.get("turn") or message.id)
    ):
        yield _turn(turn_id, list(group))


def _turn(turn_id: str, messages: list[Message]) -> Turn:
    parts = [(message.role, part) for message in messages for part in message.parts]
    results = {part.call_id: part for _, part in parts if part.type == "tool_result"}
    uses = [_use(part, results.get(part.call_id)) for _, part in parts if part.type == "tool_call"]
    source = messages[0].metadata.get("source")
    return Turn(
        turn_id,
        input=_texts(parts, "user"),
        output=_texts(parts, "assistant"),
        input_source=source if isinstance(source, str) else None,
        tool_uses=tuple(uses),
        thinking="\n".join(part.text for _, part in parts if part.type == "reasoning"),
        timestamp=messages[0].created_at,
    )


def _use(call: Part, result: Part | None) -> ToolUse:
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    text, is_error = (result.text, result.is_error) if result is not None else ("", False)
    return ToolUse(call.name or "tool", arguments, text, is_error=is_error, call_id=call.call_id)


def _texts(parts: list[tuple[Any, Part]], role: str) -> str:
    return "\n".join(part.text for who, part in parts if who == role and part.type == "text")


def _call_id(turn: Turn, number: int, use: ToolUse) -> str:
    return use.call_id or f"{turn.id}-call-{number}"
