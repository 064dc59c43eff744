"""The toolbox: every call is answered, and text and JSON say the same."""

from __future__ import annotations

import json
import logging

import pytest

from smara.errors import BusyError, CorruptError, InvalidInputError
from smara.tools import Toolbox, ToolContext, memory_record, memory_search, task_mutate, task_query
from smara.tools.catalogue import EVERY_TOOL, TOOLS
from smara.tools.toolbox import _PERFORM


def test_every_action_of_the_catalogue_is_performed():
    assert {name: list(tool.actions) for name, tool in EVERY_TOOL.items()} == {
        name: list(actions) for name, actions in _PERFORM.items()
    }


def test_plain_functions_give_the_structured_answer(memory):
    made = task_mutate(memory, action="create", title="Form")["task"]["id"]
    assert task_query(memory, action="ready")["tasks"][0]["id"] == made
    memory.messages.add(thread_id="t", role="user", content="the walrus")
    assert memory_search(memory, query="walrus")["results"][0]["content"] == "the walrus"
    assert task_query(memory, action="show", id="nope")["success"] is False
    noted = memory_record(
        memory, action="record", type="gotcha", content="The walrus sinks", evidence=["a/b.py:1"]
    )
    assert noted["memory"]["content"] == "The walrus sinks"


def test_tool_name_may_be_written_with_an_underscore(box):
    assert not box.call("task_query", {"action": "ready"}).is_error


def test_arguments_may_come_as_the_text_of_an_object(box):
    assert box.call("task-query", '{"action": "ready"}').structured["action"] == "ready"


def test_unknown_tool_is_refused_with_the_names_of_those_there_are(box):
    outcome = box.call("task-eat", {"action": "ready"})
    assert outcome.is_error
    assert all(name in outcome.text for name in TOOLS)


def test_session_of_the_settings_is_used_when_nobody_names_one(tmp_path):
    import smara

    with smara.open(tmp_path / "s.db", session="from-settings") as memory:
        box = Toolbox(memory)
        task = box.call("task-mutate", {"action": "create", "title": "x"}).structured["task"]["id"]
        claimed = box.call("task-mutate", {"action": "claim", "id": task}).structured["task"]
    assert claimed["sessionId"] == "from-settings"


def test_call_is_a_sign_of_life_of_its_session(memory, box, clock):
    """Claims expire after four silent hours; any call of the session breaks the silence."""
    task = memory.tasks.add("Form").short_id
    box.call("task-mutate", {"action": "claim", "id": task})
    for _ in range(3):
        clock.advance(3 * 3600)
        box.call("memory-search", {"query": "anything"})
    taken = Toolbox(memory, ToolContext(session_id="other")).call(
        "task-mutate", {"action": "claim", "id": task}
    )
    assert taken.structured["error"] == "Already claimed by session abc-123"


def test_tool_of_another_profile_is_unknown(memory):
    call, unknown = {"action": "map"}, "Unknown tool"
    refused = Toolbox(memory).call("code-query", call)
    assert refused.is_error
    assert unknown in refused.structured["error"]
    assert "code-query" not in refused.structured["hint"]
    for served in (
        Toolbox(memory, ToolContext(), "coding"),
        Toolbox(memory.with_settings(tool_profile="coding")),
    ):
        assert unknown not in served.call("code-query", call).text
    with pytest.raises(InvalidInputError, match="default, coding"):
        Toolbox(memory, profile="cooking")  # type: ignore[arg-type]


class Broken:
    """A memory whose rooms fail in a given way."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.settings = type("Settings", (), {"session": None, "tool_profile": "default"})()

    def __getattr__(self, name: str) -> object:
        raise self._error


def test_trouble_of_the_store_says_what_it_is_and_to_go_on():
    box = Toolbox(Broken(CorruptError("The file is damaged. Run `smara doctor`.")))  # type: ignore[arg-type]
    answer = box.call("task-query", {"action": "ready"}).structured
    assert (answer["error"], answer["code"]) == (
        "The file is damaged. Run `smara doctor`.",
        "corrupt",
    )
    assert "without memory" in answer["hint"]
    assert "retryable" not in answer


def test_trouble_that_passes_says_so():
    box = Toolbox(Broken(BusyError("Another process holds the database.")))  # type: ignore[arg-type]
    outcome = box.call("memory-search", {"query": "x"})
    assert outcome.structured["retryable"] is True
    assert "later" in outcome.text


def test_bug_is_answered_and_logged_not_raised(caplog):
    box = Toolbox(Broken(KeyError("secret detail")))  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING, "smara"):
        outcome = box.call("task-query", {"action": "ready"})
    assert (outcome.structured["code"], outcome.structured["action"]) == ("bug", "ready")
    assert "without memory" in outcome.text
    assert "secret detail" not in outcome.text
    assert "tool.failed" in caplog.text


@pytest.mark.parametrize(
    "text",
    ["half an emoji \ud83d", "\udc00 the other half", "both \ud83d\ude00", "nul \x00", "重跑"],
)
def test_answer_can_always_be_written_as_json(memory, ask, text):
    memory.messages.add(thread_id="t", role="user", content=f"walrus {text}")
    outcome = ask.call("memory-search", "search", query="walrus")
    json.dumps(outcome.structured, ensure_ascii=False).encode()
    outcome.text.encode()
    assert outcome.structured["results"][0]["content"].startswith("walrus")


def test_what_a_call_says_of_itself_wins_over_its_context_and_that_over_the_toolbox():
    box, call, named = (
        ToolContext("box", "box", actor="box"),
        ToolContext("call", None),
        ToolContext("named"),
    )
    assert named.over(call).over(box) == ToolContext("named", "box", actor="box")


ANSWERS = {
    "ready": ("1 ready, 1 blocked.", "{form} P1 bug open  Login form #ui", "  what it is"),
    "show": (
        "{form} P1 bug open  Login form #ui",
        "blocks:",
        "  {notes} P2 task open  Notes",
        "what it is",
    ),
    "list": ("Tasks: 2. Shown: 2.", "{notes} P2 task open  Notes  (blocked by {form})"),
}


@pytest.mark.parametrize("action", ANSWERS)
def test_text_tells_what_the_json_says(ask, action):
    form = ask.new("Login\n form", priority=1, type="bug", labels=["ui"], description="what it is")
    notes = ask.new("Notes", dependsOn=form)
    text = ask.call("task-query", action, **({"id": form} if action == "show" else {})).text
    for line in ANSWERS[action]:
        assert line.format(form=form, notes=notes) in text.split("\n")


def test_text_of_a_claim_names_the_holder_and_of_a_page_the_next(ask):
    tasks = [ask.new(f"task {number}") for number in range(7)]
    assert (
        f"{tasks[0]} P2 task in_progress  task 0  (held by abc-123)"
        in ask.call("task-mutate", "claim", id="next").text
    )
    assert ask.call("task-query", "ready").text.endswith("More: the same call with page 2.")


def test_text_of_a_search_shows_rank_role_and_where(ask, memory):
    message = memory.messages.add(thread_id="login", role="user", content="the walrus\nsecond line")
    text = ask.call("memory-search", "search", query="walrus").text
    assert f"[1] user · thread login · 2025-10-09 08:53Z · id {message.id}" in text
    assert "the walrus\nsecond line" in text
