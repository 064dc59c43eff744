"""Define `smara setup`: register hooks and tools with a host.

Changes to a host's files are shown as a diff first and can be undone byte for byte.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import Any, Literal

import click

from smara.adapters.host import Reach, Setup, SetupTarget
from smara.adapters.host_specs import HOSTS, host_named
from smara.adapters.hosts.precompute import prepare_ahead
from smara.adapters.hosts.setup import (
    SetupJournal,
    apply,
    find_hosts,
    plan,
    program,
    refuse_tracked,
    state_of,
    targets_of,
    undo,
    undo_plan,
)
from smara.core.git import find_repository
from smara.environment import setup_folder
from smara.errors import InvalidInputError, SmaraError
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, Reply

_AGENTS = tuple(host.name for host in HOSTS if host.setup is not None)
Mode = Literal["write", "check", "remove", "print", "list"]


@click.command("setup")
@click.argument("agent", required=False, type=click.Choice(_AGENTS))
@click.option(
    "--project",
    "reach",
    flag_value="project",
    help="Set it up in this repository (the default).",
)
@click.option(
    "--global", "reach", flag_value="global", help="Set it up for all repositories of this user."
)
@click.option(
    "--check",
    "mode",
    flag_value="check",
    help="Check whether it is set up; the exit code is 8 if not.",
)
@click.option(
    "--remove",
    "mode",
    flag_value="remove",
    help="Undo it; unchanged files are restored byte for byte.",
)
@click.option(
    "--print", "mode", flag_value="print", help="Print what would be written, and write nothing."
)
@click.option(
    "--list", "mode", flag_value="list", help="List what each agent can do, and what is set up."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def setup_command(
    agent: str | None, reach: Reach | None, mode: Mode | None, yes: bool, as_json: bool
) -> None:
    """Set up an agent's hooks, and its tools with `smara mcp`.

    Every change is shown as a diff first. Files keep their comments and their
    layout. The originals are kept outside the repository, and --remove restores
    them. For `generic`, the words for AGENTS.md are printed; with --project they
    are written into it.
    """
    above = click.get_current_context().find_root().obj or {}
    call = Invocation(None, None, as_json or bool(above.get("as_json")))
    here = find_repository(os.getcwd())
    if agent is None or mode == "list":
        call.answer(_list(here.root if here else os.getcwd(), agent))
        return
    if agent == "generic" and reach is None and mode is None:
        mode = "print"
    spec = host_named(agent).setup
    if mode is None and _is_by_hand(spec):
        call.answer(_print(agent, []))
        return
    reach = reach or ("global" if spec is not None and spec.is_global else "project")
    targets = targets_of(agent, reach, here.root if here else os.getcwd(), program=program())
    if mode == "check":
        call.answer(_check(call, agent, targets, journal=SetupJournal(setup_folder())))
    elif mode == "print":
        call.answer(_print(agent, targets))
    else:
        call.answer(
            _change(call, agent, reach, targets=targets, yes=yes, is_removed=mode == "remove")
        )


def _is_by_hand(setup: Setup | None) -> bool:
    """Return True if no file of a host can be written for it."""
    return setup is not None and not setup.targets("project", os.getcwd(), program())


def _check(
    call: Invocation, agent: str, targets: list[SetupTarget], journal: SetupJournal
) -> Reply:
    every = [(target, state_of(target, journal)) for target in targets]
    # A file of an older version is of interest while something of ours is in it.
    states = [
        (each.path, state) for each, state in every if not (each.is_former and state == "present")
    ]
    is_whole = all(state == "present" for _, state in states)
    call.exit_code = 0 if is_whole else 8
    yield {
        "agent": agent,
        "isSetUp": is_whole,
        "files": [{"path": path, "state": state} for path, state in states],
    }
    output.table(("state", "file"), [(state, path) for path, state in states])


def _list(root: str, agent: str | None) -> Reply:
    """List agents: what they can do, what is set up and what is missing."""
    journal = SetupJournal(setup_folder())
    found = {each.agent: each for each in find_hosts(root, journal)}
    rows: list[dict[str, Any]] = []
    for host in HOSTS:
        if agent not in (None, host.name) or not host.title:
            continue
        missing, here = [], found.get(host.name)
        if here is not None and here.set_up:
            reach = here.set_up[0]
            with suppress(SmaraError):
                missing = [
                    os.path.relpath(each.path, root) if reach == "project" else each.path
                    for each in targets_of(host.name, reach, root, program=program())
                    if not each.is_former and state_of(each, journal) != "present"
                ]
        rows.append(
            {
                "agent": host.name,
                "name": host.title or host.name,
                "isHere": here is not None,
                "hooks": host.hooks is not None and host.setup is not None,
                "mcp": host.setup is not None and host.setup.home is not None,
                "byHand": _is_by_hand(host.setup),
                "instructions": bool(host.instructions.patterns or host.instructions.at_start),
                "sessions": host.transcripts is not None,
                "setUp": [*here.set_up, *["plugin"] * here.has_plugin] if here else [],
                "missing": missing,
            }
        )
    yield {"agents": rows}
    signs = ("hooks", "mcp", "instructions", "sessions")
    output.table(
        ("agent", "here", *signs, "set up", "missing"),
        [
            (
                each["agent"],
                "yes" if each["isHere"] else "",
                *(
                    "by hand"
                    if each[name] and each["byHand"] and name == "mcp"
                    else "yes"
                    if each[name]
                    else ""
                    for name in signs
                ),
                ", ".join(each["setUp"]),
                ", ".join(each["missing"]),
            )
            for each in rows
        ],
        folding=("missing",),
    )
    output.say("", "`smara setup AGENT` sets one up; --check, --remove and --print say more.")


def _print(agent: str, targets: list[SetupTarget]) -> Reply:
    targets = [each for each in targets if not each.is_former]
    yield [{"path": each.path, "content": each.additions or each.body} for each in targets]
    for target in targets:
        output.say(f"# {target.path}")
        output.say(
            json.dumps(target.additions, indent=2) if target.additions else target.body.rstrip("\n")
        )
        output.say()
    setup = host_named(agent).setup
    if setup is not None:
        output.sentence(*filter(None, [setup.by_hand]))
        for line in setup.alternative():  # commands to copy are never folded
            output.say(line)
    if agent == "generic":
        output.say("Paste this into the instructions that your agent reads.")
        output.say("`smara setup generic --project` writes it into AGENTS.md for you.")


def _change(
    call: Invocation,
    agent: str,
    reach: Reach,
    targets: list[SetupTarget],
    yes: bool,
    is_removed: bool,
) -> Reply:
    """Show what would change, ask, and write or revert it."""
    journal = SetupJournal(setup_folder())
    changes = undo_plan(targets, journal) if is_removed else plan(targets, journal)
    if not is_removed and reach == "project" and agent != "generic":
        refuse_tracked(changes, os.getcwd(), agent)
    needed = [change for change in changes if change.is_needed]
    count = output.count(len(needed), "file")
    for change in () if call.as_json else needed:
        output.say(change.diff())
    if needed and not yes:
        if not sys.stdin.isatty():
            raise InvalidInputError(
                "No terminal to ask for consent, so nothing was changed. Add --yes to change "
                "these files."
            )
        if not click.confirm(f"Change {count}?"):
            output.say("Nothing was changed.")
            return
    if is_removed:
        undo(changes, journal)
    else:
        apply(changes, journal)
        if host_named(agent).hooks is not None:
            prepare_ahead(os.getcwd(), [agent])
    changed = [{"path": change.path, "diff": change.diff()} for change in needed]
    yield {"agent": agent, "changed": changed}
    if needed:
        output.say(f"{'Restored' if is_removed else 'Wrote'} {count}.")
    elif is_removed:
        output.say("Smara is not set up there; nothing was changed.")
    else:
        title = host_named(agent).title
        output.say(f"{title[0].upper()}{title[1:]} is already set up; nothing was changed.")
    setup = host_named(agent).setup
    if not is_removed and setup is not None and reach in setup.advice:
        output.say(setup.advice[reach])
