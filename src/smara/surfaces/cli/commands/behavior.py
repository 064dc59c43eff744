"""Define `smara behavior`: list sessions, signals and learned habits."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

import click

from smara.behavior.models import Noticed, WatchedSession
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, common


@click.group("behavior")
def behavior_command() -> None:
    """What habits show: sessions that were watched, and why something was learned or was not."""


@behavior_command.command("status")
@common
def status(call: Invocation) -> None:
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
                f"{told.files:,} files, {told.edges:,} pairs, {told.errors:,} errors, "
                f"{told.modules:,} modules",
            ),
            ("by kind", ", ".join(f"{kind} {count:,}" for kind, count in told.by_kind.items())),
        ]
    )
    for each in synthesized:
        told_of = (
            f"{each.module} at {each.trigger_count:,}: {each.memories_generated} memories "
            f"({each.method})"
        )
        output.say(f"synthesis  {output.moment(each.synthesized_at)}  {told_of}")


@behavior_command.command("sessions")
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="At most so many."
)
@common
def sessions(call: Invocation, limit: int) -> None:
    """Sessions that were watched, the newest first."""
    with call.memory() as memory:
        found = memory.behavior.sessions(limit)
    if call.as_json:
        output.envelope([_camel(asdict(each)) for each in found])
        return
    rows = [
        (
            each.session_id,
            each.agent,
            each.state,
            each.type or "",
            each.outcome or "",
            each.events,
            each.promoted,
            output.moment(each.last_event_at),
            each.why,
        )
        for each in found
    ]
    columns = (
        "session",
        "agent",
        "state",
        "type",
        "outcome",
        "events",
        "learned",
        "last event",
        "why",
    )
    output.table(columns, rows, folding=("session", "why"))


@behavior_command.command("signals")
@click.argument("session_id", metavar="SESSION")
@click.option(
    "--all", "show_all", is_flag=True, help="Also what was discarded or waits for other sessions."
)
@common
def signals(call: Invocation, session_id: str, show_all: bool) -> None:
    """What a session showed, and why each of it was or was not made a memory.

    A session that has not been decided on shows only what is plain already; `smara behavior
    finalize SESSION` decides.
    """
    with call.memory() as memory:
        session = memory.behavior.session(session_id)
        found = memory.behavior.noticed(session_id)
        early = memory.behavior.triggers(session_id) if session.state != "final" else []
    if call.as_json:
        data = {
            "session": _camel(asdict(session)),
            "signals": [_camel(asdict(each)) for each in found],
        }
        output.envelope(data | {"triggers": [_camel(asdict(each)) for each in early]})
        return
    output.say(_told(session), bold=True)
    for trigger in early:
        output.say(f"{'already':<10} {trigger.kind:<18} {trigger.priority:.2f}  {trigger.subject}")
    shown = [each for each in found if show_all or each.verdict in ("promoted", "known", "refused")]
    for each in shown:
        output.say(_line(each))
    hidden = len(found) - len(shown)
    if hidden:
        output.say(f"{hidden:,} more were discarded or wait for other sessions; --all shows them.")


@behavior_command.command("finalize")
@click.argument("session_id", metavar="[SESSION]", required=False)
@common
def finalize(call: Invocation, session_id: str | None) -> None:
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
            told = (
                told
                if done is not None
                else "Nothing was heard of it since it was last decided on."
            )
    if call.as_json:
        output.envelope(data)
        return
    output.say(told)


@behavior_command.command("habits")
@click.option("--file", "path", help="Only the files that are touched with this one.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    default=10,
    show_default=True,
    help="At most so many of each.",
)
@common
def habits(call: Invocation, path: str | None, limit: int) -> None:
    """What was counted over all sessions: files that go together, commands that fail, modules and
    their files.
    """
    with call.memory() as memory:
        watched = memory.behavior
        pairs, failures = watched.edges(path, limit), [] if path else watched.failures(limit)
        modules = [
            {
                "module": name,
                "sessions": count,
                "prefetch": watched.prefetch(name),
                "plans": watched.calibration(name),
            }
            for name, count in ([] if path else watched.modules(limit))
        ]
    if call.as_json:
        told: dict[str, Any] = {"pairs": [_camel(asdict(each)) for each in pairs]}
        told["failures"] = [_camel(asdict(each)) for each in failures]
        told["modules"] = [
            {name: _plain(value) for name, value in each.items()} for each in modules
        ]
        output.envelope(told)
        return
    output.table(
        ("files", "sessions", "both changed", "apart", "first", "kinds of work"),
        [_pair(each) for each in pairs],
        folding=("files",),
    )
    for failure in failures:
        fix = f"; {failure.how}: {failure.fix}" if failure.how else ""
        output.say(
            f"failed {failure.occurrences:,} x in {failure.sessions:,}  {failure.command}: "
            f"{failure.error}{fix}"
        )
    for each in modules:
        output.say(_module(each))


def _pair(edge: Any) -> tuple[object, ...]:
    apart = f"{edge.avg_time_delta_ms / 1000:.0f} s" if edge.avg_time_delta_ms else ""
    first = {1: edge.file_a, -1: edge.file_b}.get(
        (edge.directional > 0) - (edge.directional < 0), ""
    )
    kinds = ", ".join(f"{kind} {count}" for kind, count in edge.task_types.items())
    files = f"{edge.file_a} + {edge.file_b}"
    return (
        files,
        edge.session_count,
        edge.edit_session_count,
        apart,
        first.rsplit("/", 1)[-1],
        kinds,
    )


def _module(told: dict[str, Any]) -> str:
    prefetch, plans = told["prefetch"], told["plans"]
    read = (
        f"; always read: {', '.join(prefetch.always)}"
        if prefetch is not None and prefetch.always
        else ""
    )
    steps = (
        f"; plans take {plans.ratio:g} times their steps ({plans.samples:,} plans)"
        if plans is not None
        else ""
    )
    return f"module {told['module']}: {told['sessions']:,} sessions{read}{steps}"


def _plain(value: Any) -> Any:
    return _camel(asdict(value)) if is_dataclass(value) and not isinstance(value, type) else value


def _told(session: WatchedSession) -> str:
    if session.state != "final" and session.type is None:
        return f"{session.session_id}: {session.events:,} events; not decided on yet."
    return (
        f"{session.session_id}: {session.type}, {session.outcome} ({session.why}); "
        f"{session.promoted} learned."
    )


def _line(each: Noticed) -> str:
    taint = f" [{', '.join(each.taint)}]" if each.taint else ""
    return f"{each.verdict:<10} {each.kind:<18} {each.value:.2f}  {each.subject}{taint}: {each.why}"


def _camel(values: dict[str, Any]) -> dict[str, Any]:
    """Names as JSON has them."""
    return {_camel_name(name): value for name, value in values.items()}


def _camel_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
