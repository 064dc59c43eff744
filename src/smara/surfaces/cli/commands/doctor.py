"""``smara doctor``"""

from __future__ import annotations

import click

from smara.config import load_settings
from smara.doctor import examine
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common

_MARKS = {"ok": "✓", "warning": "!", "problem": "✗"}


@click.command("doctor")
@click.option("--fix", is_flag=True, help="Mend permissions, the write-ahead log and the search index.")
@common
def command(call: Call, fix: bool) -> None:
    """Find and explain problems of the store. Exit code 8 when there are any."""
    findings = examine(load_settings(db=call.db, project=call.project), fix)
    problems = sum(finding.level == "problem" for finding in findings)
    if call.as_json:
        data = [
            {"check": f.check, "level": f.level, "text": f.text, "advice": f.advice, "isFixed": f.is_fixed}
            for f in findings
        ]
        output.envelope({"findings": data, "problems": problems})
    else:
        for finding in findings:
            output.say(
                f"{_MARKS[finding.level]} {finding.check}: {finding.text}{' (fixed)' if finding.is_fixed else ''}"
            )
            if finding.level != "ok" and finding.advice:
                output.say(f"    → {finding.advice}")
        output.say()
        output.say("Nothing is wrong." if not problems else f"{problems} problem{'s' if problems > 1 else ''} found.")
    if problems:
        raise click.exceptions.Exit(8)
