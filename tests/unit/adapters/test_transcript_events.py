"""What agents did, from their transcripts: one vocabulary, whichever agent it was."""

from __future__ import annotations

from smara.adapters.hosts.normalize import events_of as hook_events_of
from tests.agent_events import events_of
from tests.unit.adapters.foreign import (
    CODEX,
    CODEX_AGENT,
    CODEX_ID,
    CODEX_SUB,
    GEMINI,
    GEMINI_LOG,
    GENERIC,
    OPENCODE,
)


def kinds(path):
    return [event.kind for event in events_of(path)]


def test_codex_tells_commands_edits_failures_and_words():
    found = list(events_of(CODEX))
    assert {(event.agent, event.session_id, event.cwd) for event in found} == {
        ("codex", CODEX_ID, "/home/me/shop")
    }
    assert [
        (event.kind, event.tool) for event in found if event.tool and event.kind != "tool_pre"
    ] == [
        ("tool_fail", "Bash"),
        ("tool_fail", "Bash"),
        ("tool_post", "Edit"),
        ("tool_post", "Bash"),
    ]
    first = next(event for event in found if event.kind == "tool_fail")
    assert first.tool_input["command"] == "pytest tests/test_till.py"
    assert first.error == "E       ModuleNotFoundError: No module named 'shop'\n1 error in 0.10s"
    edit = next(event for event in found if event.tool == "Edit")
    assert edit.tool_input["file_path"] == "shop/till.py"


def test_sub_agents_act_within_the_session_they_belong_to():
    assert {(event.session_id, event.subagent_id) for event in events_of(CODEX_SUB)} == {
        (CODEX_ID, CODEX_AGENT)
    }


def test_gemini_and_opencode_speak_the_same_vocabulary():
    assert [
        (e.kind, e.tool)
        for e in events_of(GEMINI)
        if e.kind.startswith("tool_") and e.kind != "tool_pre"
    ] == [("tool_fail", "Bash"), ("tool_post", "Read")]
    told = [
        (e.kind, e.tool)
        for e in events_of(OPENCODE)
        if e.kind.startswith("tool_") and e.kind != "tool_pre"
    ]
    assert told == [("tool_fail", "Bash"), ("tool_fail", "Edit"), ("tool_post", "Task")]
    edit = next(e for e in events_of(OPENCODE) if e.tool == "Edit")
    assert edit.tool_input == {
        "file_path": "/home/me/shop/receipt.ts",
        "old_string": "a",
        "new_string": "b",
    }


def test_turns_end_where_the_next_prompt_comes():
    assert kinds(GEMINI)[0] == "session_start"
    assert kinds(GEMINI)[-2:] == ["turn_end", "prompt"]


def test_a_call_has_the_key_that_the_hook_of_the_agent_gives_it():
    payload = (
        b'{"session_id": "%s", "turn_id": "1", "tool_name": "exec_command", "tool_use_id": '
        b'"call_1",'
        b' "tool_input": {"cmd": "pytest tests/test_till.py"}, "tool_response": "Exit code: '
        b'1\\nbad"}' % CODEX_ID.encode()
    )
    (told,) = hook_events_of("codex", "PostToolUse", payload, at_ms=1)
    assert told.key in {event.key for event in events_of(CODEX)}


def test_nothing_is_learned_from_mere_prompts_or_from_a_talk_without_tools():
    assert kinds(GEMINI_LOG) == []
    assert kinds(GENERIC / "conversations.jsonl") == []
    assert "tool_post" in kinds(GENERIC / "openai.json")


def test_every_event_has_a_key_of_its_own():
    for path in (CODEX, GEMINI, OPENCODE):
        keys = [event.key for event in events_of(path)]
        assert len(keys) == len(set(keys))
