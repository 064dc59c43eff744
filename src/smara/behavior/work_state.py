"""Write memories of unfinished work and of work results.

The next session continues from the work state; a result says what a work unit achieved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from smara.actions.paths import module_of
from smara.behavior import plans
from smara.behavior.methodology.plugin import Methodology, WorkUnitResult
from smara.behavior.scratchpad import Pad, quote
from smara.knowledge.models import Evidence, NewMemory, TypedMemory, WorkUnit

MOST_WORDS = 3_000
"""So much of an agent's last words is kept, if they hold a list with open boxes."""
_BOXES = ("[ ]", "☐", "⬜")
_FOR_OTHERS = re.compile(
    r"^\W*(?:test(?:ing)? plan|how to test|testing|checklist|verification)\W*$", re.I | re.M
)
"""A list below such a heading is for whoever reviews the work."""
_MOST, _MOST_FILES, _LONGEST, _LEAST_WORDS = 12, 6, 160, 4
_SURE = 0.9
"""It is the agent's own list; within days it is worth less, since the work goes on."""
_SHARED = re.compile(r"(?:main|master|trunk|develop|dev|HEAD)$")
"""Branches that everybody works on: what is left on one is not the same work."""


def heard(pad: Pad, text: str) -> None:
    """Keep an agent's newest words on what is left."""
    if any(box in text for box in _BOXES):
        text = _FOR_OTHERS.split(text, maxsplit=1)[0]
    if any(box in text for box in _BOXES):
        from smara.secrets import redact

        pad.facts.listed = redact(text[-MOST_WORDS:]).text


def state_of(pad: Pad, method: Methodology) -> dict[str, Any]:
    """Return what is done and left; empty if finished or unstarted."""
    listed = method.work_state_of(pad.facts.listed) if pad.facts.listed else {}
    todos: Mapping[str, Sequence[str]] = pad.facts.todos
    done = [text for text, state in todos.values() if state == plans.DONE]
    begun = [text for text, state in todos.values() if state == plans.BEGUN]
    left = begun + [text for text, state in todos.values() if state == plans.OPEN]
    if not done or left == begun[:1] or pad.facts.todos_at < pad.facts.prompts:
        # nothing was ever ticked; or the last tick is missing; or the talk has moved on from the
        # list
        left = []
    state = dict(listed) if listed.get("remaining") else {}
    if left:
        state = {**state, "done": done[-_MOST:], "remaining": left[:_MOST], "next_step": left[0]}
    if not state.get("remaining"):
        return {}
    since = pad.facts.committed_at
    files = [path for path, entry in pad["files"] if entry.get("e") and entry["s"] > since][
        -_MOST_FILES:
    ]
    if files:
        state["open_files"] = files
    if pad.facts.branch:
        state.setdefault("branch", pad.facts.branch)
    return {name: value for name, value in state.items() if value}


def task_of(pad: Pad) -> str:
    """Return the request: before the plan, or the session's first."""
    asked = str(pad.facts.plan_task or pad.facts.asked)
    return asked if len(asked.split()) >= _LEAST_WORDS else str(pad.facts.prompt)


def is_all_done(pad: Pad) -> bool:
    """Return True if the newest plan was done to its end."""
    todos = pad.facts.todos.values()
    return bool(todos) and all(state == plans.DONE for _, state in todos)


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
    content = (
        f"Left unfinished{branch}: {len(left)} of {len(left) + len(done)} steps; next is "
        f"“{following.rstrip('.')}”."
        f"{about}"
    )
    files = [str(path) for path in state.get("open_files", ())]
    return NewMemory(
        content,
        "work_state",
        "observer_inferred",
        confidence=_SURE,
        session_id=session_id,
        files=files,
        modules=tuple(dict.fromkeys(filter(None, map(module_of, files))))[:3],
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
    is_same_branch = bool(named) and not _SHARED.match(named) and memory.data.get("branch") == named
    return session_id in memory.session_ids or is_same_branch


_TOLD = {
    "success": "was finished", "partial": "was finished in part", "failure": "failed",
    "abandoned": "was given up",
}  # fmt: skip


def outcome_of(unit: WorkUnit, result: WorkUnitResult, session_id: str) -> NewMemory:
    """The memory of a piece of work that has ended."""
    name = unit.label or "/".join(unit.hierarchy) or unit.methodology
    said = quote(result.summary, 400)
    content = f"{name} {_TOLD[result.ended]}{f': {said}' if said else ''}".rstrip(".") + "."
    data = {
        "outcome": result.ended,
        "summary": said or None,
        "files_changed": list(result.files[:20]) or None,
        "steps": result.steps,
    }
    modules = tuple(dict.fromkeys(filter(None, map(module_of, result.files))))[:4]
    return NewMemory(
        content,
        "work_unit_outcome",
        "observer_inferred",
        session_id=session_id,
        files=result.files[:20],
        modules=modules,
        evidence=[Evidence(quote=f"{name}: {result.ended}. {said}".strip())],
        work_unit=unit,
        methodology=unit.methodology,
        data={key: value for key, value in data.items() if value is not None},
    )
