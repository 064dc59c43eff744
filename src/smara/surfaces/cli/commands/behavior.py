"""``smara behavior``"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from smara.behavior.models import Noticed, WatchedSession
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common


@click.group("behavior")
def command() -> None:
    """What habits show: sessions that were watched, and why something was learned or was not."""


@command.command("status")
@common
def status(call: Call) -> None:
    """How the watching stands."""
    with call.memory() as memory:
        told = memory.behavior.status()
        synthesized = memory.behavior.synthesis_log(5)
    if call.as_json:
        data = _camel(asdict(told)) | {"synthesis": [_camel(asdict(each)) for each in synthesized]}
        output.envelope(data)
        return
    last = output.moment(told.last_event_at) if told.last_event_at else "never"
    output.facts(
        [
            ("last event", last),
            ("sessions", f"{told.open:,} open, {told.ended:,} ended, {told.final:,} decided on"),
            ("signals", f"{told.signals:,} noticed, {told.promoted:,} made memories"),
            (
                "counted",
                f"{told.files:,} files, {told.edges:,} pairs, {told.errors:,} errors, {told.modules:,} modules",
            ),
            ("by kind", ", ".join(f"{kind} {count:,}" for kind, count in told.by_kind.items())),
        ]
    )
    for each in synthesized:
        told_of = f"{each.module} at {each.trigger_count:,}: {each.memories_generated} memories ({each.method})"
        output.say(f"synthesis  {output.moment(each.synthesized_at)}  {told_of}")


@command.command("sessions")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="At most so many.")
@common
def sessions(call: Call, limit: int) -> None:
    """Sessions that were watched, the newest first."""
    with call.memory() as memory:
        found = memory.behavior.sessions(limit)
    if call.as_json:
        output.envelope([_camel(asdict(each)) for each in found])
        return
    rows = [
        (each.session_id, each.agent, each.state, each.type or "", each.outcome or "", each.events, each.promoted,
         output.moment(each.last_event_at), each.why)
        for each in found
    ]  # fmt: skip
    columns = ("session", "agent", "state", "type", "outcome", "events", "learned", "last event", "why")
    output.table(columns, rows, folding=("session", "why"))


@command.command("signals")
@click.argument("session_id", metavar="SESSION")
@click.option("--all", "show_all", is_flag=True, help="Also what was discarded or waits for other sessions.")
@common
def signals(call: Call, session_id: str, show_all: bool) -> None:
    """What a session showed, and why each of it was or was not made a memory.

    A session that has not been decided on shows nothing yet; `smara behavior finalize SESSION` decides.
    """
    with call.memory() as memory:
        session = memory.behavior.session(session_id)
        found = memory.behavior.noticed(session_id)
    if call.as_json:
        output.envelope({"session": _camel(asdict(session)), "signals": [_camel(asdict(each)) for each in found]})
        return
    output.say(_told(session), bold=True)
    shown = [each for each in found if show_all or each.verdict in ("promoted", "known", "refused")]
    for each in shown:
        output.say(_line(each))
    hidden = len(found) - len(shown)
    if hidden:
        output.say(f"{hidden:,} more were discarded or wait for other sessions; --all shows them.")


@command.command("finalize")
@click.argument("session_id", metavar="[SESSION]", required=False)
@common
def finalize(call: Call, session_id: str | None) -> None:
    """Decide on a session now, or on all that have ended."""
    with call.memory() as memory:
        if session_id is None:
            jobs = memory.behavior.run_due(100)
            data: dict[str, Any] = _camel(asdict(jobs))
            told = f"{jobs.finalized:,} sessions decided on, {jobs.promoted:,} memories."
        else:
            memory.behavior.session(session_id)
            done = memory.behavior.finalize(session_id)
            count = len(done.promoted) if done is not None else 0
            data = {"sessionId": session_id, "isDecided": done is not None, "promoted": count}
            told = f"{count:,} memories; `smara behavior signals {session_id} --all` says why."
            told = told if done is not None else "Nothing was heard of it since it was last decided on."
    if call.as_json:
        output.envelope(data)
        return
    output.say(told)


def _told(session: WatchedSession) -> str:
    if session.state != "final" and session.type is None:
        return f"{session.session_id}: {session.events:,} events; not decided on yet."
    return f"{session.session_id}: {session.type}, {session.outcome} ({session.why}); {session.promoted} learned."


def _line(each: Noticed) -> str:
    taint = f" [{', '.join(each.taint)}]" if each.taint else ""
    return f"{each.verdict:<10} {each.kind:<18} {each.value:.2f}  {each.subject}{taint}: {each.why}"


def _camel(values: dict[str, Any]) -> dict[str, Any]:
    """Names as JSON has them."""
    return {_camel_name(name): value for name, value in values.items()}


def _camel_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
