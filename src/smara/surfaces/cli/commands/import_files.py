"""Define `smara import`: read transcripts, git history and other stores.

Each source has a function of its own; their adapters are imported only when chosen.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click

from smara.adapters.bulk_import import BulkImport, BulkReport, find
from smara.adapters.host import Here
from smara.adapters.host_specs import TRANSCRIPTS
from smara.adapters.importer import ImportReport
from smara.adapters.records import Progress
from smara.adapters.replay import LearnReport
from smara.adapters.sniff import FORMATS
from smara.errors import InvalidInputError, SmaraError
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, common
from smara.surfaces.cli.output import bar

if TYPE_CHECKING:
    from smara.adapters.git_candidates import GitReport
    from smara.adapters.mastra.importer import MastraReport
    from smara.adapters.vendor_memories import Vendor


_NOTES = "-memory"
OTHER_SOURCES = (
    "git", "mastra", "claude-memory", "codex-memory", "gemini-memory", "goose-memory",
    "agent-memories",
)  # fmt: skip
_SHOWN = 12


def run(
    call: Invocation,
    source: str,
    files: Sequence[str],
    dry_run: bool,
    resource: str | None,
    limit: int | None,
    code: bool | None = None,
) -> None:
    """Import from one of these sources, and say what came of it."""
    if source == "git":
        _git(call, files, dry_run, limit=limit, code=code)
    elif source == "mastra":
        _mastra(call, files, dry_run, resource=resource)
    else:
        _notes(call, source, files, dry_run=dry_run)


def _git(
    call: Invocation, files: Sequence[str], dry_run: bool, limit: int | None, code: bool | None
) -> None:
    from smara.adapters.git_history import MOST_MEMORIES, import_history, warm_up

    reports: list[GitReport] = []
    problems: list[str] = []
    with call.memory() as memory:
        for folder in files or (None,):
            with bar("commits") as progress:
                report = import_history(
                    memory,
                    folder,
                    is_dry_run=dry_run,
                    limit=limit or MOST_MEMORIES,
                    progress=progress,
                )
            try:
                with bar("reading the code") as progress:
                    warm_up(memory, report, progress, code=code)
            except SmaraError as error:
                # The memories are in: that the code could not be indexed takes nothing away from
                # them.
                problems.append(f"Which files change together was not counted: {error}")
            reports.append(report)
        warnings = [*memory.warnings, *problems]
    if call.as_json:
        output.envelope({"repositories": [_git_json(each) for each in reports]}, warnings)
        return
    output.warn(warnings)
    for report in reports:
        _tell_git(report)


def _tell_git(report: GitReport) -> None:
    rows = [
        (each.outcome, each.memory_id, each.type, each.sha[:10], each.content)
        for each in report.changes
    ]
    if not output.is_terminal():
        output.table(("outcome", "memory", "type", "commit", "content"), rows)
        return
    new = [row[1:] for row in rows if row[0] == "added"]
    if new:
        shown = [(*row[:3], output.short(str(row[3]), 200)) for row in new[:_SHOWN]]
        output.table(("memory", "type", "commit", "content"), shown, folding=("content",))
        if len(new) > _SHOWN:
            output.say(f"… and {len(new) - _SHOWN:,} more", dim=True)
        output.say()
    counts = report.counts
    what = "would become memories" if report.is_dry_run else "became memories"
    output.say(
        f"{report.commits:,} commits read: {counts['added']:,} {what}, {counts['known']:,} were "
        "known."
    )
    others = counts["duplicate"] + counts["refused"]
    if others:
        output.say(f"{others:,} said nothing new, or were refused.")
    for reason, count in report.left_out.most_common():
        output.say(f"{count:,} left out: {reason}.", dim=True)
    if report.cut:
        output.say(f"{report.cut:,} older ones were left out: --limit takes more.")
    if not report.is_all:
        output.say("Older commits were not read.")
    if report.warmed_commits:
        output.say(f"Files that change together were counted in {report.warmed_commits:,} commits.")
    if report.left_for_later:
        output.say(
            f"The code ({report.left_for_later:,} files) was not indexed: --code, or `smara graph "
            "index`."
        )
    if counts["added"] and not report.is_dry_run:
        output.say("They wait for you: `smara memories review`.", dim=True)


def _git_json(report: GitReport) -> dict[str, Any]:
    return {
        "root": report.root,
        "isDryRun": report.is_dry_run,
        "commits": report.commits,
        "isAll": report.is_all,
        "counts": dict(report.counts),
        "cut": report.cut,
        "leftOut": dict(report.left_out),
        "countedTogether": report.warmed_commits,
        "filesNotIndexed": report.left_for_later,
        "memories": [
            {
                "outcome": each.outcome,
                "id": each.memory_id,
                "type": each.type,
                "kind": each.kind,
                "content": each.content,
                "commit": each.sha,
                "at": each.at_ms,
                "why": list(each.why),
            }
            for each in report.changes
        ],
    }


def _mastra(call: Invocation, files: Sequence[str], dry_run: bool, resource: str | None) -> None:
    from smara.adapters.mastra import import_mastra

    if not files:
        raise InvalidInputError(
            "Name the store: `smara import --from mastra FILE`, or its postgresql:// URL."
        )
    reports: list[MastraReport] = []
    with call.memory() as memory:
        for place in files:
            with bar("messages") as progress:
                reports.append(
                    import_mastra(
                        memory, place, is_dry_run=dry_run, resource_id=resource, progress=progress
                    )
                )
        warnings = memory.warnings
    if call.as_json:
        output.envelope({"stores": [_mastra_json(each) for each in reports]}, warnings)
        return
    output.warn(warnings)
    stored = "would store" if dry_run else "stored"
    rows = [
        (
            each.source,
            each.threads,
            each.messages,
            each.stored,
            each.grown,
            each.repeated,
            sum(each.left_out.values()),
            each.pages,
            each.observations,
            len(each.refused),
        )
        for each in reports
    ]
    columns = (
        "store",
        "threads",
        "messages",
        stored,
        "grown",
        "known",
        "left out",
        "pages",
        "observations",
        "refused",
    )
    output.table(columns, rows, folding=("store",))
    for each in reports:
        for reason, count in each.left_out.most_common():
            output.say(f"{count:,} left out: {reason}.")
        if each.pages_kept:
            output.say(f"{each.pages_kept:,} pages were changed here since, and were left so.")
        output.warn(each.problems)
        for name, reason in each.refused[:10]:
            output.say(f"refused: {name}: {reason}")


def _mastra_json(report: MastraReport) -> dict[str, Any]:
    return {
        "source": report.source,
        "isDryRun": report.is_dry_run,
        "threads": report.threads,
        "messages": report.messages,
        "stored": report.stored,
        "repeated": report.repeated,
        "grown": report.grown,
        "leftOut": dict(report.left_out),
        "pages": report.pages,
        "pagesSame": report.pages_same,
        "pagesKept": report.pages_kept,
        "observations": report.observations,
        "problems": report.problems,
        "refused": [{"name": name, "reason": reason} for name, reason in report.refused],
    }


def _notes(call: Invocation, source: str, files: Sequence[str], dry_run: bool) -> None:
    from smara.adapters.vendor_memories import VENDORS, import_vendor_memories
    from smara.surfaces.cli.commands.memories.instructions import report_json, tell

    if files:
        hint = "For single files: `smara memories import FILE`."
        raise InvalidInputError(f"--from {source} finds the notes itself. {hint}")
    vendors: Sequence[Vendor] = VENDORS
    if source.endswith(_NOTES):
        vendors = [each for each in VENDORS if f"{each}{_NOTES}" == source]
    with call.memory() as memory:
        with bar("notes") as progress:
            report = import_vendor_memories(
                memory, None, vendors, is_dry_run=dry_run, progress=progress
            )
        warnings = memory.warnings
    if call.as_json:
        output.envelope(report_json(report), warnings)
        return
    output.warn(warnings)
    if not report.files and not report.unreadable:
        output.say(f"No notes of {' or '.join(vendors)} about {report.root} were found.")
        return
    tell(report)


SOURCES = (*TRANSCRIPTS, "all", *OTHER_SOURCES)


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
def import_command(
    call: Invocation,
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
    """Bring in past sessions of agents, and conversations in JSON.

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
            formats = tuple(TRANSCRIPTS) if source in (None, "all") else (str(source),)
            found, elsewhere = find(formats, Here(os.getcwd()), everywhere=all_projects)
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
        each for each in TRANSCRIPTS if any(each == report.format for report in done.reports)
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


def _tell_learned(learned: LearnReport) -> None:
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
