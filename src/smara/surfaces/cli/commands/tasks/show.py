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
from smara.shapes import Names, details_json, hit_json, task_json
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.search import NOTHING_FOUND
from smara.surfaces.cli.options import Invocation, Reply, common, complete_task, standard_input
from smara.surfaces.cli.render import tasks as task_lines
from smara.tasks.models import STATUSES, TYPES, Task, TaskDetails, TaskEvent

F = TypeVar("F", bound=Callable[..., Any])


def priority_of(given: str | int) -> int:
    """Parse a priority from 0 (most urgent) to 4, or P0–P4."""
    digits = str(given).strip().upper().removeprefix("P")
    if digits not in ("0", "1", "2", "3", "4"):
        raise click.BadParameter(
            f"{given!r} is not a priority. Give 0 (most urgent) to 4, or P0 to P4."
        )
    return int(digits)


task_argument = click.argument("task_id", metavar="TASK", shell_complete=complete_task)


def with_actor(function: F) -> Callable[..., Any]:
    """Give a command ``--actor`` and ``--session`` as ``who``. Stands below ``common``."""

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
    """Return the text, or standard input for ``-``."""
    return standard_input() if text == "-" else text


_ITEM = re.compile(r"\s*((?:[-*+]|\d+[.)])\s+)\S")
"""A list item; its further lines are indented to its first word."""

MESSAGES_SHOWN = 5
"""So many of a task's messages are shown with it, the newest."""


def _print_card(
    details: TaskDetails, messages: Sequence[LinkedMessage], blocked: set[str], is_full: bool
) -> None:
    """Print a task on a terminal; ``blocked`` has the ids of blocked tasks around it."""
    task = details.task
    state = task_lines.state_of(task, details.is_blocked)
    click.echo(f"{task_lines.mark(state)} ", nl=False)
    head = f"{task.short_id}  {task.title}"
    output.say(output.paragraph(head, "", "  ").lstrip(), bold=True)
    facts = [
        f"P{task.priority} {task.type}",
        state,
        f"@{task.assignee}" if task.assignee else "",
        f"session {task.session_id}" if task.session_id else "",
        *(f"#{label}" for label in task.labels),
    ]
    by = f" by {task.created_by}" if task.created_by else ""
    times = [
        f"created {output.moment(task.created_at)}{by}",
        f"changed {output.moment(task.updated_at)}",
    ]
    if task.closed_at is not None:
        times.append(f"closed {output.moment(task.closed_at)} ({task.close_reason})")
    for line in (" · ".join(filter(None, facts)), " · ".join(times)):
        output.say(output.paragraph(line, "  ", "  "), dim=True)
    _print_text(task, is_full)
    children = {each.id for each in details.children}
    parents = {each.id for each in details.parents}
    progress = task_lines.bar(details.progress) if details.progress is not None else ""
    sections: list[tuple[str, str, Sequence[Task]]] = [
        ("Blocked by", "", [each for each in details.blocking_tasks if each.id not in children]),
        ("Children", progress, details.children),
        ("Blocks", "", [each for each in details.dependents if each.id not in parents]),
        ("Part of", "", details.parents),
        ("Related", "", details.related),
    ]
    for title, more, tasks in sections:
        if tasks:
            _heading(title, more)
            task_lines.print_lines(tasks, blocked, "    ")
    if messages:
        count = len(details.linked_message_ids)
        _heading("Messages", "" if count <= len(messages) else f"the newest of {count}")
    for linked in messages:
        message = linked.message
        output.say(
            f"    {message.role} · {message.thread_id}:{message.seq} · "
            f"{output.moment(message.created_at)} · {linked.relation}"
        )
        text = output.short(message.raw_content, output.terminal_width() - 6)
        output.say(f"      {text}", dim=True)


