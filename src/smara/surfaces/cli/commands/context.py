"""Define `smara context` and `smara receipts`.

`context` previews what an agent gets; `receipts` shows what it got unasked and used.
"""

from __future__ import annotations

import os
from typing import Any

import click

from smara.context.models import Receipt, ReceiptTotals
from smara.core.extract import one_line
from smara.core.host_table import AGENTS
from smara.core.tokens import counter_for
from smara.memory import Memory
from smara.messages.models import plain
from smara.observations.models import MODES, AgentMode
from smara.prompt.models import LATE, Context
from smara.providers.models import ResumableProvider
from smara.surfaces.cli import output
from smara.surfaces.cli.options import (
    Invocation,
    Reply,
    common,
    complete_receipt,
    complete_thread,
    limit_option,
    with_memory,
)

Piece = tuple[str, str, int, int | None, str]
"""A section of the system text or a message: kind, name, tokens, sequence number, text."""

context_command = click.Group("context", help="Preview what an agent is given.")


@context_command.command("preview")
@click.argument("thread_id", metavar="[THREAD]", required=False, shell_complete=complete_thread)
@click.option(
    "--agent",
    type=click.Choice(AGENTS),
    default="claude",
    show_default=True,
    help="Without THREAD: the agent; what its instruction files say is left out.",
)
@click.option(
    "--file",
    "files",
    metavar="PATH",
    multiple=True,
    help="Without THREAD: a file you work on.",
)
@click.option(
    "--memory",
    "provider",
    metavar="NAME",
    help="Use this memory provider: window, observational, …",
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="default",
    show_default=True,
    help="What the agent is working on.",
)
@click.option(
    "--step",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    help="The step of the turn, from 0.",
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
) -> Reply:
    """Show what the next session is told, or a thread's next context.

    Without THREAD it shows the exact text a new session of an agent would start
    with here; with one, the context of its next step. With its cost. Nothing is
    stored or observed.
    """
    if thread_id is None:
        yield from _preview_start(call, agent, files)
        return
    # Read-only, so that looking neither starts nor activates an observation.
    with call.memory(observe_read_only=True) as memory:
        memory.threads.get(thread_id)
        if provider is not None:
            pieces, data, notes = _recalled(memory, provider, thread_id)
        else:
            pieces, data, notes = _built(
                memory, memory.context.process_input(thread_id, step=step, mode=mode)
            )
            data["next"] = memory.observations.planned(thread_id, mode=mode)._asdict()
        call.warnings += notes
    yield data
    if not output.is_terminal():
        output.table(("part", "name", "tokens", "seq", "text"), pieces)
        return
    for _, name, tokens, seq, text in pieces:
        place = name if seq is None else f"{name} · {seq}"
        output.say(f"— {place} · {tokens:,} tokens", bold=True)
        output.say(text, "")
    totals = (
        f"{output.count(len(sizes), kind)} with {sum(sizes):,} tokens"
        for kind in ("section", "message")
        for sizes in ([each[2] for each in pieces if each[0] == kind],)
    )
    output.say(f"{', '.join(totals)}.")


def _preview_start(call: Invocation, agent: str, files: tuple[str, ...]) -> Reply:
    from smara.adapters.hosts.precompute import instructions_of
    from smara.environment import spool_folder

    cwd = os.getcwd()
    known_texts = instructions_of(agent, cwd, spool_folder())
    with call.memory() as memory:
        injection = memory.moments.preview(
            agent=agent, cwd=cwd, files=files, known_texts=known_texts
        )
        counted = counter_for(memory.settings.token_model).count(injection.text)
    yield {
        "agent": agent,
        "text": injection.text,
        "tokens": counted.tokens,
        "tokenMethod": counted.method,
        "estimatedTokens": injection.tokens,
        "characters": len(injection.text),
        "items": [
            {
                "kind": each.kind,
                "id": each.id,
                "text": each.text,
                "why": each.why,
                "tokens": each.tokens,
            }
            for each in injection.items
        ],
    }
    if injection.text:
        output.say(injection.text)
    if output.is_terminal():
        output.say()
        size = (
            f"{output.count(counted.tokens, 'token')} ({counted.method}), "
            f"{output.count(len(injection.text), 'character')}, "
            f"{output.count(len(injection.items), 'item')}."
        )
        empty = "a new session would start with nothing."
        output.say(f"{agent}: {size if injection.text else empty}", bold=True)


