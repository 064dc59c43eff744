"""Render records as text, once for every door.

A text is made from the JSON shape of ``smara.shapes``, so that both always agree. The command
line adds marks and colors and fits the terminal; times are UTC for models and local for people.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from smara.core.extract import one_line

if TYPE_CHECKING:
    from smara.codegraph.models import CoChange, ImpactWalk, Node, Reached, SymbolCard

Json = dict[str, Any]
AROUND = {
    "blockingTasks": "Blocked by", "children": "Children", "dependents": "Blocks",
    "parents": "Part of", "related": "Related",
}  # fmt: skip
"""The titles of the tasks that are shown with another, by the field of its shape."""
_VERDICTS = {
    "fresh": "", "drifted": "code drifted", "moved": "code moved", "orphaned": "code gone",
    "unknown": "code being indexed",
}  # fmt: skip
_FEW = 4


def dotted(*parts: str | None) -> str:
    """Join the parts that are not empty: ``user · login:3``."""
    return " · ".join(part for part in parts if part)


def moment(milliseconds: int, is_local: bool = False) -> str:
    """Return a time as text: UTC for models, local for people.

    >>> moment(1_760_000_000_000)
    '2025-10-09 08:53Z'
    """
    try:
        at = datetime.fromtimestamp(milliseconds / 1000, UTC)
        return f"{at.astimezone():%Y-%m-%d %H:%M}" if is_local else f"{at:%Y-%m-%d %H:%MZ}"
    except (OverflowError, OSError, ValueError):
        return str(milliseconds)


def age(seconds: float) -> str:
    """Return a time span in its largest unit; empty below a minute.

    >>> age(3_600), age(2 * 86_400), age(5)
    ('1 hour', '2 days', '')
    """
    units = ((86_400, "day"), (3_600, "hour"), (60, "minute"))
    size, unit = next((each for each in units if seconds >= each[0]), (1, ""))
    return unit and f"{int(seconds // size)} {unit}{'s' if seconds >= 2 * size else ''}"


def task_line(task: Json) -> str:
    """Render a task in one line.

    Such as ``t-k3f9 P1 bug open Fix login redirect (blocked by t-a1b2)``.
    """
    holder = task.get("sessionId") or task.get("assignee")
    notes = (
        f"blocked by {', '.join(task['blockedBy'])}" if task.get("blockedBy") else "",
        f"held by {holder}" if holder and task["status"] == "in_progress" else "",
        task.get("closeReason") or "",
    )
    note = "; ".join(map(one_line, filter(None, notes)))
    labels = "".join(f" #{one_line(label)}" for label in task.get("labels", ()))
    return (
        f"{task['id']} P{task['priority']} {task['type']} {task['status']}  "
        f"{one_line(task['title'])}{labels}" + (f"  ({note})" if note else "")
    )


def task_times(task: Json, is_local: bool = False) -> list[str]:
    """Return when a task was created, changed and closed, and by whom."""
    by = f" by {task['createdBy']}" if task.get("createdBy") else ""
    return [
        f"{what} {moment(task[name], is_local)}{more}"
        for what, name, more in (
            ("created", "createdAt", by),
            ("changed", "updatedAt", ""),
            ("closed", "closedAt", f" ({task.get('closeReason')})"),
        )
        if task.get(name) is not None
    ]


def memory_line(memory: Json) -> str:
    """Render a memory in one line.

    Such as ``m-k3f9 Redis must run first (gotcha · 90% sure · unconfirmed)``.
    """
    return f"{memory['id']} {one_line(memory['content'])}  ({memory_facts(memory)})"


def memory_facts(memory: Json, is_in_review: bool = False, is_local: bool = False) -> str:
    """Return type, confidence, trust, state and evidence of a memory.

    ``is_local`` is for people, who have no use for the id of a message.
    """
    confidence, state = memory.get("confidenceNow"), memory_state(memory)
    confidence = memory["confidence"] if confidence is None else confidence
    taint = memory.get("taint") if memory.get("isTainted", True) else ()
    origin, evidence = "", memory.get("evidence", ())
    if taint:
        from smara.knowledge.models import origins

        origin = f" in {origins(taint)}"
    place = ", ".join(memory.get("files", ())[:2])
    if evidence:
        place = evidence_place(evidence[0])
        is_named = not is_local or "path" in evidence[0]
        place = place if is_named else f"from a {place.partition(':')[0]}"
    more = f" and {len(evidence) - 1} more" if len(evidence) > 1 else ""
    is_due = memory.get("needsReview") and memory.get("isActive", True) and not is_in_review
    return dotted(
        memory["type"],
        f"{confidence:.0%} sure",
        memory["trust"] + origin,
        "" if state == "active" else state,
        "needs review" if is_due else "",
        place + more,
    )


def memory_state(memory: Json) -> str:
    """Return a memory's state: active, pinned, stale, or deprecated why."""
    if memory.get("deprecatedBecause") or not memory.get("isActive", True):
        return memory.get("deprecatedBecause") or "forgotten"
    pinned = "pinned" if memory.get("isPinned") else ""
    stale = "stale" if memory.get("isStale") or memory.get("staleBecause") else ""
    states = " ".join(filter(None, (pinned, stale)))
    return ", ".join(filter(None, (states, code_word(memory.get("code"))))) or "active"


