"""Define `smara observations`, `smara observe` and `smara reflect`."""

from __future__ import annotations

from typing import Any

import click

from smara.core.extract import one_line
from smara.errors import BusyError, ConfigError, SmaraError
from smara.memory import Memory
from smara.observations.models import (
    CATEGORIES,
    MODES,
    PRIORITIES,
    STATES,
    AgentMode,
    CycleOutcome,
    ObservationFailure,
    ObservationWarning,
)
from smara.shapes import Names, message_json, observation_json
from smara.surfaces.cli import output
from smara.surfaces.cli.options import (
    Invocation,
    Reply,
    common,
    complete_thread,
    limit_option,
    offset_option,
    with_memory,
)
from smara.surfaces.cli.render import code_line
from smara.texts import code_word, observation_head, span

_BUSY = ("in_progress", "lease_lost")


def require_writing(memory: Memory) -> None:
    """Raise the error that names the setting which forbids observing."""
    settings = memory.settings
    if not settings.observe_enabled:
        raise ConfigError(
            "This project keeps vectors and no words of conversations, so that nothing is observed."
            " See `smara status`."
            if settings.keep == "vectors"
            else "Observing is off. Set observe_enabled to true, or SMARA_OBSERVE_ENABLED=1."
        )
    if settings.observe_read_only:
        raise ConfigError(
            "Observations are read-only. Set observe_read_only to false, or "
            "SMARA_OBSERVE_READ_ONLY=0."
        )


def outcome_json(outcome: CycleOutcome) -> dict[str, Any]:
    """Return the outcome of an observation run as JSON."""
    return {
        "action": outcome.action,
        "success": outcome.success,
        "messages": outcome.messages,
        "notes": outcome.notes,
        "error": outcome.error,
        "code": outcome.code,
        "retryable": outcome.is_retryable,
        "recovered": dict(outcome.recovered) if outcome.recovered is not None else None,
    }


def require_success(outcome: CycleOutcome) -> None:
    """Raise a failed run's error, for the right exit code."""
    if outcome.success:
        return
    text = (outcome.error or "It failed for an unknown reason.").strip()
    text = text if text.endswith((".", "!", "?")) else f"{text}."
    if outcome.messages:
        text += f" {output.count(outcome.messages, 'message')} observed before that are kept."
    if outcome.code in _BUSY:
        raise BusyError(f"{text} Nothing was observed twice; try again in a moment.")
    kinds = [SmaraError]
    for kind in kinds:  # grows while it is read: the whole tree of errors
        kinds += kind.__subclasses__()
    raise next((kind for kind in kinds if kind.code == outcome.code), SmaraError)(text)


def _warn_of_recovery(call: Invocation, outcome: CycleOutcome) -> None:
    if outcome.recovered is not None:
        owner = outcome.recovered.get("owner", "another worker")
        call.warnings.append(
            f"{owner} had stopped while observing; its claim was cleared, nothing was lost."
        )


observations_command = click.Group(
    "observations", help="List observations, explain them, and show what failed."
)


