"""Prompts a person picks in their host: take up the work again, and hand a task over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from smara.core.prompts import load_prompt
from smara.errors import InvalidInputError
from smara.memory import Memory
from smara.surfaces.mcp.resources import message_lines, ready_page, task_page, working_page
from smara.tasks.models import TaskEvent
from smara.tools import ToolContext
from smara.tools.render import moment, one_line, task_line
from smara.tools.shapes import Names, brief, task_json

_TEXTS = Path(__file__).parent / "prompts"
_MOST_TASKS = 10
_LAST_MESSAGES = 10
_MOST_EVENTS = 20
_MOST_LINKED = 10
_MOST_OF_A_MESSAGE = 600

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
    """What was in progress, what is ready, what is held in mind, and how the last conversation
    ended.
    """
    thread_id = arguments.get("thread") or context.thread_id
    return load_prompt(_TEXTS, "resume-work").render(
        {
            "in_progress": _in_progress(memory),
            "ready": ready_page(memory).replace("# ", "", 1),
            "working": working_page(memory, context),
            "last": _last_messages(memory, thread_id)
            if thread_id
            else "No conversation was named.",
        }
    )


def hand_over(memory: Memory, arguments: Mapping[str, str], context: ToolContext) -> str:
    """A task, its history and what was said about it, for whoever takes it over."""
    task_id = arguments.get("task", "").strip()
    if not task_id:
        raise InvalidInputError(
            "The prompt hand-over needs the argument task: the id of the task to hand over."
        )
    task = memory.tasks.get(task_id)
    history = [
        _event_line(event) for event in reversed(memory.tasks.history(task_id, limit=_MOST_EVENTS))
    ]
    linked = memory.links.messages(task_id, limit=1_000)[-_MOST_LINKED:]
    said = [line for each in linked for line in message_lines(each.message, _MOST_OF_A_MESSAGE)]
    return load_prompt(_TEXTS, "hand-over").render(
        {
            "id": task.short_id,
            "task": task_page(memory, task.id),
            "history": "\n".join(history) or "Nothing has happened to it yet.",
            "messages": "\n".join(said).strip() or "No messages are linked to it.",
        }
    )


def _in_progress(memory: Memory) -> str:
    found = memory.tasks.list(status="in_progress", limit=_MOST_TASKS)
    names = Names(memory.tasks.find, found)
    lines = [f"- {task_line(task_json(task, names))}" for task in found]
    return "\n".join(lines) or "Nothing is in progress."


def _last_messages(memory: Memory, thread_id: str) -> str:
    messages = memory.messages.list(thread_id=thread_id, limit=_LAST_MESSAGES)
    lines = [line for message in messages for line in message_lines(message, _MOST_OF_A_MESSAGE)]
    return "\n".join(lines).strip() or f"The conversation {one_line(thread_id)} has no messages."


def _event_line(event: TaskEvent) -> str:
    told = {name: value for name, value in event.after.items() if not name.endswith("_no")}
    changed = ", ".join(
        f"{name}: {brief(one_line(str(value)), 80)}" for name, value in told.items()
    )
    who = f"{event.actor} (session {event.session_id})" if event.session_id else event.actor
    undone = ", later undone" if event.is_undone else ""
    return (
        f"- {moment(event.at)} {event.kind} by "
        f"{one_line(who)}{undone}{': ' if changed else ''}{changed}"
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
            "Write down a task's state for whoever continues it",
            arguments={"task": "id of the task, such as t-k3f9"},
            required=("task",),
            build=hand_over,
        ),
    )
}
