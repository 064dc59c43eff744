"""Define `smara memories import`: read instruction files such as CLAUDE.md."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, common
from smara.surfaces.cli.render.memories import shown_lines
from smara.surfaces.cli.render.tasks import say_more, styled

if TYPE_CHECKING:
    from smara.adapters.instructions.importer import InstructionReport, StatementChange


_SHOWN = {
    "added": ("+", "green", "new"), "changed": ("~", "yellow", "said in other words now"),
    "returned": ("+", "green", "said again"), "verified": ("*", "green", "vouched for now"),
    "removed": ("-", "red", "no longer said, and put aside"),
    "stale": ("-", "yellow", "no longer said; confirmed by you, so only marked as stale"),
    "refused": ("!", "red", "refused"), "known": ("=", None, "known already"), "moved": (">", None,
    "at other lines"),
    "put aside": ("x", None, "put aside by a person, and left so"), "unchanged": (" ", None,
    "unchanged"),
}  # fmt: skip
_TEXT_AT = 28
_LISTED = ("added", "changed", "returned", "removed", "stale", "refused")


@click.command("import")
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH...]")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option(
    "--verified",
    is_flag=True,
    help="You vouch for all that they say, also for what came in before.",
)
@click.option(
    "--all", "with_all", is_flag=True, help="List every statement, and what was left out."
)
@click.option("--actor", metavar="NAME", help="Who does it; also SMARA_ACTOR. Without it, you.")
@common
def import_files(
    call: Invocation,
    paths: tuple[str, ...],
    dry_run: bool,
    verified: bool,
    with_all: bool,
    actor: str | None,
) -> None:
    """Bring in CLAUDE.md, AGENTS.md and their like.

    Without a path: all instruction files of this repository, for whichever
    agent they were written. Safe to repeat: only what changed in them is
    changed here, and the files stay as they are. Each memory knows its file
    and lines. What was imported waits for your review.
    """
    from smara.adapters.instructions import import_instructions

    with call.memory() as memory:
        report = import_instructions(
            memory, None, paths, is_dry_run=dry_run, is_verified=verified, actor=actor
        )
        warnings = memory.warnings
    if call.as_json:
        output.envelope(report_json(report), warnings)
        return
    output.warn(warnings)
    if not report.files and not report.unreadable:
        say_more(
            f"No instruction files below {report.root}. Name one: `smara memories import PATH`."
        )
        return
    tell(report, with_all, verified)


def tell(report: InstructionReport, with_all: bool = False, is_verified: bool = False) -> None:
    """Say what an import of files did: to a person by file, to a pipe line by line."""
    if output.is_terminal():
        _print(report, with_all)
    else:
        rows = [
            (each.outcome, each.memory_id, each.type, " ".join(each.places), each.text)
            for each in report.changes
        ]
        output.table(("outcome", "memory", "type", "places", "content"), rows)
    _print_problems(report, with_all)
    _print_sum(report, is_verified)


def _print(report: InstructionReport, with_all: bool) -> None:
    wanted = tuple(_SHOWN) if with_all else _LISTED
    shown = [each for each in report.changes if each.outcome in wanted]
    for place, changes in _by_file(shown).items():
        output.say(place, bold=True)
        for each in changes:
            _print_change(each)
        output.say()


def _by_file(changes: list[StatementChange]) -> dict[str, list[StatementChange]]:
    found: dict[str, list[StatementChange]] = {}
    for each in changes:
        found.setdefault(
            each.places[0].split(":")[0].split("@")[0] if each.places else "", []
        ).append(each)
    return found


def _print_change(change: StatementChange) -> None:
    sign, color, _ = _SHOWN[change.outcome]
    line = change.places[0].rpartition(":")[2] if change.places else ""
    first, *others = shown_lines(change.text, output.terminal_width() - _TEXT_AT, 2)
    head = f"{sign} {line:>7}  {change.type:<15}"
    click.echo(f"{styled(head, fg=color)}  {first}")
    for each in others:
        click.echo(f"{' ' * _TEXT_AT}{each}")
    notes = [f"replaces {change.replaces}" if change.replaces else "", *change.places[1:]]
    if change.outcome == "refused":
        notes += change.why
    told = "; ".join(note for note in notes if note)
    if told:
        output.say(output.paragraph(told, " " * _TEXT_AT, " " * _TEXT_AT), dim=True)


def _print_problems(report: InstructionReport, with_all: bool) -> None:
    for path, reason in report.unreadable:
        output.warn([f"{path} was not read. {reason}"])
    for each in report.not_followed:
        output.warn(
            [f"{each.path}:{each.line} draws in {each.target}, which was not read: {each.reason}"]
        )
    if not with_all or not output.is_terminal():
        return
    left = [(file.path, each) for file in report.files for each in file.left_out]
    if left:
        output.say("Left out", bold=True)
        for path, one in left:
            output.say(
                output.paragraph(f"{path}:{one.line}  {one.reason}: {one.text}", "  ", "    "),
                dim=True,
            )
        output.say()


def _print_sum(report: InstructionReport, is_verified: bool) -> None:
    counts = report.counts
    told = "; ".join(f"{counts[name]:,} {_SHOWN[name][2]}" for name in _SHOWN if counts[name])
    files = "1 file" if len(report.files) == 1 else f"{len(report.files):,} files"
    would = "Nothing was done: a dry run. " if report.is_dry_run else ""
    line = f"{would}{files}: {told or 'nothing to remember in them'}."
    if not output.is_terminal():
        click.echo(line, err=True)
        return
    output.say(output.paragraph(line, "", ""))
    if not (report.is_dry_run or is_verified) and counts["added"] + counts["changed"]:
        output.say("They wait for you: `smara memories review`.", dim=True)


def report_json(report: InstructionReport) -> dict[str, Any]:
    return {
        "root": report.root,
        "isDryRun": report.is_dry_run,
        "isNothingNew": report.is_nothing_new,
        "counts": dict(Counter(report.counts)),
        "files": [
            {
                "path": each.path,
                "host": each.host,
                "statements": each.statements,
                "leftOut": [
                    {"line": left.line, "reason": left.reason, "text": left.text}
                    for left in each.left_out
                ],
            }
            for each in report.files
        ],
        "statements": [
            {
                "outcome": each.outcome,
                "id": each.memory_id,
                "type": each.type,
                "content": each.text,
                "places": list(each.places),
                "replaces": each.replaces,
                "why": list(each.why),
            }
            for each in report.changes
        ],
        "notFollowed": [
            {"path": each.path, "line": each.line, "target": each.target, "reason": each.reason}
            for each in report.not_followed
        ],
        "unreadable": [{"path": path, "reason": reason} for path, reason in report.unreadable],
    }
