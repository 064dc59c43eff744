"""``smara reflect``"""

from __future__ import annotations

import click

from smara.observations.models import Outcome
from smara.surfaces.cli import output
from smara.surfaces.cli.observation_lines import (
    outcome_json,
    recovery,
    require_success,
    require_writing,
)
from smara.surfaces.cli.options import Call, common, complete_thread


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
def command(call: Call, thread_id: str, is_forced: bool, is_buffered: bool) -> None:
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
    output.say(_told(outcome, is_forced, is_buffered))


def _told(outcome: Outcome, is_forced: bool, is_buffered: bool) -> str:
    if not outcome.success:
        return f"Nothing was condensed: {outcome.error}"
    if not outcome.notes:
        return "Nothing to condense yet." + (
            "" if is_forced else " --force condenses what there is."
        )
    later = " They are buffered: shown once they are activated." if is_buffered else ""
    return f"{outcome.messages:,} observations condensed into {outcome.notes:,}.{later}"
