"""Define `smara backup`, `restore`, `copy`, `export` and `erase`."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from smara.errors import InvalidInputError
from smara.memory import Memory, copy_store
from smara.privacy.models import (
    FORMATS,
    ErasePlan,
    EraseReceipt,
)
from smara.surfaces.cli import output
from smara.surfaces.cli.options import (
    Invocation,
    Reply,
    common,
    complete_memory,
    complete_project,
    complete_task,
    complete_thread,
    find_message,
    with_memory,
)

_NOUNS = {
    "messages": "message",
    "memories": "memory",
    "tasks": "task",
    "observations": "observation",
    "commits": "commit",
}


@click.command("backup")
@click.argument("file", required=False, type=click.Path(dir_okay=False))
@with_memory
def backup_command(memory: Memory, file: str | None) -> Reply:
    """Write a backup into FILE, while the store is in use.

    SQLite: the whole store, all projects, checked after it was written.
    PostgreSQL: an archive of this project; use pg_dump for the server.
    FILE must not exist; only you can read it. Without FILE a name with the
    time is used, in this folder.
    """
    name = file or f"smara-{_now()}.{'zip' if memory.path is None else 'db'}"
    report = memory.privacy.backup(name)
    lacks = memory.transcripts.status().copy_lines()
    yield output.camel_case(report)
    output.sentence(
        f"Wrote {report.path} ({output.size(report.size_bytes)}) and checked it:"
        f" {_summary(report.counts)}.",
        f"Restore it with `smara restore {name}`.",
        *lacks,
    )


def _ask_to_restore(file: str, path: str) -> None:
    try:
        is_agreed = click.confirm(f"Restore {file} to {path}?", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise InvalidInputError(
            "No terminal to ask for consent, so nothing was restored. Add --yes to restore."
        ) from None
    if not is_agreed:
        raise click.Abort


@click.command("restore")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--yes", is_flag=True, help="Do not ask.")
@common
def restore_command(call: Invocation, file: str, yes: bool) -> Reply:
    """Restore FILE, a backup or an archive.

    A backup replaces the whole store, and what was there is saved beside
    it first. `smara --db NEW restore FILE` restores to another place. An
    archive is added to what is there.
    """
    with call.memory() as memory:
        if memory.path is not None and not yes and not call.as_json:
            _ask_to_restore(file, memory.path)
        report = memory.privacy.restore(file)
    yield output.camel_case(report)
    output.sentence(f"Restored {file}: {_summary(report.counts)}.")
    if report.saved_as:
        output.sentence(f"What was there before is in {report.saved_as}.")
    if report.undone_erases:
        output.warn(
            [
                f"{output.count(report.undone_erases, 'erase')} came after this backup: what"
                " went then is back. Erase it again."
            ]
        )


@click.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.argument("projects", metavar="[PROJECT]...", nargs=-1, shell_complete=complete_project)
@click.option("--into", metavar="NAME", help="Merge the one PROJECT into this project of TO.")
@common
def copy_command(call: Invocation, projects: tuple[str, ...], **given: Any) -> Reply:
    """Copy the store FROM into the store TO, or only some projects.

    Each is a SQLite file or a PostgreSQL URL; a new file is for you alone.
    Ids, dates, history, indexes and vectors come along. FROM is only read,
    while others may write to it. A copy that was interrupted goes on where
    it was when you call it again. At the end every row of both is compared.

    If TO has projects, those of FROM are merged with them: a message or
    memory that both have is one, and of what both changed the later change
    is taken. What cannot be decided stays as it is in TO and is listed.
    """
    report = copy_store(projects=[*projects, *filter(None, [call.project])] or None, **given)
    yield {**output.camel_case(report), "rows": report.rows, "sha256": report.sha256}
    output.say(*report.lines(output.count))


@click.command("export")
@click.argument("file", required=False, type=click.Path(dir_okay=False))
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="An archive (zip, the default), or text: to FILE, or to standard output.",
)
@click.option("--all-projects", is_flag=True, help="Export every project of the store.")
@click.option("--person", metavar="NAME", help="Only what belongs to this person.")
@click.option("--since", metavar="TIME", help="Only what is not older, such as 2026-03-01.")
@click.option("--until", metavar="TIME", help="Only what is older.")
@common
def export_command(
    call: Invocation,
    file: str | None,
    form: Any,
    all_projects: bool,
    person: str | None,
    since: str | None,
    until: str | None,
) -> Reply:
    """Export this project: everything in one archive, or as text.

    The archive is a ZIP with lines of JSON for programs, Markdown and CSV
    for people, a manifest with checksums and a JSON Schema. `smara import
    FILE` reads it again. Without FILE a name with the time is used.

    --format markdown: memories and tasks. --format claude-md and agents-md:
    what a person confirmed, as instructions. --format json: every record.
    """
    if form in (None, "zip"):
        return _archive(call, file, is_all=all_projects, person=person, since=since, until=until)
    if all_projects or person or since or until:
        raise InvalidInputError(
            "--all-projects, --person, --since and --until are for archives. Leave out --format."
        )
    return _text(call, file, form)


@click.command("erase")
@click.option(
    "--message", "messages", multiple=True, metavar="ID", help="A message, or THREAD:SEQ."
)
@click.option(
    "--thread",
    "--session",
    "threads",
    multiple=True,
    metavar="ID",
    help="A thread or session.",
    shell_complete=complete_thread,
)
@click.option(
    "--memory",
    "memories",
    multiple=True,
    metavar="ID",
    help="A memory.",
    shell_complete=complete_memory,
)
@click.option(
    "--task", "tasks", multiple=True, metavar="ID", help="A task.", shell_complete=complete_task
)
@click.option("--person", metavar="NAME", help="What belongs to a person, and the name elsewhere.")
@click.option("--path", metavar="PATH", help="Every record that names a file, or one in a folder.")
@click.option("--text", "--query", metavar="TEXT", help="Every record that holds this text.")
@click.option("--since", metavar="TIME", help="Everything that is not older, such as 2026-03-01.")
@click.option("--until", metavar="TIME", help="Everything that is older.")
@click.option(
    "--transcribed", is_flag=True, help="The text of messages that agents' transcripts have."
)
@click.option(
    "--transcript", multiple=True, metavar="FILE", help="With --transcribed: look there too."
)
@click.option("--expired", is_flag=True, help="What is kept longer than the rules of retention.")
@click.option("--whole-project", "is_project", is_flag=True, help="This whole project.")
@click.option("--everything", "is_everything", is_flag=True, help="Every project of the store.")
@click.option("--yes", is_flag=True, help="Erase; without it, show what would go.")
@common
def erase_command(
    call: Invocation,
    yes: bool,
    expired: bool,
    transcribed: bool,
    transcript: tuple[str, ...],
    messages: tuple[str, ...],
    **target: Any,
) -> Reply:
    """Erase things for good, with all that was made from them.

    Without --yes it lists what would go and changes nothing. There is no
    undo. Rows, indexes and vectors go together; then the file is written
    again and searched for what was erased. What is imported later does not
    bring it back. The transcripts of agents and former backups are yours to
    delete.

    --expired, alone: what `smara status` shows as past its rule. A worker
    does this once a day.

    --transcribed, alone, in a project that keeps vectors: a pointer, hashed
    terms and the vector stay. A text that no transcript has stays as well.
    """
    if expired or transcribed:
        if messages or any(target.values()) or (expired and transcribed):
            raise InvalidInputError(
                f"--{'expired' if expired else 'transcribed'} stands alone. Leave out what else is"
                " named."
            )
        yield from _expired(call, yes) if expired else _transcribed(call, yes, transcript)
        return
    from smara.adapters.hosts.drain import drain
    from smara.environment import spool_folder

    with call.memory() as memory:
        given = {**target, "messages": [find_message(memory, each).id for each in messages]}
        if not yes:
            plan = memory.privacy.plan_erase(**given)
            yield {"isDryRun": True, **output.camel_case(plan)}
            _say_plan(plan, "Would erase")
            output.say("Nothing was changed. `--yes` erases it; there is no undo.")
            return
        drain(memory, spool_folder())  # events that wait would bring it back
        receipt = memory.privacy.erase(**given)
    yield {"isDryRun": False, **output.camel_case(receipt), "plan": output.camel_case(receipt.plan)}
    _say_plan(receipt.plan, "Erased")
    call.exit_code = _say_traces(receipt)


def _expired(call: Invocation, yes: bool) -> Reply:
    with call.memory() as memory:
        plan = memory.retention.plan()
        gone = memory.retention.erase() if yes else {kind: each.gone for kind, each in plan.items()}
    resting = {kind: each.resting for kind, each in plan.items() if each.resting}
    yield {"isDryRun": not yes, "rows": gone, "resting": resting}
    output.say(f"{'Erased' if yes else 'Would erase'} {output.count(sum(gone.values()), 'row')}.")
    rows = [
        (gone.get(kind, 0), resting.get(kind, 0), kind.replace("_", " "))
        for kind in {**gone, **resting}
    ]
    if rows:
        output.table(("rows", "stay", "of"), rows)
    if resting:
        output.say("Rows that stay are what a memory in force or an unfinished task rests on.")
    if not yes:
        output.say("Nothing was changed. `--yes` erases it; there is no undo.")


def _transcribed(call: Invocation, yes: bool, files: tuple[str, ...]) -> Reply:
    from smara.adapters.hosts.drain import drain
    from smara.adapters.importer import transcripts_of
    from smara.environment import spool_folder

    with call.memory() as memory:
        if yes:
            drain(memory, spool_folder())  # events that wait would bring it back
        act = memory.transcripts.withhold if yes else memory.transcripts.plan
        report = act(transcripts_of(memory, files))
    yield {"isDryRun": not yes, **output.camel_case(report)}
    output.say(*report.lines(output.count))
    if report.plan.lines:
        output.table(("rows", "of", "why"), report.plan.lines)
    if report.receipt is None:
        output.say("Nothing was changed. `--yes` does it; there is no undo.")
    else:
        call.exit_code = _say_traces(report.receipt)


def _say_plan(plan: ErasePlan, verb: str) -> None:
    output.say(f"{verb} {output.count(plan.total, 'row')}{':' if plan.lines else '.'}")
    if plan.lines:
        output.table(("rows", "of", "why"), plan.lines)
    if plan.again:
        output.say("Again: what rests on other sources too is made again from those alone.")
    if plan.elsewhere:
        output.say("Rows that stay hold some of the same words and are records of their own.")


def _say_traces(receipt: EraseReceipt) -> int:
    pieces = output.count(receipt.samples, "piece")
    if receipt.is_clean:
        output.say(
            f"Looked for {pieces} of it in every file of the store: none was found."
            if receipt.samples
            else "Nothing of it was long enough to look for; the files were rewritten."
        )
    else:
        output.warn(
            [
                f"The rows are gone, but not yet all of their bytes: {', '.join(receipt.traces)}.",
                *(f"In the way: {each}." for each in receipt.held_by),
                "End what is in the way; `smara doctor --fix` then finishes the erase.",
            ]
        )
    lines = (textwrap.wrap(each, 78, subsequent_indent="  ") for each in receipt.out_of_reach)
    output.say("Out of reach:", *("\n".join(["- " + each[0], *each[1:]]) for each in lines))
    return 0 if receipt.is_clean else 6


def _archive(call: Invocation, file: str | None, **selection: Any) -> Reply:
    name = file or f"smara-{_now()}.zip"
    with call.memory() as memory:
        report = memory.privacy.export(name, **selection)
        lacks = memory.transcripts.status().copy_lines()
    yield output.camel_case(report)
    output.sentence(
        f"Wrote {report.path} ({output.size(report.size_bytes)}): {_summary(report.counts)}"
        f" of {output.count(len(report.projects), 'project')}.",
        *lacks,
    )


def _text(call: Invocation, file: str | None, form: Any) -> Reply:
    with call.memory() as memory:
        if file is None:
            lines = memory.privacy.render(form)
            if call.as_json:
                yield {"format": form, "text": "\n".join(lines)}
                return
            for line in lines:
                click.echo(output.encodable(line))
            return
        report = memory.privacy.export(file, format=form)
    yield output.camel_case(report)
    output.say(f"Wrote {report.path} ({output.size(report.size_bytes)}).")


def _summary(counts: Mapping[str, int]) -> str:
    """Return counts in words: what people know, then all."""
    found = [
        output.count(counts[name], noun, name) for name, noun in _NOUNS.items() if counts.get(name)
    ]
    return ", ".join([*found, f"{sum(counts.values()):,} records in all"])


def _now() -> str:
    return f"{datetime.now():%Y%m%d-%H%M%S}"