def evidence_place(evidence: Json) -> str:
    """Return where a piece of evidence is: ``src/auth.py:10-20`` or ``message:ID``."""
    if "path" not in evidence:
        for name in ("message", "observation"):
            if f"{name}Id" in evidence:
                return f"{name}:{evidence[f'{name}Id']}"
        return f"commit:{evidence['commit']}" if "commit" in evidence else "quotation"
    lines = [str(evidence[name]) for name in ("firstLine", "lastLine") if name in evidence]
    return ":".join(filter(None, (evidence["path"], "-".join(dict.fromkeys(lines)))))


def code_word(code: Json | None) -> str:
    """Return the verdict on a record's code; nothing if it is fresh.

    >>> code_word({"verdict": "drifted", "changed": 0.4}), code_word({"verdict": "fresh"})
    ('code drifted 40 %', '')
    """
    if code is None:
        return ""
    is_measured = code["verdict"] == "drifted" and code["changed"] is not None
    return _VERDICTS[code["verdict"]] + (f" {code['changed'] * 100:.0f} %" if is_measured else "")


def hit_head(hit: Json, place: str = "", is_local: bool = False) -> str:
    """Return a hit's kind, place and time, and its task.

    Such as ``user · login:3 · 2026-03-01 09:10Z``.
    """
    kind = hit.get("role") or dotted(hit["source"], hit.get("type"))
    is_doubtful = hit.get("isConfirmed") is False and hit["source"] != "code"
    return dotted(
        kind,
        "unconfirmed" if is_doubtful else "",
        place,
        moment(hit["createdAt"], is_local),
        f"task {hit['taskId']}" if hit.get("taskId") else "",
        f"and {hit['copies']} more like it" if hit.get("copies") else "",
    )


def message_head(
    role: str | None, thread_id: str | None, seq: int | None, at: int, is_local: bool = False
) -> str:
    """Return who said a message, where and when."""
    return dotted(role, f"{one_line(thread_id or '')}:{seq}", moment(at, is_local))


def observation_head(observation: Json, is_local: bool = False) -> str:
    """Return an observation's time, priority, category and thread."""
    first, last = observation.get("firstSeq"), observation.get("lastSeq")
    state, thread = observation.get("state", "active"), observation.get("threadId")
    place = f"{one_line(thread)}:{span(first, last)}" if thread and first is not None else ""
    return dotted(
        moment(observation["saidAt"], is_local),
        observation["priority"],
        observation["category"],
        "" if state == "active" else state,
        place or (f"thread {one_line(thread)}" if thread else "several threads"),
    )


def span(first: int | None, last: int | None) -> str:
    """Return the sequence numbers of messages as ``first–last``."""
    return str(first) if first == last else f"{first}–{last}"


def place(node: Node) -> str:
    """Return where code begins: ``src/auth.py:20``, of a file its path."""
    return node.path if node.kind == "file" else f"{node.path}:{node.first_line}"


def call_place(reached: Reached) -> str:
    """Return the line at which code uses what it depends on."""
    return f"{reached.node.path}:{reached.path[0].line}"


def few(names: Sequence[str]) -> str:
    """Return some names in a line, the first four of them."""
    return ", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more" if len(names) > _FEW else "")


def walk_size(walk: ImpactWalk, one: str, many: str) -> str:
    """Return the size of a walk.

    Such as ``3 depend on it, in 2 files``.
    """
    if not walk.total:
        return f"Nothing {one}"
    tests = f", {walk.tests} of them {'a test' if walk.tests == 1 else 'tests'}"
    files = f"{walk.files} {'file' if walk.files == 1 else 'files'}"
    return (
        f"{walk.total} {one if walk.total == 1 else many}, in {files}"
        f"{tests if 0 < walk.tests < walk.total else ''}"
    )


def card_groups(card: SymbolCard) -> list[tuple[str, list[str]]]:
    """Return what is known around a definition: titles with their lines."""
    return [
        ("used by", [f"{call_place(each)} {each.node.qualname}" for each in card.callers]),
        ("tested by", [f"{place(each.node)} {each.node.qualname}" for each in card.tests]),
        ("uses", [f"{place(each.node)} {each.node.qualname}" for each in card.calls]),
        ("contains", [f"{member.first_line} {member.name}" for member in card.members]),
        (
            "changes with",
            [f"{each.path} in {each.confidence:.0%} of its commits" for each in card.changes_with],
        ),
    ]


def node_json(node: Node) -> dict[str, Any]:
    """Return a file or symbol that is mentioned beside another."""
    return {"name": node.label, "kind": node.kind, "path": node.path, "line": node.first_line}


def reached_json(reached: Reached) -> dict[str, Any]:
    """Return a node with the path to the target."""
    return node_json(reached.node) | {
        "depth": reached.depth,
        "weight": reached.weight,
        "isTest": reached.is_test,
        "via": [
            {
                "to": hop.node.label,
                "kind": hop.kind,
                "line": hop.line,
                "confidence": hop.confidence,
                "source": hop.source,
            }
            for hop in reached.path
        ],
    }


def cochange_json(each: CoChange) -> dict[str, Any]:
    """Return a file that changes with another as JSON."""
    return {
        "path": each.path,
        "together": each.together,
        "confidence": each.confidence,
        "lastAt": each.last_at,
    }
