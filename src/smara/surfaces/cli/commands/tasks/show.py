"""Define the commands that show tasks: list, ready, show, history, search, tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from smara.core.extract import one_line
from smara.core.startup.regex import regex
from smara.links.models import LinkedMessage
from smara.memory import Memory
from smara.shapes import Names, details_json, hit_json, mention_json, progress_json, task_json
from smara.surfaces.cli import output
from smara.surfaces.cli.options import (
    Invocation,
    Reply,
    common,
    complete_task,
    limit_option,
    offset_option,
    with_memory,
)
from smara.surfaces.cli.render import (
    bar,
    heading,
    legend,
    mark,
    print_branch,
    print_tasks,
    say_more,
    state_of,
)
from smara.tasks.models import STATUSES, TYPES, TaskDetails, TaskEvent, TreeNode
from smara.texts import AROUND, dotted, task_times


def priority_of(given: str | int) -> int:
    """Parse a priority from 0 (most urgent) to 4, or P0–P4."""
    digits = str(given).strip().upper().removeprefix("P")
    if digits not in ("0", "1", "2", "3", "4"):
        raise click.BadParameter(
            f"{given!r} is not a priority. Give 0 (most urgent) to 4, or P0 to P4."
        )
    return int(digits)


task_argument = click.argument("task_id", metavar="TASK", shell_complete=complete_task)


STATES = ("open", "in progress", "blocked", "closed")
_ITEM = regex(r"\s*((?:[-*+]|\d+[.)])\s+)\S")
"""A list item; its further lines are indented to its first word."""

MESSAGES_SHOWN = 5
"""So many of a task's messages are shown with it, the newest."""


def _print_card(
    details: TaskDetails, messages: Sequence[LinkedMessage], blocked: set[str], is_full: bool
) -> None:
    """Print a task on a terminal; ``blocked`` has the ids of blocked tasks around it."""
    task = details.task
    state = state_of(task, details.is_blocked)
    click.echo(f"{mark(state)} ", nl=False)
    output.say(output.paragraph(f"{task.short_id}  {task.title}", "", "  ").lstrip(), bold=True)
    facts = [
        f"P{task.priority} {task.type}",
        state,
        # What was handed to a session is assigned to it.
        f"@{task.assignee}" if task.assignee and task.assignee != task.session_id else "",
        f"session {output.short(task.session_id)}" if task.session_id else "",
        *(f"#{label}" for label in task.labels),
    ]
    for line in (dotted(*facts), dotted(*task_times(task_json(task), is_local=True))):
        output.say(output.paragraph(line, "  ", "  "), dim=True)
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
        output.say(
            f"  Shortened; --full shows all {len(task.full_description):,} characters.", dim=True
        )
    if task.summary:
        heading("Summary")
        output.say(output.paragraph(" ".join(task.summary.split()), "    ", "    "))
    children = {each.id for each in details.children}
    parents = {each.id for each in details.parents}
    progress = bar(details.progress) if details.progress is not None else ""
    around = {
        "blockingTasks": [each for each in details.blocking_tasks if each.id not in children],
        "children": details.children,
        "dependents": [each for each in details.dependents if each.id not in parents],
        "parents": details.parents,
        "related": details.related,
    }
    for name, title in AROUND.items():
        if around[name]:
            heading(title, progress if name == "children" else "")
            print_tasks(around[name], blocked, "    ")
    if messages:
        count = len(details.linked_message_ids)
        heading("Messages", "" if count <= len(messages) else f"the newest of {count}")
    for linked in messages:
        message = linked.message
        output.say(f"    {dotted(output.message_head(message), linked.relation)}")
        text = one_line(message.raw_content, output.terminal_width() - 6)
        output.say(f"      {text}", dim=True)


