"""Sessions of Copilot CLI: what was said and done, helpers, and our own words left out."""

from __future__ import annotations

import json

from smara.adapters.importer import sniff
from smara.adapters.readers.copilot import read_events
from smara.adapters.records import Imported
from tests.agent_events import events_of
from tests.unit.adapters.foreign import COPILOT, COPILOT_AGENT, COPILOT_ID, reasons, told


def messages(path):
    return [record.message for record in read_events(path) if isinstance(record, Imported)]


def write(path, *events):
    head = {
        "type": "session.start",
        "data": {"sessionId": "s1", "context": {"cwd": "/home/me/shop"}},
        "id": "e0",
    }
    path.write_text("".join(json.dumps(each) + "\n" for each in (head, *events)))
    return path


def test_prompts_answers_calls_and_results_are_messages():
    spoken = [(role, words.splitlines()[-1]) for role, _, words in told(read_events(COPILOT))]
    assert spoken == [
        ("user", "Make the check pass"),
        ("assistant", "I ask a helper."),
        ("assistant", "task"),
        ("user", "Say which files there are"),
        ("assistant", "view"),
        ("tool", "    return sum(prices) + 1"),
        ("assistant", "There is shop.py and check.py."),
        ("tool", "There is shop.py and check.py."),
        ("assistant", "view"),
        ("tool", "Path does not exist"),
        ("assistant", "I run the check."),
        ("assistant", "bash"),
        ("tool", "<shellId: 0 completed with exit code 1>"),
        ("assistant", "smara-memory-search"),
        ("tool", messages(COPILOT)[14].content[0].text.splitlines()[-1]),
        ("system", "The check failed: total adds one."),
        ("assistant", "Done: it failed."),
    ]


def test_every_line_has_a_record_and_what_is_no_message_a_reason():
    records = list(read_events(COPILOT))
    assert {record.line for record in records} == set(
        range(1, len(COPILOT.read_text().splitlines()) + 1)
    )
    assert sum(reasons(records).values()) + len(messages(COPILOT)) == len(records)
    assert "tells of the program, not of the work" not in reasons(records)


def test_a_helper_is_a_thread_of_its_own():
    threads = {
        record.thread.id: record.thread
        for record in read_events(COPILOT)
        if isinstance(record, Imported)
    }
    own, helper = threads[COPILOT_ID], threads[f"{COPILOT_ID}/agent-{COPILOT_AGENT}"]
    assert (own.title, own.kind, own.metadata["cwd"]) == (
        "Make the check pass",
        "conversation",
        "/home/me/shop",
    )
    assert (helper.kind, helper.parent_id, helper.metadata["agent_id"]) == (
        "subagent",
        COPILOT_ID,
        COPILOT_AGENT,
    )


def test_a_command_that_left_with_a_code_has_failed_though_its_call_succeeded():
    failed = [
        part
        for message in messages(COPILOT)
        for part in message.content
        if getattr(part, "is_error", False)
    ]
    assert [part.name for part in failed] == ["view", "bash"]
    events = [
        (event.kind, event.tool, event.error)
        for event in events_of(COPILOT)
        if event.kind == "tool_fail"
    ]
    assert [(kind, tool) for kind, tool, _ in events] == [
        ("tool_fail", "Read"),
        ("tool_fail", "Bash"),
    ]
    assert events[1][2].endswith("AssertionError: total is wrong")  # without how the host ends it
    assert {event.agent for event in events_of(COPILOT)} == {"copilot"}


def test_what_memory_told_the_agent_is_no_message(tmp_path):
    words = (
        'It is red.\n\nTool "view" succeeded. Additional guidance from postToolUse hooks:\n'
        "<smara-memory>\n- Known.\n</smara-memory>"
    )
    result = {"toolCallId": "c1", "success": True, "result": {"content": words}}
    path = write(
        tmp_path / "events.jsonl", {"type": "tool.execution_complete", "data": result, "id": "e1"}
    )
    assert told(read_events(path)) == [("tool", "tool_result", "It is red.")]


def test_words_of_the_program_are_not_a_persons(tmp_path):
    events = [
        {
            "type": "user.message",
            "data": {"content": "Look again", "source": "schedule"},
            "id": "e1",
        },
        {
            "type": "user.message",
            "data": {"content": "Go on", "attachments": [{"displayName": "a.txt"}]},
            "id": "e2",
        },
        {"type": "session.error", "data": {"message": "No model answered."}, "id": "e3"},
        {"type": "session.title_changed", "data": {"title": "The shop"}, "id": "e4"},
        {"type": "assistant.message", "data": {"content": "", "toolRequests": []}, "id": "e5"},
        {
            "type": "tool.execution_start",
            "data": {"toolCallId": "c", "toolName": "bash", "arguments": {}},
            "id": "e6",
        },
    ]
    path = write(tmp_path / "events.jsonl", *events)
    assert [(role, kind) for role, kind, _ in told(read_events(path))] == [
        ("system", "text"),
        ("user", "text+file"),
        ("system", "text"),
        ("assistant", "tool_call"),
    ]
    assert [r.thread.title for r in read_events(path) if r.thread is not None][-1] == "The shop"
    assert reasons(read_events(path))["nothing was said"] == 1


def test_it_is_known_by_its_first_line():
    assert sniff(COPILOT) == "copilot"
