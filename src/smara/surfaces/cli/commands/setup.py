"""Define `smara init` and `smara setup`: configure store and hosts.

Changes to a host's files are shown as a diff first and can be undone byte for byte.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

import click

from smara.adapters.bulk_import import BulkImport, BulkReport, find
from smara.adapters.host import Here, Reach, SetupTarget, TranscriptFile
from smara.adapters.host_specs import TRANSCRIPTS, host_named
from smara.adapters.hosts.precompute import finish, prepare, prepare_ahead
from smara.adapters.hosts.setup import (
    FoundHost,
    Journal,
    SetupChange,
    apply,
    find_hosts,
    plan,
    program,
    state_of,
    targets_of,
    undo,
    undo_plan,
)
from smara.adapters.records import Progress
from smara.core.git import find_repository
from smara.core.host_table import AGENTS
from smara.environment import setup_folder, spool_folder
from smara.errors import InvalidInputError, SmaraError
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, common
from smara.surfaces.cli.output import bar

Mode = Literal["write", "check", "remove", "print"]


@click.command("setup")
@click.argument("agent", type=click.Choice(AGENTS))
@click.option(
    "--project",
    "reach",
    flag_value="project",
    default="project",
    help="In this repository (the default).",
)
@click.option("--global", "reach", flag_value="global", help="For all repositories of this user.")
@click.option(
    "--check",
    "mode",
    flag_value="check",
    help="Say whether it is set up; exit code 8 when it is not.",
)
@click.option(
    "--remove",
    "mode",
    flag_value="remove",
    help="Undo it: files that were not changed since, byte for byte.",
)
@click.option(
    "--print", "mode", flag_value="print", help="Print what would be written, and write nothing."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def setup_command(agent: str, reach: Reach, mode: Mode | None, yes: bool, as_json: bool) -> None:
    """Make an agent tell what happens and hear what is known: its hooks, and the tools where `smara
    mcp` is installed.

    Every change is shown as a diff first. Files keep their comments and their form; what
    they were before is kept outside the repository, and --remove gives it back.
    """
    as_json = as_json or bool((click.get_current_context().find_root().obj or {}).get("as_json"))
    here = find_repository(os.getcwd())
    targets = targets_of(agent, reach, here.root if here else os.getcwd(), program=program())
    journal = Journal(setup_folder())
    setup = host_named(agent).setup
    if mode == "check":
        _check(agent, targets, journal, as_json=as_json)
    elif mode == "print":
        _print(targets, as_json)
        for line in setup.alternative() if setup is not None and not as_json else ():
            output.say(line)
    elif mode == "remove":
        _change(
            agent, undo_plan(targets, journal), journal, yes=yes, as_json=as_json, is_undone=True
        )
    else:
        if _change(
            agent, plan(targets, journal), journal, yes=yes, as_json=as_json, is_undone=False
        ):
            prepare_ahead(os.getcwd(), [agent])
        if not as_json and setup is not None and reach in setup.advice:
            output.say(setup.advice[reach])


def _change(
    agent: str,
    changes: list[SetupChange],
    journal: Journal,
    yes: bool,
    as_json: bool,
    *,
    is_undone: bool,
) -> bool:
    """Show what would change, ask, and do it; whether it was done."""
    needed = [change for change in changes if change.is_needed]
    if not as_json:
        for change in needed:
            output.say(change.diff())
        if not needed:
            title = host_named(agent).title
            present = f"{title[0].upper()}{title[1:]} is set up already"
            said = "Nothing of ours is there" if is_undone else present
            output.say(f"{said}; nothing was changed.")
    if needed and not yes and not _agreed(len(needed)):
        output.say("Nothing was changed.")
        return False
    count = undo(changes, journal) if is_undone else apply(changes, journal)
    if as_json:
        output.envelope({"agent": agent, "changed": [_setup_json(change) for change in needed]})
    elif count:
        output.say(
            f"{count} file{'s' if count > 1 else ''} {'given back' if is_undone else 'written'}."
        )
    return True


def _agreed(count: int) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInputError(
            "Nobody can be asked here, so nothing was changed. Add --yes to change these files."
        )
    return click.confirm(
        f"Change {'these' if count > 1 else 'this'} {count} file{'s' if count > 1 else ''}?"
    )


def _setup_json(change: SetupChange) -> dict[str, Any]:
    return {"path": change.path, "diff": change.diff()}


def _check(agent: str, targets: list[SetupTarget], journal: Journal, as_json: bool) -> None:
    states = [(target.path, state_of(target, journal)) for target in targets]
    is_whole = all(state == "present" for _, state in states)
    if as_json:
        files = [{"path": path, "state": state} for path, state in states]
        output.envelope({"agent": agent, "isSetUp": is_whole, "files": files})
    else:
        output.table(("state", "file"), [(state, path) for path, state in states])
    if not is_whole:
        raise click.exceptions.Exit(8)


def _print(targets: list[SetupTarget], as_json: bool) -> None:
    import json

    if as_json:
        output.envelope(
            [{"path": each.path, "content": each.additions or each.body} for each in targets]
        )
        return
    for target in targets:
        output.say(f"# {target.path}")
        output.say(
            json.dumps(target.additions, indent=2) if target.additions else target.body.rstrip("\n")
        )
        output.say()


@click.command("init")
@click.option(
    "--yes",
    is_flag=True,
    help="Set up every agent that is found, bring in past sessions, and do not ask.",
)
@common
def init_command(call: Invocation, yes: bool) -> None:
    """Make the store, if there is none, and offer what is here: agents to set up, past sessions to
    bring in.

    Nothing is written into your repository unless you say so; every change is shown first.
    """
    with call.memory() as memory:
        status = memory.status()
        warnings = memory.warnings
    here = find_repository(os.getcwd())
    root, journal = here.root if here else os.getcwd(), Journal(setup_folder())
    hosts = find_hosts(root, journal)
    sessions, _ = find(tuple(TRANSCRIPTS), Here(os.getcwd()))
    if not call.as_json:
        output.warn(warnings)
        _tell_init(status, hosts, sessions)
    may_ask = not yes and not call.as_json and sys.stdin.isatty()
    done = [
        host.agent
        for host in hosts
        if not host.is_set_up and _set_up(host, root, journal, yes=yes, may_ask=may_ask)
    ]
    imported = (
        _bring_in(call, sessions)
        if sessions and (yes or (may_ask and _wants(sessions)))
        else BulkReport()
    )
    _prepare(call, root, [host.agent for host in hosts if host.is_set_up or host.agent in done])
    if call.as_json:
        found = {
            "found": len(sessions),
            "stored": sum(each.stored for each in imported.reports),
            "learned": imported.learned.memories,
        }
        output.envelope(
            {**status, "hosts": [_init_json(host, done) for host in hosts], "sessions": found},
            warnings,
        )
        return
    _tell_done(hosts, done, imported)
    is_new = len(sessions) > len(imported.reports) and len(sessions) > int(status["threads"])
    _next(hosts, done, imported.learned.memories, has_sessions=is_new)


def _tell_init(
    status: dict[str, object], hosts: Sequence[FoundHost], sessions: Sequence[TranscriptFile]
) -> None:
    store = status["store"]
    output.say(f"Store    {store['path'] if isinstance(store, dict) else store}")
    output.say(f"Project  {status['project']}")
    output.say(f"Holds    {status['messages']:,} messages in {status['threads']:,} threads")
    for host in hosts:
        names = {"project": "in this repository", "global": "for all repositories"}
        places = [names[reach] for reach in host.set_up] + ["as a plug-in"] * host.has_plugin
        where = f", set up {' and '.join(places)}" if places else ""
        output.say(f"Found    {host.name}{where}")
    if sessions:
        output.say(f"Found    {_count(len(sessions), 'past session')} of this repository")


def _set_up(host: FoundHost, root: str, journal: Journal, yes: bool, may_ask: bool) -> bool:
    if not yes and not may_ask:
        return False
    try:
        changes = plan(targets_of(host.agent, "project", root, program=program()), journal)
        if may_ask:
            output.say()
            for change in changes:
                output.say(change.diff())
            if not click.confirm(f"Set up {host.name} in this repository?", default=True):
                return False
        return apply(changes, journal) > 0
    except SmaraError as error:
        output.warn([f"{host.name} was not set up: {error}"])
        return False


def _wants(sessions: Sequence[TranscriptFile]) -> bool:
    output.say()
    return click.confirm(
        f"Bring in {_count(len(sessions), 'past session')} of this repository?", default=True
    )


def _bring_in(call: Invocation, sessions: Sequence[TranscriptFile]) -> BulkReport:
    try:
        with call.memory(models_enabled=False) as memory:
            return BulkImport(memory).run(sessions, _bar)
    except SmaraError as error:
        output.warn([f"The past sessions were not brought in: {error}"])
        return BulkReport()


def _bar(name: str) -> AbstractContextManager[Progress | None]:
    return bar(output.short(name, 50))


def _prepare(call: Invocation, root: str, agents: Sequence[str]) -> None:
    """Let hooks know what to say before the first session, so that not even it has to wait."""
    with call.memory() as memory:
        brief = prepare(memory, spool_folder(), root, agents=agents) if agents else None
    if brief is not None:
        finish(spool_folder(), brief)


def _tell_done(hosts: Sequence[FoundHost], done: Sequence[str], imported: BulkReport) -> None:
    for host in hosts:
        if host.agent in done:
            output.say(f"Set up   {host.name}; `smara setup {host.agent} --remove` undoes it")
    if imported.reports:
        stored, learned = sum(each.stored for each in imported.reports), imported.learned
        told = (
            f"; learned {_count(learned.memories, 'thing')} from them" if learned.memories else ""
        )
        output.say(
            f"Took in  {stored:,} messages of {_count(len(imported.reports), 'session')}{told}"
        )


def _next(
    hosts: Sequence[FoundHost], done: Sequence[str], learned: int, *, has_sessions: bool
) -> None:
    output.say()
    waiting = [host.agent for host in hosts if not host.is_set_up and host.agent not in done]
    lines = [(f"smara setup {agent}", "make it tell and hear what is known") for agent in waiting]
    if has_sessions:
        lines.append(("smara import", "bring in the past sessions of this repository"))
    if learned:
        lines.append(("smara memories review", "see what was learned, and from what"))
    lines += [
        ("smara import --from git", "learn from commits that say why"),
        ("smara search 'the words you remember'", "find anything again"),
    ]
    for position, (line, what) in enumerate(lines):
        output.say(f"{'Next:' if position == 0 else '     '}  {line:<40} {what}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _init_json(host: FoundHost, done: Sequence[str]) -> dict[str, object]:
    set_up = ["project"] if host.agent in done else list(host.set_up)
    return {
        "agent": host.agent,
        "name": host.name,
        "program": host.program,
        "setUp": set_up,
        "hasPlugin": host.has_plugin,
    }
