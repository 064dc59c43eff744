"""Calls as models make them: what is understood, and how the rest is refused."""

from __future__ import annotations

import json

import pytest

from smara.errors import InvalidInputError
from smara.tools.catalogue import MEMORY_SEARCH, TASK_MUTATE, TASK_QUERY
from smara.tools.schemas import read_call


def understood(tool, call):
    action, arguments = read_call(tool, call)
    return {"action": action.name, **arguments}


def refused(tool, call) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        read_call(tool, call)
    return caught.value


@pytest.mark.parametrize(
    ("tool", "call", "meant"),
    [
        (TASK_QUERY, {"action": "ready", "limit": 3.0}, {"limit": 3}),
        (TASK_QUERY, {"action": "ready", "limit": "7"}, {"limit": 7}),
        (TASK_QUERY, {"action": "ready", "limit": 5_000}, {"limit": 50}),
        (TASK_QUERY, {"action": "ready", "limit": None}, {"limit": 5}),
        (TASK_QUERY, {"action": "Ready "}, {"action": "ready"}),
        (TASK_QUERY, {"action": "show", "task_id": "t-1"}, {"id": "t-1"}),
        (TASK_QUERY, {"action": "show", "taskId": "t-1"}, {"id": "t-1"}),
        (TASK_QUERY, {"action": "list", "status": "In Progress"}, {"status": "in_progress"}),
        (TASK_QUERY, {"action": "search", "query": "x", "include_messages": "true"},
        {"includeMessages": True}),
        (TASK_MUTATE, {"action": "update-context", "content": "x"}, {"action": "update_context"}),
        (TASK_MUTATE, {"action": "dep", "id": "a", "depends_on": "b"}, {"taskId": "a",
        "dependsOn": "b"}),
        (TASK_MUTATE, {"action": "dep", "id": "a", "dependsOn": "b", "type": "parent_child"},
        {"kind": "parent-child"}),
        (TASK_MUTATE, {"action": "create", "title": "x", "dependsOn": ["a", "b"]},
        {"dependsOn": "a, b"}),
        (TASK_MUTATE, {"action": "create", "title": "x", "labels": "a, b"}, {"labels": ["a", "b"]}),
        (TASK_MUTATE, {"action": "create", "title": "x", "labels": '["a, b"]'},
        {"labels": ["a, b"]}),
        (TASK_MUTATE, {"action": "create", "title": "x", "priority": "0"}, {"priority": 0}),
        (TASK_MUTATE, {"action": "close", "id": "a", "summary": "s"}, {"reason": "completed"}),
        (TASK_MUTATE, {"action": "claim", "id": "a", "sessionId": None}, {"id": "a"}),
        (MEMORY_SEARCH, {"query": "x"}, {"action": "search", "limit": 3}),
        (MEMORY_SEARCH, {"action": "read", "messageId": "m"}, {"id": "m"}),
        (MEMORY_SEARCH, '{"action": "search", "query": "x"}', {"query": "x"}),
        (MEMORY_SEARCH, b'{"query": "x"}', {"query": "x"}),
    ],
)  # fmt: skip
def test_sloppy_call_whose_meaning_is_clear_is_understood(tool, call, meant):
    assert understood(tool, call).items() >= meant.items()


@pytest.mark.parametrize(
    ("tool", "call", "told"),
    [
        (TASK_MUTATE, {"action": "update", "id": "a", "priority": "high"},
        'an integer from 0 to 4; got "high"'),
        (TASK_MUTATE, {"action": "update", "id": "a", "priority": 7},
        "priority must be an integer from 0 to 4; got 7"),
        (TASK_MUTATE, {"action": "update", "id": "a", "priority": True},
        "an integer from 0 to 4; got true"),
        (TASK_MUTATE, {"action": "update", "id": "a", "priority": 1.5}, "got 1.5"),
        (TASK_MUTATE, {"action": "close", "id": "a"}, "summary is missing"),
        (TASK_MUTATE, {"action": "close", "id": "a", "summary": "s", "reason": "bored"},
        "wontfix, duplicate"),
        (TASK_MUTATE, {"action": "create", "title": "x", "labels": ["a", 3]},
        "labels[1] must be a text of 1 to 200"),
        (TASK_MUTATE, {"action": "create", "title": ""},
        "title must be a text of 1 to 500 characters"),
        (TASK_MUTATE, {"action": "claim", "id": {"a": 1}},
        "id must be a text that is not empty; got an object"),
        (TASK_QUERY, {"action": "ready", "limit": 0},
        "limit must be an integer from 1 to 50; got 0"),
        (TASK_QUERY, {"action": "ready", "limit": float("nan")}, "limit must be an integer"),
        (TASK_QUERY, {"action": "list", "status": "done"}, "one of open, in_progress, closed"),
    ],
)  # fmt: skip
def test_wrong_argument_is_refused_with_what_is_allowed_and_what_came(tool, call, told):
    assert told in str(refused(tool, call))


def test_refusal_shows_the_arguments_and_an_example():
    hint = refused(TASK_MUTATE, {"action": "close", "id": "a"}).hint
    assert "id, summary, reason?, force?" in hint
    assert json.loads(hint.partition("For example: ")[2])["action"] == "close"


def test_unknown_argument_is_refused_by_name_with_the_allowed_list():
    told = str(refused(TASK_QUERY, {"action": "list", "statis": "open"}))
    assert 'no argument "statis"' in told
    assert "status, type, label" in told
    assert "Did you mean status?" in told


def test_unknown_action_lists_the_actions_and_guesses():
    told = str(refused(TASK_QUERY, {"action": "redy"}))
    assert "ready, show, list, search" in told
    assert "Did you mean ready?" in told


def test_action_of_another_tool_is_sent_there():
    assert "claim is an action of task-mutate" in str(
        refused(TASK_QUERY, {"action": "claim", "id": "a"})
    )


@pytest.mark.parametrize(
    "given", [{}, None, {"action": None}, {"action": 3}, {"action": ["ready"]}]
)
def test_call_without_an_action_lists_the_actions(given):
    assert "ready, show, list, search" in str(refused(TASK_QUERY, given))


@pytest.mark.parametrize("given", [[], 3, "text", "[1]", '{"action": ', b"\xff"])
def test_arguments_that_are_no_object_are_refused(given):
    assert "must be an object" in str(refused(TASK_QUERY, given))


def test_argument_given_under_two_names_must_agree():
    assert understood(TASK_QUERY, {"action": "show", "id": "a", "task_id": "a"})["id"] == "a"
    assert "given twice" in str(refused(TASK_QUERY, {"action": "show", "id": "a", "task_id": "b"}))


@pytest.mark.parametrize("query", [42, ["a", 1], {"q": 1}, "x" * 10_001, None])
def test_wrong_query_is_told_in_the_words_of_the_specification(query):
    error = refused(MEMORY_SEARCH, {"action": "search", "query": query})
    assert error.brief == "Search failed: invalid query"
    assert "query" in error.hint


def test_refusal_of_something_huge_is_short():
    error = refused(TASK_MUTATE, {"action": "create", "title": "x" * 1_000_000})
    assert len(str(error)) < 300
    assert "1,000,000 characters" in str(error)
