"""Track the step list that an agent maintains with any tool."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from smara.actions.tool_calls import PLAN_CHANGES, PLAN_MAKES
from smara.behavior.scratchpad import Pad, quote
from smara.core.events import HostEvent

DONE, BEGUN, OPEN = "done", "begun", "open"
_STATUS = {
    "completed": DONE,
    "done": DONE,
    "complete": DONE,
    "in_progress": BEGUN,
    "inProgress": BEGUN,
}
_GONE = frozenset({"deleted", "cancelled", "canceled"})
_NUMBER = re.compile(r"#(\d{1,6})\b")
_MOST_ITEMS, _MOST_PLANS, _ITEM = 80, 40, 160


def planned(pad: Pad, event: HostEvent) -> None:
    """A plan was written, or an item of one made or changed."""
    facts = pad.facts
    if not facts.todos:
        facts.plan_task = facts.asked
    facts.todos_at = facts.prompts
    if event.tool == PLAN_MAKES:
        _made(pad, event)
    elif event.tool == PLAN_CHANGES:
        _changed(pad, event)
    else:
        _listed(pad, event)


def added(pad: Pad, text: str) -> None:
    """A host says that there is another task."""
    _grow(pad, [mark_of(text)])


def _listed(pad: Pad, event: HostEvent) -> None:
    given = (
        event.tool_input.get("todos")
        or event.tool_input.get("plan")
        or event.tool_input.get("items")
        or []
    )
    items = (
        [(text, _status(each)) for each in given if (text := _text(each))]
        if isinstance(given, list)
        else []
    )
    keys = [mark_of(text) for text, _ in items]
    facts = pad.facts
    if keys and facts.plan and not set(keys) & set(facts.plan):
        _close(
            pad
        )  # nothing of it was on the list: another task has begun, and the last one took what it took  # noqa: E501
    _grow(pad, keys)
    facts.plan_first = facts.plan_first or len(keys)
    shown = items[:_MOST_ITEMS]
    facts.todos = {
        key: [quote(text, _ITEM), state] for key, (text, state) in zip(keys, shown, strict=False)
    }


def _made(pad: Pad, event: HostEvent) -> None:
    text, number = _text(event.tool_input), _NUMBER.search(event.tool_output[:400])
    if not text:
        return
    facts = pad.facts
    todos: dict[str, list[str]] = facts.todos
    if todos and all(state == DONE for _, state in todos.values()):
        _close(pad)
        todos = facts.todos = {}
    key = mark_of(text)
    if key not in facts.plan and all(state == OPEN for _, state in todos.values()):
        facts.plan_first += (
            1  # work on it has not begun: it belongs to the plan as it was first made
        )
    _grow(pad, [key])
    if len(todos) < _MOST_ITEMS:
        todos[number[1] if number else key] = [quote(text, _ITEM), OPEN]


def _changed(pad: Pad, event: HostEvent) -> None:
    item = pad.facts.todos.get(
        str(event.tool_input.get("taskId") or event.tool_input.get("id") or "")
    )
    status = str(event.tool_input.get("status") or "")
    if item is None or not status:
        return
    if status in _GONE:
        pad.facts.todos = {key: each for key, each in pad.facts.todos.items() if each is not item}
    else:
        item[1] = _STATUS.get(status, OPEN)


def _grow(pad: Pad, keys: list[str]) -> None:
    pad.facts.plan = list(dict.fromkeys([*pad.facts.plan, *keys]))[:_MOST_ITEMS]


def _close(pad: Pad) -> None:
    facts = pad.facts
    facts.plans = [*facts.plans, [facts.plan_first, len(facts.plan)]][-_MOST_PLANS:]
    facts.plan, facts.plan_first = [], 0
    facts.plan_task = facts.asked


def _text(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item) if item else ""
    return str(
        item.get("content")
        or item.get("step")
        or item.get("subject")
        or item.get("description")
        or ""
    )


def _status(item: Any) -> str:
    return _STATUS.get(str(item.get("status") or ""), OPEN) if isinstance(item, dict) else OPEN


def mark_of(text: str) -> str:
    """The same for a step however it is spaced and capitalized."""
    folded = " ".join(text[:20_000].lower().split())
    return hashlib.blake2b(folded.encode("utf-8", "replace"), digest_size=8).hexdigest()
