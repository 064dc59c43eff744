"""Define `smara memories import`: read instruction files such as CLAUDE.md."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from smara.memory import Memory
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Reply, actor_option, with_memory
from smara.surfaces.cli.render import say_more, shown_lines, styled

if TYPE_CHECKING:
    from smara.adapters.instructions.importer import InstructionReport, StatementChange


_SHOWN = {
    "added": ("+", "green", "new"), "changed": ("~", "yellow", "reworded"),
    "returned": ("+", "green", "back again"), "verified": ("*", "green", "now verified"),
    "removed": ("-", "red", "removed from the file and forgotten"),
    "stale": ("-", "yellow", "removed from the file; confirmed by you, so only marked stale"),
    "refused": ("!", "red", "refused"), "known": ("=", None, "already known"),
    "moved": (">", None, "moved to other lines"),
    "put aside": ("x", None, "forgotten by a person and left so"),
    "unchanged": (" ", None, "unchanged"),
}  # fmt: skip
_TEXT_AT = 28
_LISTED = ("added", "changed", "returned", "removed", "stale", "refused")


@click.command("import")
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH...]")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option(
    "--verified",
    is_flag=True,
    help="Confirm all statements, also those imported before.",
)
@click.option(
    "--all", "with_all", is_flag=True, help="List every statement, and what was left out."
)
@actor_option
@with_memory
def import_files(
    memory: Memory,
    paths: tuple[str, ...],
    dry_run: bool,
    verified: bool,
    with_all: bool,
    actor: str | None,
) -> Reply:
    """Import CLAUDE.md, AGENTS.md and other instruction files.

    Without PATH it imports all instruction files of this repository, for
    any agent. It is safe to repeat: only changed statements change here,
    and the files are not modified. Each memory keeps its file and lines.
    Imported memories are reviewed with `smara memories review`.
    """
    from smara.adapters.instructions import import_instructions

    report = import_instructions(
        memory, None, paths, is_dry_run=dry_run, is_verified=verified, actor=actor
    )
    yield report_json(report)
    if not report.files and not report.unreadable:
        say_more(f"No instruction files in {report.root}. Name one: `smara memories import PATH`.")
        return
    print_report(report, with_all, verified)


def print_report(
    report: InstructionReport, with_all: bool = False, is_verified: bool = False
) -> None:
    """Print an import's result: by file, or as rows."""
    if output.is_terminal():
        _print_changes(report, with_all)
    else:
        output.table(
            ("outcome", "memory", "type", "places", "content"),
            [
                (each.outcome, each.memory_id, each.type, " ".join(each.places), each.text)
                for each in report.changes
            ],
        )
    output.warn(f"{path} was not read. {reason}" for path, reason in report.unreadable)
    output.warn(
        f"{each.path}:{each.line} includes {each.target}, which was not read: {each.reason}"
        for each in report.not_followed
    )
    left = [(file.path, each) for file in report.files for each in file.left_out]
    if left and with_all and output.is_terminal():
        output.say("Left out", bold=True)
        for path, one in left:
            line = output.paragraph(f"{path}:{one.line}  {one.reason}: {one.text}", "  ", "    ")
            output.say(line, dim=True)
        output.say()
    counts = report.counts
    outcomes = "; ".join(f"{counts[name]:,} {_SHOWN[name][2]}" for name in _SHOWN if counts[name])
    would = "Dry run, nothing was changed. " if report.is_dry_run else ""
    line = f"{would}{output.count(len(report.files), 'file')}: {outcomes or 'nothing to import'}."
    if not output.is_terminal():
        click.echo(line, err=True)
        return
    output.say(output.paragraph(line, "", ""))
    if not (report.is_dry_run or is_verified) and counts["added"] + counts["changed"]:
        output.say("Review them with `smara memories review`.", dim=True)


def _print_changes(report: InstructionReport, with_all: bool) -> None:
    outcomes = tuple(_SHOWN) if with_all else _LISTED
    by_file: dict[str, list[StatementChange]] = {}
    for each in report.changes:
        if each.outcome in outcomes:
            file = each.places[0].split(":")[0].split("@")[0] if each.places else ""
            by_file.setdefault(file, []).append(each)
    for file, changes in by_file.items():
        output.say(file, bold=True)
        for change in changes:
            sign, color, _ = _SHOWN[change.outcome]
            line = change.places[0].rpartition(":")[2] if change.places else ""
            first, *others = shown_lines(change.text, output.terminal_width() - _TEXT_AT)
            head = f"{sign} {line:>7}  {change.type:<15}"
            click.echo(f"{styled(head, fg=color)}  {first}")
            for other in others:
                click.echo(f"{' ' * _TEXT_AT}{other}")
            notes = [f"replaces {change.replaces}" if change.replaces else "", *change.places[1:]]
            notes += change.why if change.outcome == "refused" else ()
            note = "; ".join(filter(None, notes))
            if note:
                output.say(output.paragraph(note, " " * _TEXT_AT, " " * _TEXT_AT), dim=True)
        output.say()


def report_json(report: InstructionReport) -> dict[str, Any]:
    """Return what an import of instruction files did."""
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
