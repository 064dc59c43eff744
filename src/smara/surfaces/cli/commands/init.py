"""``smara init``"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from smara.adapters.hosts.setup.hosts import FoundHost, find_hosts, program
from smara.adapters.hosts.setup.journal import Journal
from smara.adapters.hosts.setup.plan import apply, plan
from smara.adapters.hosts.setup.targets import targets_of
from smara.core.repository import find_repository
from smara.environment import setup_folder
from smara.errors import SmaraError
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common


@click.command("init")
@click.option("--yes", is_flag=True, help="Set up every agent that is found in this repository, without asking.")
@common
def command(call: Call, yes: bool) -> None:
    """Make the store, if there is none, say where it is, and offer to set up the agents that are here.

    Nothing is written into your repository unless you say so; every change is shown first.
    """
    with call.memory() as memory:
        status = memory.status()
        warnings = memory.warnings
    here = find_repository(os.getcwd())
    root, journal = here.root if here else os.getcwd(), Journal(setup_folder())
    hosts = find_hosts(root, journal)
    done = [host.agent for host in hosts if not host.set_up and yes and _set_up(host, root, journal, is_shown=False)]
    if call.as_json:
        output.envelope({**status, "hosts": [_json(host, done) for host in hosts]}, warnings)
        return
    output.warn(warnings)
    output.say(f"Store    {status['store']['path']}")
    output.say(f"Project  {status['project']}")
    output.say(f"Holds    {status['messages']:,} messages in {status['threads']:,} threads")
    for host in hosts:
        output.say(f"Found    {host.name}{_where(host, done)}")
    for host in hosts:
        if not host.set_up and not yes and sys.stdin.isatty():
            _offer(host, root, journal)
    _next(hosts, done)


def _set_up(host: FoundHost, root: str, journal: Journal, *, is_shown: bool) -> bool:
    try:
        changes = plan(targets_of(host.agent, "project", root, program()), journal)
        if is_shown:
            for change in changes:
                output.say(change.diff())
            if not click.confirm(f"Set up {host.name} in this repository?", default=True):
                return False
        return apply(changes, journal) > 0
    except SmaraError as error:
        output.warn([f"{host.name} was not set up: {error}"])
        return False


def _offer(host: FoundHost, root: str, journal: Journal) -> None:
    output.say()
    _set_up(host, root, journal, is_shown=True)


def _where(host: FoundHost, done: Sequence[str]) -> str:
    if host.agent in done:
        return ", set up now"
    names = {"project": "in this repository", "global": "for all repositories"}
    return ", set up " + " and ".join(names[reach] for reach in host.set_up) if host.set_up else ""


def _next(hosts: list[FoundHost], done: Sequence[str]) -> None:
    output.say()
    waiting = [host.agent for host in hosts if not host.set_up and host.agent not in done]
    lines = [(f"smara setup {agent}", "make it tell and hear what is known") for agent in waiting]
    lines += [
        ("smara import ~/.claude/projects/*/*.jsonl", "bring in what your agent has said"),
        ("smara search 'the words you remember'", "find it again"),
    ]
    for position, (line, what) in enumerate(lines):
        output.say(f"{'Next:' if position == 0 else '     '}  {line:<45} {what}")


def _json(host: FoundHost, done: Sequence[str]) -> dict[str, object]:
    set_up = ["project"] if host.agent in done else list(host.set_up)
    return {"agent": host.agent, "name": host.name, "program": host.program, "setUp": set_up}
