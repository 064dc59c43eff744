"""Define `smara observations`, `smara observe` and `smara reflect`."""

from __future__ import annotations

from typing import Any

import click

from smara.core.freshness import Freshness
from smara.messages.models import Message
from smara.observations.models import (
    CATEGORIES,
    MODES,
    PRIORITIES,
    STATES,
    AgentMode,
    CycleOutcome,
    Observation,
    ObservationFailure,
    ObservationWarning,
)
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, common, complete_thread
from smara.surfaces.cli.render.memories import code_line, code_word
from smara.surfaces.cli.render.observations import (
    failure_json,
    observation_json,
    outcome_json,
    recovery,
    require_success,
    require_writing,
    source,
    warned_json,
)

_OFFSET = click.option(
    "--offset", type=click.IntRange(0), metavar="N", default=0, help="Leave out so many first."
)


@click.group("observations")
def observations_command() -> None:
    """What was noticed: list and show it, see why, how far it is, and what failed."""


@observations_command.command("list")
@click.option(
    "--thread",
    "thread_id",
    metavar="ID",
    help="Only of this thread.",
    shell_complete=complete_thread,
)
@click.option("--state", type=click.Choice(STATES))
@click.option(
    "--category",
    type=click.Choice(CATEGORIES),
    metavar="C",
    help=f"One of {', '.join(CATEGORIES)}.",
)
@click.option("--priority", type=click.Choice(PRIORITIES))
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", default=50, show_default=True)
@_OFFSET
@common
def list_observations(
    call: Invocation,
    thread_id: str | None,
    state: str | None,
    category: str | None,
    priority: str | None,
    limit: int,
    offset: int,
) -> None:
    """Observations, the newest first; condensed ones too."""
    with call.memory() as memory:
        if thread_id is not None:
            memory.threads.get(thread_id)
        found = memory.observations.list(
            thread_id=thread_id,
            state=state,
            category=category,
            priority=priority,
            limit=limit + 1,
            offset=offset,
        )
        code = memory.observations.freshness(found[:limit])
        warnings = memory.warnings
    shown, following = found[:limit], offset + limit if len(found) > limit else None
    if call.as_json:
        data = {
            "observations": [observation_json(each, code.get(each.id)) for each in shown],
            "nextOffset": following,
        }
        output.envelope(data, warnings)
        return
    output.warn(warnings)
    if not shown and output.is_terminal():
        output.say(
            "No observations. `smara observe THREAD` makes some; `smara worker` makes them by "
            "itself."
        )
        return
    if output.is_terminal():
        for each in shown:
            _show_one(each, code.get(each.id))
    else:
        output.table(
            ("id", "said", "priority", "category", "state", "thread", "messages", "text", "code"),
            [_row(each, code.get(each.id)) for each in shown],
        )
    _tell_of_more(following)


def _row(each: Observation, code: Freshness | None) -> tuple[Any, ...]:
    return (
        each.id,
        output.moment(each.said_at),
        each.priority,
        each.category,
        each.state,
        each.thread_id,
        source(each),
        each.text,
        code_word(code),
    )


def _show_one(each: Observation, code: Freshness | None) -> None:
    """One observation for a person: with nine columns, a table would leave its text no room."""
    where = f"{each.thread_id}:{source(each)}" if each.thread_id else "several threads"
    state = "" if each.state == "active" else f" · {each.state}"
    output.say(
        f"{output.moment(each.said_at)} · {each.priority} · {each.category}{state} · {where}",
        bold=True,
    )
    output.say(output.paragraph(" ".join(each.text.split()), "   ", "   "))
    if code is not None and code.hedge is not None:
        output.say(output.paragraph(code.hedge, "   but: ", "   "), fg="yellow")
    output.say(f"   {each.id}", dim=True)


@observations_command.command("show")
@click.argument("observation_id", metavar="ID")
@common
def show(call: Invocation, observation_id: str) -> None:
    """One observation with all that is known of it."""
    with call.memory() as memory:
        found = memory.observations.get(observation_id)
        left_out = memory.observations.warnings(observation_id)
        code = memory.observations.freshness([found]).get(found.id)
        warnings = memory.warnings
    if call.as_json:
        output.envelope({**observation_json(found, code), "warnings": list(left_out)}, warnings)
        return
    output.warn(warnings)
    into = "" if found.reflected_into is None else f"generation {found.reflected_into}"
    output.facts(
        [
            ("observation", found.id),
            ("text", found.text),
            *(("detail", each) for each in found.details),
            ("kind", found.kind),
            ("state", found.state),
            ("condensed into", into),
            ("priority", found.priority),
            ("category", found.category),
            ("mode", found.mode),
            ("thread", found.thread_id or ""),
            ("messages", source(found)),
            ("said", output.moment(found.said_at)),
            ("speaks of", found.refers_to or ""),
            ("code", code_line(code)),
            ("files", ", ".join(found.files)),
            ("lines", ", ".join(map(str, found.lines))),
            *((name, _value(value)) for name, value in found.mode_specific.items()),
            ("taint", ", ".join(found.taint)),
            ("tokens", f"{found.tokens:,}"),
            ("made by", found.method),
            ("made", output.moment(found.created_at)),
            *(("left out", each) for each in left_out),
        ]
    )


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