@observations_command.command("list")
@click.option(
    "--thread",
    "thread_id",
    metavar="ID",
    help="Only from this thread.",
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
@limit_option(50, 1000)
@offset_option
@with_memory
def list_observations(
    memory: Memory,
    thread_id: str | None,
    state: str | None,
    category: str | None,
    priority: str | None,
    limit: int,
    offset: int,
) -> Reply:
    """List observations, newest first, condensed ones included."""
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
    shown, following = found[:limit], offset + limit if len(found) > limit else None
    shapes = [observation_json(each, code.get(each.id)) for each in shown]
    yield {"observations": shapes, "nextOffset": following}
    if not shown and output.is_terminal():
        output.say("No observations yet. Run `smara observe THREAD` or `smara worker`.")
        return
    if output.is_terminal():
        for shape in shapes:
            # A table of nine columns would leave the text no space.
            thread = {"threadId": output.short(shape.get("threadId") or "")}
            output.say(observation_head({**shape, **thread}, is_local=True), bold=True)
            output.say(output.paragraph(one_line(shape["text"]), "   ", "   "))
            hedge = (shape["code"] or {}).get("hedge")
            if hedge is not None:
                output.say(output.paragraph(hedge, "   but: ", "   "), fg="yellow")
            output.say(f"   {shape['id']}", dim=True)
    else:
        output.table(
            ("id", "said", "priority", "category", "state", "thread", "messages", "text", "code"),
            [
                (
                    each.id,
                    output.moment(each.said_at),
                    each.priority,
                    each.category,
                    each.state,
                    each.thread_id,
                    span(each.first_seq, each.last_seq),
                    each.text,
                    code_word(shape["code"]),
                )
                for each, shape in zip(shown, shapes, strict=True)
            ],
        )
    _print_next(following)


@observations_command.command("show")
@click.argument("observation_id", metavar="ID")
@with_memory
def show(memory: Memory, observation_id: str) -> Reply:
    """Show one observation with all its fields."""
    found = memory.observations.get(observation_id)
    left_out = memory.observations.warnings(observation_id)
    code = memory.observations.freshness([found]).get(found.id)
    yield {**observation_json(found, code), "warnings": list(left_out)}
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
            ("messages", span(found.first_seq, found.last_seq)),
            ("said", output.moment(found.said_at)),
            ("refers to", found.refers_to or ""),
            ("code", code_line(code)),
            ("files", ", ".join(found.files)),
            ("lines", ", ".join(map(str, found.lines))),
            *(
                (name, ", ".join(map(str, value)) if isinstance(value, list) else str(value))
                for name, value in found.mode_specific.items()
            ),
            ("taint", ", ".join(found.taint)),
            ("tokens", f"{found.tokens:,}"),
            ("method", found.method),
            ("created", output.moment(found.created_at)),
            *(("left out", each) for each in left_out),
        ]
    )


@observations_command.command("why")
@click.argument("observation_id", metavar="ID")
@limit_option(20, 1000)
@offset_option
@with_memory
def why(memory: Memory, observation_id: str, limit: int, offset: int) -> Reply:
    """Show the messages behind an observation, in full, page by page."""
    found = memory.observations.get(observation_id)
    messages = memory.observations.why(observation_id, limit=limit, offset=offset)
    code = memory.observations.freshness([found]).get(found.id)
    names = Names(memory.tasks.find)
    following = (
        offset + limit if found.first_seq + offset + limit <= found.last_seq and messages else None
    )
    yield {
        "observation": observation_json(found, code),
        "messages": [message_json(each, names) for each in messages],
        "nextOffset": following,
    }
    if found.thread_id is None:
        output.say(
            "It condenses observations of several threads. List them with `smara observations "
            "list --state reflected`."
        )
        return
    if output.is_terminal():
        output.say(output.paragraph(f"{found.text} ({found.priority})", "", ""), bold=True)
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
        output.say(f"— {output.message_head(each)}", bold=True)
        output.say(each.raw_content, "")
    _print_next(following)


@observations_command.command("status")
@click.argument("thread_id", metavar="THREAD", shell_complete=complete_thread)
@with_memory
def status(memory: Memory, thread_id: str) -> Reply:
    """Show how much of a thread is observed, buffered and condensed."""
    memory.threads.get(thread_id)
    found = memory.observations.status(thread_id)
    yield found
    waiting = found["waiting"]
    observed, reflected = (
        "" if found[name] is None else output.moment(found[name])
        for name in ("lastObservedAt", "lastReflectedAt")
    )
    output.facts(
        [
            ("scope", found["scope"]),
            ("pending tokens", f"{found['pendingTokens']:,}"),
            ("buffered tokens", f"{found['bufferedTokens']:,}"),
            ("observation tokens", f"{found['observationTokens']:,}"),
            ("buffered reflection", f"{found['bufferedReflectionTokens']:,}"),
            ("observed tokens", f"{found['observedTokens']:,}"),
            ("generation", str(found["generation"])),
            ("last observed", observed),
            ("last reflected", reflected),
            (
                "waiting",
                f"{waiting['message']} Tried {output.count(waiting['attempts'], 'time')}; next try "
                f"{output.moment(waiting['retryAt'])}."
                if waiting
                else "",
            ),
        ]
    )


