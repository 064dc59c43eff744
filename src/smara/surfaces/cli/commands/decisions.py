"""Define `smara decisions`: what people settled in their sessions, and why."""

from __future__ import annotations

import os

import click

from smara.decisions.models import Decision
from smara.memory import Memory
from smara.shapes import decision_json, line_reason_json
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.commits import explain, in_repository
from smara.surfaces.cli.options import (
    Invocation,
    Reply,
    common,
    complete_decision,
    limit_option,
    with_memory,
)
from smara.surfaces.cli.render import say_more

decisions_command = click.Group("decisions", help="Show what people decided in their sessions.")


@decisions_command.command("update")
@common
def update(call: Invocation) -> Reply:
    """Read the sessions that are new since the last time."""
    with call.memory() as memory, output.bar("Reading sessions") as progress:
        report = memory.decisions.update(progress=progress)
    yield {
        "threads": report.threads,
        "added": report.added,
        "changed": report.changed,
        "superseded": report.superseded,
        "isAll": report.is_all,
    }
    output.say(
        f"Read {output.count(report.threads, 'session')}: "
        f"{output.count(report.added, 'new decision')}, {report.superseded:,} superseded."
        + ("" if report.is_all else " Sessions are left: run it again.")
    )


@decisions_command.command("list")
@click.argument("path", required=False)
@click.option(
    "--state",
    type=click.Choice(["active", "deprecated", "all"]),
    default="active",
    help="Those in force, those that are not, or all.",
)
@limit_option(20, 1_000, help="Show at most N.")
@with_memory
def list_decisions(memory: Memory, path: str | None, state: str, limit: int) -> Reply:
    """List decisions, newest first; with PATH those about a file."""
    found = memory.decisions.list(state=state, path=path, limit=limit)  # type: ignore[arg-type]  # a choice
    yield [decision_json(each) for each in found]
    _print(
        list(found),
        "No decision was found in the sessions that were read. `smara decisions update` reads "
        "new ones.",
    )
    if found.next_offset is not None:
        say_more("There are more: use a larger --limit.")


@decisions_command.command("search")
@click.argument("words", nargs=-1, required=True)
@limit_option(5, 50, help="Show at most N.")
@with_memory
def search(memory: Memory, words: tuple[str, ...], limit: int) -> Reply:
    """Find the decisions in force that WORDS are about."""
    found = memory.decisions.search(" ".join(words), limit)
    yield [decision_json(each) for each in found]
    _print(found, "No decision is about this. `smara search` looks everywhere.")


@decisions_command.command("show")
@click.argument("decision_id", metavar="ID", shell_complete=complete_decision)
@with_memory
def show(memory: Memory, decision_id: str) -> Reply:
    """Show a decision: the rule, who said what, what was rejected."""
    decision = memory.decisions.get(decision_id)
    yield decision_json(decision)
    state = "in force" if decision.is_in_force else str(decision.memory.deprecated_because)
    output.say(f"{decision.short_id}  {decision.memory.type}, {state}", bold=True)
    output.say(output.paragraph(decision.rule, "  ", "  "))
    output.facts(
        [
            ("decided", decision.day),
            ("session", decision.thread_id),
            ("files", ", ".join(decision.memory.files)),
            ("superseded by", decision.memory.superseded_by or ""),
            ("supersedes", ", ".join(decision.memory.supersedes)),
        ]
    )
    words = "The approved plan says" if decision.is_plan else "The person said"
    for title, texts in ((words, decision.quotations), ("Rejected", decision.rejected)):
        if texts:
            output.say("", title, bold=True)
            output.say(*(output.paragraph(each, "  - ", "    ") for each in texts))


@decisions_command.command("why")
@click.argument("target", metavar="ID|FILE[:FUNCTION]")
@common
def why(call: Invocation, target: str) -> Reply:
    """Explain a decision, or why a file is as it is.

    Of a decision: messages, trust, and what it took the place of. Of a file: what people decided
    about it, and the reasons that commits state for its lines; what was undone comes first.
    """
    if "." in target or "/" in target or os.path.exists(target):
        path, function = in_repository(target)
        with call.memory() as memory:
            memory.commits.update()
            decisions = [
                each
                for each in memory.decisions.list(path=path)
                if function is None or function in " ".join((each.rule, *each.quotations))
            ]
            reasons = memory.commits.why(path, function)
        yield {
            "path": path,
            "function": function,
            "decisions": [decision_json(each) for each in decisions],
            "reasons": [line_reason_json(each) for each in reasons],
        }
        if not (decisions or reasons):
            output.say("Neither a person nor a commit states a reason for what stands there.")
        for each in decisions:
            source = "a plan that a person approved" if each.is_plan else "said by a person"
            output.say(f"{each.short_id}  {each.day}  {source}", bold=True)
            output.say(output.paragraph(each.rule, "  ", "  "))
            output.say(*(output.paragraph(f"“{text}”", "    ", "    ") for text in each.quotations))
        for reason in reasons:
            explain(reason)
        return
    with call.memory() as memory:
        decision, found = memory.decisions.get(target), memory.decisions.why(target)
    yield {
        "decision": decision_json(decision),
        "chain": [each.short_id for each in found.chain],
        "trust": {"value": found.trust.tier, "reasons": list(found.trust.reasons)},
        "told": found.injection.why,
    }
    output.sentence(*found.lines(), others="    ")


def _print(decisions: list[Decision], nothing: str) -> None:
    if not decisions:
        output.sentence(nothing)
        return
    output.table(
        ("id", "day", "decision"),
        [(each.short_id, each.day, each.rule) for each in decisions],
        folding=("decision",),
    )
