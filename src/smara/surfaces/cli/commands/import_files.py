"""Define `smara import`: read transcripts, git history and other stores.

Each source has a function of its own; their adapters are imported only when chosen.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from smara.adapters.host import Here
from smara.adapters.host_specs import NOTES, TRANSCRIPTS
from smara.adapters.importer import (
    FOREIGN,
    FORMATS,
    BulkImport,
    BulkReport,
    ImportReport,
    find,
    is_foreign,
    is_markdown,
)
from smara.core.extract import one_line
from smara.errors import InvalidInputError, SmaraError
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, Reply, common

if TYPE_CHECKING:
    from smara.adapters.git_history import GitReport
    from smara.adapters.mastra.importer import MastraReport


_NOTES = "-memory"
OTHER_SOURCES = (
    "git", "mastra", *(f"{name}{_NOTES}" for name in NOTES), "agent-memories",
)  # fmt: skip
_SHOWN = 12


def _import_git(
    call: Invocation, files: Sequence[str], dry_run: bool, limit: int | None, code: bool | None
) -> Reply:
    from smara.adapters.git_history import MOST_MEMORIES, import_history, warm_up

    reports: list[GitReport] = []
    with call.memory() as memory:
        for folder in files or (None,):
            with output.bar("commits") as progress:
                if not dry_run and folder is None:
                    memory.commits.update()
                report = import_history(
                    memory,
                    folder,
                    is_dry_run=dry_run,
                    limit=limit or MOST_MEMORIES,
                    progress=progress,
                )
            try:
                with output.bar("reading the code") as progress:
                    warm_up(memory, report, progress, code=code)
            except SmaraError as error:
                # The memories are stored, whether or not the code can be indexed.
                call.warnings.append(f"Files that change together were not counted: {error}")
            reports.append(report)
    yield {
        "repositories": [
            {
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
            for report in reports
        ]
    }
    for report in reports:
        _print_git(report)


def _print_git(report: GitReport) -> None:
    rows = [
        (each.outcome, each.memory_id, each.type, each.sha[:10], each.content)
        for each in report.changes
    ]
    if not output.is_terminal():
        output.table(("outcome", "memory", "type", "commit", "content"), rows)
        return
    new = [row[1:] for row in rows if row[0] == "added"]
    if new:
        output.table(
            ("memory", "type", "commit", "content"),
            [(*row[:3], one_line(str(row[3]), 200)) for row in new[:_SHOWN]],
            folding=("content",),
        )
        if len(new) > _SHOWN:
            output.say(f"… and {len(new) - _SHOWN:,} more", dim=True)
        output.say()
    counts = report.counts
    verb = "Would create" if report.is_dry_run else "Created"
    new_memories = output.count(counts["added"], "memory", "memories")
    others = counts["duplicate"] + counts["refused"]
    commits, warmed = (
        output.count(count or 0, "commit") for count in (report.commits, report.warmed_commits)
    )
    files = output.count(report.left_for_later or 0, "file")
    lines = [
        f"{verb} {new_memories} from {commits}; {counts['known']:,} already known.",
        f"{others:,} duplicates or refused." if others else "",
        *(f"{count:,} skipped: {reason}." for reason, count in report.left_out.most_common()),
        f"{report.cut:,} older ones skipped; use a larger --limit." if report.cut else "",
        "" if report.is_all else "Older commits were not read.",
        f"Counted files that change together in {warmed}." if report.warmed_commits else "",
        f"The code ({files}) was not indexed; use --code or `smara code index`."
        if report.left_for_later
        else "",
    ]
    output.say(*filter(None, lines))
    if counts["added"] and not report.is_dry_run:
        output.say("Review them with `smara memories review`.", dim=True)


def _import_mastra(
    call: Invocation, files: Sequence[str], dry_run: bool, resource: str | None
) -> Reply:
    from smara.adapters.mastra import import_mastra

    if not files:
        raise InvalidInputError(
            "Give the store: `smara import --from mastra FILE`, or its postgresql:// URL."
        )
    reports: list[MastraReport] = []
    with call.memory() as memory:
        for place in files:
            with output.bar("messages") as progress:
                reports.append(
                    import_mastra(
                        memory, place, is_dry_run=dry_run, resource_id=resource, progress=progress
                    )
                )
    yield {
        "stores": [
            {
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
            for report in reports
        ]
    }
    output.table(
        (
            "store",
            "threads",
            "messages",
            "would store" if dry_run else "stored",
            "grown",
            "known",
            "skipped",
            "pages",
            "observations",
            "refused",
        ),
        [
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
        ],
        folding=("store",),
    )
    for each in reports:
        output.print_lines(
            f"{count:,} skipped: {reason}." for reason, count in each.left_out.most_common()
        )
        if each.pages_kept:
            output.say(f"{output.count(each.pages_kept, 'page')} changed here and kept.")
        output.warn(each.problems)
        output.print_lines(f"refused: {name}: {reason}" for name, reason in each.refused[:10])


def _import_notes(call: Invocation, source: str, files: Sequence[str], dry_run: bool) -> Reply:
    from smara.adapters.vendor_memories import import_vendor_memories
    from smara.surfaces.cli.commands.memories.instructions import print_report, report_json

    if files:
        raise InvalidInputError(
            f"--from {source} finds the notes itself. For single files use `smara memories import "
            "FILE`."
        )
    vendors = [each for each in NOTES if f"{each}{_NOTES}" == source] or list(NOTES)
    with call.memory() as memory, output.bar("notes") as progress:
        report = import_vendor_memories(
            memory, None, vendors, is_dry_run=dry_run, progress=progress
        )
    yield report_json(report)
    if not report.files and not report.unreadable:
        output.say(f"No notes of {' or '.join(vendors)} about {report.root} found.")
        return
    print_report(report)


def _import_archives(call: Invocation, files: Sequence[str]) -> Reply:
    with call.memory() as memory:
        reports = [memory.privacy.import_archive(name, project=call.project) for name in files]
    yield {"archives": [asdict(report) for report in reports]}
    for name, report in zip(files, reports, strict=True):
        added, present, skipped = (
            sum(counts.values()) for counts in (report.added, report.present, report.skipped)
        )
        output.say(
            f"{name}: imported {output.count(added, 'record')} into"
            f" {', '.join(report.projects)}; {present:,} already there."
            + (
                f" {skipped:,} skipped: erased here, part of what is missing, or"
                " sums of conversations that went on here."
                if skipped
                else ""
            )
        )


def _import_foreign(
    call: Invocation, files: Sequence[str], source: str | None, *, only: str | None, dry_run: bool
) -> Reply:
    with call.memory() as memory, output.bar("records") as progress:
        reports = [
            memory.privacy.import_markdown(name, is_dry_run=dry_run)
            if is_markdown(name) and source is None
            else memory.privacy.import_foreign(
                name, source, only=only, is_dry_run=dry_run, progress=progress
            )
            for name in files
        ]
    yield {"imports": [output.camel_case(report) for report in reports]}
    output.say(*(line for report in reports for line in report.lines()))


SOURCES = (*TRANSCRIPTS, "all", *OTHER_SOURCES, *FOREIGN)


@click.command("import")
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE...]")
@click.option(
    "--from",
    "source",
    type=click.Choice(SOURCES),
    metavar="SOURCE",
    help=f"One of {', '.join(SOURCES)}; by default all transcripts.",
)
@click.option(
    "--format", type=click.Choice(FORMATS), help="The format of the files; by default detected."
)
@click.option(
    "--resource", metavar="ID", help="The owner of the threads, if the file does not name one."
)
@click.option(
    "--only",
    metavar="NAME",
    help="Of another memory tool: only this project, person or bank of it.",
)
@click.option(
    "--all-projects", is_flag=True, help="Import from all folders, each into its own project."
)
@click.option("--dry-run", is_flag=True, help="Show what would be stored, and store nothing.")
@click.option("--no-learn", is_flag=True, help="Store messages only, and learn nothing from them.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="With --from git: at most N memories.",
)
@click.option(
    "--code/--no-code",
    default=None,
    help="With --from git: index the code; by default if it is small.",
)
@common
def import_command(
    call: Invocation,
    files: tuple[str, ...],
    source: str | None,
    format: Any,
    resource: str | None,
    only: str | None,
    all_projects: bool,
    dry_run: bool,
    no_learn: bool,
    limit: int | None,
    code: bool | None,
) -> Reply:
    """Import past sessions of agents, and conversations in JSON.

    Without FILE it imports the sessions of this repository that coding agents
    have stored; --from names one of them. FILE may be a folder. It
    is safe to repeat, and every line is counted: stored, known or skipped with
    the reason.

    --from git creates memories from commits that give reasons, from reverts and
    from chains of fixes; FILE is another repository. --from mastra reads a store
    of Mastra; FILE is its file or URL. --from claude-memory and the like import
    what agents noted about this repository. FILE.zip is an archive of
    `smara export`; import those that you trust, as what was confirmed stays so.

    FILE may be what another memory tool keeps or exports (mem0, the MCP memory
    server, basic-memory, claude-mem, Hindsight, Zep): it is recognized, or named
    with --from. It becomes messages, and memories that wait for review.

    FILE.md is an export in Markdown that you edited: what you changed is
    changed here, unless it was changed here too.
    """
    if source != "git" and (limit is not None or code is not None):
        raise InvalidInputError(
            "--limit, --code and --no-code are for --from git, which makes memories of commits."
        )
    if source == "git":
        return _import_git(call, files, dry_run, limit=limit, code=code)
    if source == "mastra":
        return _import_mastra(call, files, dry_run, resource=resource)
    if source in OTHER_SOURCES:
        return _import_notes(call, str(source), files, dry_run=dry_run)
    if source in FOREIGN and not files:
        raise InvalidInputError(f"Give the file: `smara import --from {source} FILE`.")
    is_open = source is None and format is None
    if source in FOREIGN or (
        is_open and any(is_markdown(name) or is_foreign(name) for name in files)
    ):
        return _import_foreign(call, files, source, only=only, dry_run=dry_run)
    if only is not None:
        raise InvalidInputError("--only is for files of other memory tools.")
    if files and source is None and all(name.endswith(".zip") for name in files):
        return _import_archives(call, files)
    if files and (source is not None or all_projects):
        raise InvalidInputError("Give files, or --from and --all-projects, but not both.")
    # Hundreds of sessions must not become hundreds of calls of a model.
    with call.memory(models_enabled=False) as memory:
        bulk = BulkImport(
            memory, resource, everywhere=all_projects, learn=not no_learn, dry_run=dry_run
        )
        if files:
            done = bulk.run_files(files, output.bar, format)
        else:
            formats = tuple(TRANSCRIPTS) if source in (None, "all") else (str(source),)
            found, elsewhere = find(formats, Here(os.getcwd()), everywhere=all_projects)
            done = bulk.run(found, output.bar)
            done.elsewhere = elsewhere
    return _reply(done, by_file=bool(files), is_dry_run=dry_run)


def _reply(done: BulkReport, by_file: bool, is_dry_run: bool) -> Reply:
    learned = done.learned
    yield {
        "files": [
            {
                "path": each.path,
                "format": each.format,
                "lines": each.lines,
                "stored": each.stored,
                "repeated": each.repeated,
                "repaired": each.repaired,
                "counted": [
                    {"kind": kind, "reason": reason, "lines": count}
                    for (kind, reason), count in each.counted.most_common()
                ],
                "refused": [{"line": line, "reason": reason} for line, reason in each.refused],
                "threads": each.threads,
            }
            for each in done.reports
        ],
        "stored": sum(each.stored for each in done.reports),
        "dryRun": is_dry_run,
        "elsewhere": done.elsewhere,
        "unread": [{"path": path, "reason": reason} for path, reason in done.unread],
        "learned": {
            "sessions": learned.sessions,
            "events": learned.events,
            "memories": learned.memories,
            "leftOut": learned.left_out,
            "decisions": learned.decisions,
            "problems": learned.problems,
        },
    }
    _print_table(done, by_file, is_dry_run)
    _print_summary(done, is_dry_run)


def _print_table(done: BulkReport, by_file: bool, is_dry_run: bool) -> None:
    """Print one row for each file, or for each agent: it may have thousands of files."""
    columns = ("lines", "would store" if is_dry_run else "stored", "known", "skipped", "refused")
    rows: list[tuple[Any, ...]] = []
    if by_file:
        rows = [(each.path, each.format, *_counts([each])) for each in done.reports]
        if len(rows) > 1 and output.is_terminal():
            rows.append((f"all {len(rows)} files", "", *_counts(done.reports)))
        output.table(("file", "format", *columns), rows, folding=("file",))
        return
    for format in TRANSCRIPTS:
        reports = [each for each in done.reports if each.format == format]
        if reports:
            rows.append(
                (
                    format,
                    len({thread for each in reports for thread in each.threads}),
                    *_counts(reports),
                )
            )
    if rows:
        output.table(("agent", "threads", *columns), rows)
    else:
        output.say("No transcripts of this folder found.")
    if done.elsewhere:
        output.say(
            f"Skipped {output.count(done.elsewhere, 'transcript')} of other folders; "
            "--all-projects imports them, too."
        )
    for reason, count in Counter(reason for _, reason in done.unread).most_common(10):
        example = next(path for path, why in done.unread if why == reason)
        more = f" and {count - 1:,} more" if count > 1 else ""
        output.say(f"not read: {example}{more}: {reason}")


def _counts(reports: Sequence[ImportReport]) -> tuple[int, ...]:
    return (
        sum(each.lines for each in reports),
        sum(each.stored for each in reports),
        sum(each.repeated for each in reports),
        sum(each.counted.total() for each in reports),
        sum(len(each.refused) for each in reports),
    )


def _print_summary(done: BulkReport, is_dry_run: bool) -> None:
    counted = sum((each.counted for each in done.reports), Counter[tuple[str, str]]())
    if counted:
        output.say()
        output.table(
            ("lines", "of", "skipped because"),
            [(count, kind, reason) for (kind, reason), count in counted.most_common()],
            folding=("of", "skipped because"),
        )
    output.print_lines(
        f"refused: {each.path}:{line}: {reason}"
        for each in done.reports
        for line, reason in each.refused[:10]
    )
    learned = done.learned
    if done.reports and output.is_terminal():
        output.say("", imported_line(done, is_dry_run))
        if learned.memories:
            output.say("Review them with `smara memories review`.", dim=True)
    if learned.left_out:
        count = output.count(learned.left_out, "session")
        output.say(f"{count} left to learn from: run the import again.")
    output.warn(learned.problems)


def imported_line(done: BulkReport, is_dry_run: bool = False) -> str:
    """Return what was imported, such as ``Imported 20 messages from 2 sessions.``"""
    stored = output.count(sum(each.stored for each in done.reports), "message")
    # A sub-agent stands in its own file and in that of its session.
    kinds = {thread: kind for each in done.reports for thread, kind in each.threads.items()}
    helpers, compactions = (list(kinds.values()).count(k) for k in ("subagent", "compaction"))
    sources = output.count(len(kinds) - helpers - compactions, "session")
    if helpers:
        sources += f"{', ' if compactions else ' and '}{output.count(helpers, 'sub-agent')}"
    if compactions:
        sources += f" and {output.count(compactions, 'compaction')}"
    learned = done.learned.memories
    review = f" {output.count(learned, 'new memory', 'new memories')} to review." if learned else ""
    decided = done.learned.decisions
    found = f" Found {output.count(decided, 'decision')}." if decided else ""
    verb = "Would import" if is_dry_run else "Imported"
    return f"{verb} {stored} from {sources}.{found}{review}"
