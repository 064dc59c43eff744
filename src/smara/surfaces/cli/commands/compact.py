"""``smara compact``"""

from __future__ import annotations

import click

from smara.errors import InvalidInputError
from smara.surfaces.cli import output
from smara.surfaces.cli.observation_lines import outcome_json
from smara.surfaces.cli.options import Call, common, complete_thread

_OFF = "read_only"


@click.command("compact")
@click.option("--thread", "thread_id", metavar="ID", shell_complete=complete_thread)
@click.option(
    "--keep",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    show_default=True,
    help="Keep the newest that many whole.",
)
@click.option("--when-due", is_flag=True, help="Only what the rules call old (30 and 90 messages).")
@click.option("--undo", metavar="COMPACTION", help="Show the messages of a compaction whole again.")
@common
def command(call: Call, thread_id: str | None, keep: int, when_due: bool, undo: str | None) -> None:
    """Show old messages as what was observed of them. Every word stays stored and can be found.

    They are observed first. --undo takes a summary back; observations stay.
    """
    if (thread_id is None) == (undo is None):
        raise InvalidInputError("Give either --thread ID to compact, or --undo COMPACTION.")
    with call.memory() as memory:
        if undo is not None:
            undone = memory.compactions.undo(undo)
            if call.as_json:
                output.envelope(output.compaction_json(undone))
            else:
                output.say(f"Messages {undone.start_seq} to {undone.end_seq} are shown as before.")
            return
        both = memory.compact(thread_id or "", keep, is_when_due=when_due)
    done, observed = both.compacted, both.observed
    warnings = (
        []
        if observed.success or observed.code == _OFF
        else [f"The thread was not observed: {observed.error}"]
    )
    if call.as_json:
        data = {
            "messagesCompacted": done.messages_compacted,
            "messagesWhole": done.messages_whole,
            "compactions": [output.compaction_json(each) for each in done.compactions],
            "observations": outcome_json(observed),
            "renewed": both.renewed,
        }
        output.envelope(data, warnings)
        return
    output.warn(warnings)
    output.say(f"{done.messages_compacted} messages compacted, {done.messages_whole} left whole.")
    rows = [
        (each.id, each.level, f"{each.start_seq}–{each.end_seq}", output.short(each.summary, 160))
        for each in done.compactions
    ]
    if rows:
        output.table(("compaction", "level", "messages", "summary"), rows, folding=("summary",))
    if both.renewed:
        output.say(f"{both.renewed:,} older summaries were made anew from observations.")
    if observed.notes:
        output.say(f"{observed.notes:,} new observations of {observed.messages:,} messages.")
