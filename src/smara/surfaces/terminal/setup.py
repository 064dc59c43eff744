"""Define `smara init` and `smara setup`: configure store and hosts.

Changes to a host's files are shown as a diff first and can be undone byte for byte.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any, Literal

import click

from smara.adapters.host import Here, Reach, SetupTarget
from smara.adapters.host_specs import TRANSCRIPTS, host_named
from smara.adapters.hosts.precompute import finish, prepare, prepare_ahead
from smara.adapters.hosts.setup import (
    FoundHost,
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
from smara.adapters.importer import BulkImport, BulkReport, find
from smara.commits.models import CommitReport
from smara.core.git import find_repository
from smara.core.host_table import AGENTS
from smara.environment import setup_folder, spool_folder
from smara.errors import InvalidInputError, SmaraError
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.import_files import imported_line
from smara.surfaces.cli.options import Invocation, Reply, common

Mode = Literal["write", "check", "remove", "print"]
_COUNTED = ("messages", "threads")
_HISTORY_SECONDS = 60.0


@click.command("setup")
@click.argument("agent", type=click.Choice(AGENTS))
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
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def setup_command(
    agent: str, reach: Reach | None, mode: Mode | None, yes: bool, as_json: bool
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
    if agent == "generic" and reach is None and mode is None:
        mode = "print"
    reach = reach or "project"
    targets = targets_of(agent, reach, here.root if here else os.getcwd(), program=program())
    if mode == "check":
        call.answer(_check(call, agent, targets, journal=SetupJournal(setup_folder())))
    elif mode == "print":
        call.answer(_print(agent, targets))
    else:
        call.answer(
            _change(call, agent, reach, targets=targets, yes=yes, is_removed=mode == "remove")
        )


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
    for line in setup.alternative() if setup is not None else ():
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


@click.command("init")
@click.option(
    "--yes",
    is_flag=True,
    help="Set up all agents, import past sessions, and do not ask.",
)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False),
    help="Outside git: the folder to remember, with all below it.",
)
@click.option(
    "--keep",
    type=click.Choice(["text", "vectors"]),
    help="What is kept of this project's conversations from now on.",
)
@click.option("--diff", "has_diff", is_flag=True, help="Show what would change in each file.")
@common
def init_command(
    call: Invocation, yes: bool, folder: str | None, keep: Any, has_diff: bool
) -> Reply:
    """Create the store, set up agents and import past sessions.

    Every file that would change is named first. Outside git, name the folder
    that is meant. With `--keep vectors` the texts of conversations stay in the
    agents' transcripts, and nothing is learned from them.
    """
    os.chdir(folder or ".")
    may_ask = not yes and not call.as_json and sys.stdin.isatty()
    here = find_repository(os.getcwd())
    root, journal = here.root if here else os.getcwd(), SetupJournal(setup_folder())
    with call.memory() as memory:
        place = memory.projects.at(os.getcwd(), memory.settings.project)
        if place is None and (
            folder or (may_ask and click.confirm(f"No git repository here. Remember {root} alone?"))
        ):
            place = memory.projects.add_folder(root)
    if place is None and yes:
        raise InvalidInputError(
            f"{root} is in no git repository, so nothing was set up or imported. Go to a "
            "repository, or name the folder that you mean: smara init --yes --folder "
            f"{shlex.quote(root)}"
        )
    if keep is not None:
        with call.memory() as memory:
            memory.transcripts.keep(keep)
    with call.memory() as memory:
        status = memory.status()
    hosts = find_hosts(root, journal)
    sessions = find(tuple(TRANSCRIPTS), Here(os.getcwd()))[0] if place is not None else []
    whose = "of this repository" if here else f"of {root}"
    if not call.as_json:
        output.say(f"Store    {status['store']['path']}")
        output.say(f"Folder   {root}")
        _print_found(status, hosts)
        if sessions:
            output.say(f"Found    {output.count(len(sessions), 'past session')} {whose}")
    done = [
        host.agent
        for host in hosts
        if place is not None
        and not host.is_set_up
        and _set_up(host, root, journal, yes=yes, may_ask=may_ask, has_diff=has_diff)
    ]
    if sessions and may_ask:
        output.say()
        yes = click.confirm(
            f"Import {output.count(len(sessions), 'past session')} {whose}?",
            default=True,
        )
    imported = BulkReport()
    if sessions and yes:
        try:
            with call.memory(models_enabled=False) as memory:
                imported = BulkImport(memory).run(sessions, output.bar)
        except SmaraError as error:
            output.warn([f"The past sessions were not imported: {error}"])
    # The first session must not wait for its brief.
    agents = [host.agent for host in hosts if host.is_set_up or host.agent in done]
    with call.memory() as memory:
        commits = CommitReport()
        if here is not None:
            with output.bar("Reading commits") as progress:
                commits = memory.commits.keep_up(_HISTORY_SECONDS, progress)
        draft = prepare(memory, spool_folder(), root, agents=agents) if agents else None
    if draft is not None:
        finish(spool_folder(), draft)
    yield {
        **status,
        "hosts": [
            {
                "agent": host.agent,
                "name": host.name,
                "program": host.program,
                "setUp": ["project"] if host.agent in done else list(host.set_up),
                "hasPlugin": host.has_plugin,
            }
            for host in hosts
        ],
        "sessions": {
            "found": len(sessions),
            "stored": sum(each.stored for each in imported.reports),
            "learned": imported.learned.memories,
        },
        "commits": commits.added,
    }
    for host in hosts:
        if host.agent in done:
            output.say(f"Set up   {host.name}; undo it with `smara setup {host.agent} --remove`")
            setup = host_named(host.agent).setup
            if setup is not None and "project" in setup.advice:
                output.say(f"         {setup.advice['project']}")
    if imported.reports:
        output.say(imported_line(imported))
    if commits.added:
        output.say(f"Read {output.count(commits.added, 'commit')} of this repository.")
    output.say()
    is_new = len(sessions) > len(imported.reports) and len(sessions) > int(status["threads"])
    waiting = [host.agent for host in hosts if not host.is_set_up and host.agent not in done]
    learned, texts = imported.learned.memories, status["keep"]
    steps = [
        *((f"smara setup {agent}", "let it use and record memories") for agent in waiting),
        *([("smara import", f"import past sessions {whose}")] if is_new else []),
        *([("smara memories review", "review what was learned")] if learned else []),
        *(
            [("smara erase --transcribed", "take stored texts out")]
            if texts["mode"] == "vectors" and texts["withText"]
            else []
        ),
        *([("smara import --from git", "learn from commit messages")] if here else []),
        ("smara search 'words'", "search everything"),
    ]
    if place is None:
        steps = [(f"smara init --folder {shlex.quote(root)}", "remember this folder")]
    for position, (command, purpose) in enumerate(steps):
        output.say(f"{'Next:' if position == 0 else '     '}  {command:<26} {purpose}")


def _print_found(status: dict[str, Any], hosts: Sequence[FoundHost]) -> None:
    """Print what was there before anything is set up."""
    output.say(f"Project  {status['project']}")
    messages, threads = (output.count(status[name], name[:-1]) for name in _COUNTED)
    output.say(f"Stored   {messages} in {threads}")
    if status["keep"]["mode"] == "vectors":
        output.say(f"Keeps    vectors; the key of its terms is {status['keep']['key']}")
    names = {"project": "in this repository", "global": "for all repositories"}
    for host in hosts:
        places = [names[reach] for reach in host.set_up] + ["as a plug-in"] * host.has_plugin
        where = f", set up {' and '.join(places)}" if places else ""
        output.say(f"Found    {host.name}{where}")


def _set_up(
    host: FoundHost, root: str, journal: SetupJournal, yes: bool, may_ask: bool, has_diff: bool
) -> bool:
    """Set up an agent in this repository, after asking; return True if files were written."""
    if not yes and not may_ask:
        return False
    try:
        changes = plan(targets_of(host.agent, "project", root, program=program()), journal)
        refuse_tracked(changes, root, host.agent)
        if may_ask:
            output.say()
            output.say(f"For {host.name}, in {root}:")
        while may_ask:
            for change in changes:
                if change.is_needed:
                    kind = "new" if change.before is None else "change"
                    output.say(f"  {kind:<7}  {os.path.relpath(change.path, root)}")
                    if has_diff:
                        output.say(change.diff())
            answer = click.prompt(
                f"Set up {host.name}? (y, n, or d for the diff)",
                default="y",
                type=click.Choice(["y", "yes", "n", "no", "d"], case_sensitive=False),
                show_choices=False,
            )
            if answer.startswith("n"):
                return False
            if answer != "d":
                break
            has_diff = True
        return apply(changes, journal) > 0
    except SmaraError as error:
        output.warn([f"{host.name} was not set up: {error}"])
        return False