@observations_command.command("failures")
@limit_option(50, 1000)
@with_memory
def failures(memory: Memory, limit: int) -> Reply:
    """List failed observations: what is retried, given up or left out."""
    found = memory.observations.failures(limit=limit)
    warned = memory.observations.warned(limit=limit)
    yield {
        "failures": [
            {
                "operation": each.operation,
                "threadId": each.thread_id,
                "firstSeq": each.first_seq,
                "attempts": each.attempts,
                "code": each.code,
                "message": each.message,
                "isDead": each.is_dead,
                "failedAt": each.failed_at,
                "retryAt": each.retry_at,
            }
            for each in found
        ],
        "warned": [
            {
                "threadId": each.thread_id,
                "firstSeq": each.first_seq,
                "lastSeq": each.last_seq,
                "warnings": list(each.warnings),
                "createdAt": each.created_at,
            }
            for each in warned
        ],
    }
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


def _show_failures(failures: list[ObservationFailure], warned: list[ObservationWarning]) -> None:
    if not failures and not warned:
        output.say("No failures.")
    for each in failures:
        where = (
            f"{each.thread_id or 'several threads'}:{each.first_seq}"
            if each.first_seq
            else each.thread_id
        )
        output.say(
            f"{output.moment(each.failed_at)} · {each.operation} · {where} · "
            f"{output.count(each.attempts, 'attempt')} · {_next(each)}",
            bold=True,
        )
        output.say(output.paragraph(f"{each.code}: {each.message}", "   ", "   "))
    for batch in warned:
        where = f"{batch.thread_id}:{batch.first_seq}–{batch.last_seq}"
        output.say(f"{output.moment(batch.created_at)} · left out · {where}", bold=True)
        output.print_lines(output.paragraph(line, "   ", "   ") for line in batch.warnings)


def _next(failure: ObservationFailure) -> str:
    return "given up" if failure.is_dead else f"retry {output.moment(failure.retry_at)}"


def _print_next(following: int | None) -> None:
    if following is not None:
        click.echo(f"There are more: use --offset {following}.", err=True)


@click.command("observe")
@click.argument("thread_id", metavar="THREAD", shell_complete=complete_thread)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="default",
    show_default=True,
    help="What the agent was working on.",
)
@click.option(
    "--buffer",
    "is_buffered",
    is_flag=True,
    help="Prepare them only; they are shown once activated.",
)
@common
def observe_command(call: Invocation, thread_id: str, mode: AgentMode, is_buffered: bool) -> Reply:
    """Observe the new messages of a thread.

    Safe to repeat: no message is observed twice. A failed observation is
    retried at once.
    """
    with call.memory() as memory:
        memory.threads.get(thread_id)
        require_writing(memory)
        look = memory.observations.buffer if is_buffered else memory.observations.observe
        outcome = look(thread_id, mode=mode, is_now=True)
        _warn_of_recovery(call, outcome)
    require_success(outcome)
    yield outcome_json(outcome)
    if not outcome.messages:
        output.say("No new messages to observe.")
        return
    later = " They are buffered and shown once activated." if is_buffered else ""
    output.say(
        f"Added {output.count(outcome.notes, 'observation')} from "
        f"{output.count(outcome.messages, 'message')}.{later}"
    )


@click.command("reflect")
@click.argument("thread_id", metavar="THREAD", shell_complete=complete_thread)
@click.option(
    "--force",
    "is_forced",
    is_flag=True,
    help="Condense all active observations, however new or few.",
)
@click.option(
    "--buffer",
    "is_buffered",
    is_flag=True,
    help="Prepare it only; it is shown once activated.",
)
@common
def reflect_command(call: Invocation, thread_id: str, is_forced: bool, is_buffered: bool) -> Reply:
    """Condense older observations into a new generation.

    The condensed observations stay stored and searchable.
    """
    with call.memory() as memory:
        memory.threads.get(thread_id)
        require_writing(memory)
        outcome = memory.observations.reflect(
            thread_id, is_forced=is_forced, is_buffered=is_buffered
        )
        _warn_of_recovery(call, outcome)
    if outcome.code != "no_progress":  # not an error: the text cannot be made shorter
        require_success(outcome)
    yield outcome_json(outcome)
    if not outcome.success:
        output.say(f"Nothing was condensed: {outcome.error}")
    elif not outcome.notes:
        hint = "" if is_forced else " --force condenses what there is."
        output.say(f"Nothing to condense yet.{hint}")
    else:
        later = " They are buffered and shown once activated." if is_buffered else ""
        output.say(
            f"Condensed {output.count(outcome.messages, 'observation')} into "
            f"{outcome.notes:,}.{later}"
        )
