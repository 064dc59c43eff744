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
from typing import TYPE_CHECKING, Any, TextIO

import click

from smara.errors import InvalidInputError
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, common
from smara.surfaces.cli.output import bar

if TYPE_CHECKING:
    from smara.adapters.beads import BeadsReport


_LINES_NAMED = 10


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@common
def import_tasks(call: Invocation, files: tuple[str, ...]) -> None:
    """Bring in issues of beads; safe to repeat.

    FILE is the issues.jsonl of a .beads folder, compressed or not. What has
    no counterpart here is kept, counted, and goes out again with an export.
    """
    from smara.adapters.beads import check_beads, import_beads

    for path in files if len(files) > 1 else ():
        check_beads(path)  # a wrong path is told before anything is stored
    reports: list[BeadsReport] = []
    with call.memory() as memory:
        for path in files:
            with bar(output.short(os.path.basename(path), 40)) as progress:
                reports.append(import_beads(memory, path, progress=progress))
        warnings = memory.warnings
    if call.as_json:
        output.envelope({"files": [_report_json(each) for each in reports]}, warnings)
        return
    output.warn(warnings)
    _print_counts(reports)
    _print_became(reports)
    _print_left_out(reports)


def _print_counts(reports: list[BeadsReport]) -> None:
    if not output.is_terminal():
        names = (
            "file",
            "lines",
            "issues",
            "added",
            "changed",
            "unchanged",
            "newer here",
            "dependencies",
        )
        rows = [
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
        ]
        output.table(names, rows)
        return
    for each in reports:
        counts = {
            "added": each.added,
            "changed": each.changed,
            "unchanged": each.unchanged,
            "changed here since and left alone": each.newer_here,
        }
        told = (
            ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
            or "nothing to do"
        )
        output.say(each.path, bold=True)
        issues = "1 issue" if each.issues == 1 else f"{each.issues:,} issues"
        output.say(f"{issues}: {told}; {each.dependencies:,} dependencies.")


def _print_became(reports: list[BeadsReport]) -> None:
    """What became of everything that is not the same here, over all files together."""
    kept, folded, others = (
        sum((getattr(each, name) for each in reports), Counter[str]())
        for name in ("kept_in_metadata", "folded", "others")
    )
    implied, secrets = (
        sum(each.implied_parents for each in reports),
        sum(each.redacted for each in reports),
    )
    rows = [
        *((count, *_split(what)) for what, count in kept.most_common()),
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
        output.say()
        output.say("All of it is kept, and goes out again with `smara tasks export`.", dim=True)


def _split(what: str) -> tuple[str, str]:
    theirs, _, ours = what.partition(" → ")
    return theirs, ours or "metadata"


def _print_left_out(reports: list[BeadsReport]) -> None:
    for each in reports:
        found = [
            *(f"not read: {each.path}:{line}: {reason}" for line, reason in each.unreadable),
            *(f"repeated: {each.path}:{line}: {reason}" for line, reason in each.repeated),
            *(
                f"refused: {refused.task}: {refused.what}: {refused.why}"
                for refused in each.refused
            ),
        ]
        for line in found[:_LINES_NAMED]:
            output.say(line)
        if len(found) > _LINES_NAMED:
            output.say(f"and {len(found) - _LINES_NAMED:,} more; --json names them all.")


def _report_json(report: BeadsReport) -> dict[str, Any]:
    return {
        "path": report.path,
        "lines": report.lines,
        "issues": report.issues,
        "added": report.added,
        "changed": report.changed,
        "unchanged": report.unchanged,
        "newerHere": report.newer_here,
        "dependencies": report.dependencies,
        "impliedParents": report.implied_parents,
        "tombstones": report.tombstones,
        "others": dict(report.others),
        "folded": dict(report.folded),
        "keptInMetadata": dict(report.kept_in_metadata),
        "redacted": report.redacted,
        "unreadable": [{"line": line, "reason": reason} for line, reason in report.unreadable],
        "repeated": [{"line": line, "reason": reason} for line, reason in report.repeated],
        "refused": [
            {"task": each.task, "what": each.what, "why": each.why} for each in report.refused
        ],
    }


@click.command("export")
@click.argument("file", required=False, default="-", type=click.Path(), metavar="[FILE|-]")
@click.option(
    "--format", "format_", type=click.Choice(["beads"]), default="beads", show_default=True
)
@common
def export(call: Invocation, file: str, format_: str) -> None:
    """Write every task as a line of JSON, as beads does.

    Without a file, or with -, to standard output. A file is replaced when
    all is written; one that ends in .gz is compressed.
    """
    from smara.adapters.beads import export_beads

    with call.memory() as memory:
        warnings = memory.warnings
        if file != "-":
            with _replaced(Path(file)) as stream:
                count = export_beads(memory, stream)
        else:
            text = io.StringIO()
            count = export_beads(memory, text)
    data: dict[str, Any] = {"format": format_, "path": file, "issues": count}
    if call.as_json:
        if file == "-":
            data["records"] = [json.loads(line) for line in text.getvalue().split("\n") if line]
        output.envelope(data, warnings)
        return
    output.warn(warnings)
    if file != "-":
        output.say(f"{count:,} tasks written to {file}.")
    else:
        sys.stdout.buffer.write(text.getvalue().encode())
        sys.stdout.flush()


@contextmanager
def _replaced(path: Path) -> Iterator[TextIO]:
    """A file to write; it takes the place of the old one when all went well, and vanishes
    otherwise.
    """
    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder. Give the path of a file.")
    target = path.resolve()  # a link stays a link
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(fresh, "wb") as raw:
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
