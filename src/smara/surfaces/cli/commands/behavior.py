"""Define `smara behavior`: list sessions, signals and learned habits."""

from __future__ import annotations

import click

from smara.memory import Memory
from smara.surfaces.cli import output
from smara.surfaces.cli.options import (
    Reply,
    complete_thread,
    limit_option,
    with_memory,
)

behavior_command = click.Group(
    "behavior", help="Show what Smara learns from the work of agents, and why."
)


@behavior_command.command("status")
@with_memory
def status(memory: Memory) -> Reply:
    """Show how many sessions were watched and what came of them."""
    totals = memory.behavior.status()
    synthesized = memory.behavior.synthesis_log(5)
    yield output.camel_case(totals) | {
        "synthesis": [output.camel_case(each) for each in synthesized]
    }
    last = output.moment(totals.last_event_at) if totals.last_event_at else "never"
    output.facts(
        [
            ("last event", last),
            (
                "sessions",
                f"{totals.open:,} open, {totals.ended:,} ended, {totals.final:,} learned from",
            ),
            ("signals", f"{totals.signals:,} detected, {totals.promoted:,} became memories"),
            (
                "counted",
                f"{totals.files:,} files, {totals.edges:,} pairs of files, "
                f"{totals.errors:,} errors, {totals.modules:,} modules",
            ),
            ("by kind", ", ".join(f"{kind} {count:,}" for kind, count in totals.by_kind.items())),
        ]
    )
    output.print_lines(
        f"synthesis  {output.moment(each.synthesized_at)}  {each.module} at "
        f"{each.trigger_count:,}: {each.memories_generated} memories ({each.method})"
        for each in synthesized
    )


@behavior_command.command("sessions")
@limit_option(20, 1_000, help="Show at most N.")
@with_memory
def sessions(memory: Memory, limit: int) -> Reply:
    """List watched sessions, newest first."""
    found = memory.behavior.sessions(limit)
    yield [output.camel_case(each) for each in found]
    columns = (
        "session", "agent", "state", "type", "outcome", "events", "learned", "last event", "why",
    )  # fmt: skip
    output.table(
        columns,
        [
            (
                output.short(each.session_id),
                each.agent,
                each.state,
                each.type or "",
                each.outcome or "",
                each.events,
                each.promoted,
                output.when(each.last_event_at),
                each.why,
            )
            for each in found
        ],
        folding=("why",),
        wide=("outcome", "last event", "type", "events", "learned", "state"),
    )


@behavior_command.command("signals")
@click.argument("session_id", metavar="SESSION", shell_complete=complete_thread)
@click.option(
    "--all", "show_all", is_flag=True, help="Also list discarded signals and those that wait."
)
@with_memory
def signals(memory: Memory, session_id: str, show_all: bool) -> Reply:
    """List a session's signals, and why each became a memory.

    SESSION is an id or the beginning of one. `smara behavior finalize SESSION`
    decides on one that has not ended.
    """
    session = memory.behavior.session(session_id)
    found = memory.behavior.noticed(session.session_id)
    yield {
        "session": output.camel_case(session),
        "signals": [output.camel_case(each) for each in found],
    }
    if session.state != "final" and session.type is None:
        result = f"{output.count(session.events, 'event')}; nothing was learned from it yet."
    else:
        result = f"{session.type}, {session.outcome} ({session.why}); {session.promoted} learned."
    output.sentence(f"{output.short(session.session_id)}: {result}", others="  ")
    shown = [each for each in found if show_all or each.verdict in ("promoted", "known", "refused")]
    for each in shown:
        taint = f" [{', '.join(each.taint)}]" if each.taint else ""
        output.sentence(
            f"{each.verdict:<10} {each.kind:<18} {each.value:.2f}  {each.subject}{taint}: "
            f"{each.why}",
            others=" " * 11,
        )
    if len(found) > len(shown):
        output.say(f"{len(found) - len(shown):,} more were discarded or wait; --all lists them.")


@behavior_command.command("finalize")
@click.argument("session_id", metavar="[SESSION]", required=False, shell_complete=complete_thread)
@with_memory
def finalize(memory: Memory, session_id: str | None) -> Reply:
    """Decide what to learn from ended sessions."""
    if session_id is None:
        jobs = memory.behavior.run_due(100)
    else:
        session_id = memory.behavior.session(session_id).session_id
        done = memory.behavior.finalize(session_id)
    if session_id is None:
        yield output.camel_case(jobs)
        output.say(
            f"Learned from {output.count(jobs.finalized, 'session')}; "
            f"{output.count(jobs.promoted, 'new memory', 'new memories')}."
        )
        return
    count = len(done.promoted) if done is not None else 0
    yield {"sessionId": session_id, "isDecided": done is not None, "promoted": count}
    if done is None:
        output.say("No new events since the session was last learned from.")
    else:
        output.say(
            f"{output.count(count, 'new memory', 'new memories')}. "
            f"`smara behavior signals {output.short(session_id)} --all` explains."
        )


@behavior_command.command("habits")
@click.option("--file", "path", help="Only files that are used together with this one.")
@limit_option(10, 1_000, help="Show at most N of each kind.")
@with_memory
def habits(memory: Memory, path: str | None, limit: int) -> Reply:
    """Show habits over all sessions: files, failing commands, modules.

    Files are listed that are used together, commands that fail and what fixed them,
    and modules with the files they take.
    """
    watched = memory.behavior
    pairs, failures = watched.edges(path, limit), [] if path else watched.failures(limit)
    modules = [
        (name, count, watched.prefetch(name), watched.calibration(name))
        for name, count in ([] if path else watched.modules(limit))
    ]
    yield {
        "pairs": [output.camel_case(each) for each in pairs],
        "failures": [output.camel_case(each) for each in failures],
        "modules": [
            {
                "module": name,
                "sessions": count,
                "prefetch": None if prefetch is None else output.camel_case(prefetch),
                "plans": None if plans is None else output.camel_case(plans),
            }
            for name, count, prefetch, plans in modules
        ],
    }
    rows = [
        (
            f"{edge.file_a} + {edge.file_b}",
            edge.session_count,
            edge.edit_session_count,
            f"{edge.avg_time_delta_ms / 1000:.0f} s" if edge.avg_time_delta_ms else "",
            (edge.file_a if edge.directional > 0 else edge.file_b).rsplit("/", 1)[-1]
            if edge.directional
            else "",
            ", ".join(f"{kind} {count}" for kind, count in edge.task_types.items()),
        )
        for edge in pairs
    ]
    output.table(
        ("files", "sessions", "both changed", "apart", "first", "kinds of work"),
        rows,
        folding=("files",),
        wide=("both changed", "apart", "first", "kinds of work"),
    )
    for failure in failures:
        fix = f"; {failure.how}: {failure.fix}" if failure.how else ""
        output.say(
            f"failed {failure.occurrences:,} x in {output.count(failure.sessions, 'session')}  "
            f"{failure.command}: {failure.error}{fix}"
        )
    for name, count, prefetch, plans in modules:
        read = (
            f"; always read: {', '.join(prefetch.always)}" if prefetch and prefetch.always else ""
        )
        steps = (
            f"; plans take {plans.ratio:g} x their steps ({output.count(plans.samples, 'plan')})"
            if plans is not None
            else ""
        )
        output.say(f"module {name}: {output.count(count, 'session')}{read}{steps}")