def _print_facts(details: TaskDetails, is_full: bool) -> None:
    """Print names and values for a pipe, one a line, then the description."""
    task = details.task
    for row in [
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
        *(
            (title, " ".join(each.short_id for each in tasks))
            for title, tasks in (
                ("blocked by", details.blocking_tasks),
                ("blocks", details.dependents),
                ("children", details.children),
                ("parents", details.parents),
                ("related", details.related),
            )
        ),
        (
            "progress",
            f"{details.progress.closed}/{details.progress.total}" if details.progress else "",
        ),
        ("messages", " ".join(details.linked_message_ids)),
    ]:
        output.row(row)
    text = task.full_description if is_full else task.description
    if text.strip():
        output.say("", text)


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
@limit_option(50)
@offset_option
@with_memory
def list_tasks(
    memory: Memory,
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
    yield {
        "tasks": [task_json(task) | {"isBlocked": task.id in blocked} for task in tasks],
        "nextOffset": following,
    }
    is_filtered = any(given is not None for given in (type_, label, assignee, priority, parent))
    print_tasks(tasks, blocked)
    if following is not None:
        count = totals.all if with_closed else totals.open + totals.in_progress
        count = count if status is None else int(getattr(totals, status))
        more = "There are" if is_filtered else f"{count - following:,}"
        say_more(f"{more} more: use --offset {following} or a larger --limit.")
    elif not tasks and output.is_terminal():
        if not totals.all:
            output.say('No tasks yet. Add the first: `smara tasks add "Fix the login"`.')
        elif is_filtered or offset > 0:
            output.say("No tasks match. Use fewer filters, or --all for closed ones, too.")
        else:
            output.say(
                f"Nothing left to do; {output.count(totals.closed, 'closed task')}. "
                "--all shows them."
            )
    elif output.is_terminal():
        output.say()
        click.echo(legend(STATES))


@click.command("ready")
@limit_option(10)
@offset_option
@click.option("--type", "type_", type=click.Choice(TYPES), help="Only tasks of this type.")
@click.option("--label", metavar="TEXT", help="Only tasks with this label.")
@click.option("--assignee", metavar="NAME", help="Only tasks of this person.")
@with_memory
def ready(
    memory: Memory, limit: int, offset: int, type_: Any, label: str | None, assignee: str | None
) -> Reply:
    """List tasks that can be started now, by priority and age."""
    page = memory.tasks.ready(
        limit=limit, offset=offset, type=type_, label=label, assignee=assignee
    )
    totals = memory.tasks.totals()
    yield {
        "tasks": [task_json(task) for task in page],
        "readyCount": page.ready_count,
        "blockedCount": page.blocked_count,
        "nextOffset": page.next_offset,
    }
    print_tasks(page, set())
    counts = (
        f"{page.ready_count:,} ready, {page.blocked_count:,} blocked, {totals.in_progress:,} "
        "in progress."
    )
    if page:
        say_more(f"{counts} `smara tasks claim --next` claims the first.")
    elif output.is_terminal():
        output.say(counts)
    else:
        say_more(counts)


@click.command("show")
@task_argument
@click.option("--full", is_flag=True, help="Show the full text of a compacted task.")
@with_memory
def show(memory: Memory, task_id: str, full: bool) -> Reply:
    """Show one task with its dependencies and messages."""
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
@limit_option(50)
@with_memory
def history(memory: Memory, task_id: str, limit: int) -> Reply:
    """List the changes of a task, newest first."""
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
    output.table(
        ("time", "event", "who", "change"),
        [
            (
                output.moment(event.at),
                event.kind + (" (undone)" if event.is_undone else ""),
                f"{event.actor} ({event.session_id})" if event.session_id else event.actor,
                event_text(event),
            )
            for event in events
        ],
        folding=("who", "change"),
    )


def event_text(event: TaskEvent) -> str:
    """Return a change in words: what was before and what came after."""
    before, after = event.before, event.after
    sign, one = ("+", after) if after else ("−", before)
    if "depends_on" in one:
        return f"{sign} {_edge(one)}"
    if "message_id" in one:
        return f"{sign} message {one.get('message_id')} ({one.get('relation')})"
    changes = []
    # The status tells the most, so it comes first.
    for name in sorted({*before, *after} - _UNTOLD, key=lambda name: (name != "status", name)):
        was, now = before.get(name), after.get(name)
        title = name.replace("_id", "").replace("_", " ")
        if name == "dependencies":
            changes.append(", ".join(f"+ {_edge(each)}" for each in now or ()))
        elif was != now and not (was in _NOTHING and now in _NOTHING):
            old = "" if was in _NOTHING else f"{_short(was)} → "
            changes.append(f"{title} {old}{_short(now)}")
    return "; ".join(filter(None, changes))


_UNTOLD = {"updated_at", "claimed_at", "closed_at", "compacted_at", "original_content", "metadata"}
"""Fields that repeat the time of the event, or are too long to show."""


def _edge(dependency: Mapping[str, Any]) -> str:
    return f"{', '.join(dependency.get('types', ()))} {dependency.get('short_id')}"


_NOTHING: tuple[Any, ...] = (None, "", [])


def _short(value: Any) -> str:
    if value in _NOTHING:
        return "none"
    return one_line(", ".join(map(str, value)) if isinstance(value, list) else str(value), 60)


@click.command("search")
@click.argument("query")
@limit_option(10, 1000)
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
        messages = [hit_json(hit, names) for hit in answer.messages or ()]
    results, nearest = (
        [
            {
                "rank": hit.rank,
                "score": round(hit.score, 4),
                "why": list(hit.why),
                "snippet": hit.snippet,
                "task": task_json(hit.task),
            }
            for hit in hits
        ]
        for hits in (answer.hits, answer.nearest)
    )
    yield {
        "results": results,
        "totalHits": answer.total_hits,
        **({"nearest": nearest} if nearest else {}),
        **({} if answer.messages is None else {"messages": messages}),
    }
    if not answer and not answer.messages:
        click.echo(output.NOTHING_FOUND, err=True)
    output.print_nearest(f"{hit.task.short_id}: {hit.task.title}" for hit in answer.nearest)
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
        print_tasks([hit.task], blocked)
        snippet = hit.snippet.removeprefix(hit.task.title).strip()  # the line above has the title
        if snippet:
            output.say(output.paragraph(snippet, "    ", "    "), dim=True)
    if answer.messages:
        output.say("", "Messages", bold=True)
    for message in answer.messages or ():
        output.say(f"  {output.message_head(message)}")
        output.say(output.paragraph(message.snippet, "    ", "    "), dim=True)


@click.command("tree")
@click.argument("task_id", metavar="[TASK]", required=False, shell_complete=complete_task)
@click.option(
    "--all",
    "with_closed",
    is_flag=True,
    help="Show closed branches, too; for one task they always are.",
)
@click.option(
    "--critical", is_flag=True, help="Show the longest chain of tasks that block each other."
)
@with_memory
def tree(memory: Memory, task_id: str | None, with_closed: bool, critical: bool) -> Reply:
    """Show tasks as a tree, with their children and what they need."""
    path = memory.tasks.critical_path(task_id) if critical else []
    blocked = memory.tasks.blocked(path)
    nodes = [] if critical else memory.tasks.tree(task_id)
    if critical:
        yield {"criticalPath": [mention_json(task) for task in path]}
        print_tasks(path, blocked, is_numbered=True)
        if output.is_terminal():
            count = output.count(len(path), "task")
            order = f"\n{count} in order, each blocking the next."
            output.say(order if path else "No task blocks another.", dim=bool(path))
        return
    if task_id is None and not with_closed:
        nodes = list(_unfinished(nodes))
    yield {"nodes": [_node_json(node) for node in nodes]}
    if not output.is_terminal():
        columns = (
            "depth", "relation", "task", "status", "blocked", "priority", "type", "progress",
            "title",
        )  # fmt: skip
        output.table(columns, list(_rows(nodes)))
    elif nodes:
        for node in nodes:
            print_branch(node)
        output.say()
        click.echo(legend(STATES))
    else:
        output.say("Nothing left to do. --all shows closed tasks.")


def _node_json(node: TreeNode) -> dict[str, Any]:
    return {
        **mention_json(node.task),
        "relation": node.relation,
        "isBlocked": node.is_blocked,
        "progress": progress_json(node.progress),
        "isRepeated": node.is_repeated,
        "nodes": [_node_json(each) for each in node.nodes],
    }


def _unfinished(nodes: Iterable[TreeNode]) -> Iterator[TreeNode]:
    for node in nodes:
        below = tuple(_unfinished(node.nodes))
        if below or node.task.status != "closed":
            yield replace(node, nodes=below)


def _rows(nodes: Iterable[TreeNode], depth: int = 0) -> Iterator[tuple[object, ...]]:
    for node in nodes:
        task, progress = node.task, node.progress
        yield (
            depth,
            node.relation,
            task.short_id,
            task.status,
            "yes" if node.is_blocked else "",
            task.priority,
            task.type,
            f"{progress.closed}/{progress.total}" if progress else "",
            task.title,
        )
        yield from _rows(node.nodes, depth + 1)
