"""Define `smara context` and `smara receipts`.

`context` previews what an agent gets; `receipts` shows what it got unasked and used.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import click

from smara.context.models import Context, Receipt, ReceiptItem, ReceiptTotals
from smara.core.host_table import AGENTS
from smara.core.tokens import counter_for
from smara.memory import Memory
from smara.observations.models import MODES, AgentMode
from smara.providers.models import ChatMessage, ResumableProvider
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, common, complete_thread


@dataclass(frozen=True, slots=True)
class _Piece:
    """One part of what a model is given: a section of the system text, or a message."""

    kind: str
    name: str
    tokens: int
    text: str
    seq: int | None = None


@click.group("context")
def context_command() -> None:
    """What an agent gets."""


@context_command.command("preview")
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
    call: Invocation,
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


def _preview_start(call: Invocation, agent: str, files: tuple[str, ...]) -> None:
    from smara.adapters.hosts.precompute import instructions_of
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


_POINTS = {
    "start": "session start", "first_message": "first message", "before_tool": "before a tool",
    "after_tool": "after a tool", "between_steps": "between steps", "planner": "planner",
    "coder": "coder", "qa": "qa",
}  # fmt: skip
_HOW = {
    "ran": "what it recommends was run and worked", "cited": "the agent named it",
    "named": "a name of it stands in what the agent wrote",
    "opened": "a file that it speaks of was opened",
    "avoided": "what it warns of was not run again", "repeated": "what it warns of was run again",
}  # fmt: skip


_COLUMNS = ("receipt", "when", "point", "agent", "session", "what", "tokens", "state", "saved")
_ONLY_WIDE = ("when", "agent", "session", "saved")
_WIDE = 120
"""On a narrower terminal a table shows what was said rather than to whom."""


class _Receipts(click.Group):
    """A group that lists when nobody says what to do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_named = bool(args) and (args[0] in self.commands or args[0] in ("-h", "--help"))
        return super().parse_args(ctx, args if is_named else ["list", *args])


@click.group("receipts", cls=_Receipts)
def receipts_command() -> None:
    """What agents were told unasked: why, at what cost, and whether it was used."""


@receipts_command.command("list")
@click.option("--session", "session_id", metavar="ID", help="Only what this session was told.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="At most so many."
)
@click.option(
    "--offset", type=click.IntRange(0), default=0, metavar="N", help="Leave out the newest N."
)
@common
def list_receipts(call: Invocation, session_id: str | None, limit: int, offset: int) -> None:
    """What was said, the newest first."""
    with call.memory() as memory:
        found = memory.moments.receipts(session_id, limit + 1, offset)
        totals = memory.moments.totals()
    page = found[:limit]
    if call.as_json:
        rest = offset + limit if len(found) > limit else None
        data = {
            "receipts": [_json(each) for each in page],
            "nextOffset": rest,
            "totals": _totals_json(totals),
        }
        output.envelope(data)
        return
    if not page and output.is_terminal():
        output.say(
            "Nothing was said yet. `smara context preview` shows what a session would begin with."
        )
        return
    wide = not output.is_terminal() or output.terminal_width(200) >= _WIDE
    shown = [_row(each) for each in page]
    names = _COLUMNS if wide else tuple(name for name in _COLUMNS if name not in _ONLY_WIDE)
    output.table(names, [[row[name] for name in names] for row in shown], folding=("what", "state"))
    if output.is_terminal():
        output.say()
        output.say(_summary(totals))


@receipts_command.command("show")
@click.argument("receipt_id", metavar="ID")
@common
def show(call: Invocation, receipt_id: str) -> None:
    """One receipt: the very words, why each was said, and what came of it."""
    with call.memory() as memory:
        found = memory.moments.receipt(receipt_id)
    if call.as_json:
        output.envelope(_json(found))
        return
    said = (
        "said"
        if found.is_said
        else "not said: what this session of the control arm would have been told"
    )
    output.facts(
        [
            ("receipt", found.id),
            ("when", output.moment(found.at)),
            ("point", _POINTS[found.point]),
            ("session", found.session_id),
            ("agent", found.agent),
            ("source", found.source),
            ("arm", found.arm or ""),
            (
                "cost",
                f"{found.tokens:,} tokens by estimate, {found.characters:,} characters, "
                f"{found.elapsed_ms} ms",
            ),
            ("said", said),
            (
                "handed over",
                output.moment(found.delivered_at)
                if found.delivered_at is not None
                else "not yet known",
            ),
            (
                "reached",
                output.moment(found.reached_at) if found.reached_at is not None else "not known",
            ),
            ("used", _used(found)),
            (
                "saved",
                f"about {found.saved_tokens:,} tokens of reading" if found.saved_tokens else "",
            ),
        ]
    )
    output.say()
    output.say("What and why", bold=True)
    for each in found.items:
        output.say(_item_line(each))
    output.say()
    output.say("The very words", bold=True)
    output.say(found.text)


