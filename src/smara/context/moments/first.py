"""A session's first message: how far the work stands that it is about, when it says so.

A message is about a task whose id or name it gives, and about unfinished work that it shares a
name, or most words of its title with. A few common words are no evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from smara.behavior.methodology.registry import tell_work_state
from smara.context.moments.drafts import Said, said_memory, with_line
from smara.context.moments.known import Known
from smara.context.moments.models import Item
from smara.context.moments.wording import day, one_line, quoted
from smara.knowledge.models import MemoryType
from smara.knowledge.statements import read
from smara.knowledge.trust import Tellable
from smara.tasks.models import Task
from smara.tasks.tasks import Tasks

UNFINISHED: tuple[MemoryType, ...] = ("work_state", "workflow_recipe")
_LONGEST_MESSAGE = 8_000
_LEAST_SHARE = 0.6
LEAST_WORDS = 3
_LOOKED_AT = 60
_MOST = 2
_PARTICULAR = re.compile(r"\w[-_/.]\w|\d")
"""A branch that is called main is named by many a message."""
_NAME = re.compile(r"[\w./-]*(?:[_/.]|[a-z][A-Z]|\w-\d)[\w./-]*\w")


class Subject(NamedTuple):
    """Something a message may be about: the names that decide at once, and the words that do
    together.
    """

    names: frozenset[str]
    words: frozenset[str]
    said: Said


def subjects(known: Known, tasks: Tasks) -> list[Subject]:
    """What a first message may be about."""
    found = []
    totals = tasks.totals()
    if totals.open + totals.in_progress:
        page = tasks.list(limit=_LOOKED_AT)
        blocked = tasks.blocked(page)
        found += [_of_task(task, task.id in blocked) for task in page if task.status != "closed"]
    root = known.root()
    return found + [_of_memory(told, root) for told in known.of_types(UNFINISHED, _LOOKED_AT)]


def matching(subjects: Iterable[Subject], message: str) -> list[Said]:
    """What is said to a message, the surest first."""
    text = message[:_LONGEST_MESSAGE]
    statement = read(text)
    names = {name.casefold() for name in _NAME.findall(text)} | {
        word.text.casefold() for word in statement.words
    }
    scored = []
    for number, each in enumerate(subjects):
        share = len(each.words & statement.content_set) / len(each.words) if each.words else 0.0
        is_told = len(each.words) >= LEAST_WORDS and share >= _LEAST_SHARE
        if each.names & names or is_told:
            scored.append((bool(each.names & names), share, -number, each.said))
    return [each[3] for each in sorted(scored, key=lambda each: each[:3], reverse=True)[:_MOST]]


def _of_task(task: Task, is_blocked: bool) -> Subject:
    state = "blocked" if is_blocked else task.status.replace("_", " ")
    held = f", held by {one_line(task.holder, 40)}" if task.holder else ""
    about = f": {quoted(task.description, 300)}" if task.description.strip() else "."
    line = (
        f"- Task {task.short_id} ({state}{held}, since {day(task.created_at)}) "
        f"{quoted(task.title, 120)}{about}"
    )
    key = f"task:{task.id}:{task.updated_at}"
    item = Item(
        "task",
        task.id,
        "the message is about this task",
        text=one_line(task.title, 60),
        key=key,
        signs=(f"id:{task.short_id}",),
    )
    return Subject(frozenset({task.short_id.casefold()}), _words(task.title), with_line(item, line))


def _of_memory(told: Tellable, root: str | None) -> Subject:
    memory = told.memory
    why = "the message is about this unfinished work"
    if memory.type == "workflow_recipe":
        why = "it tells how such a task is done here"
        return Subject(
            frozenset(),
            _words(str(memory.data.get("task_pattern") or memory.content)),
            said_memory(told, why, root),
        )
    state = tell_work_state(memory.methodology, memory.data).replace("\n", "; ")
    told_of = (
        one_line(state, 300) if memory.tier == "confirmed" or not state else quoted(state, 300)
    )
    said = said_memory(told, why, root)
    if told_of and said.item is not None:
        said = with_line(said.item, f"{said.line} {told_of}")
    named: Sequence[str] = [
        str(memory.data.get("branch") or ""),
        *map(str, memory.data.get("open_files", ())),
    ]
    names = {name.casefold() for name in named if _PARTICULAR.search(name)}
    return Subject(frozenset(names), _words(memory.content), said)


def _words(text: str) -> frozenset[str]:
    return read(text[:1_000]).content_set
