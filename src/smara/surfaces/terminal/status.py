"""Define bare `smara` and `smara status`: show where one stands."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import click

from smara.adapters.host_specs import host_named
from smara.adapters.hosts.setup import FoundHost, SetupJournal, find_hosts
from smara.adapters.hosts.spool import names
from smara.config import load_settings, store_exists
from smara.core.git import find_repository
from smara.environment import setup_folder, spool_folder
from smara.errors import SmaraError
from smara.memory import Memory
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.models import models_line
from smara.surfaces.cli.options import Invocation, Reply, common
from smara.surfaces.cli.render import styled
from smara.surfaces.terminal.stage_record import find_run, stage_line


def currency(memory: Memory, with_vectors: bool = True) -> dict[str, Any]:
    """Return how far code, history, events and vectors are behind.

    Vectors are counted by opening the embedder, which takes a moment.
    """
    root, code, commits = find_repository(os.getcwd()), memory.code.status(), None
    behind = 0
    if code.state != "none":
        with suppress(SmaraError):
            behind = sum(map(len, memory.code.changed_paths()))
    if root is not None:
        commits = memory.commits.status()
    spaces = memory.embeddings.status().spaces if with_vectors else ()
    return {
        "code": {"state": code.state, "files": code.files, "behind": behind},
        "commits": commits
        and {"total": commits.total, "behind": commits.behind if shutil.which("git") else None},
        "events": {"waiting": len(names(spool_folder()))},
        "vectors": {"waiting": sum(each.waiting for each in spaces)},
        "reading": find_run(memory),
    }


def currency_lines(currency: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines about code, history and waiting work."""
    code, commits = currency["code"], currency["commits"]
    lines = [("reading", stage_line(currency["reading"]))] if currency["reading"] else []
    if code["state"] == "none":
        lines.append(("code", "not indexed; `smara code index` does it"))
    else:
        late = f", {output.count(code['behind'], 'file')} behind" if code["behind"] else ", current"
        lines.append(("code", f"{output.count(code['files'], 'file')} indexed{late}"))
    if commits is not None:
        late = f", {commits['behind']:,} behind" if commits["behind"] else ", current"
        if commits["behind"] is None:
            late = " that were read; newer ones are not seen"
        lines.append(("history", f"{output.count(commits['total'], 'commit')}{late}"))
    waiting = [
        output.count(currency[kind]["waiting"], noun)
        for kind, noun in (("events", "event"), ("vectors", "vector"))
        if currency[kind]["waiting"]
    ]
    if waiting:
        hint = "" if currency["reading"] else "; `smara worker --once` does them"
        lines.append(("waiting", f"{' and '.join(waiting)}{hint}"))
    return lines


@click.command("status")
@click.option(
    "--retention", "has_retention", is_flag=True, help="List what is kept, and how long, by kind."
)
@common
def status_command(call: Invocation, has_retention: bool) -> Reply:
    """Show what is stored in this project, and how current it is."""
    with call.memory() as memory:
        status = {
            **memory.status(),
            "notes": memory.projects.notes(memory.project),
            "currency": currency(memory),
        }
        keep = memory.transcripts.status().lines()
    yield status
    store, tasks, noted = status["store"], status["tasks"], status["observations"]
    memories = status["memories"]
    review = f", {memories['toReview']:,} of them to review" if memories["toReview"] else ""
    waiting = (
        f"; {output.count(noted['threadsWaiting'], 'thread')} waiting for the model "
        "(see `smara observations failures`)"
        if noted["threadsWaiting"]
        else ""
    )
    rows = [
        ("project", status["project"]),
        ("threads", f"{status['threads']:,}{_subagents(status)}"),
        ("messages", f"{status['messages']:,}"),
        ("tokens", f"{status['tokens']:,}"),
        ("resources", f"{status['resources']:,}"),
        (
            "tasks",
            f"{tasks['open'] + tasks['inProgress']:,} unfinished ({tasks['inProgress']:,} in "
            f"progress, {tasks['ready']:,} ready, {tasks['blocked']:,} blocked), "
            f"{tasks['closed']:,} closed",
        ),
        (
            "observations",
            f"{noted['total']:,} ({noted['active']:,} active), "
            f"{output.count(noted['generations'], 'reflection')}{waiting}",
        ),
        ("memories", f"{memories['active']:,}{review}"),
        *currency_lines(status["currency"]),
        ("models", models_line(status["models"])),
        ("store", store["path"]),
        ("engine", f"{store['engine']} {store['version']}"),
        ("durability", store["durability"]),
        ("size", output.size(store["fileBytes"])),
    ]
    if store.get("walBytes"):
        rows.append(("write-ahead log", output.size(store["walBytes"])))
    limited = sum(each["rule"] != "for ever" for each in status["retention"])
    more = "" if has_retention else "; `smara status --retention` lists them"
    rows.append(("retention", f"{limited} of {len(status['retention'])} kinds have a limit{more}"))
    output.facts([*rows, *keep, *(("note", each) for each in status["notes"])])
    if not has_retention:
        return
    output.say()
    output.table(
        ("kind", "rows", "size", "oldest", "kept", "last kept"),
        [
            (
                each["kind"].replace("_", " "),
                "" if each["rows"] is None else f"{each['rows']:,}",
                "" if each["bytes"] is None else output.size(each["bytes"]),
                output.moment(each["oldestAt"])[:10] if each["oldestAt"] else "",
                each["rule"],
                output.moment(each["keptAt"])[:10] if each["keptAt"] else "",
            )
            for each in status["retention"]
        ],
        folding=("kept",),
    )


