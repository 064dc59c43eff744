"""Track an agent's plan; write memories of unfinished work and of results.

The plan is the list of steps that an agent maintains with any tool. The next session
continues from the work state; a result says what a work unit achieved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from smara.actions.paths import modules_of
from smara.actions.tool_calls import PLAN_CHANGES, PLAN_MAKES
from smara.behavior.cues import CUES
from smara.behavior.methodology import Methodology, WorkUnitResult
from smara.behavior.models import non_empty
from smara.behavior.scratchpad import Pad, PlanSize, Todo, quote
from smara.core.events import HostEvent
from smara.core.startup.regex import regex
from smara.knowledge.models import Evidence, NewMemory, TypedMemory, WorkUnit
from smara.secrets import redact

MOST_WORDS = 3_000
"""So much of an agent's last words is kept, if they hold a list with open boxes."""
_BOXES = ("[ ]", "☐", "⬜")
_MOST, _MOST_FILES, _LONGEST, _LEAST_WORDS = 12, 6, 160, 4
_SURE = 0.9
"""It is the agent's own list; within days it is worth less, since the work goes on."""


DONE, BEGUN, OPEN = "done", "begun", "open"
_STATUS = {
    "completed": DONE,
    "done": DONE,
    "complete": DONE,
    "in_progress": BEGUN,
    "inProgress": BEGUN,
}
_GONE = frozenset({"deleted", "cancelled", "canceled"})
_NUMBER = regex(r"#(\d{1,6})\b")
_MOST_ITEMS, _MOST_PLANS = 80, 40


def record_plan(pad: Pad, event: HostEvent) -> None:
    """Record a plan, or the change of one of its items."""
    facts, given = pad.facts, event.tool_input
    if not facts.todos:
        facts.plan_task = facts.request
    facts.todos_at = facts.prompts
    if event.tool == PLAN_MAKES:
        text, number = _text(given), _NUMBER.search(event.tool_output[:400])
        if not text:
            return
        if is_all_done(pad):
            _end_plan(pad)
            facts.todos = {}
        key = mark_of(text)
        if key not in facts.plan and all(each.state == OPEN for each in facts.todos.values()):
            # Work on it has not begun: it belongs to the plan as it was first made.
            facts.plan_first += 1
        grow_plan(pad, [key])
        if len(facts.todos) < _MOST_ITEMS:
            facts.todos[number[1] if number else key] = Todo(quote(text, _LONGEST), OPEN)
    elif event.tool == PLAN_CHANGES:
        key, status = str(given.get("taskId") or given.get("id") or ""), given.get("status")
        if status and key in facts.todos:
            if str(status) in _GONE:
                del facts.todos[key]
            else:
                facts.todos[key] = Todo(facts.todos[key].text, _STATUS.get(str(status), OPEN))
    else:
        listed = given.get("todos") or given.get("plan") or given.get("items") or []
        items = [each for each in listed if _text(each)] if isinstance(listed, list) else []
        keys = [mark_of(_text(each)) for each in items]
        if keys and facts.plan and not set(keys) & set(facts.plan):
            # Nothing of it was on the list: another task has begun, and the last one is over.
            _end_plan(pad)
        grow_plan(pad, keys)
        facts.plan_first = facts.plan_first or len(keys)
        facts.todos = {
            key: Todo(quote(_text(each), _LONGEST), _STATUS.get(str(status), OPEN))
            for key, each in zip(keys[:_MOST_ITEMS], items, strict=False)
            for status in [each.get("status") if isinstance(each, dict) else ""]
        }


def grow_plan(pad: Pad, keys: Sequence[str]) -> None:
    """Add items to the plan, by their hashes."""
    pad.facts.plan = list(dict.fromkeys([*pad.facts.plan, *keys]))[:_MOST_ITEMS]


def _end_plan(pad: Pad) -> None:
    facts = pad.facts
    facts.plans = [*facts.plans, PlanSize(facts.plan_first, len(facts.plan))][-_MOST_PLANS:]
    facts.plan, facts.plan_first = [], 0
    facts.plan_task = facts.request


def _text(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item) if item else ""
    names = ("content", "step", "subject", "description")
    return str(next(filter(None, map(item.get, names)), ""))


def mark_of(text: str) -> str:
    """The same for a step however it is spaced and capitalized."""
    folded = " ".join(text[:20_000].lower().split())
    return hashlib.blake2b(folded.encode("utf-8", "replace"), digest_size=8).hexdigest()


