"""``smara observe``"""

from __future__ import annotations

import click

from smara.observations.models import MODES, AgentMode, Outcome
from smara.surfaces.cli import output
from smara.surfaces.cli.observation_lines import (
    outcome_json,
    recovery,
    require_success,
    require_writing,
)
from smara.surfaces.cli.options import Call, common, complete_thread


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
def command(call: Call, thread_id: str, mode: AgentMode, is_buffered: bool) -> None:
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
    output.say(_told(outcome, is_buffered))


def _told(outcome: Outcome, is_buffered: bool) -> str:
    if not outcome.messages:
        return "Every message is observed already."
    later = " They are buffered: shown once they are activated." if is_buffered else ""
    return f"{outcome.notes:,} observations of {outcome.messages:,} messages.{later}"