def _print_text(task: Task, is_full: bool) -> None:
    text = task.full_description if is_full else task.description
    if text.strip():
        output.say()
        for line in text.replace("\r\n", "\n").rstrip().split("\n"):
            indent = " " * (2 + len(line) - len(line.lstrip()))
            item = _ITEM.match(line)
            others = indent + " " * len(item[1] if item else "")
            output.say(output.paragraph(line.strip(), indent, others).rstrip())
    if task.is_compacted and not is_full:
        output.say()
        length = len(task.full_description)
        output.say(f"  Shortened; --full shows all {length:,} characters.", dim=True)
    if task.summary:
        _heading("Summary")
        output.say(output.paragraph(" ".join(task.summary.split()), "    ", "    "))


def _heading(title: str, more: str = "") -> None:
    output.say()
    click.echo(f"  {click.style(title, bold=True)}" + (f"  {more}" if more else ""))


def _print_facts(details: TaskDetails, is_full: bool) -> None:
    """Print names and values for a pipe, one a line, then the description."""
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
@click.option("--all", "with_closed", is_flag=True, help="Show closed tasks, too.")
@_LIMIT
@click.option(
    "--offset",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    help="Skip the first N.",
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
) -> Reply:
    """List tasks: in progress, then open, by priority and age."""
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
    listed = [task_json(task) | {"isBlocked": task.id in blocked} for task in tasks]
    yield {"tasks": listed, "nextOffset": following}
    _print(tasks, blocked)
    if following is not None:
        count = totals.all if with_closed else totals.open + totals.in_progress
        count = count if status is None else int(getattr(totals, status))
        more = "There are" if is_filtered else f"{count - following:,}"
        task_lines.say_more(f"{more} more: use --offset {following} or a larger --limit.")
    elif not tasks and output.is_terminal():
        if not totals.all:
            output.say('No tasks yet. Add the first: `smara tasks add "Fix the login"`.')
        elif is_filtered or offset > 0:
            output.say("No tasks match. Use fewer filters, or --all for closed ones, too.")
        else:
            closed = output.count(totals.closed, "closed task")
            output.say(f"Nothing left to do; {closed}. --all shows them.")
    elif output.is_terminal():
        output.say()
        click.echo(task_lines.legend())


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
    help="Skip the first N.",
)
@click.option("--type", "type_", type=click.Choice(TYPES), help="Only tasks of this type.")
@click.option("--label", metavar="TEXT", help="Only tasks with this label.")
@click.option("--assignee", metavar="NAME", help="Only tasks of this person.")
@common
def ready(
    call: Invocation, limit: int, offset: int, type_: Any, label: str | None, assignee: str | None
) -> Reply:
    """List tasks that can be started now, by priority and age."""
    with call.memory() as memory:
        page = memory.tasks.ready(
            limit=limit, offset=offset, type=type_, label=label, assignee=assignee
        )
        totals = memory.tasks.totals()
    data = {
        "tasks": [task_json(task) for task in page],
        "readyCount": page.ready_count,
        "blockedCount": page.blocked_count,
        "nextOffset": page.next_offset,
    }
    yield data
    _print(list(page), set())
    counts = (
        f"{page.ready_count:,} ready, {page.blocked_count:,} blocked, {totals.in_progress:,} "
        "in progress."
    )
    if page:
        task_lines.say_more(f"{counts} `smara tasks claim --next` claims the first.")
    elif output.is_terminal():
        output.say(counts)
    else:
        task_lines.say_more(counts)


@click.command("show")
@task_argument
@click.option("--full", is_flag=True, help="Show the full text of a compacted task.")
@common
def show(call: Invocation, task_id: str, full: bool) -> Reply:
    """Show one task with its dependencies and messages."""
    with call.memory() as memory:
        details = memory.tasks.show(task_id)
        skipped = max(0, len(details.linked_message_ids) - MESSAGES_SHOWN)
        messages = memory.links.messages(details.task.id, limit=MESSAGES_SHOWN, offset=skipped)
        blocked = memory.tasks.blocked(
            [*details.blocking_tasks, *details.dependents, *details.children]
        )
    yield details_json(details, full)
    if output.is_terminal():
        _print_card(details, messages, blocked, is_full=full)
    else:
        _print_facts(details, full)