@observations_command.command("why")
@click.argument("observation_id", metavar="ID")
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", default=20, show_default=True)
@_OFFSET
@common
def why(call: Invocation, observation_id: str, limit: int, offset: int) -> None:
    """The messages behind an observation, word for word, a page at a time."""
    with call.memory() as memory:
        found = memory.observations.get(observation_id)
        messages = memory.observations.why(observation_id, limit=limit, offset=offset)
        code = memory.observations.freshness([found]).get(found.id)
        warnings = memory.warnings
    following = (
        offset + limit if found.first_seq + offset + limit <= found.last_seq and messages else None
    )
    if call.as_json:
        data = {
            "observation": observation_json(found, code),
            "messages": [output.message_json(each) for each in messages],
            "nextOffset": following,
        }
        output.envelope(data, warnings)
        return
    output.warn(warnings)
    if found.thread_id is None:
        output.say(
            "It condenses observations of several threads; `smara observations list --state "
            "reflected` has them."
        )
        return
    _show_messages(found, messages)
    _tell_of_more(following)


def _show_messages(observation: Observation, messages: list[Message]) -> None:
    if output.is_terminal():
        output.say(
            output.paragraph(f"{observation.text} ({observation.priority})", "", ""), bold=True
        )
        output.say()
    else:
        output.row(("thread", "seq", "role", "time", "content"))
    for each in messages:
        if not output.is_terminal():
            output.row(
                (
                    each.thread_id,
                    each.seq,
                    each.role,
                    output.moment(each.created_at),
                    each.raw_content,
                )
            )
            continue
        output.say(
            f"— {each.role} · {each.thread_id}:{each.seq} · {output.moment(each.created_at)}",
            bold=True,
        )
        output.say(each.raw_content)
        output.say()


@observations_command.command("status")
@click.argument("thread_id", metavar="THREAD", shell_complete=complete_thread)
@common
def status(call: Invocation, thread_id: str) -> None:
    """How far a thread is observed: what is pending, buffered, active and condensed."""
    with call.memory() as memory:
        memory.threads.get(thread_id)
        found = memory.observations.status(thread_id)
        warnings = memory.warnings
    if call.as_json:
        output.envelope(found, warnings)
        return
    output.warn(warnings)
    output.facts(
        [
            ("scope", found["scope"]),
            ("pending tokens", f"{found['pendingTokens']:,}"),
            ("buffered tokens", f"{found['bufferedTokens']:,}"),
            ("observation tokens", f"{found['observationTokens']:,}"),
            ("buffered reflection", f"{found['bufferedReflectionTokens']:,}"),
            ("observed tokens", f"{found['observedTokens']:,}"),
            ("generation", str(found["generation"])),
            ("last observed", _moment(found["lastObservedAt"])),
            ("last reflected", _moment(found["lastReflectedAt"])),
            ("waiting", _waiting(found["waiting"])),
        ]
    )


def _waiting(waiting: dict[str, Any] | None) -> str:
    if waiting is None:
        return ""
    return (
        f"{waiting['message']} Tried {waiting['attempts']:,} times, again "
        f"{output.moment(waiting['retryAt'])}."
    )


def _moment(milliseconds: int | None) -> str:
    return "" if milliseconds is None else output.moment(milliseconds)


@observations_command.command("failures")
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", default=50, show_default=True)
@common
def failures(call: Invocation, limit: int) -> None:
    """What could not be observed: what is tried again, what was given up, and what was left out."""
    with call.memory() as memory:
        found = memory.observations.failures(limit=limit)
        warned = memory.observations.warned(limit=limit)
        warnings = memory.warnings
    if call.as_json:
        data = {
            "failures": [failure_json(each) for each in found],
            "warned": [warned_json(each) for each in warned],
        }
        output.envelope(data, warnings)
        return
    output.warn(warnings)
    if output.is_terminal():
        _show_failures(found, warned)
        return
    output.table(
        ("failed", "operation", "thread", "first", "attempts", "code", "next", "message"),
        [
            *(
                (
                    output.moment(each.failed_at),
                    each.operation,
                    each.thread_id,
                    each.first_seq,
                    each.attempts,
                    each.code,
                    _next(each),
                    each.message,
                )
                for each in found
            ),
            *(
                (
                    output.moment(each.created_at),
                    "left out",
                    each.thread_id,
                    each.first_seq,
                    "",
                    "",
                    "",
                    line,
                )
                for each in warned
                for line in each.warnings
            ),
        ],
    )


