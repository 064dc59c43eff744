"""Serve Markdown pages as MCP resources and prompts.

A resource is a task, thread or message by its URI. A prompt puts such pages together: resume
the work, or hand a task over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

from smara.core.extract import one_line, shorten
from smara.core.prompts import load_prompt
from smara.core.startup.record import dataclass
from smara.errors import InvalidInputError, NotFoundError
from smara.memory import Memory
from smara.messages.models import Message
from smara.shapes import Names, brief_message_json, brief_task_json
from smara.texts import AROUND, moment, task_line, task_times
from smara.tools import ToolContext
from smara.tools.tasks import show

MARKDOWN = "text/markdown"
STANDING: dict[str, tuple[str, str]] = {
    "smara://tasks/ready": ("Ready tasks", "What can be worked on now, most urgent first"),
    "smara://working": ("Working memory", "The page every session is shown"),
}
TEMPLATES: dict[str, tuple[str, str]] = {
    "tasks": ("Task", "One task: its text, what blocks it, its parts and linked messages"),
    "threads": ("Conversation", "The messages of one conversation, oldest first"),
    "messages": ("Message", "One message, word for word"),
}
_MESSAGES_PER_PAGE = 20
_MOST_OF_A_MESSAGE = 1_000
_MOST_READY = 20


def read(memory: Memory, uri: str, context: ToolContext) -> str:
    """The page at an address; ``NotFoundError`` when nothing is there."""
    try:
        parts = urlsplit(uri)
        pages = parse_qs(parts.query).get("page", ["1"])
    except ValueError:
        raise _unknown(uri) from None
    if parts.scheme != "smara":
        raise _unknown(uri)
    if not pages[0].isdecimal() or not 1 <= int(pages[0][:9]) <= 1_000_000:
        raise InvalidInputError(
            f"page must be a number from 1 to 1,000,000; got {pages[0][:20]!r}."
        )
    kind, name, page = parts.netloc, unquote(parts.path.removeprefix("/")), int(pages[0])
    if kind == "working" and not name:
        return working_page(memory, context)
    if (kind, name) == ("tasks", "ready"):
        return ready_page(memory)
    if kind not in _PAGES or not name:
        raise _unknown(uri)
    return _PAGES[kind](memory, name, page)


def address(kind: str, name: str, page: int = 1) -> str:
    """The address of a task, thread or message."""
    return f"smara://{kind}/{quote(name, safe='')}" + (f"?page={page}" if page > 1 else "")


def task_page(memory: Memory, name: str, page: int = 1) -> str:
    """Render one task."""
    answer = show(memory, {"id": name, "page": page}, ToolContext())
    task = answer["task"]
    holder = one_line(task.get("sessionId") or task.get("assignee", ""))
    labels, progress = map(one_line, task.get("labels", ())), answer.get("progress")
    facts = [
        f"{task['status']}, priority {task['priority']}, {task['type']}",
        f"held by {holder}" if task["status"] == "in_progress" else "",
        f"labels: {', '.join(labels)}" if task.get("labels") else "",
        "{closed} of {total} children closed".format(**progress) if progress else "",
        ", ".join(task_times(task)),
    ]
    sections = {
        **{
            title: [f"- {task_line(each)}" for each in answer.get(key, ())]
            for key, title in AROUND.items()
        },
        **{key.capitalize(): task.get(key) and [task[key]] for key in ("summary", "description")},
        "Linked messages": [
            f"- {address('messages', each)}" for each in task.get("linkedMessageIds", ())
        ],
    }
    lines = [
        f"# {task['id']} {one_line(task['title'])}",
        "",
        *(f"- {fact}" for fact in facts if fact),
        *(
            line
            for title, body in sections.items()
            if body
            for line in ("", f"## {title}", "", *body)
        ),
    ]
    return _page(lines, "tasks", task["id"], following=answer.get("nextPage"))


def thread_page(memory: Memory, name: str, page: int = 1) -> str:
    """Some messages of a thread, oldest first."""
    thread = memory.threads.get(name)
    first = (page - 1) * _MESSAGES_PER_PAGE
    messages = memory.messages.list(thread_id=name, after=first, limit=_MESSAGES_PER_PAGE)
    last = first + len(messages)
    lines = [
        f"# {one_line(thread.title or thread.id)}",
        "",
        f"- thread {one_line(thread.id)}, {thread.message_count:,} messages, last used "
        f"{moment(thread.updated_at)}",
        f"- messages {first + 1:,} to {last:,}" if messages else "- no messages on this page",
        *(line for message in messages for line in message_lines(message)),
    ]
    return _page(
        lines, "threads", thread.id, following=page + 1 if last < thread.message_count else None
    )


def message_lines(message: Message, at_most: int = _MOST_OF_A_MESSAGE) -> list[str]:
    """Render a message among others: who, when, and its beginning."""
    text = message.raw_content
    rest = [f"({len(text):,} characters: {address('messages', message.id)})"]
    return [
        "",
        f"## {message.seq}. {message.role}, {moment(message.created_at)}",
        "",
        shorten(text, at_most),
        *(rest if len(text) > at_most else []),
    ]


def message_page(memory: Memory, name: str, page: int = 1) -> str:
    """One message, page by page."""
    answer = brief_message_json(memory.messages.get(name), Names(memory.tasks.find), page)
    message = answer["message"]
    task = f", task {address('tasks', message['taskId'])}" if "taskId" in message else ""
    head = (
        f"- {message['role']}, {moment(message['createdAt'])}, number {message['seq']} of "
        f"{address('threads', message['threadId'])}{task}"
    )
    return _page([head, "", message["content"]], "messages", name, following=answer.get("nextPage"))


def ready_page(memory: Memory) -> str:
    """Render what can be worked on now."""
    found = memory.tasks.ready(limit=_MOST_READY)
    lines = [f"# {found.ready_count} ready, {found.blocked_count} blocked", ""]
    lines += [f"- {task_line(brief_task_json(task))}" for task in found] or ["Nothing is ready."]
    return "\n".join(lines)


def working_page(memory: Memory, context: ToolContext) -> str:
    """Render working memory: the shared page and the thread's."""
    pages = [memory.working.find("resource", context.resource_id)]
    if context.thread_id is not None:
        pages.append(memory.working.find("thread", thread_id=context.thread_id))
    return (
        "\n\n".join(page.content for page in pages if page is not None)
        or "Nothing is held in mind yet."
    )


