"""``smara import --from``: the history of git, stores of Mastra, and what agents have noted by
themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from smara.errors import InvalidInputError, SmaraError
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call
from smara.surfaces.cli.progress import bar

if TYPE_CHECKING:
    from smara.adapters.git_history.models import GitReport
    from smara.adapters.mastra.models import MastraReport
    from smara.adapters.vendor_memories.finding import Vendor

_NOTES = "-memory"
OTHER_SOURCES = (
    "git", "mastra", "claude-memory", "codex-memory", "gemini-memory", "goose-memory",
    "agent-memories",
)  # fmt: skip
_SHOWN = 12


def run(
    call: Call,
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
    call: Call, files: Sequence[str], dry_run: bool, limit: int | None, code: bool | None
) -> None:
    from smara.adapters.git_history import import_history
    from smara.adapters.git_history.importing import MOST_MEMORIES, warm_up

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


def _mastra(call: Call, files: Sequence[str], dry_run: bool, resource: str | None) -> None:
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


def _notes(call: Call, source: str, files: Sequence[str], dry_run: bool) -> None:
    from smara.adapters.vendor_memories import VENDORS, import_vendor_memories
    from smara.surfaces.cli.commands.memories.importing import report_json, tell

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
