"""Sessions of Pi: what was said and done, what a person ran, and what was taken over from another
session.
"""

from __future__ import annotations

import json

from smara.adapters.importer import sniff
from smara.adapters.readers.pi import read_session
from smara.adapters.records import Imported
from tests.agent_events import events_of
from tests.unit.adapters.foreign import PI, PI_ID, reasons, told


def entry(own_id, /, kind="message", at="2026-03-02T10:00:00.000Z", **more):
    return {"type": kind, "id": own_id, "parentId": None, "timestamp": at, **more}


def write(path, *entries, **head):
    first = {
        "type": "session",
        "version": 3,
        "id": "s1",
        "timestamp": "2026-03-02T09:59:00.000Z",
        "cwd": "/a",
        **head,
    }
    path.write_text("".join(json.dumps(each) + "\n" for each in (first, *entries)))
    return path


def test_prompts_answers_calls_and_results_are_messages():
    assert [(role, words.splitlines()[-1]) for role, _, words in told(read_session(PI))] == [
        ("user", "Make the check pass"),
        ("assistant", "I run the check."),
        ("assistant", "bash"),
        ("tool", "Command exited with code 1"),
        ("assistant", "read"),
        ("tool", "    return sum(prices) + 1"),
        ("assistant", "edit"),
        ("tool", "Successfully replaced 1 block(s) in shop.py."),
        ("assistant", "bash"),
        ("tool", "(no output)"),
        ("assistant", "Fixed: total adds one."),
    ]
    records = list(read_session(PI))
    assert {record.line for record in records} == set(
        range(1, len(PI.read_text().splitlines()) + 1)
    )
    assert reasons(records) == {"describes the session": 1, "a setting of the session": 2}


def test_the_thread_has_its_folder_and_a_title():
    thread = [record.thread for record in read_session(PI) if isinstance(record, Imported)][-1]
    assert (thread.id, thread.title, thread.metadata["cwd"]) == (
        PI_ID,
        "Make the check pass",
        "/home/me/shop",
    )


def test_calls_and_failures_are_events():
    events = [
        (event.kind, event.tool)
        for event in events_of(PI)
        if event.kind in ("tool_post", "tool_fail")
    ]
    assert events == [
        ("tool_fail", "Bash"),
        ("tool_post", "Read"),
        ("tool_post", "Edit"),
        ("tool_post", "Bash"),
    ]


def test_all_sorts_of_entries_are_read(tmp_path):
    answer = {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "Hm."}],
        "errorMessage": "Too busy.",
    }
    path = write(
        tmp_path / "x_s1.jsonl",
        entry("a", message={"role": "user", "content": "Hello"}),
        entry("b", message=answer),
        entry(
            "c",
            message={
                "role": "bashExecution",
                "command": "make",
                "output": "no rule",
                "exitCode": 2,
            },
        ),
        entry(
            "d", kind="compaction", summary="We said hello.", firstKeptEntryId="a", tokensBefore=9
        ),
        entry("e", kind="branch_summary", fromId="a", summary="Another way was tried."),
        entry("f", kind="custom_message", customType="x", content="Injected", display=False),
        entry("g", kind="custom", customType="x", data={"n": 1}),
        entry("h", kind="session_info", name="A name"),
        entry("i", kind="label", targetId="a", label="here"),
        entry(
            "j",
            message={
                "role": "toolResult",
                "toolCallId": "c9",
                "toolName": "x",
                "content": [],
                "isError": True,
            },
        ),
        entry("k", message={"role": "assistant", "content": []}),
    )
    assert told(read_session(path)) == [
        ("user", "text", "Hello"),
        ("assistant", "reasoning", "Hm."),
        ("system", "text", "Too busy."),
        ("user", "text", "!make"),
        ("tool", "tool_result", "no rule"),
        ("system", "text", "We said hello."),
        ("system", "text", "Another way was tried."),
        ("system", "text", "Injected"),
        ("tool", "tool_result", "x"),
    ]
    kinds = [r.message.metadata.get("kind") for r in read_session(path) if isinstance(r, Imported)]
    assert kinds[5:8] == ["compaction_summary", "branch_summary", "extension"]
    assert [r.thread.title for r in read_session(path) if r.thread is not None][-1] == "A name"


def test_what_was_taken_over_from_another_session_is_not_learned_from_twice(tmp_path):
    old = entry("a", at="2026-03-02T08:00:00.000Z", message={"role": "user", "content": "Begin"})
    new = entry("b", message={"role": "user", "content": "Go on"})
    path = write(tmp_path / "x_s1.jsonl", old, new, parentSession="/home/me/2026_s0.jsonl")
    found = [record for record in read_session(path) if isinstance(record, Imported)]
    assert [each.message.metadata.get("inherited", False) for each in found] == [True, False]
    assert found[0].thread.metadata["forked_from"] == "s0"
    assert [event.prompt for event in events_of(path) if event.kind == "prompt"] == ["Go on"]


def test_it_is_known_by_its_first_line():
    assert sniff(PI) == "pi"