def _page(lines: Iterable[str], kind: str, name: str, following: int | None) -> str:
    more = ["", f"More: {address(kind, name, following)}"] if following else []
    return "\n".join([*lines, *more])


def _unknown(uri: str) -> NotFoundError:
    names = ", ".join([*STANDING, *(f"smara://{kind}/ID" for kind in TEMPLATES)])
    return NotFoundError(f"There is no resource {uri[:200]!r}. The resources are {names}.")


_PAGES: dict[str, Callable[[Memory, str, int], str]] = {
    "tasks": task_page, "threads": thread_page, "messages": message_page,
}  # fmt: skip


_TEXTS = Path(__file__).parent / "prompts"
_MOST_TASKS = 10
_LAST_MESSAGES = 10
_MOST_EVENTS = 20
_MOST_LINKED = 10
_MOST_OF_A_PROMPT_MESSAGE = 600

Build = Callable[[Memory, Mapping[str, str], ToolContext], str]


@dataclass(frozen=True, slots=True)
class OfferedPrompt:
    """A prompt as a host lists it, and what makes its text."""

    name: str
    title: str
    says: str
    arguments: Mapping[str, str]
    required: tuple[str, ...]
    build: Build


def resume_work(memory: Memory, arguments: Mapping[str, str], context: ToolContext) -> str:
    """Render work in progress, ready tasks, working memory, last conversation."""
    thread_id = arguments.get("thread") or context.thread_id
    busy = [
        f"- {task_line(brief_task_json(task))}"
        for task in memory.tasks.list(status="in_progress", limit=_MOST_TASKS)
    ]
    last = "No conversation was named."
    if thread_id:
        lines = [
            line
            for each in memory.messages.list(thread_id=thread_id, limit=_LAST_MESSAGES)
            for line in message_lines(each, _MOST_OF_A_PROMPT_MESSAGE)
        ]
        last = (
            "\n".join(lines).strip() or f"The conversation {one_line(thread_id)} has no messages."
        )
    return load_prompt(_TEXTS, "resume-work").render(
        {
            "in_progress": "\n".join(busy) or "Nothing is in progress.",
            "ready": ready_page(memory).replace("# ", "", 1),
            "working": working_page(memory, context),
            "last": last,
        }
    )


def hand_over(memory: Memory, arguments: Mapping[str, str], context: ToolContext) -> str:
    """Render a task with history and messages for a hand-over."""
    task_id = arguments.get("task", "").strip()
    if not task_id:
        raise InvalidInputError(
            "The prompt hand-over needs the argument task: the id of the task to hand over."
        )
    task = memory.tasks.get(task_id)
    history = []
    for event in reversed(memory.tasks.history(task_id, limit=_MOST_EVENTS)):
        changes = ", ".join(
            f"{name}: {shorten(one_line(str(value)), 80)}"
            for name, value in event.after.items()
            if not name.endswith("_no")
        )
        who = f"{event.actor} (session {event.session_id})" if event.session_id else event.actor
        undone = ", later undone" if event.is_undone else ""
        about = f": {changes}" if changes else ""
        history.append(f"- {moment(event.at)} {event.kind} by {one_line(who)}{undone}{about}")
    lines = [
        line
        for each in memory.links.messages(task_id, limit=1_000)[-_MOST_LINKED:]
        for line in message_lines(each.message, _MOST_OF_A_PROMPT_MESSAGE)
    ]
    return load_prompt(_TEXTS, "hand-over").render(
        {
            "id": task.short_id,
            "task": task_page(memory, task.id),
            "history": "\n".join(history) or "Nothing has happened to it yet.",
            "messages": "\n".join(lines).strip() or "No messages are linked to it.",
        }
    )


PROMPTS: dict[str, OfferedPrompt] = {
    each.name: each
    for each in (
        OfferedPrompt(
            "resume-work",
            "Resume work",
            "Take up this project's work where it was left",
            arguments={"thread": "id of the conversation to go on with"},
            required=(),
            build=resume_work,
        ),
        OfferedPrompt(
            "hand-over",
            "Hand a task over",
            "Write down a task's state for the agent that continues it",
            arguments={"task": "id of the task, such as t-k3f9"},
            required=("task",),
            build=hand_over,
        ),
    )
}
