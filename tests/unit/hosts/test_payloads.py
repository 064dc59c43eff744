"""Every documented payload of every host becomes the event it tells; see
tests/fixtures/hooks/README.md.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.adapters.hosts import reply
from smara.adapters.hosts.normalize import events_of
from smara.core.events import HostEvent, is_duplicate_key
from smara.core.host_table import AGENTS, ANSWERABLE

FIXTURES = Path(__file__).parents[2] / "fixtures" / "hooks"
SHAPES = sorted(FIXTURES.glob("*/*.json"))
NOW = 1_793_000_000_000


def told(path: Path) -> tuple[list[HostEvent], dict]:
    shape = json.loads(path.read_text(encoding="utf-8"))
    raw = json.dumps(shape["payload"]).encode()
    return events_of(path.parent.name, shape["event"], raw, at_ms=NOW, cwd="/elsewhere"), shape[
        "expect"
    ]


@pytest.mark.parametrize("path", SHAPES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_payload_becomes_the_event_it_tells(path):
    events, expected = told(path)
    assert len(events) == expected.pop("count", 1)
    files = expected.pop("files", None)
    for name, value in expected.items():
        if events:
            assert getattr(events[0], name) == value, name
    if files:
        assert events[0].tool_input["files"] == files


@pytest.mark.parametrize("path", SHAPES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_hook_that_answers_reads_a_payload_as_the_drain_will(path):
    """What is said in a hurry is about the same session, folder, tool and failure as the event that
    is kept.
    """
    shape = json.loads(path.read_text(encoding="utf-8"))
    agent, event, payload = path.parent.name, shape["event"], shape["payload"]
    if event not in ANSWERABLE[agent] or event == "SubagentStart":
        return
    if not told(path)[0]:
        return  # it is nobody's words
    kept = told(path)[0][0]
    assert (reply.session_of(payload), reply.folder_of(payload)) == (
        kept.session_id,
        kept.cwd,
    )
    if kept.kind.startswith("tool_"):
        tool, given, error = reply.call_of(kept.agent, event, payload)
        assert (tool, given) == (kept.tool, kept.tool_input)
        assert (error is not None) == (kept.kind == "tool_fail")
        assert (error or "") == (kept.error or "")


def test_every_host_is_covered():
    assert {path.parent.name for path in SHAPES} == set(AGENTS) - {"generic"}


def test_a_result_and_a_failure_of_one_call_are_one_event():
    call = {
        "session_id": "s",
        "tool_name": "Bash",
        "tool_input": {"command": "x"},
        "tool_use_id": "t1",
    }
    result = events_of(
        "claude", "PostToolUse", json.dumps({**call, "tool_response": "y"}).encode(), at_ms=NOW
    )[0]
    failure = events_of(
        "claude", "PostToolUseFailure", json.dumps({**call, "error": "y"}).encode(), at_ms=NOW
    )[0]
    assert is_duplicate_key(result.key, failure.key)


def test_the_same_words_said_again_later_are_another_event():
    raw = json.dumps({"session_id": "s", "prompt": "continue"}).encode()
    first, twice, later = (
        events_of("claude", "UserPromptSubmit", raw, at_ms=NOW + at)[0] for at in (0, 300, 60_000)
    )
    assert is_duplicate_key(first.key, twice.key)
    assert not is_duplicate_key(first.key, later.key)


@pytest.mark.parametrize(
    ("kind", "plain", "pascal"),
    [
        ("prompt", {"prompt": "go on"}, "UserPromptSubmit"),
        ("session_start", {"source": "startup"}, "SessionStart"),
        ("session_end", {"reason": "complete"}, "SessionEnd"),
    ],
)
def test_one_event_in_two_dialects_is_one_event(kind, plain, pascal):
    camel = {
        "prompt": "userPromptSubmitted",
        "session_start": "sessionStart",
        "session_end": "sessionEnd",
    }[kind]
    own = {"sessionId": "s", "timestamp": NOW, "cwd": "/a", **plain}
    borrowed = {
        "session_id": "s",
        "cwd": "/a",
        "hook_event_name": pascal,
        "transcript_path": "/t",
        **plain,
    }
    (first,) = events_of("copilot", camel, json.dumps(own).encode(), at_ms=NOW)
    (second,) = events_of("claude", pascal, json.dumps(borrowed).encode(), at_ms=NOW + 80)
    assert first.kind == second.kind == kind
    assert is_duplicate_key(first.key, second.key)


def test_one_call_in_two_dialects_is_one_event_and_the_same_call_made_again_another():
    said = "no\n<shellId: 0 completed with exit code 2>"
    camel = {
        "sessionId": "s",
        "timestamp": 1794840350243,
        "toolName": "bash",
        "toolArgs": {"command": "make"},
        "toolResult": {"resultType": "success", "textResultForLlm": said},
    }
    pascal = {
        "session_id": "s",
        "timestamp": "2026-11-16T14:45:50.243Z",
        "tool_name": "Bash",
        "tool_input": {"command": "make"},
        "tool_result": {"result_type": "success", "text_result_for_llm": said},
    }
    (first,) = events_of("copilot", "postToolUse", json.dumps(camel).encode(), at_ms=NOW)
    (second,) = events_of("copilot", "PostToolUse", json.dumps(pascal).encode(), at_ms=NOW + 20)
    (again,) = events_of(
        "copilot",
        "postToolUse",
        json.dumps({**camel, "timestamp": 1794840351000}).encode(),
        at_ms=NOW + 900,
    )
    assert first.kind == second.kind == again.kind == "tool_fail"
    assert is_duplicate_key(first.key, second.key)
    assert not is_duplicate_key(first.key, again.key)


def test_a_hook_of_claude_that_cursor_runs_is_told_by_cursor():
    raw = json.dumps(
        {"cursor_version": "2.4", "conversation_id": "c", "hook_event_name": "stop"}
    ).encode()
    assert [event.agent for event in events_of("claude", "stop", raw, at_ms=NOW)] == ["cursor"]


def test_a_host_that_names_no_session_has_one_per_folder_and_day():
    raw = json.dumps({"cwd": "/a", "prompt": "x"}).encode()
    same = {
        events_of("copilot", "userPromptSubmitted", raw, at_ms=NOW + at)[0].session_id
        for at in (0, 1000)
    }
    assert len(same) == 1
    assert same != {
        events_of("copilot", "userPromptSubmitted", raw, at_ms=NOW + 90_000_000)[0].session_id
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELD_NAMES = [
    "session_id", "sessionId", "cwd", "source", "prompt", "tool_name", "tool_input",
    "tool_response", "tool_use_id",
    "error", "agent_id", "transcript_path", "last_assistant_message", "model", "toolArgs",
    "toolResult", "tool_calls",
    "workspace_roots", "cursor_version", "file_path", "command", "timestamp",
]  # fmt: skip


@given(
    payload=st.dictionaries(st.sampled_from(FIELD_NAMES), json_values, max_size=8),
    agent=st.sampled_from([*AGENTS, "who"]),
    event=st.sampled_from(
        ["SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolBatch", "AfterTool",
            "postToolUse",
         "afterMCPExecution", "tool.execute.after", "Stop", "stop", "errorOccurred", "FileChanged",
         "Nonsense"]
    ),
)  # fmt: skip
def test_no_payload_raises_and_every_event_has_a_key(payload, agent, event):
    for each in events_of(agent, event, json.dumps(payload).encode(), at_ms=NOW):
        assert each.key.startswith(f"{each.session_id}:{each.kind}:")


@given(st.binary(max_size=200))
def test_bytes_that_are_no_payload_are_no_event(raw):
    assert isinstance(events_of("claude", "Stop", raw, at_ms=NOW), list)