@receipts_command.command("arms")
@click.option("--on", "choice", flag_value="on", help="Let the sessions of this project take part.")
@click.option("--off", "choice", flag_value="off", help="No longer.")
@common
def arms(call: Invocation, choice: str | None) -> None:
    """The experiment of this project: 5 of 100 sessions are told nothing, 10 only before the work,
    85 everything.

    It is off until somebody turns it on. The arm of a session is a matter of its id, and is kept in
    its receipts.
    """
    with call.memory() as memory:
        if choice is not None:
            memory.moments.set_arms(choice == "on")
        is_on, totals = memory.moments.has_arms, memory.moments.totals()
    if call.as_json:
        output.envelope({"isOn": is_on, "arms": _arms_json(totals)})
        return
    output.say(f"The experiment is {'on' if is_on else 'off'} in this project.")
    if totals.by_arm:
        rows = [(arm, *counts) for arm, counts in totals.by_arm.items()]
        output.table(("arm", "sessions", "receipts", "used"), rows)


def _row(receipt: Receipt) -> dict[str, Any]:
    return {
        "receipt": receipt.id,
        "when": output.moment(receipt.at),
        "point": _POINTS[receipt.point],
        "agent": receipt.agent,
        "session": receipt.session_id[:13],
        "what": _what(receipt),
        "tokens": receipt.tokens,
        "state": _state(receipt),
        "saved": receipt.saved_tokens or "",
    }


def _what(receipt: Receipt) -> str:
    first = next((each.text for each in receipt.items if each.text), "")
    more = len(receipt.items) - 1
    return output.short(first, 48) + (f" + {more}" if more > 0 else "")


def _state(receipt: Receipt) -> str:
    if not receipt.is_said:
        return f"withheld ({receipt.arm})"
    if receipt.is_used:
        return f"used ({output.short(receipt.used_how, 20)})"
    if any(each.outcome == "repeated" for each in receipt.items):
        return "repeated"
    if receipt.reached_at is not None:
        return "reached the model"
    return "handed over" if receipt.delivered_at is not None else "said"


def _used(receipt: Receipt) -> str:
    if receipt.used_at is None:
        return "no sign of it"
    return f"{output.moment(receipt.used_at)}: {_HOW.get(receipt.used_how, receipt.used_how)}"


def _item_line(item: ReceiptItem) -> str:
    came = "" if item.outcome is None else f" — {item.outcome}: {_HOW.get(item.how, item.how)}"
    saved = f" (spares about {item.saved_tokens:,}: {item.saved_how})" if item.saved_tokens else ""
    return (
        f"  {item.kind:<8} {item.text}\n           {item.why}; {item.tokens:,} tokens{saved}{came}"
    )


def _summary(totals: ReceiptTotals) -> str:
    return (
        f"{totals.receipts:,} receipts: {totals.said:,} said with {totals.tokens:,} tokens, "
        f"{totals.used:,} used.\n"
        f"About {totals.saved_tokens:,} tokens of reading saved, by estimate."
    )


def _json(receipt: Receipt) -> dict[str, Any]:
    return {
        "id": receipt.id,
        "sessionId": receipt.session_id,
        "point": receipt.point,
        "at": receipt.at,
        "agent": receipt.agent,
        "source": receipt.source,
        "arm": receipt.arm,
        "isSaid": receipt.is_said,
        "text": receipt.text,
        "tokens": receipt.tokens,
        "characters": receipt.characters,
        "elapsedMs": receipt.elapsed_ms,
        "deliveredAt": receipt.delivered_at,
        "reachedAt": receipt.reached_at,
        "usedAt": receipt.used_at,
        "usedHow": receipt.used_how,
        "savedTokens": receipt.saved_tokens,
        "items": [
            {
                "kind": each.kind,
                "id": each.id,
                "text": each.text,
                "why": each.why,
                "tokens": each.tokens,
                "savedTokens": each.saved_tokens,
                "savedHow": each.saved_how,
                "outcome": each.outcome,
                "how": each.how,
                "settledAt": each.settled_at,
            }
            for each in receipt.items
        ],
    }


def _totals_json(totals: ReceiptTotals) -> dict[str, Any]:
    return {
        "receipts": totals.receipts,
        "said": totals.said,
        "delivered": totals.delivered,
        "reached": totals.reached,
        "used": totals.used,
        "tokens": totals.tokens,
        "savedTokens": totals.saved_tokens,
        "arms": _arms_json(totals),
    }


def _arms_json(totals: ReceiptTotals) -> dict[str, Any]:
    return {
        arm: {"sessions": sessions, "receipts": receipts, "used": used}
        for arm, (sessions, receipts, used) in totals.by_arm.items()
    }