def _built(memory: Memory, context: Context) -> tuple[list[Piece], dict[str, Any], tuple[str, ...]]:
    counter = counter_for(memory.settings.token_model)
    sections: list[Piece] = [
        ("section", each.name, each.tokens, None, each.text) for each in context.sections
    ]
    # In the order in which they are sent: what changes from turn to turn stands last.
    pieces: list[Piece] = [
        *(each for each in sections if each[1] not in LATE),
        *(
            ("message", each.role, counter.count(each.content).tokens, each.seq, each.content)
            for each in context.messages
        ),
        *(each for each in sections if each[1] in LATE),
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
        "reminder": context.reminder,
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
        (f"{output.count(left_out, 'older message')} not shown: not observed yet, and too many.",)
        if left_out
        else ()
    )
    return pieces, data, (*receipt.notes, *more)


def _recalled(
    memory: Memory, name: str, thread_id: str
) -> tuple[list[Piece], dict[str, Any], tuple[str, ...]]:
    """Return what a provider would recall in this thread."""
    from smara.providers.registry import create_provider

    provider = create_provider(name, memory)
    notes: tuple[str, ...] = ()
    provider.init()
    if isinstance(provider, ResumableProvider):
        provider.resume(thread_id)
    else:
        notes = (f"The provider {name!r} cannot resume a thread; this is what it recalls.",)
    found = provider.recall()
    counter = counter_for(memory.settings.token_model)
    pieces: list[Piece] = []
    for message in found:
        text = plain(message.get("content", ""))
        tokens = counter.count(text).tokens
        pieces.append(("message", str(message.get("role", "")), tokens, None, text))
    data = {"memory": name, "messages": found, "tokens": sum(each[2] for each in pieces)}
    return pieces, data, notes


POINTS = {
    "start": "session start", "first_message": "first message", "before_tool": "before a tool",
    "after_tool": "after a tool", "between_steps": "between steps", "planner": "planner",
    "coder": "coder", "qa": "qa",
}  # fmt: skip
_HOW = {
    "ran": "its command was run and worked", "cited": "the agent cited it",
    "named": "a name from it was written later", "opened": "a file from it was opened later",
    "repeated": "the command it warns of was run again and failed",
}  # fmt: skip


_COLUMNS = ("receipt", "when", "point", "agent", "session", "what", "tokens", "state", "saved")
_ONLY_WIDE = ("when", "agent", "saved", "session")
"""A narrower terminal shows only the columns about the text."""


