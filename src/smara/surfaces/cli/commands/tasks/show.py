"""Define `smara tasks list`, `ready`, `show`, `history` and `search`.

The arguments that all task commands share are here, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

import click

from smara.links.models import LinkedMessage
from smara.search.models import TaskAnswer
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, common, complete_task, standard_input
from smara.surfaces.cli.render import tasks as task_lines
from smara.surfaces.cli.render.tasks import details_json, event_json, task_hit_json, task_json
from smara.tasks.models import STATUSES, TYPES, Task, TaskDetails, TaskEvent, TaskTotals

F = TypeVar("F", bound=Callable[..., Any])


def priority_of(given: str | int) -> int:
    """0 to 4, also written P0 to P4; 0 is the most urgent."""
    digits = str(given).strip().upper().removeprefix("P")
    if digits not in ("0", "1", "2", "3", "4"):
        raise click.BadParameter(
            f"{given!r} is no priority. Give 0 (most urgent) to 4, or P0 to P4."
        )
    return int(digits)


task_argument = click.argument("task_id", metavar="TASK", shell_complete=complete_task)


def with_actor(function: F) -> Callable[..., Any]:
    """Give a command ``--actor`` and ``--session``; it gets both as ``who``. Stands below
    ``common``.
    """

    @click.option("--actor", metavar="NAME", help="Who does it; also SMARA_ACTOR. Without it, you.")
    @click.option(
        "--session",
        "session_id",
        metavar="ID",
        help="The agent session that does it; also SMARA_SESSION.",
    )
    @wraps(function)
    def wrapped(call: Invocation, actor: str | None, session_id: str | None, **options: Any) -> Any:
        return function(call, who={"actor": actor, "session_id": session_id}, **options)

    return wrapped


def text_or_input(text: str | None) -> str | None:
    """What was given; ``-`` reads standard input."""
    return standard_input() if text == "-" else text


_ITEM = re.compile(r"\s*((?:[-*+]|\d+[.)])\s+)\S")
"""A list item; its further lines stand below its first word."""

MESSAGES_SHOWN = 5
"""The newest that many messages of a task are on its card."""


def print_card(
    details: TaskDetails, messages: Sequence[LinkedMessage], blocked: set[str], is_full: bool
) -> None:
    """Print a task; ``blocked`` holds the ids of the tasks around it that wait for others."""
    if not output.is_terminal():
        _print_facts(details, is_full)
        return
    task = details.task
    head = f"{task.short_id}  {task.title}"
    click.echo(f"{task_lines.mark(task_lines.state_of(task, details.is_blocked))} ", nl=False)
    output.say(output.paragraph(head, "", "  ").lstrip(), bold=True)
    for line in _facts(details):
        output.say(output.paragraph(line, "  ", "  "), dim=True)
    _print_text(task, is_full)
    for title, tasks in _around(details):
        _print_section(title, tasks, blocked)
    if messages:
        count = len(details.linked_message_ids)
        _heading("Messages", "" if count <= len(messages) else f"the newest of {count}")
        for each in messages:
            _print_message(each)


def _facts(details: TaskDetails) -> list[str]:
    task = details.task
    state = task_lines.state_of(task, details.is_blocked)
    who = f"@{task.assignee}" if task.assignee else ""
    session = f"session {task.session_id}" if task.session_id else ""
    first = [
        f"P{task.priority} {task.type}",
        state,
        who,
        session,
        *(f"#{label}" for label in task.labels),
    ]
    made = f"made {output.moment(task.created_at)}" + (
        f" by {task.created_by}" if task.created_by else ""
    )
    moved = [made, f"changed {output.moment(task.updated_at)}"]
    if task.closed_at is not None:
        moved.append(f"closed {output.moment(task.closed_at)} ({task.close_reason})")
    return [" · ".join(filter(None, first)), " · ".join(moved)]


def _print_text(task: Task, is_full: bool) -> None:
    text = task.full_description if is_full else task.description
    if text.strip():
        output.say()
        for line in text.replace("\r\n", "\n").rstrip().split("\n"):
            indent = " " * (2 + len(line) - len(line.lstrip()))
            item = _ITEM.match(line)
            output.say(
                output.paragraph(
                    line.strip(), indent, indent + " " * len(item[1] if item else "")
                ).rstrip()
            )
    if task.is_compacted and not is_full:
        output.say()
        output.say(
            f"  Shortened; --full shows all {len(task.full_description):,} characters.", dim=True
        )
    if task.summary:
        _heading("Summary")
        output.say(output.paragraph(" ".join(task.summary.split()), "    ", "    "))


def _around(details: TaskDetails) -> list[tuple[str, Sequence[Task]]]:
    children = {task.id for task in details.children}
    parents = {task.id for task in details.parents}
    title = "Children"
    if details.progress is not None:
        title = f"Children\t{task_lines.bar(details.progress)}"
    return [
        ("Blocked by", [task for task in details.blocking_tasks if task.id not in children]),
        (title, details.children),
        ("Blocks", [task for task in details.dependents if task.id not in parents]),
        ("Part of", details.parents),
        ("Related", details.related),
    ]


def _print_section(title: str, tasks: Sequence[Task], blocked: set[str]) -> None:
    if tasks:
        name, _, more = title.partition("\t")
        _heading(name, more)
        task_lines.print_lines(tasks, blocked, "    ")


def _heading(title: str, more: str = "") -> None:
    output.say()
    click.echo(f"  {click.style(title, bold=True)}" + (f"  {more}" if more else ""))


def _print_message(linked: LinkedMessage) -> None:
    message = linked.message
    output.say(
        f"    {message.role} · {message.thread_id}:{message.seq} · "
        f"{output.moment(message.created_at)}"
        f" · {linked.relation}"
    )
    text = output.short(message.raw_content, output.terminal_width() - 6)
    output.say(f"      {text}", dim=True)


def _print_facts(details: TaskDetails, is_full: bool) -> None:
    """Names and values, one a line, then the text as it is."""
    task = details.task
    rows: list[tuple[str, Any]] = [
        ("task", task.short_id),
        ("uuid", task.id),
        ("title", task.title),
        ("status", task.status),
        ("blocked", "yes" if details.is_blocked else "no"),
        ("priority", task.priority),
        ("type", task.type),
        ("assignee", task.assignee),
        ("session", task.session_id),
        ("labels", ", ".join(task.labels)),
        ("created", output.moment(task.created_at)),
        ("created by", task.created_by),
        ("updated", output.moment(task.updated_at)),
        ("closed", "" if task.closed_at is None else output.moment(task.closed_at)),
        ("reason", task.close_reason),
        ("summary", task.summary),
        ("blocked by", _ids(details.blocking_tasks)),
        ("blocks", _ids(details.dependents)),
        ("children", _ids(details.children)),
        ("parents", _ids(details.parents)),
        ("related", _ids(details.related)),
        (
            "progress",
            f"{details.progress.closed}/{details.progress.total}" if details.progress else "",
        ),
        ("messages", " ".join(details.linked_message_ids)),
    ]
    for row in rows:
        output.row(row)
    text = task.full_description if is_full else task.description
    if text.strip():
        output.say()
        output.say(text)


def _ids(tasks: Sequence[Task]) -> str:
    return " ".join(task.short_id for task in tasks)


_LIMIT = click.option("--limit", type=click.IntRange(1), metavar="N", default=50, show_default=True)


@click.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only tasks of this status.")
@click.option("--type", "type_", type=click.Choice(TYPES), help="Only tasks of this type.")
@click.option("--label", metavar="TEXT", help="Only tasks with this label.")
@click.option("--assignee", metavar="NAME", help="Only tasks of this person or session.")
@click.option(
    "--priority", "-p", type=priority_of, metavar="0-4", help="Only tasks of this priority."
)
@click.option(
    "--parent", metavar="TASK", help="Only children of this task.", shell_complete=complete_task
)
@click.option("--all", "with_closed", is_flag=True, help="Closed tasks, too.")
@_LIMIT
@click.option(
    "--offset",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    help="Leave out the first that many.",
)
@common
def list_tasks(
    call: Invocation,
    status: Any,
    type_: Any,
    label: str | None,
    assignee: str | None,
    priority: int | None,
    parent: str | None,
    with_closed: bool,
    limit: int,
    offset: int,
) -> None:
    """Tasks: in progress, then open, by priority and age."""
    is_filtered = any(given is not None for given in (type_, label, assignee, priority, parent))
    with call.memory() as memory:
        page = memory.tasks.list(
            status=status,
            type=type_,
            label=label,
            assignee=assignee,
            priority=priority,
            parent=parent,
            limit=limit,
            offset=offset,
        )
        # Closed ones come last: the first of them ends what was asked for.
        tasks = [task for task in page if with_closed or status or task.status != "closed"]
        following = page.next_offset if len(tasks) == len(page) else None
        totals = memory.tasks.totals()
        blocked = memory.tasks.blocked(tasks)
        warnings = memory.warnings
    if call.as_json:
        listed = [task_json(task) | {"isBlocked": task.id in blocked} for task in tasks]
        output.envelope({"tasks": listed, "nextOffset": following}, warnings)
        return
    output.warn(warnings)
    _print(tasks, blocked)
    wanted = _counted(totals, status, with_closed)
    if following is not None:
        more = "There are" if is_filtered else f"{wanted - following:,}"
        task_lines.say_more(f"{more} more: --offset {following}, or a larger --limit.")
    elif not tasks:
        _say_none(totals, is_filtered or offset > 0)
    elif output.is_terminal():
        output.say()
        click.echo(task_lines.legend())


def _counted(totals: TaskTotals, status: str | None, with_closed: bool) -> int:
    if status is not None:
        return int(getattr(totals, status))
    return totals.all if with_closed else totals.open + totals.in_progress


def _say_none(totals: TaskTotals, is_filtered: bool) -> None:
    if not output.is_terminal():
        return
    if not totals.all:
        output.say('No tasks yet. `smara tasks add "What is to be done"` makes the first.')
    elif is_filtered:
        output.say("No task fits. Ask for less, or --all for closed ones, too.")
    else:
        output.say(f"Nothing is left to do: {totals.closed:,} closed. --all shows them.")


def _print(tasks: list[Task], blocked: set[str]) -> None:
    if output.is_terminal():
        task_lines.print_lines(tasks, blocked)
    else:
        output.table(task_lines.COLUMNS, task_lines.columns(tasks, blocked))


@click.command("ready")
@click.option("--limit", type=click.IntRange(1), metavar="N", default=10, show_default=True)
@click.option(
    "--offset",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    help="Leave out the first that many.",
)
@click.option("--type", "type_", type=click.Choice(TYPES), help="Only tasks of this type.")
@click.option("--label", metavar="TEXT", help="Only tasks with this label.")
@click.option("--assignee", metavar="NAME", help="Only tasks meant for this person.")
@common
def ready(
    call: Invocation, limit: int, offset: int, type_: Any, label: str | None, assignee: str | None
) -> None:
    """What can be worked on now, by priority, then age."""
    with call.memory() as memory:
        page = memory.tasks.ready(
            limit=limit, offset=offset, type=type_, label=label, assignee=assignee
        )
        totals = memory.tasks.totals()
        warnings = memory.warnings
    if call.as_json:
        data = {
            "tasks": [task_json(task) for task in page],
            "readyCount": page.ready_count,
            "blockedCount": page.blocked_count,
            "nextOffset": page.next_offset,
        }
        output.envelope(data, warnings)
        return
    output.warn(warnings)
    _print(list(page), set())
    counts = (
        f"{page.ready_count:,} ready, {page.blocked_count:,} blocked, {totals.in_progress:,} "
        "in progress."
    )
    if page:
        task_lines.say_more(f"{counts} `smara tasks claim --next` takes the first.")
    elif output.is_terminal():
        output.say(counts)
    else:
        task_lines.say_more(counts)


@click.command("show")
@task_argument
@click.option("--full", is_flag=True, help="All that was written, also of a compacted task.")
@common
def show(call: Invocation, task_id: str, full: bool) -> None:
    """One task, and what stands around it."""
    with call.memory() as memory:
        details = memory.tasks.show(task_id)
        skipped = max(0, len(details.linked_message_ids) - MESSAGES_SHOWN)
        messages = memory.links.messages(details.task.id, limit=MESSAGES_SHOWN, offset=skipped)
        blocked = memory.tasks.blocked(
            [*details.blocking_tasks, *details.dependents, *details.children]
        )
        warnings = memory.warnings
    if call.as_json:
        output.envelope(details_json(details, full), warnings)
        return
    output.warn(warnings)
    print_card(details, messages, blocked, is_full=full)


@click.command("history")
@task_argument
@_LIMIT
@common
def history(call: Invocation, task_id: str, limit: int) -> None:
    """What happened to a task, newest first."""
    with call.memory() as memory:
        events = memory.tasks.history(task_id, limit=limit)
        warnings = memory.warnings
    if call.as_json:
        output.envelope([event_json(event) for event in events], warnings)
        return
    output.warn(warnings)
    rows = [
        (
            output.moment(event.at),
            event.kind + (" (undone)" if event.is_undone else ""),
            _who(event),
            event_text(event),
        )
        for event in events
    ]
    output.table(("time", "event", "who", "change"), rows, folding=("who", "change"))


def _who(event: TaskEvent) -> str:
    return f"{event.actor} ({event.session_id})" if event.session_id else event.actor


def event_text(event: TaskEvent) -> str:
    """The change in words: what was before, what came after."""
    before, after = event.before, event.after
    sign, one = ("+", after) if after else ("−", before)
    if "depends_on" in one:
        return f"{sign} {_edge(one)}"
    if "message_id" in one:
        return f"{sign} message {one.get('message_id')} ({one.get('relation')})"
    names = [name for name in dict.fromkeys((*before, *after)) if name not in _UNTOLD]
    return "; ".join(
        filter(None, (_one(name, before.get(name), after.get(name)) for name in names))
    )


_UNTOLD = ("updated_at", "claimed_at", "closed_at", "compacted_at", "original_content", "metadata")
"""Fields that repeat the time of the event, or are too long to tell."""


def _one(name: str, was: Any, now: Any) -> str:
    if name == "dependencies":
        return ", ".join(f"+ {_edge(each)}" for each in now or ())
    if was == now or (was in _NOTHING and now in _NOTHING):
        return ""
    title = name.replace("_id", "").replace("_", " ")
    return f"{title} {_short(now)}" if was in _NOTHING else f"{title} {_short(was)} → {_short(now)}"


def _edge(dependency: Mapping[str, Any]) -> str:
    return f"{', '.join(dependency.get('types', ()))} {dependency.get('short_id')}"


_NOTHING: tuple[Any, ...] = (None, "", [])


def _short(value: Any) -> str:
    if value in _NOTHING:
        return "none"
    return output.short(", ".join(map(str, value)) if isinstance(value, list) else str(value), 60)


@click.command("search")
@click.argument("query")
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", default=10, show_default=True)
@click.option("--status", type=click.Choice(STATUSES), help="Only tasks of this status.")
@click.option("--messages", "with_messages", is_flag=True, help="What was said about it, too.")
@common
def search(call: Invocation, query: str, limit: int, status: Any, with_messages: bool) -> None:
    """Find tasks by their words.

    Titles, descriptions, summaries and labels are looked at, also of compacted tasks.
    """
    from smara.surfaces.cli.commands.search import hit_json

    with call.memory() as memory:
        answer = memory.search_tasks(query, limit, status=status, include_messages=with_messages)
        blocked = memory.tasks.blocked([hit.task for hit in answer])
        warnings = [*memory.warnings, *answer.warnings]
    if call.as_json:
        data: dict[str, Any] = {
            "results": [task_hit_json(hit) for hit in answer],
            "totalHits": answer.total_hits,
        }
        if answer.messages is not None:
            data["messages"] = [hit_json(hit) for hit in answer.messages]
        output.envelope(data, warnings)
        return
    output.warn(warnings)
    if not answer and not answer.messages:
        click.echo("Nothing found. Try fewer or other words, or a part of a name.", err=True)
    if output.is_terminal():
        _print_found(answer, blocked)
    else:
        rows = [(hit.rank, f"{hit.score:.2f}", *_found(hit.task), hit.snippet) for hit in answer]
        rows += [
            (
                hit.rank,
                f"{hit.score:.2f}",
                f"{hit.thread_id}:{hit.seq}",
                hit.role or "",
                "",
                hit.snippet,
            )
            for hit in answer.messages or ()
        ]
        output.table(("rank", "score", "task", "status", "title", "snippet"), rows)


def _found(task: Task) -> tuple[str, str, str]:
    return task.short_id, task.status, task.title


def _print_found(answer: TaskAnswer, blocked: set[str]) -> None:
    for hit in answer:
        task_lines.print_lines([hit.task], blocked)
        snippet = hit.snippet.removeprefix(hit.task.title).strip()  # which stands in the line above
        if snippet:
            output.say(output.paragraph(snippet, "    ", "    "), dim=True)
    if answer.messages:
        output.say()
        output.say("Said about it", bold=True)
    for found in answer.messages or ():
        output.say(
            f"  {found.role} · {found.thread_id}:{found.seq} · {output.moment(found.created_at)}"
        )
        output.say(output.paragraph(found.snippet, "    ", "    "), dim=True)