def _show_failures(found: list[ObservationFailure], warned: list[ObservationWarning]) -> None:
    if not found and not warned:
        output.say("No failures.")
    for each in found:
        where = (
            f"{each.thread_id or 'several threads'}:{each.first_seq}"
            if each.first_seq
            else each.thread_id
        )
        head = (
            f"{output.moment(each.failed_at)} · {each.operation} · {where} · {each.attempts} "
            f"attempts · {_next(each)}"
        )
        output.say(head, bold=True)
        output.say(output.paragraph(f"{each.code}: {each.message}", "   ", "   "))
    for batch in warned:
        where = f"{batch.thread_id}:{batch.first_seq}–{batch.last_seq}"
        output.say(f"{output.moment(batch.created_at)} · left out · {where}", bold=True)
        for line in batch.warnings:
            output.say(output.paragraph(line, "   ", "   "))


def _next(failure: ObservationFailure) -> str:
    return "given up" if failure.is_dead else f"again {output.moment(failure.retry_at)}"


def _tell_of_more(following: int | None) -> None:
    if following is not None:
        click.echo(f"There is more: --offset {following}", err=True)


@click.command("observe")
@click.argument("thread_id", metavar="THREAD", shell_complete=complete_thread)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="default",
    show_default=True,
    help="What the agent was busy with.",
)
@click.option(
    "--buffer",
    "is_buffered",
    is_flag=True,
    help="Prepare them; the agent sees them when they are activated.",
)
@common
def observe_command(call: Invocation, thread_id: str, mode: AgentMode, is_buffered: bool) -> None:
    """Observe what was said in a thread since the last time. Safe to repeat: no message is observed
    twice.

    What failed before is tried again at once.
    """
    with call.memory() as memory:
        memory.threads.get(thread_id)
        require_writing(memory)
        look = memory.observations.buffer if is_buffered else memory.observations.observe
        outcome = look(thread_id, mode=mode, is_now=True)
        warnings = [*memory.warnings, *recovery(outcome)]
    require_success(outcome)
    if call.as_json:
        output.envelope(outcome_json(outcome), warnings)
        return
    output.warn(warnings)
    output.say(_observe_line(outcome, is_buffered))


def _observe_line(outcome: CycleOutcome, is_buffered: bool) -> str:
    if not outcome.messages:
        return "Every message is observed already."
    later = " They are buffered: shown once they are activated." if is_buffered else ""
    return f"{outcome.notes:,} observations of {outcome.messages:,} messages.{later}"


@click.command("reflect")
@click.argument("thread_id", metavar="THREAD", shell_complete=complete_thread)
@click.option(
    "--force",
    "is_forced",
    is_flag=True,
    help="Condense all that is active, the newest and the few as well.",
)
@click.option(
    "--buffer",
    "is_buffered",
    is_flag=True,
    help="Make it ahead; the agent sees it when it comes into force.",
)
@common
def reflect_command(call: Invocation, thread_id: str, is_forced: bool, is_buffered: bool) -> None:
    """Condense older observations into a new generation. What is condensed is kept and can still be
    found.
    """
    with call.memory() as memory:
        memory.threads.get(thread_id)
        require_writing(memory)
        outcome = memory.observations.reflect(
            thread_id, is_forced=is_forced, is_buffered=is_buffered
        )
        warnings = [*memory.warnings, *recovery(outcome)]
    if outcome.code != "no_progress":  # an answer like any other: it cannot be said in fewer words
        require_success(outcome)
    if call.as_json:
        output.envelope(outcome_json(outcome), warnings)
        return
    output.warn(warnings)
    output.say(_reflect_line(outcome, is_forced, is_buffered))


def _reflect_line(outcome: CycleOutcome, is_forced: bool, is_buffered: bool) -> str:
    if not outcome.success:
        return f"Nothing was condensed: {outcome.error}"
    if not outcome.notes:
        return "Nothing to condense yet." + (
            "" if is_forced else " --force condenses what there is."
        )
    later = " They are buffered: shown once they are activated." if is_buffered else ""
    return f"{outcome.messages:,} observations condensed into {outcome.notes:,}.{later}"
