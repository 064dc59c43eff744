"""Run the `smara` command and turn errors into exit codes.

A command's module is imported only when the command is called.

Exit codes: 0 done; 1 a bug; 2 wrong usage or input; 3 not found; 4 conflict; 5 settings;
6 database error; 7 busy, try again; 8 the doctor found problems; 9 no answer from a model;
130 interrupted.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from smara.environment import variable
from smara.errors import (
    BusyError,
    ConfigError,
    ConflictError,
    DatabaseError,
    ModelError,
    NotFoundError,
    SmaraError,
    UsageError,
)

COMPLETION = "_SMARA_COMPLETE"
"""The variable by which a shell asks for completions."""
GROUPS: dict[str, dict[str, str]] = {
    "Start": {
        "init": "Set up this repository: agents, sessions, history, code.",
        "setup": "Set up an agent: its hooks and tools.",
        "status": "Show what is stored in this project, and how current it is.",
        "doctor": "Find and explain problems; --fix repairs what it can.",
        "help": "Show a page of the guide, or list them.",
        "demo": "Play a short story: what an agent is told, and from where.",
    },
    "Find": {
        "search": "Search everything Smara remembers.",
        "why": "Show everything known about a file, a line or a name.",
        "decisions": "Show what people decided in their sessions.",
        "commits": "Read the history, and explain a file's lines.",
        "code": "Index the code and query its dependencies.",
        "threads": "List, show and rename threads.",
        "messages": "Add, list and show messages.",
    },
    "Teach and review": {
        "remember": "Teach Smara something. It is trusted at once.",
        "review": "Decide what is true: one key for each memory.",
        "memories": "List, review, edit and forget memories.",
        "working": "Show and edit working memory.",
    },
    "Work": {
        "tasks": "Add, order, claim and close tasks.",
    },
    "Look inside": {
        "context": "Preview what an agent is given.",
        "receipts": "Show what was injected into sessions, and whether it was used.",
        "observations": "List and explain observations; show what failed.",
        "behavior": "Show what Smara learns from the work of agents, and why.",
        "watch": "Show what hooks hear and tell, as it happens.",
        "ui": "Open the panel: see, review and correct what is remembered.",
    },
    "Operate": {
        "import": "Import past sessions of agents, archives and other files.",
        "export": "Export everything into one archive, or memories as text.",
        "erase": "Erase things for good, with all that was made from them.",
        "backup": "Write a backup while the store is in use.",
        "restore": "Restore a backup or an archive.",
        "copy": "Copy a store into another: SQLite, PostgreSQL, either way.",
        "projects": "List the projects of this store.",
        "worker": "Observe threads in the background.",
        "observe": "Observe the new messages of a thread.",
        "reflect": "Condense older observations of a thread.",
        "compact": "Replace old messages in the context by their observations.",
        "index": "Check, rebuild or optimize the search index.",
        "embeddings": "Show, create and replace vectors.",
        "models": "Show models, their budget and calls; pause and resume them.",
        "mcp": "Serve the memory over the Model Context Protocol.",
        "serve": "Serve the memory over HTTP.",
        "keys": "Add, list and revoke access keys of the HTTP server.",
        "completion": "Print a completion script for bash, zsh, fish or PowerShell.",
        "man": "Print the manual page.",
        "version": "Show the versions of Smara, Python and SQLite.",
    },
}
"""The commands by what people do, in the order of their use."""
UNLISTED = {
    "complete": "List words and names that begin with a prefix.",
    "hook": "Handle an event of an agent; agents call it.",
}
"""Commands that programs call."""
COMMANDS = {name: text for group in (*GROUPS.values(), UNLISTED) for name, text in group.items()}
FORMER = {"graph": "code"}
"""Former names of commands, which work for one more release."""

EXIT_CODES: tuple[tuple[type[SmaraError], int], ...] = (
    (NotFoundError, 3),
    (ConflictError, 4),
    (UsageError, 2),
    (ConfigError, 5),
    (BusyError, 7),
    (DatabaseError, 6),
    (ModelError, 9),
)

# Commands that share a module with their noun; every other command has a module of its own name.
_MODULES = {
    "threads": "messages", "compact": "messages", "observe": "observations",
    "reflect": "observations", "receipts": "context", "version": "projects", "index": "doctor",
    "hook": "worker", "embeddings": "models", "man": "help",
    "complete": "search", "import": "import_files",
    "remember": "memories.change", "export": "privacy", "backup": "privacy",
    "restore": "privacy", "erase": "privacy", "copy": "privacy", "keys": "serve",
    "ui": "serve",
}  # fmt: skip
_TERMINAL = frozenset(
    {
        "complete",
        "completion",
        "demo",
        "doctor",
        "help",
        "index",
        "init",
        "man",
        "review",
        "search",
        "setup",
        "status",
        "watch",
        "why",
    }
)
"""Commands of the package ``surfaces.terminal``."""


ELSEWHERE = {
    "add": ("remember", "tasks add"), "ask": ("search",), "assign": ("tasks release",),
    "correct": ("memories edit",), "delete": ("memories forget", "erase"),
    "edit": ("memories edit",), "find": ("search",),
    "forget": ("memories forget",), "recall": ("search",),
    "remove": ("memories forget", "erase"), "sessions": ("threads list",), "teach": ("remember",),
    "undo": ("tasks undo", "memories review undo", "setup AGENT --remove", "erase"),
    "uninstall": ("setup AGENT --remove",),
}  # fmt: skip
"""What people type first for a command that has another name or place."""


class LazyGroup(click.Group):
    """A group that imports a command only when it is called."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in ELSEWHERE:
            names = " or ".join(f"`smara {name}`" for name in ELSEWHERE[args[0]])
            raise click.UsageError(f"No such command '{args[0]}'. You may mean {names}.", ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if (name := FORMER.get(cmd_name)) is not None:
            click.echo(f"`smara {cmd_name}` is now `smara {name}`.", err=True)
            cmd_name = name
        if cmd_name not in COMMANDS:
            return None
        package = "terminal" if cmd_name in _TERMINAL else "cli.commands"
        module = import_module(f"smara.surfaces.{package}.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # From the table above, so that `smara --help` loads no command at all.
        widest = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{widest}}", text) for name, text in commands.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader of our pipe has left, as in `smara search … | head -1`: click would call
            # that a failure, and Python would complain at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(0) from None


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.option(
    "--db",
    metavar="PATH|URL",
    help="The store; also SMARA_DB. The default is the store of this user.",
)
@click.option(
    "--project",
    metavar="NAME",
    help="The project; also SMARA_PROJECT. 'auto' is the git repository here.",
    # Loaded for a shell alone: `smara --help` loads no store.
    shell_complete=lambda *given: import_module("smara.surfaces.cli.options").complete_project(
        *given
    ),
)
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.option("--verbose", is_flag=True, help="Write log lines to standard error.")
@click.version_option(package_name="smara", prog_name="smara")
@click.pass_context
def cli(
    ctx: click.Context, db: str | None, project: str | None, as_json: bool, verbose: bool
) -> None:
    """Smara: one memory for coding agents.

    Start with `smara init` in a repository. Without a command, `smara` shows
    where you stand and what to do next.
    """
    ctx.obj = {"db": db, "project": project, "as_json": as_json, "verbose": verbose}
    if ctx.invoked_subcommand is None:
        ctx.invoke(import_module("smara.surfaces.terminal.status").home_command)


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code."""
    as_json = "--json" in (sys.argv[1:] if arguments is None else arguments)
    if variable(COMPLETION):
        import_module("smara.surfaces.terminal.completion")  # click does not know PowerShell
    try:
        # Outside its standalone mode click returns the code of an Exit instead of raising it.
        status = cli.main(args=arguments, prog_name="smara", standalone_mode=False)
    except Exception as error:
        import_module("smara.surfaces.terminal.failure").fail(error, exit_code(error), as_json)
    sys.exit(status if isinstance(status, int) else 0)


def exit_code(error: Exception) -> int:
    """Return the exit code of an error."""
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1)
