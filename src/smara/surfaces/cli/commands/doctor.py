"""Define `smara doctor` and `smara index`: find and repair problems."""

from __future__ import annotations

import os

import click

from smara.adapters.hosts.health import host_findings, now_ms
from smara.adapters.hosts.setup import Journal
from smara.config import load_settings
from smara.core.git import find_repository
from smara.doctor import Finding, examine
from smara.environment import setup_folder, spool_folder
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, common
from smara.surfaces.cli.output import bar

_MARKS = {"ok": "✓", "warning": "!", "problem": "✗"}
_COLORS = {"ok": None, "warning": "yellow", "problem": "red"}


@click.command("doctor")
@click.option(
    "--fix", is_flag=True, help="Mend permissions, the write-ahead log and the search index."
)
@common
def doctor_command(call: Invocation, fix: bool) -> None:
    """Find and explain problems of the store and of the agents' hooks. Exit code 8 when there are
    any.
    """
    settings = load_settings(db=call.db, project=call.project)
    here = find_repository(os.getcwd())
    root = here.root if here else os.getcwd()
    findings = examine(settings, fix)
    findings += host_findings(
        settings, root, spool_folder(), journal=Journal(setup_folder()), now_ms=now_ms()
    )
    problems = sum(finding.level == "problem" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    if call.as_json:
        data = [
            {
                "check": f.check,
                "level": f.level,
                "text": f.text,
                "advice": f.advice,
                "isFixed": f.is_fixed,
            }
            for f in findings
        ]
        output.envelope({"findings": data, "problems": problems})
    else:
        _show(findings)
        click.echo(f"\n{_verdict(problems, warnings)}", err=True)
    if problems:
        raise click.exceptions.Exit(8)


def _show(findings: list[Finding]) -> None:
    if not output.is_terminal():
        rows = [(f.level, f.check, _text(f), f.advice if f.level != "ok" else "") for f in findings]
        output.table(("level", "check", "text", "advice"), rows)
        return
    name_width = max(len(finding.check) for finding in findings)
    indent = " " * (name_width + 4)
    for finding in findings:
        head = f"{_MARKS[finding.level]} {finding.check:<{name_width}}  "
        output.say(output.paragraph(_text(finding), head, indent), fg=_COLORS[finding.level])
        if finding.level != "ok" and finding.advice:
            output.say(output.paragraph(finding.advice, f"{indent}→ ", f"{indent}  "))


def _text(finding: Finding) -> str:
    return f"{finding.text} (fixed)" if finding.is_fixed else finding.text


def _verdict(problems: int, warnings: int) -> str:
    if not problems and not warnings:
        return "Nothing is wrong."
    counted = ((problems, "problem"), (warnings, "warning"))
    return " and ".join(f"{n} {what}{'s' if n > 1 else ''}" for n, what in counted if n) + " found."


@click.group("index")
def index_command() -> None:
    """Check, rebuild or optimize the search index."""


@index_command.command("check")
@common
def check(call: Invocation) -> None:
    """Compare the whole index with the messages. Exit code 8 when they differ."""
    with call.memory() as memory:
        problems = memory.index.problems(deep=True)
    if call.as_json:
        output.envelope({"problems": problems})
    else:
        for problem in problems or ["The index agrees with the messages."]:
            output.say(problem)
    if problems:
        raise click.exceptions.Exit(8)


@index_command.command("rebuild")
@common
def rebuild(call: Invocation) -> None:
    """Make the index again from the messages."""
    with call.memory() as memory, bar("Rebuilding") as progress:
        count = memory.index.rebuild(progress)
    if call.as_json:
        output.envelope({"messages": count})
    else:
        output.say(f"Rebuilt from {count:,} messages.")


@index_command.command("optimize")
@common
def optimize(call: Invocation) -> None:
    """Merge the index into its most compact form; worth it after a large import."""
    with call.memory() as memory:
        memory.index.optimize()
    if call.as_json:
        output.envelope({"optimized": True})
    else:
        output.say("Optimized.")
