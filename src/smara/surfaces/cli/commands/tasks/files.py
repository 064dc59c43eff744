"""Define `smara tasks import` and `smara tasks export`."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from smara.core.escape import escape_unseen
from smara.core.extract import one_line
from smara.errors import InvalidInputError
from smara.memory import Memory
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, Reply, common, with_memory

if TYPE_CHECKING:
    from smara.adapters.beads import BeadsReport


_LINES_NAMED = 10


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@common
def import_tasks(call: Invocation, files: tuple[str, ...]) -> Reply:
    """Import issues of beads. Safe to repeat.

    FILE is the issues.jsonl of a .beads folder, compressed or not. Fields
    without a counterpart are kept, counted, and written by an export.
    """
    from smara.adapters.beads import check_beads, import_beads

    for path in files if len(files) > 1 else ():
        check_beads(path)  # a wrong path is reported before anything is stored
    reports: list[BeadsReport] = []
    with call.memory() as memory:
        for path in files:
            with output.bar(one_line(os.path.basename(path), 40)) as progress:
                reports.append(import_beads(memory, path, progress=progress))
    yield {
        "files": [
            {
                "path": each.path,
                "lines": each.lines,
                "issues": each.issues,
                "added": each.added,
                "changed": each.changed,
                "unchanged": each.unchanged,
                "newerHere": each.newer_here,
                "dependencies": each.dependencies,
                "impliedParents": each.implied_parents,
                "tombstones": each.tombstones,
                "others": dict(each.others),
                "folded": dict(each.folded),
                "keptInMetadata": dict(each.kept_in_metadata),
                "redacted": each.redacted,
                "unreadable": [
                    {"line": line, "reason": reason} for line, reason in each.unreadable
                ],
                "repeated": [{"line": line, "reason": reason} for line, reason in each.repeated],
                "refused": [
                    {"task": one.task, "what": one.what, "why": one.why} for one in each.refused
                ],
            }
            for each in reports
        ]
    }
    if not output.is_terminal():
        columns = (
            "file", "lines", "issues", "added", "changed", "unchanged", "newer here",
            "dependencies",
        )  # fmt: skip
        output.table(
            columns,
            [
                (
                    each.path,
                    each.lines,
                    each.issues,
                    each.added,
                    each.changed,
                    each.unchanged,
                    each.newer_here,
                    each.dependencies,
                )
                for each in reports
            ],
        )
    for each in reports if output.is_terminal() else ():
        counts = {
            "added": each.added,
            "changed": each.changed,
            "unchanged": each.unchanged,
            "newer here and kept": each.newer_here,
        }
        parts = [f"{count:,} {name}" for name, count in counts.items() if count]
        output.say(each.path, bold=True)
        output.say(
            f"{output.count(each.issues, 'issue')}: {', '.join(parts) or 'nothing to do'}; "
            f"{output.count(each.dependencies, 'dependency', 'dependencies')}."
        )
    _print_mapping(reports)
    for each in reports:
        lines = [
            *(f"not read: {each.path}:{line}: {reason}" for line, reason in each.unreadable),
            *(f"repeated: {each.path}:{line}: {reason}" for line, reason in each.repeated),
            *(
                f"refused: {refused.task}: {refused.what}: {refused.why}"
                for refused in each.refused
            ),
        ]
        output.print_lines(lines[:_LINES_NAMED])
        if len(lines) > _LINES_NAMED:
            output.say(f"and {len(lines) - _LINES_NAMED:,} more; --json lists them all.")


def _print_mapping(reports: list[BeadsReport]) -> None:
    """Print which fields of beads became something else here, over all files."""
    in_metadata, folded, others = (
        sum((getattr(each, name) for each in reports), Counter[str]())
        for name in ("kept_in_metadata", "folded", "others")
    )
    implied, secrets = (
        sum(each.implied_parents for each in reports),
        sum(each.redacted for each in reports),
    )
    rows = [
        *(
            (count, theirs, ours or "metadata")
            for what, count in in_metadata.most_common()
            for theirs, _, ours in (what.partition(" → "),)
        ),
        *(
            (count, f"field {name}", "a section of the description")
            for name, count in folded.most_common()
        ),
        *(
            (count, f"record {name}", "a message of the thread beads")
            for name, count in others.most_common()
        ),
        (implied, "parent named by an id alone", "a dependency"),
        (secrets, "secret", "a placeholder"),
    ]
    rows = [row for row in rows if row[0]]
    if rows:
        output.say()
        output.table(("count", "of", "became"), rows, folding=("of", "became"))
    if rows and output.is_terminal():
        output.say("", "All of it is kept and written by `smara tasks export`.", dim=True)


@click.command("export")
@click.argument("file", required=False, default="-", type=click.Path(), metavar="[FILE|-]")
@click.option(
    "--format", "format_", type=click.Choice(["beads"]), default="beads", show_default=True
)
@with_memory
def export(memory: Memory, file: str, format_: str) -> Reply:
    """Export all tasks as JSON lines in the format of beads.

    Without FILE, or with -, it writes to standard output. A file is replaced
    once everything is written; a name ending in .gz is compressed.
    """
    from smara.adapters.beads import export_beads

    if file != "-":
        with _replaced(Path(file)) as stream:
            count = export_beads(memory, stream)
        yield {"format": format_, "path": file, "issues": count}
        output.say(f"Exported {output.count(count, 'task')} to {file}.")
        return
    text = io.StringIO()
    count = export_beads(memory, text)
    records = [json.loads(line) for line in text.getvalue().split("\n") if line]
    yield {"format": format_, "path": file, "issues": count, "records": records}
    sys.stdout.buffer.write(escape_unseen(text.getvalue()).encode())
    sys.stdout.flush()


@contextmanager
def _replaced(path: Path) -> Iterator[TextIO]:
    """Yield a file to write, which replaces the old one if all goes well."""
    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder. Give the path of a file.")
    target = path.resolve()  # a link stays a link
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
        with open(os.open(fresh, flags, 0o600), "wb") as raw:
            packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else raw
            with io.TextIOWrapper(packed, "utf-8") as text:
                yield text
        if target.exists():
            shutil.copymode(target, fresh)
        os.replace(fresh, target)
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be written: {error.strerror}. Give another path."
        ) from None
    finally:
        fresh.unlink(missing_ok=True)
