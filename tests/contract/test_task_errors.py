"""Errors of tasks: each says briefly what is wrong, in fixed words, and what to do instead."""

from __future__ import annotations

import pytest

from smara.errors import UsageError
from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE


def closed(tasks):
    return tasks.close(tasks.add("x").id, "done").id


def held(tasks):
    return tasks.claim(tasks.add("x").id, session_id="abc-123").id


def blocked(tasks):
    return tasks.add("x", depends_on=[tasks.add("y").id]).id


REFUSED = {
    "get unknown": ("not_found", lambda m: m.tasks.get("task-xyz")),
    "get ambiguous": (
        "invalid_input",
        lambda m: m.tasks.get([m.tasks.add("x"), m.tasks.add("y")][0].id[:8]),
    ),
    "add blank": ("invalid_input", lambda m: m.tasks.add(" ")),
    "add long": ("invalid_input", lambda m: m.tasks.add("x" * 501)),
    "add priority": ("invalid_input", lambda m: m.tasks.add("x", priority=9)),
    "add type": ("invalid_input", lambda m: m.tasks.add("x", type="story")),
    "add below unknown": ("not_found", lambda m: m.tasks.add("x", parent="task-xyz")),
    "list status": ("invalid_input", lambda m: m.tasks.list(status="done")),
    "claim held": ("task_claimed", lambda m: m.tasks.claim(held(m.tasks), session_id="s2")),
    "claim blocked": ("task_blocked", lambda m: m.tasks.claim(blocked(m.tasks), session_id="s2")),
    "claim closed": ("conflict", lambda m: m.tasks.claim(closed(m.tasks), session_id="s2")),
    "release held": ("task_claimed", lambda m: m.tasks.release(held(m.tasks), session_id="s2")),
    "hand over held": (
        "task_claimed",
        lambda m: m.tasks.hand_over(held(m.tasks), to_session="s2", session_id="s2"),
    ),
    "hand over to nobody": (
        "invalid_input",
        lambda m: m.tasks.hand_over(held(m.tasks), session_id="abc-123"),
    ),
    "hand over closed": ("conflict", lambda m: m.tasks.hand_over(closed(m.tasks), to_session="s2")),
    "close held": ("task_claimed", lambda m: m.tasks.close(held(m.tasks), "done", session_id="s2")),
    "close blank": ("invalid_input", lambda m: m.tasks.close(m.tasks.add("x").id, "")),
    "close reason": (
        "invalid_input",
        lambda m: m.tasks.close(m.tasks.add("x").id, "done", reason="bored"),
    ),
    "close again": ("conflict", lambda m: m.tasks.close(closed(m.tasks), "otherwise")),
    "depend on itself": (
        "dependency_cycle",
        lambda m: m.tasks.depend((x := m.tasks.add("x").id), x),
    ),
    "depend type": (
        "invalid_input",
        lambda m: m.tasks.depend(held(m.tasks), held(m.tasks), type="needs"),
    ),
    "undo created": ("conflict", lambda m: m.tasks.undo(m.tasks.add("x").id)),
    "link unknown": ("not_found", lambda m: m.links.add(held(m.tasks), "no such message")),
    "link to unknown": ("not_found", lambda m: m.links.messages("task-xyz")),
}


@pytest.mark.parametrize("what", REFUSED)
def test_every_error_says_what_is_wrong_and_what_to_do(memory, what):
    code, act = REFUSED[what]
    with pytest.raises(UsageError) as caught:
        act(memory)
    error = caught.value
    assert (error.code, error.is_retryable) == (code, False)
    assert error.facts["brief"].strip()
    assert error.facts["hint"].strip()
    assert str(error).strip().endswith((".", "…", "?"))


BRIEF = {
    "get unknown": "Task not found: task-xyz",
    "claim held": "Already claimed by session abc-123",
    "release held": "Already claimed by session abc-123",
    "close held": "Already claimed by session abc-123",
    "claim blocked": "Task is blocked by open dependencies",
}


@pytest.mark.parametrize("what", BRIEF)
def test_the_brief_is_the_text_of_the_specification(memory, what):
    with pytest.raises(UsageError) as caught:
        REFUSED[what][1](memory)
    assert caught.value.brief == BRIEF[what]