@click.command("history")
@task_argument
@_LIMIT
@common
def history(call: Invocation, task_id: str, limit: int) -> Reply:
    """List the changes of a task, newest first."""
    with call.memory() as memory:
        events = memory.tasks.history(task_id, limit=limit)
    yield [
        {
            "id": event.id,
            "kind": event.kind,
            "actor": event.actor,
            "sessionId": event.session_id,
            "at": event.at,
            "before": dict(event.before),
            "after": dict(event.after),
            "isUndone": event.is_undone,
        }
        for event in events
    ]
    rows = [
        (
            output.moment(event.at),
            event.kind + (" (undone)" if event.is_undone else ""),
            f"{event.actor} ({event.session_id})" if event.session_id else event.actor,
            event_text(event),
        )
        for event in events
    ]
    output.table(("time", "event", "who", "change"), rows, folding=("who", "change"))


def event_text(event: TaskEvent) -> str:
    """Return a change in words: what was before and what came after."""
    before, after = event.before, event.after
    sign, one = ("+", after) if after else ("−", before)
    if "depends_on" in one:
        return f"{sign} {_edge(one)}"
    if "message_id" in one:
        return f"{sign} message {one.get('message_id')} ({one.get('relation')})"
    names = [name for name in dict.fromkeys((*before, *after)) if name not in _UNTOLD]
    changes = []
    for name in names:
        was, now = before.get(name), after.get(name)
        title = name.replace("_id", "").replace("_", " ")
        if name == "dependencies":
            changes.append(", ".join(f"+ {_edge(each)}" for each in now or ()))
        elif was != now and not (was in _NOTHING and now in _NOTHING):
            old = "" if was in _NOTHING else f"{_short(was)} → "
            changes.append(f"{title} {old}{_short(now)}")
    return "; ".join(filter(None, changes))


_UNTOLD = ("updated_at", "claimed_at", "closed_at", "compacted_at", "original_content", "metadata")
"""Fields that repeat the time of the event, or are too long to show."""


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
@click.option("--messages", "with_messages", is_flag=True, help="Search messages, too.")
@common
def search(call: Invocation, query: str, limit: int, status: Any, with_messages: bool) -> Reply:
    """Search titles, descriptions, summaries and labels of tasks."""
    with call.memory() as memory:
        answer = memory.search_tasks(query, limit, status=status, include_messages=with_messages)
        blocked = memory.tasks.blocked([hit.task for hit in answer])
        call.warnings += answer.warnings
        names = Names(memory.tasks.find)
        said = [hit_json(hit, names) for hit in answer.messages or ()]
    data: dict[str, Any] = {
        "results": [
            {
                "rank": hit.rank,
                "score": round(hit.score, 4),
                "why": list(hit.why),
                "snippet": hit.snippet,
                "task": task_json(hit.task),
            }
            for hit in answer
        ],
        "totalHits": answer.total_hits,
    }
    if answer.messages is not None:
        data["messages"] = said
    yield data
    if not answer and not answer.messages:
        click.echo(NOTHING_FOUND, err=True)
    if not output.is_terminal():
        rows: list[tuple[Any, ...]] = [
            (
                hit.rank,
                f"{hit.score:.2f}",
                hit.task.short_id,
                hit.task.status,
                hit.task.title,
                hit.snippet,
            )
            for hit in answer
        ]
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
        return
    for hit in answer:
        task_lines.print_lines([hit.task], blocked)
        snippet = hit.snippet.removeprefix(hit.task.title).strip()  # the line above has the title
        if snippet:
            output.say(output.paragraph(snippet, "    ", "    "), dim=True)
    if answer.messages:
        output.say()
        output.say("Messages", bold=True)
    for message in answer.messages or ():
        output.say(
            f"  {message.role} · {message.thread_id}:{message.seq} · "
            f"{output.moment(message.created_at)}"
        )
        output.say(output.paragraph(message.snippet, "    ", "    "), dim=True)