def is_all_done(pad: Pad) -> bool:
    """Return True if the newest plan was done to its end."""
    todos = pad.facts.todos.values()
    return bool(todos) and all(each.state == DONE for each in todos)


def read_open_list(pad: Pad, text: str) -> None:
    """Record an agent's newest words on what is left."""
    if any(box in text for box in _BOXES):
        text = CUES["for others"].split(text, maxsplit=1)[0]
    if any(box in text for box in _BOXES):
        pad.facts.open_list = redact(text[-MOST_WORDS:]).text


def state_of(pad: Pad, method: Methodology) -> dict[str, Any]:
    """Return what is done and left; empty if finished or unstarted."""
    facts = pad.facts
    done, begun, left = (
        [each.text for each in facts.todos.values() if each.state == state]
        for state in (DONE, BEGUN, OPEN)
    )
    left = begun + left
    if not done or left == begun[:1] or facts.todos_at < facts.prompts:
        # nothing was ever ticked; or the last tick is missing; or the talk has moved on from the
        # list
        left = []
    state = dict(method.work_state_of(facts.open_list)) if facts.open_list else {}
    if not state.get("remaining"):
        state = {}
    if left:
        state = {**state, "done": done[-_MOST:], "remaining": left[:_MOST], "next_step": left[0]}
    if not state:
        return {}
    if files := pad.edited_files(facts.commit_step)[-_MOST_FILES:]:
        state["open_files"] = files
    state.setdefault("branch", facts.branch)
    return non_empty(**state)


def task_of(pad: Pad) -> str:
    """Return the request: before the plan, or the session's first."""
    request = pad.facts.plan_task or pad.facts.request
    return request if len(request.split()) >= _LEAST_WORDS else pad.facts.prompt


def memory_of(
    state: Mapping[str, Any],
    session_id: str,
    task: str,
    unit: WorkUnit | None,
    methodology: str,
    taint: Sequence[str] = (),
    supersedes: Sequence[str] = (),
) -> NewMemory:
    """The memory of unfinished work."""
    left, done = [str(each) for each in state["remaining"]], state.get("done", ())
    branch = f" on branch `{state['branch']}`" if state.get("branch") else ""
    about = f" The task was: “{quote(task, _LONGEST)}”" if len(task.split()) >= _LEAST_WORDS else ""
    following = quote(str(state.get("next_step") or left[0]), _LONGEST)
    files = [str(path) for path in state.get("open_files", ())]
    return NewMemory(
        f"Left unfinished{branch}: {len(left)} of {len(left) + len(done)} steps; next is "
        f"“{following.rstrip('.')}”."
        f"{about}",
        "work_state",
        "observer_inferred",
        confidence=_SURE,
        session_id=session_id,
        files=files,
        modules=modules_of(files)[:3],
        evidence=[Evidence(quote=quote("left: " + "; ".join(left), 400))],
        work_unit=unit,
        methodology=methodology,
        data=dict(state),
        taint=taint,
        supersedes=supersedes,
    )


def is_before(memory: TypedMemory, session_id: str, state: Mapping[str, Any], branch: str) -> bool:
    """Return True if a memory is an earlier state of this work."""
    if memory.type != "work_state" or memory.tier == "confirmed" or memory.is_pinned:
        return False  # what a person has confirmed is not put aside by a count
    named = str(state.get("branch") or branch)
    is_same_branch = (
        bool(named)
        and not CUES["shared branch"].match(named)
        and memory.data.get("branch") == named
    )
    return session_id in memory.session_ids or is_same_branch


_ENDS = {
    "success": "was finished", "partial": "was finished in part", "failure": "failed",
    "abandoned": "was given up",
}  # fmt: skip


def outcome_of(unit: WorkUnit, result: WorkUnitResult, session_id: str) -> NewMemory:
    """The memory of a piece of work that has ended."""
    name = unit.label or "/".join(unit.hierarchy) or unit.methodology
    summary = quote(result.summary, 400)
    data = {
        "outcome": result.ended,
        "summary": summary or None,
        "files_changed": list(result.files[:20]) or None,
        "steps": result.steps,
    }
    return NewMemory(
        f"{name} {_ENDS[result.ended]}{f': {summary}' if summary else ''}".rstrip(".") + ".",
        "work_unit_outcome",
        "observer_inferred",
        session_id=session_id,
        files=result.files[:20],
        modules=modules_of(result.files)[:4],
        evidence=[Evidence(quote=f"{name}: {result.ended}. {summary}".strip())],
        work_unit=unit,
        methodology=unit.methodology,
        data={key: value for key, value in data.items() if value is not None},
    )
