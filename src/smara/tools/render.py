"""Render a tool's JSON result as compact text for a model.

The text is made from the JSON, so that both always agree; the texts of single tasks, memories
and hits are those of ``smara.texts``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from smara.core.extract import one_line
from smara.texts import (
    AROUND,
    dotted,
    hit_head,
    memory_line,
    message_head,
    moment,
    observation_head,
    task_line,
    task_times,
)
from smara.tools.catalogue import Json

_OUTCOMES = {
    "added": "Recorded", "duplicate": "Known already", "helped": "Noted: it helped",
    "wrong": "Noted: it is wrong",
}  # fmt: skip


def render(answer: Json) -> str:
    """Return the text of an answer."""
    if not answer["success"]:
        again = " The same call may succeed later." if answer.get("retryable") else ""
        return "\n".join(filter(None, (answer["error"].rstrip(), answer.get("hint")))) + again
    lines = next(lines for name, lines in _LINES.items() if name in answer)
    more = [f"More: the same call with page {answer['nextPage']}."] if "nextPage" in answer else []
    return "\n".join([*lines(answer), *answer.get("warnings", ()), *more])


def _code(answer: Json) -> Iterable[str]:
    yield answer.get("summary") or answer.get("target") or answer.get("shown", "")
    if "note" in answer:
        yield f"Note: {answer['note']}."
    yield from answer["lines"]


def _tasks(answer: Json) -> Iterable[str]:
    shown = len(answer["tasks"])
    if "readyCount" in answer:
        head = f"{answer['readyCount']} ready, {answer['blockedCount']} blocked."
        yield head if shown == answer["readyCount"] else f"{head} Shown: {shown}."
    elif "totalHits" in answer:
        found = f"Found: {answer['totalHits']}. Shown: {shown}."
        yield found if shown else "No task found. Try other words."
        if answer.get("nearest"):
            yield "Nearest, and probably not what is meant:"
        for task in answer.get("nearest", ()):
            yield f"- {task['id']}  {one_line(task['title'])}"
    else:
        yield (
            f"Tasks: {answer['total']}. Shown: {shown}."
            if "total" in answer
            else (f"Shown: {shown}.")
        )
    for task in answer["tasks"]:
        yield task_line(task)
        about = task.get("snippet") or task.get("summary") or task.get("description")
        if about:
            yield f"  {one_line(about)}"
    if answer.get("messages"):
        yield from ("", "Messages:", *_hit_lines(answer["messages"]))


def _card(answer: Json) -> Iterable[str]:
    """Render one task; with what is around it if that was asked for."""
    task = answer["task"]
    yield task_line(task)
    if "isBlocked" not in answer:
        needs = task.get("dependencies", ())
        if needs:
            pairs = ", ".join(f"{each['dependsOnId']} ({each['type']})" for each in needs)
            yield f"depends on {pairs}"
        if "link" in answer:
            yield f"linked message {answer['link']['messageId']} as {answer['link']['relation']}"
        if task.get("summary"):
            yield f"summary: {one_line(task['summary'])}"
        return
    yield ", ".join(task_times(task))
    if "progress" in answer:
        yield f"{answer['progress']['closed']} of {answer['progress']['total']} children closed"
    for name, title in AROUND.items():
        if answer.get(name):
            count = answer.get(f"{name}Count")
            yield f"{title.lower()}{f' ({count}, the first of them)' if count else ''}:"
            yield from (f"  {task_line(each)}" for each in answer[name])
    if task.get("linkedMessageIds"):
        count = task.get("linkedMessageCount", len(task["linkedMessageIds"]))
        yield f"{count} linked messages, newest last: {', '.join(task['linkedMessageIds'])}"
    for name in ("summary", "description"):
        if task.get(name):
            yield from (f"{name}:", task[name])
    yield from _cut(task.get("descriptionRange"))


def _hits(answer: Json) -> Iterable[str]:
    shown, total = answer["results"], answer["totalHits"]
    if answer.get("reasons"):
        yield from ("What people decided and commits say about it:", *answer["reasons"], "")
    if shown or answer.get("reasons"):
        yield f"{total} {'thing matches' if total == 1 else 'things match'}, {len(shown)} shown."
    else:
        yield "Nothing found. Try one rarer word: a name, a path, a part of an error text."
    yield from _hit_lines(shown)
    if answer.get("nearest"):
        yield "Nearest, and probably not an answer:"
        for hit in answer["nearest"]:
            yield f"- {hit_head(hit, '')} · id {hit['id']}: {one_line(hit['snippet'], 160)}"


def _hit_lines(hits: Iterable[Json]) -> Iterable[str]:
    for hit in hits:
        place = f"thread {one_line(hit['threadId'])}" if "threadId" in hit else ""
        yield from ("", f"[{hit['rank']}] {hit_head(hit, place)} · id {hit['id']}")
        yield f"why: {'; '.join(hit.get('why', ()))}"
        if "hedge" in hit:
            yield f"but: {one_line(hit['hedge'])}"
        yield hit.get("content", "")
        yield from _cut(hit.get("contentRange"), "; memory-search read with its id shows all of it")


def _message(answer: Json) -> Iterable[str]:
    message = answer["message"]
    place = (message["role"], message["threadId"], message["seq"], message["createdAt"])
    task = f"task {message['taskId']}" if "taskId" in message else ""
    yield dotted(message_head(*place), task, f"id {message['id']}")
    yield message["content"]
    yield from _cut(message.get("contentRange"))


def _record(answer: Json) -> Iterable[str]:
    record = answer["record"]
    facts = [str(record[name]) for name in ("type", "status", "trust") if name in record]
    if "saidAt" in record:
        facts.append(observation_head(record))
    elif "createdAt" in record:
        facts.append(moment(record["createdAt"]))
    yield dotted(record["source"], *facts, f"id {record['id']}")
    yield record["content"]
    yield from _cut(record.get("contentRange"))
    if record.get("messageIds"):
        yield f"from messages {', '.join(record['messageIds'])}"


def _working(answer: Json) -> Iterable[str]:
    page = answer["workingMemory"]
    whose = page.get("threadId") if page["scope"] == "thread" else page.get("resourceId")
    yield f"Working memory of {page['scope']} {one_line(whose or '')}, version {page['version']}:"
    yield page["content"]


def _recorded(answer: Json) -> Iterable[str]:
    older, others = (", ".join(answer.get(name, ())) for name in ("supersedes", "contradicts"))
    trusted = "which is more trusted; a person decides"
    return [
        f"{_OUTCOMES[answer['outcome']]}: {memory_line(answer['memory'])}",
        *([f"It takes the place of {older}."] if older else []),
        *([f"It contradicts {others}, {trusted}."] if others else []),
    ]


def _session(answer: Json) -> Iterable[str]:
    memories = answer["memories"]
    yield (
        f"Session {one_line(answer['sessionId'])}: {len(memories)} recorded, "
        f"{answer['mayRecord']} more possible."
    )
    if answer["tasks"]:
        yield from ("Working on:", *(f"  {task_line(each)}" for each in answer["tasks"]))
    if memories:
        yield from ("Recorded:", *(f"  {memory_line(each)}" for each in memories))


def _cut(place: Any, then: str = "") -> list[str]:
    if not place:
        return []
    start, end, total = place
    return [f"(characters {start:,} to {end:,} of {total:,}{then})"]


# The first of these fields that an answer has tells its kind.
_LINES = {
    "workingMemory": _working, "mayRecord": _session, "memory": _recorded, "results": _hits,
    "message": _message, "record": _record, "lines": _code, "tasks": _tasks, "task": _card,
}  # fmt: skip
