"""``smara tasks list``, ``ready``, ``show``, ``history`` and ``search``"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from smara.search.models import TaskAnswer
from smara.surfaces.cli import output, task_lines
from smara.surfaces.cli.commands.tasks.asking import priority_of, task_argument
from smara.surfaces.cli.commands.tasks.card import MESSAGES_SHOWN, print_card
from smara.surfaces.cli.options import Call, common, complete_task
from smara.surfaces.cli.task_shapes import details_json, event_json, task_hit_json, task_json
from smara.tasks.models import STATUSES, TYPES, Task, TaskEvent, TaskTotals

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
    call: Call,
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
    call: Call, limit: int, offset: int, type_: Any, label: str | None, assignee: str | None
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
def show(call: Call, task_id: str, full: bool) -> None:
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
def history(call: Call, task_id: str, limit: int) -> None:
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
            told(event),
        )
        for event in events
    ]
    output.table(("time", "event", "who", "change"), rows, folding=("who", "change"))


def _who(event: TaskEvent) -> str:
    return f"{event.actor} ({event.session_id})" if event.session_id else event.actor


def told(event: TaskEvent) -> str:
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
def search(call: Call, query: str, limit: int, status: Any, with_messages: bool) -> None:
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
