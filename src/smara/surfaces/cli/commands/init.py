"""``smara init``"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager

import click

from smara.adapters.bulk import BulkImport, BulkReport, find
from smara.adapters.finding import Found, Here
from smara.adapters.hosts.preparing import finish, prepare
from smara.adapters.hosts.setup.hosts import FoundHost, find_hosts, program
from smara.adapters.hosts.setup.journal import Journal
from smara.adapters.hosts.setup.plan import apply, plan
from smara.adapters.hosts.setup.targets import targets_of
from smara.adapters.records import Progress
from smara.adapters.sniff import HOST_FORMATS
from smara.core.repository import find_repository
from smara.environment import setup_folder, spool_folder
from smara.errors import SmaraError
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common
from smara.surfaces.cli.progress import bar


@click.command("init")
@click.option(
    "--yes",
    is_flag=True,
    help="Set up every agent that is found, bring in past sessions, and do not ask.",
)
@common
def command(call: Call, yes: bool) -> None:
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
    sessions, _ = find(HOST_FORMATS, Here(os.getcwd()))
    if not call.as_json:
        output.warn(warnings)
        _tell(status, hosts, sessions)
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
            {**status, "hosts": [_json(host, done) for host in hosts], "sessions": found}, warnings
        )
        return
    _tell_done(hosts, done, imported)
    is_new = len(sessions) > len(imported.reports) and len(sessions) > int(status["threads"])
    _next(hosts, done, imported.learned.memories, has_sessions=is_new)


def _tell(status: dict[str, object], hosts: Sequence[FoundHost], sessions: Sequence[Found]) -> None:
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


def _wants(sessions: Sequence[Found]) -> bool:
    output.say()
    return click.confirm(
        f"Bring in {_count(len(sessions), 'past session')} of this repository?", default=True
    )


def _bring_in(call: Call, sessions: Sequence[Found]) -> BulkReport:
    try:
        with call.memory(models_enabled=False) as memory:
            return BulkImport(memory).run(sessions, _bar)
    except SmaraError as error:
        output.warn([f"The past sessions were not brought in: {error}"])
        return BulkReport()


def _bar(name: str) -> AbstractContextManager[Progress | None]:
    return bar(output.short(name, 50))


def _prepare(call: Call, root: str, agents: Sequence[str]) -> None:
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


def _json(host: FoundHost, done: Sequence[str]) -> dict[str, object]:
    set_up = ["project"] if host.agent in done else list(host.set_up)
    return {
        "agent": host.agent,
        "name": host.name,
        "program": host.program,
        "setUp": set_up,
        "hasPlugin": host.has_plugin,
    }
