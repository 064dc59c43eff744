"""Render a tool's JSON result as compact text for a model.

The text is made from the JSON, so that both always agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from smara.core.extract import one_line
from smara.tools.models import Json

_INDENT = "  "
_AROUND = {
    "blockingTasks": "blocked by", "children": "parts", "parents": "part of",
    "dependents": "waiting for it",
    "related": "related",
}  # fmt: skip


def render(answer: Json) -> str:
    """The text of an answer."""
    if not answer["success"]:
        return _refusal(answer)
    if "workingMemory" in answer:
        return _working(answer["workingMemory"])
    if "mayRecord" in answer:
        return _session(answer)
    if "memory" in answer:
        return _recorded(answer)
    if "results" in answer:
        return _hits(answer)
    if "message" in answer:
        return _message(answer)
    if "record" in answer:
        return _record(answer)
    if "lines" in answer:
        return _code(answer)
    if "tasks" in answer:
        return _tasks(answer)
    return _card(answer)


def _code(answer: Json) -> str:
    head = answer.get("summary") or answer.get("target") or answer.get("shown", "")
    note = [f"Note: {answer['note']}."] if "note" in answer else []
    return "\n".join([head, *note, *answer["lines"]])


def _refusal(answer: Json) -> str:
    parts = [answer["error"].rstrip(), answer.get("hint", "")]
    again = " The same call may succeed later." if answer.get("retryable") else ""
    return "\n".join(part for part in parts if part) + again


def _tasks(answer: Json) -> str:
    tasks = answer["tasks"]
    shown = [each for task in tasks for each in _task_lines(task)]
    said = ["", "Messages:", *_hit_lines(answer["messages"])] if answer.get("messages") else []
    return "\n".join([_heading(answer), *shown, *said, *answer.get("warnings", ()), *_more(answer)])


def _heading(answer: Json) -> str:
    shown = len(answer["tasks"])
    if "readyCount" in answer:
        head = f"{answer['readyCount']} ready, {answer['blockedCount']} blocked."
        return head if shown == answer["readyCount"] else f"{head} Shown: {shown}."
    if "totalHits" in answer:
        return (
            f"Found: {answer['totalHits']}. Shown: {shown}."
            if shown
            else "No task found. Try other words."
        )
    return f"Tasks: {answer['total']}. Shown: {shown}." if "total" in answer else f"Shown: {shown}."


def _task_lines(task: Json) -> Iterable[str]:
    yield task_line(task)
    for name in ("snippet", "summary", "description"):
        if task.get(name):
            yield f"{_INDENT}{one_line(task[name])}"
            return


def task_line(task: Json) -> str:
    """Render a task in one line.

    Such as ``t-k3f9 P1 bug open Fix login redirect (blocked by t-a1b2)``.
    """
    notes = []
    if task.get("blockedBy"):
        notes.append(f"blocked by {', '.join(task['blockedBy'])}")
    if task["status"] == "in_progress" and (task.get("sessionId") or task.get("assignee")):
        notes.append(f"held by {task.get('sessionId') or task['assignee']}")
    if task.get("closeReason"):
        notes.append(task["closeReason"])
    labels = "".join(f" #{one_line(label)}" for label in task.get("labels", ()))
    note = f"  ({'; '.join(map(one_line, notes))})" if notes else ""
    return (
        f"{task['id']} P{task['priority']} {task['type']} {task['status']}  "
        f"{one_line(task['title'])}{labels}{note}"
    )


def _card(answer: Json) -> str:
    """One task; with what stands around it when that was asked for."""
    task = answer["task"]
    if "isBlocked" not in answer:
        return "\n".join([task_line(task), *_changed(answer)])
    lines = [
        task_line(task),
        f"created {moment(task['createdAt'])}, changed {moment(task['updatedAt'])}",
    ]
    if "progress" in answer:
        lines.append(
            f"{answer['progress']['closed']} of {answer['progress']['total']} parts closed"
        )
    for name, told in _AROUND.items():
        if answer.get(name):
            count = (
                f" ({answer[f'{name}Count']}, the first of them)"
                if f"{name}Count" in answer
                else ""
            )
            lines += [f"{told}{count}:", *(_INDENT + task_line(each) for each in answer[name])]
    if task.get("linkedMessageIds"):
        count = task.get("linkedMessageCount", len(task["linkedMessageIds"]))
        lines.append(f"{count} linked messages, newest last: {', '.join(task['linkedMessageIds'])}")
    lines += _paragraph("summary", task.get("summary")) + _paragraph(
        "description", task.get("description")
    )
    return "\n".join([*lines, *_cut(task.get("descriptionRange")), *_more(answer)])


def _changed(answer: Json) -> Iterable[str]:
    """Return what a change may have been about."""
    needs = answer["task"].get("dependencies", ())
    if needs:
        yield "depends on " + ", ".join(f"{each['dependsOnId']} ({each['type']})" for each in needs)
    if "link" in answer:
        yield f"linked message {answer['link']['messageId']} as {answer['link']['relation']}"
    if answer["task"].get("summary"):
        yield f"summary: {one_line(answer['task']['summary'])}"


def _hits(answer: Json) -> str:
    results = answer["results"]
    if not results:
        head = "Nothing found. Try one rarer word: a name, a path, a part of an error text."
        return "\n".join([head, *answer.get("warnings", ())])
    total = answer["totalHits"]
    head = f"{total} {'thing matches' if total == 1 else 'things match'}, {len(results)} shown."
    return "\n".join([head, *_hit_lines(results), *answer.get("warnings", ()), *_more(answer)])


def _hit_lines(hits: Iterable[Json]) -> Iterable[str]:
    for hit in hits:
        task = f" · task {hit['taskId']}" if "taskId" in hit else ""
        yield from (
            "",
            f"[{hit['rank']}] {_what(hit)} · {moment(hit['createdAt'])}{_where(hit)}{task}"
            f" · {hit['source']} · id {hit['id']}",
            f"why: {'; '.join(hit.get('why', ()))}",
            *([f"but: {one_line(hit['hedge'])}"] if "hedge" in hit else ()),
            hit.get("content", ""),
            *_cut(hit.get("contentRange"), "; memory-search read with its id shows all of it"),
        )


def _what(hit: Json) -> str:
    """Who said it, or what it is."""
    what = hit.get("role") or hit.get("type") or hit["source"]
    return f"{what} (unconfirmed)" if hit.get("isConfirmed") is False else str(what)


def _where(hit: Json) -> str:
    return f" · thread {one_line(hit['threadId'])}" if "threadId" in hit else ""


def _message(answer: Json) -> str:
    message = answer["message"]
    task = f" · task {message['taskId']}" if "taskId" in message else ""
    head = (
        f"{message['role']} · {moment(message['createdAt'])} · thread "
        f"{one_line(message['threadId'])}:{message['seq']}"
        f"{task} · id {message['id']}"
    )
    return "\n".join([head, message["content"], *_cut(message.get("contentRange")), *_more(answer)])


def _record(answer: Json) -> str:
    record = answer["record"]
    facts = [
        record["source"],
        *(str(record[name]) for name in ("type", "category", "status", "trust") if name in record),
    ]
    at = record.get("saidAt", record.get("createdAt"))
    when = [moment(at)] if at is not None else []
    head = " · ".join([*facts, *when, f"id {record['id']}"])
    behind = (
        [f"from messages {', '.join(record['messageIds'])}"] if record.get("messageIds") else []
    )
    return "\n".join(
        [head, record["content"], *_cut(record.get("contentRange")), *behind, *_more(answer)]
    )


def _working(page: Json) -> str:
    whose = page.get("threadId") if page["scope"] == "thread" else page.get("resourceId")
    head = f"Working memory of {page['scope']} {one_line(whose or '')}, version {page['version']}:"
    return f"{head}\n{page['content']}"


def _recorded(answer: Json) -> str:
    told = {
        "added": "Recorded",
        "duplicate": "Known already",
        "helped": "Noted: it helped",
        "wrong": "Noted: it is wrong",
    }
    lines = [f"{told[answer['outcome']]}: {memory_line(answer['memory'])}"]
    if answer.get("supersedes"):
        lines.append(f"It takes the place of {', '.join(answer['supersedes'])}.")
    if answer.get("contradicts"):
        lines.append(
            f"It contradicts {', '.join(answer['contradicts'])}, which is more trusted; a person "
            "decides."
        )
    return "\n".join(lines)


def _session(answer: Json) -> str:
    tasks = (
        ["Working on:", *(_INDENT + task_line(each) for each in answer["tasks"])]
        if answer["tasks"]
        else []
    )
    memories = [_INDENT + memory_line(each) for each in answer["memories"]]
    head = (
        f"Session {one_line(answer['sessionId'])}: {len(memories)} recorded, "
        f"{answer['mayRecord']} more possible."
    )
    return "\n".join([head, *tasks, *(["Recorded:", *memories] if memories else [])])


def memory_line(memory: Json) -> str:
    """Render a memory in one line.

    Such as ``m-k3f9 gotcha (unconfirmed) Redis must run first``.
    """
    notes = [memory["trust"], *(["needs review"] if memory.get("needsReview") else ())]
    notes += [memory["deprecatedBecause"]] if "deprecatedBecause" in memory else []
    return f"{memory['id']} {memory['type']} ({', '.join(notes)})  {one_line(memory['content'])}"


def _paragraph(name: str, text: str | None) -> list[str]:
    return [f"{name}:", text] if text else []


def _cut(place: Any, then: str = "") -> list[str]:
    if not place:
        return []
    start, end, total = place
    return [f"(characters {start:,} to {end:,} of {total:,}{then})"]


def _more(answer: Json) -> list[str]:
    return [f"More: the same call with page {answer['nextPage']}."] if "nextPage" in answer else []


def moment(milliseconds: int) -> str:
    """A time as a model reads it, in UTC.

    >>> moment(1_760_000_000_000)
    '2025-10-09 08:53Z'
    """
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%MZ")
    except (OverflowError, OSError, ValueError):
        return str(milliseconds)
