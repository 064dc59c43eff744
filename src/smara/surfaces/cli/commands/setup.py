"""``smara setup``"""

from __future__ import annotations

import os
import sys
from typing import Any, Literal

import click

from smara.adapters.hosts.preparing import prepare_ahead
from smara.adapters.hosts.setup.hosts import NAMES, program
from smara.adapters.hosts.setup.journal import Journal
from smara.adapters.hosts.setup.plan import Change, apply, plan, state_of, undo, undo_plan
from smara.adapters.hosts.setup.targets import Reach, Target, plugin_folder, targets_of
from smara.core.events import AGENTS, Agent
from smara.core.repository import find_repository
from smara.environment import setup_folder
from smara.errors import InvalidInputError
from smara.surfaces.cli import output

Mode = Literal["write", "check", "remove", "print"]
_AFTERWARDS = {
    ("claude", "global"): "For the tools as well:  claude mcp add --scope user smara -- smara mcp",
    (
        "codex",
        "project",
    ): "Codex runs them once they are trusted: start `codex` here; it asks, `codex exec` never.",
    (
        "codex",
        "global",
    ): "Codex runs them once they are trusted: start `codex`; it asks, `codex exec` never.",
    ("cursor", "project"): "Cursor runs hooks of a project in trusted workspaces alone.",
}


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
def command(agent: Agent, reach: Reach, mode: Mode | None, yes: bool, as_json: bool) -> None:
    """Make an agent tell what happens and hear what is known: its hooks, and the tools where `smara
    mcp` is installed.

    Every change is shown as a diff first. Files keep their comments and their form; what
    they were before is kept outside the repository, and --remove gives it back.
    """
    as_json = as_json or bool((click.get_current_context().find_root().obj or {}).get("as_json"))
    here = find_repository(os.getcwd())
    targets = targets_of(agent, reach, here.root if here else os.getcwd(), program=program())
    journal = Journal(setup_folder())
    if mode == "check":
        _check(agent, targets, journal, as_json=as_json)
    elif mode == "print":
        _print(targets, as_json)
        if agent == "claude" and not as_json:
            output.say("# Or all of it as a plug-in, with skills, instead:")
            output.say(f"claude plugin marketplace add {plugin_folder()}")
            output.say("claude plugin install smara@smara")
    elif mode == "remove":
        _change(
            agent, undo_plan(targets, journal), journal, yes=yes, as_json=as_json, is_undone=True
        )
    else:
        if _change(
            agent, plan(targets, journal), journal, yes=yes, as_json=as_json, is_undone=False
        ):
            prepare_ahead(os.getcwd(), [agent])
        if not as_json and (agent, reach) in _AFTERWARDS:
            output.say(_AFTERWARDS[agent, reach])


def _change(
    agent: Agent,
    changes: list[Change],
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
            name = NAMES[agent][0].upper() + NAMES[agent][1:]
            said = "Nothing of ours is there" if is_undone else f"{name} is set up already"
            output.say(f"{said}; nothing was changed.")
    if needed and not yes and not _agreed(len(needed)):
        output.say("Nothing was changed.")
        return False
    count = undo(changes, journal) if is_undone else apply(changes, journal)
    if as_json:
        output.envelope({"agent": agent, "changed": [_json(change) for change in needed]})
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


def _json(change: Change) -> dict[str, Any]:
    return {"path": change.path, "diff": change.diff()}


def _check(agent: Agent, targets: list[Target], journal: Journal, as_json: bool) -> None:
    states = [(target.path, state_of(target, journal)) for target in targets]
    is_whole = all(state == "present" for _, state in states)
    if as_json:
        files = [{"path": path, "state": state} for path, state in states]
        output.envelope({"agent": agent, "isSetUp": is_whole, "files": files})
    else:
        output.table(("state", "file"), [(state, path) for path, state in states])
    if not is_whole:
        raise click.exceptions.Exit(8)


def _print(targets: list[Target], as_json: bool) -> None:
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
