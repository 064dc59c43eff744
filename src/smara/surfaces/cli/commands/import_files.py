"""``smara import``"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import AbstractContextManager
from typing import Any, cast

import click

from smara.adapters.bulk import BulkImport, BulkReport, find
from smara.adapters.finding import Here
from smara.adapters.importing import ImportReport
from smara.adapters.records import Progress
from smara.adapters.sniff import FORMATS, HOST_FORMATS, HostFormat
from smara.adapters.warming import Learned
from smara.errors import InvalidInputError
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.import_sources import OTHER_SOURCES, run
from smara.surfaces.cli.options import Call, common
from smara.surfaces.cli.progress import bar

SOURCES = (*HOST_FORMATS, "all", *OTHER_SOURCES)


@click.command("import")
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE...]")
@click.option(
    "--from",
    "source",
    type=click.Choice(SOURCES),
    help="Where from; without it and FILE, all transcripts.",
)
@click.option(
    "--format", type=click.Choice(FORMATS), help="The format; without it, what each looks like."
)
@click.option(
    "--resource", metavar="ID", help="Who the threads belong to, where the file does not say."
)
@click.option(
    "--all-projects", is_flag=True, help="With --from: of all folders, each into its own project."
)
@click.option("--dry-run", is_flag=True, help="Say what would be stored, and store nothing.")
@click.option(
    "--no-learn", is_flag=True, help="Store what was said, and learn nothing from what was done."
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="With --from git: at most so many memories.",
)
@click.option(
    "--code/--no-code",
    default=None,
    help="With --from git: index the code too, or not; else if it is small.",
)
@common
def command(
    call: Call,
    files: tuple[str, ...],
    source: str | None,
    format: Any,
    resource: str | None,
    all_projects: bool,
    dry_run: bool,
    no_learn: bool,
    limit: int | None,
    code: bool | None,
) -> None:
    """Bring in past sessions of agents (Claude Code, Codex, Gemini, Copilot, OpenCode, Pi) and
    conversations in JSON.

    Safe to repeat. Without FILE the agents' own folders are looked through for sessions of this
    repository. FILE may be a folder. Every line is accounted for: stored, known already, or counted
    with the reason.

    --from git makes memories of commits that say why, of reverts and of chains of fixes; FILE is
      another repository. --from mastra reads a store of Mastra: FILE is its file or URL. --from
      claude-memory and its like bring in what agents have noted about this repository by
      themselves.
    """
    if source != "git" and (limit is not None or code is not None):
        raise InvalidInputError(
            "--limit, --code and --no-code are for --from git, which makes memories of commits."
        )
    if source in OTHER_SOURCES:
        run(call, str(source), files, dry_run=dry_run, resource=resource, limit=limit, code=code)
        return
    if files and (source is not None or all_projects):
        raise InvalidInputError(
            "Give files, or --from and --all-projects: files are not looked for."
        )
    with call.memory(
        models_enabled=False
    ) as memory:  # hundreds of sessions must not become hundreds of calls
        bulk = BulkImport(
            memory, resource, everywhere=all_projects, learn=not no_learn, dry_run=dry_run
        )
        if files:
            done = bulk.run_files(files, _bar, format)
        else:
            hosts = HOST_FORMATS if source in (None, "all") else (cast(HostFormat, source),)
            found, elsewhere = find(hosts, Here(os.getcwd()), everywhere=all_projects)
            done = bulk.run(found, _bar)
            done.elsewhere = elsewhere
        warnings = memory.warnings
    if call.as_json:
        output.envelope(_json(done, dry_run), warnings)
        return
    output.warn(warnings)
    _tell_hosts(done, dry_run) if not files else _tell_files(done, dry_run)
    _explain(done.reports)
    _tell_learned(done.learned)


def _bar(name: str) -> AbstractContextManager[Progress | None]:
    return bar(output.short(name, 50))


def _tell_files(done: BulkReport, dry_run: bool) -> None:
    rows = [
        (
            each.path,
            each.format,
            each.lines,
            each.stored,
            each.repeated,
            each.counted.total(),
            len(each.refused),
        )
        for each in done.reports
    ]
    if len(rows) > 1 and output.is_terminal():
        rows.append(
            (
                f"all {len(rows)} files",
                "",
                *(sum(numbers) for numbers in list(zip(*rows, strict=True))[2:]),
            )
        )
    columns = ("file", "format", "lines", _stored(dry_run), "known", "not messages", "refused")
    output.table(columns, rows, folding=("file",))


def _tell_hosts(done: BulkReport, dry_run: bool) -> None:
    """One row for each agent: there may be thousands of files."""
    rows = []
    for format in [
        each for each in HOST_FORMATS if any(each == report.format for report in done.reports)
    ]:
        mine = [each for each in done.reports if each.format == format]
        rows.append(
            (
                format,
                len({thread for each in mine for thread in each.threads}),
                sum(each.lines for each in mine),
                sum(each.stored for each in mine),
                sum(each.repeated for each in mine),
                sum(each.counted.total() for each in mine),
                sum(len(each.refused) for each in mine),
            )
        )
    if rows:
        columns = (
            "agent",
            "threads",
            "lines",
            _stored(dry_run),
            "known",
            "not messages",
            "refused",
        )
        output.table(columns, rows)
    else:
        output.say("No transcripts of this folder were found.")
    if done.elsewhere:
        output.say(
            f"{done.elsewhere:,} transcripts of other folders were left out; --all-projects takes "
            "them all."
        )
    for reason, count in Counter(reason for _, reason in done.unread).most_common(10):
        example = next(path for path, why in done.unread if why == reason)
        output.say(
            f"not read: {example}{f' and {count - 1:,} more' if count > 1 else ''}: {reason}"
        )


def _stored(dry_run: bool) -> str:
    return "would store" if dry_run else "stored"


def _tell_learned(learned: Learned) -> None:
    if learned.memories:
        output.say()
        output.say(
            f"Learned  {learned.memories:,} memories from {learned.sessions:,} sessions: smara "
            "memories review"
        )
    if learned.left_out:
        output.say(
            f"{learned.left_out:,} sessions were too many to learn from at once: import again."
        )
    output.warn(learned.problems)


def _explain(reports: list[ImportReport]) -> None:
    """Why lines did not become messages, over all files together."""
    counted = sum((each.counted for each in reports), Counter[tuple[str, str]]())
    if counted:
        output.say()
        rows = [(count, kind, reason) for (kind, reason), count in counted.most_common()]
        output.table(
            ("lines", "of", "not messages because"), rows, folding=("of", "not messages because")
        )
    for each in reports:
        for line, reason in each.refused[:10]:
            output.say(f"refused: {each.path}:{line}: {reason}")


def _json(done: BulkReport, dry_run: bool) -> dict[str, Any]:
    learned = done.learned
    return {
        "files": [_report_json(each) for each in done.reports],
        "stored": sum(each.stored for each in done.reports),
        "dryRun": dry_run,
        "elsewhere": done.elsewhere,
        "unread": [{"path": path, "reason": reason} for path, reason in done.unread],
        "learned": {
            "sessions": learned.sessions,
            "events": learned.events,
            "memories": learned.memories,
            "leftOut": learned.left_out,
            "problems": learned.problems,
        },
    }


def _report_json(report: ImportReport) -> dict[str, Any]:
    return {
        "path": report.path,
        "format": report.format,
        "lines": report.lines,
        "stored": report.stored,
        "repeated": report.repeated,
        "repaired": report.repaired,
        "counted": [
            {"kind": k, "reason": r, "lines": n} for (k, r), n in report.counted.most_common()
        ],
        "refused": [{"line": line, "reason": reason} for line, reason in report.refused],
        "threads": report.threads,
    }
