"""Define the options that every command shares and open its memory.

It also completes and resolves the ids of threads, tasks, memories and messages.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any

import click
from click.shell_completion import CompletionItem

from smara.config import load_settings, store_exists
from smara.core.git import NO_GIT, is_git_missing
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import regex
from smara.environment import store_file
from smara.errors import InvalidInputError, MissingExtraError, NotFoundError
from smara.memory import Memory, open_memory
from smara.messages.models import Message
from smara.surfaces.cli import output

_BEGINNING = regex(r"[0-9a-f]{4}[0-9a-f-]{0,31}(/|$)")
"""A beginning of a UUID, which threads of agents have."""
Command = Callable[..., Any]
Decorator = Callable[[Command], Command]
Reply = Iterator[Any]
"""A command's answer: it yields its data once, then prints the lines that people read."""


@dataclass(slots=True)
class Invocation:
    """The options of one call: store, project, and answer's form."""

    db: str | None
    project: str | None
    as_json: bool
    warnings: list[str] = field(default_factory=list)
    """What the answer warns of; a memory that was opened adds its own."""
    exit_code: int = 0

    @contextmanager
    def memory(self, **settings: Any) -> Iterator[Memory]:
        """Open the memory of this call, with its own settings.

        Close it at the end.

        A command does its work and leaves: it starts nothing in the background.
        """
        draft = None
        with open_memory(
            self.db, project=self.project, **{"embed_in_background": False, **settings}
        ) as memory:
            yield memory
            found = [*memory.warnings]
            if "commits" in memory.used_rooms and is_git_missing():
                found.append(NO_GIT)
            self.warnings += [each for each in found if each not in self.warnings]
            if not memory.used_rooms.isdisjoint(("memories", "tasks")):
                # Hooks read the brief without the store: it must tell what was changed here.
                from smara.adapters.hosts import brief
                from smara.environment import spool_folder

                head = brief.head_of(spool_folder(), os.getcwd())
                if head is not None and not head["is_same"]:
                    from smara.adapters.hosts.precompute import finish, keep_up

                    draft = keep_up(memory, spool_folder())
        if draft is not None:
            finish(spool_folder(), draft)

    def answer(self, reply: Reply | None) -> None:
        """Print a reply's data as JSON, or warnings and lines.

        Raises:
            click.exceptions.Exit: If the command set an exit code.
        """
        for data in reply or ():
            if self.as_json:
                output.envelope(data, self.warnings)
                break
            output.warn(self.warnings)
        if self.exit_code:
            raise click.exceptions.Exit(self.exit_code)


def common(function: Command) -> Command:
    """Give a command ``--db``, ``--project`` and ``--json``, and print its reply.

    The command gets an ``Invocation`` first and yields its data: with ``--json`` that is the
    answer and the command ends there, otherwise it goes on and prints lines.
    """

    @click.option("--db", metavar="PATH|URL", help="The store; also SMARA_DB.")
    @click.option(
        "--project",
        metavar="NAME",
        help="The project; also SMARA_PROJECT.",
        shell_complete=complete_project,
    )
    @click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
    @click.option("--verbose", is_flag=True, hidden=True)
    @wraps(function)
    def wrapped(
        db: str | None, project: str | None, as_json: bool, verbose: bool, **options: Any
    ) -> None:
        above = click.get_current_context().find_root().obj or {}
        if verbose or above.get("verbose"):
            from smara.telemetry.logs import write_logs

            write_logs(load_settings().log_format)
        # Given after the command's name, it wins over what is given before it.
        chosen = {
            name: above.get(name) if given is None else given
            for name, given in (("db", db), ("project", project))
        }
        for name, value in chosen.items():
            if value == "":
                # An empty variable in a script must not lead to another store than was meant.
                raise InvalidInputError(f"--{name} is empty. Give it a value, or leave it out.")
        file = os.path.abspath(store_file(chosen["db"] or "") or ".")
        if not os.path.isdir(folder := os.path.dirname(file)):
            raise InvalidInputError(
                f"There is no folder {folder}, so no store was made there. Check the path, or "
                f"make the folder first: mkdir -p {shlex.quote(folder)}"
            )
        if isinstance(query := options.get("query"), str) and not query.strip():
            raise InvalidInputError("The query is empty. Give some words to look for.")
        call = Invocation(chosen["db"], chosen["project"], as_json or above.get("as_json", False))
        for name in ("thread_id", "session_id", "to_session"):  # a session of an agent is a thread
            if isinstance(given := options.get(name), str) and _BEGINNING.match(given):
                with call.memory() as memory:
                    options[name] = find_thread_id(memory, given)
        call.answer(function(call, **options))

    return wrapped