@click.command("smara")
@common
def home_command(call: Invocation) -> Reply:
    """Show where you stand, and what to do next."""
    here = find_repository(os.getcwd())
    root = here.root if here else os.getcwd()
    hosts = find_hosts(root, SetupJournal(setup_folder()))
    if not store_exists(load_settings(db=call.db, project=call.project)):
        steps = [_init_step()]
        yield {"project": None, "hosts": _hosts_json(hosts), "next": _steps_json(steps)}
        output.say("Smara: one memory for coding agents. Nothing is stored yet.")
        _print_steps([*steps, ("smara demo", "see what it does, in a minute")])
        return
    with call.memory() as memory:
        place = memory.projects.at(os.getcwd(), memory.settings.project)
        status, current = memory.status(), currency(memory, with_vectors=False)
        contacts = memory.internals.intake.heard()
        name = next(
            (each.name for each in memory.projects.list() if each.id == memory.project),
            memory.project,
        )
    steps = list(_next_steps(status, current, hosts, is_in_project=place is not None))
    yield {
        "project": status["project"],
        "messages": status["messages"],
        "threads": status["threads"],
        "memories": status["memories"],
        "tasks": status["tasks"],
        "currency": current,
        "hosts": _hosts_json(hosts),
        "next": _steps_json(steps),
    }
    output.say(name, bold=True)
    memories, tasks = status["memories"], status["tasks"]
    heard = {each.agent: each.last_at for each in sorted(contacts, key=lambda each: each.last_at)}
    rows = [
        (
            "known",
            f"{output.count(memories['active'], 'memory', 'memories')}, "
            f"{output.count(status['messages'], 'message')} in "
            f"{output.count(status['threads'], 'thread')}{_subagents(status)}",
        ),
        ("to review", f"{memories['toReview']:,}" if memories["toReview"] else ""),
        (
            "tasks",
            f"{tasks['ready']:,} ready, {tasks['inProgress']:,} in progress, "
            f"{tasks['blocked']:,} blocked"
            if tasks["open"] + tasks["inProgress"]
            else "",
        ),
        *currency_lines(current),
        (
            "agents",
            ", ".join(
                f"{host.name} "
                + (
                    f"(heard {output.when(heard[host.agent])})"
                    if host.agent in heard
                    else "(its tools are set up)"
                    if host.is_set_up and host_named(host.agent).hooks is None
                    else "(set up, not heard yet)"
                    if host.is_set_up
                    else "(not set up)"
                )
                for host in hosts
            ),
        ),
    ]
    width = max(len(row[0]) for row in rows) + 4
    for label, value in rows:
        if value:
            lines = output.paragraph(value, f"  {label:<{width - 2}}", " " * width)
            output.say(lines if output.is_terminal() else f"{label}\t{value}")
    _print_steps(steps)


def _subagents(status: dict[str, Any]) -> str:
    """Return how many of the threads are not sessions of a person's own."""
    return f" ({status['subagents']:,} of them of sub-agents)" if status["subagents"] else ""


def _init_step() -> tuple[str, str]:
    """Return the command that sets up the current folder."""
    if find_repository(os.getcwd()) is None:
        return "smara init", "remember this folder; in a repository it reads everything"
    return "smara init", "set up this repository: agents, past sessions, code"


def _next_steps(
    status: dict[str, Any],
    current: dict[str, Any],
    hosts: list[FoundHost],
    is_in_project: bool,
) -> Iterator[tuple[str, str]]:
    """Yield the commands that help most from here, the best first."""
    to_review, tasks = status["memories"]["toReview"], status["tasks"]
    if not is_in_project or not (status["messages"] or any(each.is_set_up for each in hosts)):
        yield _init_step()
    if to_review:
        yield "smara review", f"{output.count(to_review, 'memory', 'memories')} to review"
    if tasks["ready"]:
        yield "smara tasks ready", f"{output.count(tasks['ready'], 'task')} can be started"
    if current["code"]["state"] == "none" and current["commits"] is not None:
        yield "smara code index", "the code, for `why`, `search` and `code impact`"
    if status["messages"]:
        yield "smara search 'words'", "find what was said, decided and done"
    yield "smara --help", "every command"


def _print_steps(steps: list[tuple[str, str]]) -> None:
    output.say()
    width = max(len(command) for command, _ in steps)
    for position, (command, purpose) in enumerate(steps):
        first = "Next" if position == 0 else "    "
        shown = styled(command, bold=output.is_terminal()) + " " * (width - len(command))
        indent = " " * (width + 8)
        lines = output.paragraph(purpose, indent, indent) if output.is_terminal() else purpose
        click.echo(f"{first}  {shown}  {lines.lstrip()}")


def _steps_json(steps: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"command": command, "why": purpose} for command, purpose in steps]


def _hosts_json(hosts: list[FoundHost]) -> list[dict[str, Any]]:
    return [{"agent": each.agent, "name": each.name, "isSetUp": each.is_set_up} for each in hosts]