class _Receipts(click.Group):
    """A group that runs `list` without a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_named = bool(args) and (args[0] in self.commands or args[0] in ("-h", "--help"))
        return super().parse_args(ctx, args if is_named else ["list", *args])


receipts_command = _Receipts(
    "receipts", help="Show what was injected into sessions, why, and whether it was used."
)


@receipts_command.command("list")
@click.option("--session", "session_id", metavar="ID", help="Only from this session.")
@limit_option(20, 1_000, help="Show at most N.")
@click.option("--offset", type=click.IntRange(0), default=0, metavar="N", help="Skip the newest N.")
@with_memory
def list_receipts(memory: Memory, session_id: str | None, limit: int, offset: int) -> Reply:
    """List receipts, newest first."""
    found = memory.moments.receipts(session_id, limit + 1, offset)
    totals = memory.moments.totals()
    page = found[:limit]
    yield {
        "receipts": [_json(each) for each in page],
        "nextOffset": offset + limit if len(found) > limit else None,
        "totals": {
            "receipts": totals.receipts,
            "said": totals.injected,
            "delivered": totals.delivered,
            "reached": totals.reached,
            "used": totals.used,
            "tokens": totals.tokens,
            "savedTokens": totals.saved_tokens,
            "arms": _arms_json(totals),
        },
    }
    if not page and output.is_terminal():
        output.say(
            "No receipts yet. `smara context preview` shows what a session would start with."
        )
        return
    rows = []
    for each in page:
        first = one_line(next((item.text for item in each.items if item.text), ""), 48)
        row = {
            "receipt": each.id,
            "when": output.when(each.at),
            "point": POINTS[each.point],
            "agent": each.agent,
            "session": output.short(each.session_id),
            "what": first + (f" + {len(each.items) - 1}" if len(each.items) > 1 else ""),
            "tokens": each.tokens,
            "state": _state(each),
            "saved": each.saved_tokens or "",
        }
        rows.append([row[name] for name in _COLUMNS])
    output.table(_COLUMNS, rows, folding=("what", "state"), wide=_ONLY_WIDE)
    if output.is_terminal():
        output.say(
            "",
            f"{output.count(totals.receipts, 'receipt')}: {totals.injected:,} injected with "
            f"{totals.tokens:,} tokens, {totals.used:,} used.\n"
            f"About {totals.saved_tokens:,} tokens of failed calls saved, by estimate.",
        )


def _state(receipt: Receipt) -> str:
    """Return how far an injection came, in a word or two."""
    states = (
        (f"withheld ({receipt.arm})", not receipt.is_said),
        (f"used ({one_line(receipt.used_how, 20)})", receipt.is_used),
        ("repeated", any(each.outcome == "repeated" for each in receipt.items)),
        ("reached the model", receipt.reached_at is not None),
        ("delivered", receipt.delivered_at is not None),
    )
    return next((state for state, is_reached in states if is_reached), "injected")


@receipts_command.command("show")
@click.argument("receipt_id", metavar="ID", shell_complete=complete_receipt)
@with_memory
def show(memory: Memory, receipt_id: str) -> Reply:
    """Show one receipt: its text, its reasons and its result."""
    found = memory.moments.receipt(receipt_id)
    yield _json(found)
    injected = "yes" if found.is_said else "no: withheld in the control arm of the experiment"
    used = "no sign of it"
    if found.used_at is not None:
        used = f"{output.moment(found.used_at)}: {_HOW.get(found.used_how, found.used_how)}"
    output.facts(
        [
            ("receipt", found.id),
            ("when", output.moment(found.at)),
            ("point", POINTS[found.point]),
            ("session", found.session_id),
            ("agent", found.agent),
            ("source", found.source),
            ("arm", found.arm or ""),
            (
                "cost",
                f"{found.tokens:,} tokens by estimate, {found.characters:,} characters, "
                f"{found.elapsed_ms} ms",
            ),
            ("injected", injected),
            (
                "delivered",
                output.moment(found.delivered_at)
                if found.delivered_at is not None
                else "not yet known",
            ),
            (
                "reached",
                output.moment(found.reached_at) if found.reached_at is not None else "not known",
            ),
            ("used", used),
            (
                "saved",
                f"about {found.saved_tokens:,} tokens" if found.saved_tokens else "",
            ),
        ]
    )
    output.say("", "Items", bold=True)
    for each in found.items:
        state = each.outcome or ("no proof of use" if each.how else "")
        result = f" — {state}: {_HOW.get(each.how, each.how)}" if state else ""
        is_saving = each.outcome == "used" and each.saved_tokens
        saved = f" (saved about {each.saved_tokens:,}: {each.saved_how})" if is_saving else ""
        output.sentence(f"  {each.kind:<8} {each.text}", others=" " * 11)
        facts = f"{each.why}; {each.tokens:,} tokens{saved}{result}"
        output.sentence(f"           {facts}", others=" " * 11)
    output.say("", "Text", bold=True)
    output.sentence(*found.text.splitlines(), others="  ")


@receipts_command.command("arms")
@click.option("--on", "choice", flag_value="on", help="Turn the experiment on for this project.")
@click.option("--off", "choice", flag_value="off", help="Turn it off.")
@with_memory
def arms(memory: Memory, choice: str | None) -> Reply:
    """Show or switch the experiment of this project.

    Of 100 sessions 5 get nothing, 10 only the context before the work, and 85
    everything. It is off by default. The id of a session decides its arm, which
    is kept in its receipts.
    """
    if choice is not None:
        memory.moments.set_arms(choice == "on")
    is_on, totals = memory.moments.has_arms, memory.moments.totals()
    yield {"isOn": is_on, "arms": _arms_json(totals)}
    output.sentence(
        f"The experiment is {'on' if is_on else 'off'} in this project; `smara help moments` says "
        "what it compares."
    )
    if totals.by_arm:
        output.table(
            ("arm", "sessions", "receipts", "used"),
            [(arm, *counts) for arm, counts in totals.by_arm.items()],
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


def _arms_json(totals: ReceiptTotals) -> dict[str, Any]:
    return {
        arm: {"sessions": sessions, "receipts": receipts, "used": used}
        for arm, (sessions, receipts, used) in totals.by_arm.items()
    }
