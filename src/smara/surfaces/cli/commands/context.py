"""``smara context``"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import click

from smara.context.models import Context
from smara.core.events import AGENTS
from smara.core.tokens import counter_for
from smara.memory import Memory
from smara.observations.models import MODES, AgentMode
from smara.providers.models import ChatMessage, ResumableProvider
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common, complete_thread


@dataclass(frozen=True, slots=True)
class _Piece:
    """One part of what a model is given: a section of the system text, or a message."""

    kind: str
    name: str
    tokens: int
    text: str
    seq: int | None = None


@click.group("context")
def command() -> None:
    """What an agent gets."""


@command.command("preview")
@click.argument("thread_id", metavar="[THREAD]", required=False, shell_complete=complete_thread)
@click.option(
    "--agent",
    type=click.Choice(AGENTS),
    default="claude",
    show_default=True,
    help="Without a thread: whose session begins; what its instruction files say is left out.",
)
@click.option(
    "--file",
    "files",
    metavar="PATH",
    multiple=True,
    help="Without a thread: a file that is at hand.",
)
@click.option(
    "--memory",
    "provider",
    metavar="NAME",
    help="As this memory provider tells it: window, observational, …",
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="default",
    show_default=True,
    help="What the agent is busy with.",
)
@click.option(
    "--step",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    help="The step of the turn; 0 begins it.",
)
@common
def preview(
    call: Call,
    thread_id: str | None,
    agent: str,
    files: tuple[str, ...],
    provider: str | None,
    mode: AgentMode,
    step: int,
) -> None:
    """What the next step in a thread would begin with, and what it costs. Nothing is stored or
    observed.

    Without a thread: what a new session of an agent would be told here and now, byte for byte.
    """
    if thread_id is None:
        _preview_start(call, agent, files)
        return
    # Read-only, so that looking neither starts nor activates an observation.
    with call.memory(observe_read_only=True) as memory:
        memory.threads.get(thread_id)
        if provider is not None:
            pieces, data, notes = _recalled(memory, provider, thread_id)
        else:
            context = memory.context.process_input(thread_id, step=step, mode=mode)
            pieces, data, notes = _built(memory, context)
            data["next"] = memory.observations.planned(thread_id, mode=mode)._asdict()
        warnings = [*memory.warnings, *notes]
    if call.as_json:
        output.envelope(data, warnings)
        return
    output.warn(warnings)
    _show(pieces)


def _preview_start(call: Call, agent: str, files: tuple[str, ...]) -> None:
    from smara.adapters.hosts.preparing import instructions_of
    from smara.environment import spool_folder

    cwd = os.getcwd()
    known_texts = instructions_of(agent, cwd, spool_folder())
    with call.memory() as memory:
        told = memory.moments.preview(agent=agent, cwd=cwd, files=files, known_texts=known_texts)
        counted = counter_for(memory.settings.token_model).count(told.text)
    if call.as_json:
        items = [
            {
                "kind": each.kind,
                "id": each.id,
                "text": each.text,
                "why": each.why,
                "tokens": each.tokens,
            }
            for each in told.items
        ]
        data = {
            "agent": agent,
            "text": told.text,
            "tokens": counted.tokens,
            "tokenMethod": counted.method,
            "estimatedTokens": told.tokens,
            "characters": len(told.text),
            "items": items,
        }
        output.envelope(data)
        return
    if told.text:
        output.say(told.text)
    if output.is_terminal():
        output.say()
        size = (
            f"{counted.tokens:,} tokens ({counted.method}), {len(told.text):,} characters, "
            f"{len(told.items)} items"
        )
        output.say(
            f"{agent}: {size}." if told.text else f"{agent}: a session would begin with nothing.",
            bold=True,
        )


def _built(
    memory: Memory, context: Context
) -> tuple[list[_Piece], dict[str, Any], tuple[str, ...]]:
    counter = counter_for(memory.settings.token_model)
    pieces = [
        _Piece("section", each.name, each.tokens, text=each.text) for each in context.sections
    ]
    pieces += [
        _Piece(
            "message",
            each.role,
            counter.count(each.content).tokens,
            text=each.content,
            seq=each.seq,
        )
        for each in context.messages
    ]
    receipt = context.receipt
    data = {
        "sections": [
            {"name": each.name, "text": each.text, "tokens": each.tokens}
            for each in context.sections
        ],
        "messages": [
            {
                "role": each.role,
                "content": each.content,
                "messageId": each.message_id,
                "seq": each.seq,
            }
            for each in context.messages
        ],
        "system": context.system,
        "tokens": context.tokens,
        "receipt": {
            "threadId": receipt.thread_id,
            "observationIds": list(receipt.observation_ids),
            "sectionTokens": dict(receipt.section_tokens),
            "messageTokens": receipt.message_tokens,
            "leftOutMessages": receipt.left_out_messages,
            "notes": list(receipt.notes),
        },
    }
    left_out = receipt.left_out_messages
    more = (
        (f"{left_out:,} older messages are too many to be shown and not observed yet.",)
        if left_out
        else ()
    )
    return pieces, data, (*receipt.notes, *more)


def _recalled(
    memory: Memory, name: str, thread_id: str
) -> tuple[list[_Piece], dict[str, Any], tuple[str, ...]]:
    """What a provider would begin with, had it been talking in this thread."""
    from smara.providers.registry import create_provider

    provider = create_provider(name, memory)
    notes: tuple[str, ...] = ()
    provider.init()
    if isinstance(provider, ResumableProvider):
        provider.resume(thread_id)
    else:
        notes = (
            f"The provider {name!r} cannot be told a thread; this is what it recalls by itself.",
        )
    found = provider.recall()
    counter = counter_for(memory.settings.token_model)
    pieces = [
        _Piece(
            "message",
            str(each.get("role", "")),
            counter.count(_text(each)).tokens,
            text=_text(each),
        )
        for each in found
    ]
    data = {"memory": name, "messages": found, "tokens": sum(each.tokens for each in pieces)}
    return pieces, data, notes


def _text(message: ChatMessage) -> str:
    content = message.get("content", "")
    return (
        content
        if isinstance(content, str)
        else json.dumps(content, ensure_ascii=False, default=str)
    )


def _show(pieces: list[_Piece]) -> None:
    if not output.is_terminal():
        rows = [(each.kind, each.name, each.tokens, each.seq, each.text) for each in pieces]
        output.table(("part", "name", "tokens", "seq", "text"), rows)
        return
    for each in pieces:
        where = f" · {each.seq}" if each.seq is not None else ""
        output.say(f"— {each.name}{where} · {each.tokens:,} tokens", bold=True)
        output.say(each.text)
        output.say()
    sections, messages = (
        [each for each in pieces if each.kind == kind] for kind in ("section", "message")
    )
    output.say(
        f"{len(sections)} sections with {sum(each.tokens for each in sections):,} tokens,"
        f" {len(messages)} messages with {sum(each.tokens for each in messages):,} tokens."
    )
