"""Define `smara backup`, `restore` and `export`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from smara.errors import InvalidInputError
from smara.privacy.models import FORMATS, BackupReport, ExportReport, RestoreReport
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, Reply, common

_NOUNS = {
    "messages": "message",
    "memories": "memory",
    "tasks": "task",
    "observations": "observation",
    "commits": "commit",
}


@click.command("backup")
@click.argument("file", required=False, type=click.Path(dir_okay=False))
@common
def backup_command(call: Invocation, file: str | None) -> Reply:
    """Write a backup into FILE, while the store is in use.

    SQLite: the whole store, all projects, checked after it was written.
    PostgreSQL: an archive of this project; use pg_dump for the server.
    FILE must not exist; only you can read it. Without FILE a name with the
    time is used, in this folder.
    """
    with call.memory() as memory:
        is_file = memory.path is not None
        name = file or f"smara-{_now()}.{'db' if is_file else 'zip'}"
        report = memory.privacy.backup(name)
    yield _json(report)
    output.say(
        f"Wrote {report.path} ({output.size(report.size_bytes)}) and checked it:"
        f" {_summary(report.counts)}.",
        f"Restore it with `smara restore {name}`.",
    )


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
            click.confirm(f"Restore {file} to {memory.path}?", abort=True, err=True)
        report = memory.privacy.restore(file)
    yield _json(report)
    output.say(f"Restored {file}: {_summary(report.counts)}.")
    if report.saved_as:
        output.say(f"What was there before is in {report.saved_as}.")


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


def _archive(call: Invocation, file: str | None, **selection: Any) -> Reply:
    name = file or f"smara-{_now()}.zip"
    with call.memory() as memory:
        report = memory.privacy.export(name, **selection)
    yield _json(report)
    output.say(
        f"Wrote {report.path} ({output.size(report.size_bytes)}): {_summary(report.counts)}"
        f" of {output.count(len(report.projects), 'project')}."
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
    yield _json(report)
    output.say(f"Wrote {report.path} ({output.size(report.size_bytes)}).")


def _json(report: BackupReport | RestoreReport | ExportReport) -> dict[str, Any]:
    return {
        re.sub(r"_(.)", lambda hit: hit[1].upper(), name): value
        for name, value in asdict(report).items()
    }


def _summary(counts: Mapping[str, int]) -> str:
    """Return counts in words: what people know, then all."""
    found = [
        output.count(counts[name], noun, name) for name, noun in _NOUNS.items() if counts.get(name)
    ]
    return ", ".join([*found, f"{sum(counts.values()):,} records in all"])


def _now() -> str:
    return f"{datetime.now():%Y%m%d-%H%M%S}"
