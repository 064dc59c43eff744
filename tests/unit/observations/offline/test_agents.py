"""What the agent says: findings, decisions, completions, answers, questions; announcements are
dropped.
"""

from __future__ import annotations

import pytest

from tests.unit.observations.offline.talk import Talk, only


@pytest.mark.parametrize(
    "text",
    [
        "Let me check the latest migration for patterns.",
        "Now add the route and the button.",
        "Good. I have full context now. Let me start with the first task.",
        "Running the full suite to make sure nothing else broke.",
    ],
)
def test_announcements_between_calls_are_dropped(text):
    talk = Talk().user("Fix it").agent(text).run("make", "")
    assert talk.notes("finding") == talk.notes("answer") == []


@pytest.mark.parametrize(
    "text",
    [
        "The root cause is a missing null check on `user.id` in src/api/users.ts:45.",
        "SQLite doesn't support `ALTER TABLE ... modify` for nullability.",
        "The tests fail because the sandbox isn't shared with the LiveView process.",
        "Found that the session cookie lacks SameSite.",
    ],
)
def test_what_explains_something_is_kept_in_its_words(text):
    talk = Talk().user("Fix it").agent(f"{text} Let me fix that now.").run("make", "")
    note = only(talk.notes("finding"))
    assert note.text == f"Agent found: {text}"


def test_a_choice_with_its_reason_is_a_decision():
    talk = (
        Talk()
        .user("Cache it")
        .agent("I'll use an ETS table instead of a GenServer to avoid a bottleneck.")
        .run("make", "")
    )
    assert only(talk.notes("decision")).text.startswith(
        "Agent decided: I'll use an ETS table instead of"
    )


def test_the_end_of_a_request_is_a_completion_with_its_list():
    end = (
        "All done. Login works now:\n- `POST /api/auth/login` returns { token, user }\n- 42 "
        "tests pass"
    )
    note = Talk().user("Add login").run("make", "").agent(end).notes("completion")[-1]
    assert note.priority == "high"
    assert note.details == ("`POST /api/auth/login` returns { token, user }", "42 tests pass")


def test_the_answer_to_a_question_is_an_answer():
    talk = Talk().user("Did you push?").agent("Yes, both commits are on origin/login.")
    assert (
        only(talk.notes("answer")).text == "Agent answered: Yes, both commits are on origin/login."
    )


def test_a_question_to_the_user_is_kept_apart():
    talk = Talk().user("Commit").agent("The hook fails on old issues. Shall I skip it?")
    assert only(talk.notes("question")).text == "Agent asked: Shall I skip it?"


def test_what_blocks_is_high():
    talk = (
        Talk()
        .user("Deploy")
        .agent("I can't access the staging database, so this is blocked by the VPN.")
        .run("x", "")
    )
    assert [note.priority for note in talk.notes("blocker")] == ["high"]


def test_what_another_agent_reported_is_kept_as_its_report():
    report = (
        "Perfect! I have it.\n\n`list_panes/0` returns {:error, reason} when tmux is "
        "missing.\n- it never crashes\n"
    )
    talk = Talk().call("Task", {"description": "Explore tmux", "prompt": "..."}, report)
    note = only(talk.notes())
    assert note.text == "Delegated: Explore tmux"
    assert note.details[0].startswith("It reported: `list_panes/0` returns {:error, reason}")
    assert note.mode_specific["inputs"] == ["assistant", "tool"]


def test_an_answer_given_through_a_tool_is_a_decision_of_the_user():
    result = (
        'User has answered your questions: "Skip the hook?"="main was clean; fix it". You '
        "can now continue."
    )
    note = only(
        Talk()
        .call("AskUserQuestion", {"questions": [{"question": "Skip the hook?"}]}, result)
        .notes()
    )
    assert note.text == "User answered: main was clean; fix it (asked: Skip the hook?)"
    assert (note.category, note.priority) == ("decision", "high")


def test_a_question_through_a_tool_without_an_answer_stays_a_question():
    note = only(
        Talk().call("AskUserQuestion", {"questions": [{"question": "Skip it?"}]}, None).notes()
    )
    assert (note.category, note.text) == ("question", "Agent asked: Skip it?")


def test_an_approved_plan_is_kept_with_its_steps():
    plan = "# Plan: enrich the renderer\n\n- keep render/1\n- add render/2 with opts"
    note = only(Talk().call("ExitPlanMode", {"plan": plan}, "User has approved your plan.").notes())
    assert note.text == "Plan approved by the user: Plan: enrich the renderer:"
    assert "add render/2 with opts" in note.details


def test_a_refused_call_is_kept_with_the_users_words():
    result = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell "
        "you how to proceed, "
        "the user said:\nuse the staging database"
    )
    note = only(Talk().run("psql prod", result, is_error=True).notes())
    assert note.text == "User rejected: Bash psql prod: use the staging database"
    assert note.priority == "high"


def test_unknown_tools_are_told_with_their_arguments():
    talk = Talk().call(
        "mcp__linear__create_issue", {"title": "Login fails", "team": "WEB"}, "created WEB-12"
    )
    assert talk.text() == "Used mcp__linear__create_issue (Login fails, WEB)"


def test_the_web_is_told_with_its_address_and_marked_as_such():
    talk = Talk().call(
        "WebFetch",
        {"url": "https://x.dev/a"},
        "Scrolling was fixed in 4.0.0 by bubbling the events up.",
    )
    note = only(talk.notes())
    assert "https://x.dev/a" in note.text
    assert note.mode_specific["inputs"] == ["assistant", "web"]


def test_what_the_user_wants_to_be_looked_at_is_kept():
    talk = (
        Talk()
        .user("Go")
        .agent("The endpoint took 940 ms at the 95th percentile latency.")
        .run("make", "")
    )
    assert "940 ms" not in talk.text()
    assert "940 ms" in talk.text(instructions="Keep every latency figure.")


def test_what_was_done_may_be_said_without_saying_who_did_it():
    talk = Talk().user("Please rename handle() in src/api.py to on().")
    talk.agent("Renamed handle() to on() in src/api.py; 12 tests pass.")
    note = talk.notes()[-1]
    assert (note.category, note.priority) == ("completion", "high")
