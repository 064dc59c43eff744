"""``smara import``"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import click

from smara.adapters.importing import Importer, ImportReport
from smara.adapters.sniff import import_order
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common
from smara.surfaces.cli.progress import bar


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@click.option(
    "--format", type=click.Choice(["claude-code", "jsonl"]), help="The format; without it, what each looks like."
)
@click.option("--resource", metavar="ID", help="Who the threads belong to, where the file does not say.")
@common
def command(call: Call, files: tuple[str, ...], format: Any, resource: str | None) -> None:
    """Bring in Claude Code transcripts and plain JSONL, gzipped or not. Safe to repeat.

    Every line is accounted for: stored, known already, or counted with the reason.
    """
    with call.memory() as memory:
        importer = Importer(memory, resource)
        reports = []
        for number, path in enumerate(import_order(files), 1):
            name = output.short(os.path.basename(path), 40)
            with bar(name if len(files) == 1 else f"{number}/{len(files)} {name}") as progress:
                reports.append(importer.import_file(path, progress, format))
        warnings = memory.warnings
    if call.as_json:
        output.envelope(
            {"files": [_report_json(each) for each in reports], "stored": sum(r.stored for r in reports)}, warnings
        )
        return
    output.warn(warnings)
    rows = [
        (each.path, each.format, each.lines, each.stored, each.repeated, each.counted.total(), len(each.refused))
        for each in reports
    ]
    if len(rows) > 1 and output.is_terminal():
        rows.append((f"all {len(rows)} files", "", *(sum(numbers) for numbers in list(zip(*rows, strict=True))[2:])))
    output.table(("file", "format", "lines", "stored", "known", "not messages", "refused"), rows, folding=("file",))
    _explain(reports)


def _explain(reports: list[ImportReport]) -> None:
    """Why lines did not become messages, over all files together."""
    counted = sum((each.counted for each in reports), Counter[tuple[str, str]]())
    if counted:
        output.say()
        rows = [(count, kind, reason) for (kind, reason), count in counted.most_common()]
        output.table(("lines", "of", "not messages because"), rows, folding=("of", "not messages because"))
    for each in reports:
        for line, reason in each.refused[:10]:
            output.say(f"refused: {each.path}:{line}: {reason}")


def _report_json(report: ImportReport) -> dict[str, Any]:
    return {
        "path": report.path, "format": report.format, "lines": report.lines, "stored": report.stored,
        "repeated": report.repeated, "repaired": report.repaired,
        "counted": [{"kind": k, "reason": r, "lines": n} for (k, r), n in report.counted.most_common()],
        "refused": [{"line": line, "reason": reason} for line, reason in report.refused], "threads": report.threads,
    }  # fmt: skip
