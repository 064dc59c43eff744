"""Define `smara doctor` and `smara index`: find and repair problems."""

from __future__ import annotations

import os

import click

from smara.adapters.hosts.health import host_findings
from smara.adapters.hosts.setup import SetupJournal
from smara.config import load_settings
from smara.core.clock import SystemClock
from smara.core.git import NO_GIT, find_repository, is_git_missing
from smara.doctor import Finding, examine
from smara.environment import setup_folder, spool_folder
from smara.fleet.cluster import examine_cluster
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, Reply, common

_MARKS = {"ok": "✓", "warning": "!", "problem": "✗"}
_COLORS = {"ok": None, "warning": "yellow", "problem": "red"}


@click.command("doctor")
@click.option(
    "--fix", is_flag=True, help="Repair permissions, the write-ahead log and the search index."
)
@common
def doctor_command(call: Invocation, fix: bool) -> Reply:
    """Find and explain problems of the store and of the agents' hooks.

    The exit code is 8 if there are any.
    """
    settings = load_settings(db=call.db, project=call.project)
    here = find_repository(os.getcwd())
    root = here.root if here else os.getcwd()
    findings = [*examine(settings, fix), *examine_cluster(settings)]
    findings += host_findings(
        settings,
        root,
        spool_folder(),
        journal=SetupJournal(setup_folder()),
        now_ms=SystemClock().now_ms(),
    )
    if is_git_missing():
        what, remedy = NO_GIT.split(". ", 1)
        findings.append(Finding("git", "warning", f"{what}.", remedy))
    problems = sum(finding.level == "problem" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
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
    call.exit_code = 8 if problems else 0
    yield {"findings": data, "problems": problems}
    texts = [f"{f.text} (fixed)" if f.is_fixed else f.text for f in findings]
    advice = [f.advice if f.level != "ok" else "" for f in findings]
    if output.is_terminal():
        name_width = max(len(finding.check) for finding in findings)
        indent = " " * (name_width + 4)
        for finding, text, hint in zip(findings, texts, advice, strict=True):
            head = f"{_MARKS[finding.level]} {finding.check:<{name_width}}  "
            output.say(output.paragraph(text, head, indent), fg=_COLORS[finding.level])
            if hint:
                output.say(output.paragraph(hint, f"{indent}→ ", f"{indent}  "))
    else:
        output.table(
            ("level", "check", "text", "advice"),
            [
                (finding.level, finding.check, text, hint)
                for finding, text, hint in zip(findings, texts, advice, strict=True)
            ],
        )
    counts = ((problems, "problem"), (warnings, "warning"))
    verdict = " and ".join(output.count(number, noun) for number, noun in counts if number)
    click.echo(f"\n{verdict} found." if verdict else "\nNo problems found.", err=True)


index_command = click.Group("index", help="Check, rebuild or optimize the search index.")


@index_command.command("check")
@common
def check(call: Invocation) -> Reply:
    """Compare the index with the messages.

    The exit code is 8 if they differ.
    """
    with call.memory() as memory:
        problems = memory.internals.index.problems(deep=True)
    call.exit_code = 8 if problems else 0
    yield {"problems": problems}
    for problem in problems or ["The search index matches the messages."]:
        output.say(problem)


@index_command.command("rebuild")
@common
def rebuild(call: Invocation) -> Reply:
    """Rebuild the index from the messages."""
    with call.memory() as memory, output.bar("Rebuilding") as progress:
        count = memory.internals.index.rebuild(progress)
    yield {"messages": count}
    output.say(f"Rebuilt the search index from {output.count(count, 'message')}.")


@index_command.command("optimize")
@common
def optimize(call: Invocation) -> Reply:
    """Compact the index; useful after a large import."""
    with call.memory() as memory:
        memory.internals.index.optimize()
    yield {"optimized": True}
    output.say("Optimized the search index.")
