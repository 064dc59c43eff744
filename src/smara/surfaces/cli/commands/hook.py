"""``smara hook``"""

from __future__ import annotations

import click

from smara.adapters.hosts.draining import Drained, drain
from smara.adapters.hosts.preparing import finish
from smara.adapters.hosts.speaking import refresh
from smara.environment import spool_folder
from smara.errors import BusyError, InvalidInputError
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common


@click.command("hook")
@click.argument("agent")
@click.argument("event", required=False)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1),
    default=300.0,
    show_default=True,
    help="How long a drain may take.",
)
@common
def command(call: Call, agent: str, event: str | None, seconds: float) -> None:
    """What agents call: `smara hook AGENT EVENT`, with the event as JSON on standard input.

    AGENT is claude, codex, gemini, copilot, cursor, opencode or generic, EVENT the agent's own
    name of the event. It always leaves with 0 and writes nothing to standard error. Let
    `smara setup AGENT` register it.

    `smara hook drain` takes in the events that wait, reads the transcripts of their sessions,
    and ends those that are over.
    """
    if agent != "drain" or event is not None:
        raise InvalidInputError(
            "Give an agent and an event, or `drain`: smara hook claude Stop, smara hook drain."
        )
    with call.memory() as memory:
        done = drain(memory, spool_folder(), seconds)
        drafts = refresh(memory, spool_folder(), done)
        warnings = memory.warnings
    for draft in drafts:
        finish(spool_folder(), draft)
    if done.is_busy:
        raise BusyError(
            "Another process is draining the spool at the moment. Nothing is lost; try again later."
        )
    if call.as_json:
        output.envelope(_json(done), warnings)
        return
    output.warn(warnings)
    output.say(
        f"{done.taken:,} events taken in, {done.repeated:,} told twice, {done.unreadable:,} "
        "unreadable;"
        f" {done.messages:,} messages, {done.jobs_done:,} jobs done, {done.jobs_failed:,} failed."
    )


def _json(done: Drained) -> dict[str, int]:
    return {
        "taken": done.taken,
        "repeated": done.repeated,
        "unreadable": done.unreadable,
        "messages": done.messages,
        "jobsDone": done.jobs_done,
        "jobsFailed": done.jobs_failed,
    }