def opening(enter: Callable[[Invocation], AbstractContextManager[Any]]) -> Decorator:
    """Return the decorator of commands that work on what ``enter`` opens.

    The command gets that first, and the options of `common`. It is closed as soon as the command
    has yielded its data: a reader of the lines who takes his time must not keep a store open.
    """

    def decorate(function: Command) -> Command:
        @common
        @wraps(function)
        def command(call: Invocation, **options: Any) -> Reply:
            with enter(call) as opened:
                reply = function(opened, **options)
                data = next(reply)
            yield data
            yield from reply

        return command

    return decorate


with_memory = opening(Invocation.memory)
"""Give a command the open memory, and print its reply as `common` does."""


class OrderedGroup(click.Group):
    """A group that lists its commands in the order of their use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def together(*options: Decorator) -> Decorator:
    """Join several options to one decorator."""

    def add(function: Command) -> Command:
        for option in reversed(options):
            function = option(function)
        return function

    return add


offset_option = click.option(
    "--offset", type=click.IntRange(0), metavar="N", default=0, help="Skip the first N."
)
actor_option = click.option(
    "--actor", metavar="NAME", help="Who does it; also SMARA_ACTOR. Without it, you."
)


def limit_option(default: int, most: int | None = None, help: str | None = None) -> Decorator:
    """Return the option ``--limit`` with its default, and the most it takes."""
    return click.option(
        "--limit",
        type=click.IntRange(1, most),
        metavar="N",
        default=default,
        show_default=True,
        help=help,
    )


@contextmanager
def needs_extra(extra: str, advice: str) -> Iterator[None]:
    """Say how to install a package that an import misses.

    ``advice`` is a sentence with a place for the package's name.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("smara"):
            raise
        raise MissingExtraError(advice.format(error.name), extra=extra) from None


def text_or_input(text: str | None) -> str | None:
    """Return the text, or all of standard input for ``-``.

    Bytes that are not UTF-8 are kept, as lone surrogates, rather than refused.
    """
    if text != "-":
        return text
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def _completer(
    find: Callable[[Memory], Iterable[tuple[str, str | None]]],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a shell completion over ids; nothing when the store cannot be opened."""

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        start = incomplete.casefold()
        given = {name: value for name, value in ctx.params.items() if value is not None}
        chosen = ctx.find_root().params | given
        try:
            db, project = chosen.get("db"), chosen.get("project")
            if not store_exists(load_settings(db=db)):
                return []
            with open_memory(db, project=project, embed_in_background=False) as memory:
                return [
                    CompletionItem(name, help=title)
                    for name, title in find(memory)
                    if name.casefold().startswith(start)
                ]
        except Exception:
            return []

    return complete


complete_thread = _completer(
    lambda memory: ((each.id, None) for each in memory.threads.list(limit=200))
)
complete_task = _completer(
    lambda memory: ((each.short_id, each.title) for each in memory.tasks.list(limit=1000))
)
complete_memory = _completer(
    lambda memory: (
        (each.short_id, each.label) for each in memory.memories.list(state="all", limit=1000)
    )
)


complete_decision = _completer(
    lambda memory: ((each.short_id, each.rule[:80]) for each in memory.decisions.list(limit=1000))
)
complete_receipt = _completer(
    lambda memory: ((each.id, each.point) for each in memory.moments.receipts(limit=200))
)
complete_project = _completer(
    lambda memory: ((each.id, each.name) for each in memory.projects.list())
)


def find_message(memory: Memory, message_id: str) -> Message:
    """Return the message of an id or ``THREAD:SEQ``.

    Raises:
        NotFoundError: If no message matches.
    """
    thread_id, _, seq = message_id.rpartition(":")
    if not thread_id or not seq.isdigit():
        return memory.messages.get(message_id)
    thread_id = find_thread_id(memory, thread_id)
    found = memory.messages.list(thread_id=thread_id, after=int(seq) - 1, limit=1)
    if not found or found[0].seq != int(seq):
        raise NotFoundError(
            f"Thread {thread_id!r} has no message {seq}. `smara messages list` shows what it has."
        )
    return found[0]


def find_thread_id(memory: Memory, given: str) -> str:
    """Return the id of the one thread that a beginning names.

    What begins no thread stays as it was given. ``3f0c1a7e/agent-9b2c`` is a sub-agent of a
    session.

    Raises:
        InvalidInputError: If it begins several.
    """
    head, _, tail = given.partition("/")
    if not _BEGINNING.match(given) or memory.threads.find(given):
        return given
    found = [
        each
        for each in memory.threads.beginning(head)
        for name in (each.partition("/")[2],)
        if name == tail or (tail and name.startswith(tail))
    ]
    if len(found) > 1:
        names = ", ".join(found[:3])
        raise InvalidInputError(f"{given!r} begins several threads: {names}. Give more of it.")
    return found[0] if found else given


def find_task_id(memory: Memory, given: str | None) -> str | None:
    """Return the id under which messages name a task.

    An id of no task in this project stays as it was given.
    """
    task = memory.tasks.find(given) if given else None
    return task.id if task else given
