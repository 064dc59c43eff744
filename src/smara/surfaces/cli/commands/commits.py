"""Define `smara commits`: read and list commits, explain a file."""

from __future__ import annotations

import os

import click

from smara.commits.models import LineReason
from smara.core.git import find_repository
from smara.errors import InvalidInputError
from smara.memory import Memory
from smara.shapes import commit_json, line_reason_json
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, Reply, common, limit_option, with_memory

commits_command = click.Group("commits", help="Read the history, and explain a file's lines.")
_SHOWN_LINES = 3


@commits_command.command("update")
@with_memory
def update(memory: Memory) -> Reply:
    """Read the commits that are new since the last time."""
    with output.bar("Reading commits") as progress:
        report = memory.commits.update(progress=progress)
    yield {
        "added": report.added,
        "total": report.total,
        "dropped": report.dropped,
        "isAll": report.is_all,
        "named": memory.commits.name_functions(),
    }
    output.say(
        f"{output.count(report.added, 'new commit')}; {report.total:,} in all."
        + (f" {report.dropped:,} were rewritten and are gone." if report.dropped else "")
        + ("" if report.is_all else " Older ones were left out.")
    )


@commits_command.command("list")
@click.argument("path", required=False)
@limit_option(20, 1_000, help="Show at most N.")
@with_memory
def list_commits(memory: Memory, path: str | None, limit: int) -> Reply:
    """List commits, newest first; with PATH those that changed a file."""
    found = memory.commits.list(path=path and in_repository(path)[0], limit=limit)
    yield [commit_json(each) for each in found]
    if not found:
        output.say("No commits yet. `smara commits update` reads the history.")
        return
    output.table(
        ("commit", "day", "subject"),
        [(each.short_id, each.day, each.subject) for each in found],
        folding=("subject",),
    )


@commits_command.command("show")
@click.argument("sha", metavar="COMMIT")
@with_memory
def show(memory: Memory, sha: str) -> Reply:
    """Show a commit: message, files and functions."""
    commit = memory.commits.get(sha)
    yield commit_json(commit)
    output.say(f"{commit.short_id}  {commit.subject}", bold=True)
    output.facts(
        [
            ("author", f"{commit.author}, {commit.day}"),
            ("files", ", ".join(commit.files)),
            ("functions", ", ".join(commit.functions)),
        ]
    )
    if commit.body:
        output.say("", commit.body)


@commits_command.command("why")
@click.argument("path", metavar="FILE[:FUNCTION]")
@click.option("--function", metavar="NAME", help="Only what concerns this function.")
@common
def why(call: Invocation, path: str, function: str | None) -> Reply:
    """Explain a file: the stated reasons behind its lines.

    What a commit set with a reason, and a later one took away without
    stating one, comes first. Agents are told of it when they open the file.
    """
    path, function = in_repository(path, function)
    with call.memory() as memory:
        memory.commits.update()
        reasons = memory.commits.why(path, function)
    yield [line_reason_json(each) for each in reasons]
    if not reasons:
        output.say("No commit states a reason for what stands there.")
    for each in reasons:
        explain(each)


def explain(reason: LineReason) -> None:
    """Print a stated reason, and what became of its lines."""
    commit, undone = reason.commit, reason.undone_by
    output.say(
        output.paragraph(f"{commit.short_id}  {commit.day}  {commit.subject}", "", "  "), bold=True
    )
    output.say(output.paragraph(commit.reason, "  ", "  "))
    where = f" of {', '.join(reason.functions[:4])}" if reason.functions else ""
    if undone is None:
        verb = "stands" if len(reason.lines) == 1 else "stand"
        output.say(f"  {output.count(len(reason.lines), 'line')}{where} {verb} today.")
        return
    gone = [each.text for each in reason.lost if each.by == undone.sha]
    output.sentence(
        f"  Undone on {undone.day} by {undone.short_id} “{undone.subject}”, whose message "
        f"says no more than that. Gone{where}:",
        others="  ",
    )
    output.say(*(f"    {line}" for line in gone[:_SHOWN_LINES]))
    if len(gone) > _SHOWN_LINES:
        output.say(f"    and {len(gone) - _SHOWN_LINES} more")


def in_repository(path: str, function: str | None = None) -> tuple[str, str | None]:
    """Return a file as the repository names it, and a function."""
    if function is None and not os.path.exists(path):
        path, _, name = path.partition(":")
        function = name.removesuffix("()") or None
    whole = os.path.abspath(path)
    repository = find_repository(os.path.dirname(whole))
    if repository is None:
        raise InvalidInputError(f"{path} is in no git repository. Name a file inside of one.")
    return os.path.relpath(whole, repository.root).replace(os.sep, "/"), function
