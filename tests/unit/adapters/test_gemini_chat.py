"""Chats of Gemini CLI: as lines, as a document, of sub-agents, and the log of prompts."""

from __future__ import annotations

import hashlib
import json
import shutil

from smara.adapters.readers.gemini import project_root_of, read_chat
from smara.adapters.records import Imported
from tests.unit.adapters.foreign import (
    GEMINI,
    GEMINI_ID,
    GEMINI_LOG,
    GEMINI_OLD,
    GEMINI_SUB,
    reasons,
    told,
)

SESSION = {
    "sessionId": "s1",
    "projectHash": "0" * 64,
    "startTime": "2026-03-02T09:00:00.000Z",
    "lastUpdated": "x",
}


def messages(path):
    return [record.message for record in read_chat(path) if isinstance(record, Imported)]


def test_a_chat_that_was_written_again_and_again_is_stored_once():
    spoken = told(read_chat(GEMINI))
    assert spoken == [
        ("system", "text", "<session_context>\nThis is the Gemini CLI.\n</session_context>"),
        ("user", "text", "Lint the shop"),
        ("assistant", "reasoning+text", "**Linting** The linter is ruff.|I will run the linter."),
        ("assistant", "tool_call", "run_shell_command"),
        ("tool", "tool_result", "ruff: command not found"),
        ("assistant", "tool_call", "read_file"),
        ("tool", "tool_result", "def total(prices):\n    return sum(prices)"),
        ("assistant", "text", "There is no ruff here."),
        ("system", "text", "Request cancelled."),
        ("user", "text", "Never mind"),
    ]


def test_a_failed_call_is_told_as_one_and_every_line_has_a_record():
    records = list(read_chat(GEMINI))
    results = [m.content[0] for m in messages(GEMINI) if m.role == "tool"]
    assert [part.is_error for part in results] == [True, False]
    assert {record.line for record in records} == set(range(1, 15))
    assert reasons(records)["messages were taken back; they stay stored"] == 1
    assert reasons(records)["invalid JSON"] == 1


def test_the_thread_has_the_folder_and_the_summary_as_its_title():
    thread = next(
        record.thread for record in list(read_chat(GEMINI))[::-1] if record.thread is not None
    )
    assert (thread.id, thread.title, thread.metadata["cwd"]) == (
        GEMINI_ID,
        "Linting the shop",
        "/home/me/shop",
    )


def test_a_sub_agent_belongs_to_the_session_whose_folder_it_lies_in():
    threads = [record.thread for record in read_chat(GEMINI_SUB) if isinstance(record, Imported)]
    assert {(each.id, each.kind, each.parent_id) for each in threads} == {
        ("0b0b0b0b-agent", "subagent", GEMINI_ID)
    }
    assert told(read_chat(GEMINI_SUB))[-1] == ("assistant", "reasoning+text", "Glob it.|Twelve.")


def test_older_versions_wrote_one_document():
    assert [words for _, _, words in told(read_chat(GEMINI_OLD))] == [
        "Which tests are slow?",
        "test_export takes a minute.",
        "read_file",
        "import time",
    ]


def test_a_document_that_breaks_off_gives_what_stands_before(tmp_path):
    path = tmp_path / "session-x.json"
    text = GEMINI_OLD.read_text()
    path.write_text(text[: text.index('"toolCalls"')])
    records = list(read_chat(path))
    assert told(records) == [("user", "text", "Which tests are slow?")]
    assert list(reasons(records)) == ["the document breaks off or is not JSON from here on"]


def test_the_log_gives_the_prompts_of_chats_that_have_no_file():
    records = list(read_chat(GEMINI_LOG))
    assert told(records) == [
        ("user", "text", "Use tabs in the Makefile"),
        ("user", "text", "/clear"),
    ]
    assert reasons(records) == {"a prompt of a chat that has its own file": 1}


def test_a_result_that_is_cut_short_later_stays_as_it_was_first(write):
    call = {
        "id": "c",
        "name": "read_file",
        "args": {},
        "status": "success",
        "timestamp": "2026-03-02T09:00:01Z",
    }
    answer = {"id": "a", "timestamp": "2026-03-02T09:00:01Z", "type": "gemini", "content": ""}
    whole = {
        **answer,
        "toolCalls": [
            {**call, "result": [{"functionResponse": {"response": {"output": "all of it"}}}]}
        ],
    }
    cut = {
        **answer,
        "toolCalls": [
            {**call, "result": [{"functionResponse": {"response": {"output": "[masked]"}}}]}
        ],
    }
    checkpoint = {
        "$set": {
            "messages": [cut, {"id": "b", "type": "user", "content": "more", "timestamp": "x"}]
        }
    }
    records = list(read_chat(write(SESSION, whole, checkpoint)))
    assert [words for _, _, words in told(records)] == ["read_file", "all of it", "more"]


def test_calls_that_stand_in_the_content_and_beside_it_are_one(write):
    call = {
        "id": "c",
        "name": "ls",
        "args": {},
        "status": "success",
        "result": [{"text": "x"}],
        "timestamp": "t",
    }
    content = [
        {"thought": True, "text": "hm"},
        {"functionCall": {"id": "c", "name": "ls", "args": {}}},
    ]
    answer = {
        "id": "a",
        "type": "gemini",
        "content": content,
        "toolCalls": [call],
        "thoughts": [{"subject": "", "description": "hm"}],
    }
    assert [kind for _, kind, _ in told(read_chat(write(SESSION, answer)))] == [
        "reasoning",
        "tool_call",
        "tool_result",
    ]


def test_the_folder_of_a_chat_is_found_by_file_by_table_and_by_hash(tmp_path):
    named = tmp_path / ".gemini" / "tmp" / "shop" / "chats" / "session-1.jsonl"
    hashed = (
        tmp_path
        / ".gemini"
        / "tmp"
        / hashlib.sha256(b"/home/me/app").hexdigest()
        / "chats"
        / "session-2.json"
    )
    for path in (named, hashed):
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    assert project_root_of(named) == ""
    (tmp_path / ".gemini" / "projects.json").write_text(
        json.dumps({"projects": {"/home/me/shop": "shop"}})
    )
    assert project_root_of(named) == "/home/me/shop"
    assert (project_root_of(hashed), project_root_of(hashed, ["/x", "/home/me/app"])) == (
        "",
        "/home/me/app",
    )
    (named.parents[1] / ".project_root").write_text("/elsewhere")
    assert project_root_of(named) == "/elsewhere"
    (tmp_path / ".gemini" / "projects.json").write_text("[broken")
    assert project_root_of(hashed) == ""


def test_reading_again_gives_the_same_ids(tmp_path):
    copy = tmp_path / "chats" / GEMINI.name
    copy.parent.mkdir()
    shutil.copy(GEMINI, copy)
    before = [message.client_id for message in messages(copy)]
    grown = {
        "id": "g9",
        "timestamp": "2026-03-02T09:20:00.000Z",
        "type": "user",
        "content": "And now?",
    }
    copy.write_text(GEMINI.read_text().rsplit("\n", 2)[0] + "\n" + json.dumps(grown) + "\n")
    assert [message.client_id for message in messages(copy)] == [*before, "g9"]


def test_what_hooks_put_into_a_prompt_is_not_what_the_person_said(tmp_path):
    ours = (
        "<hook_context>&lt;smara-memory&gt;\n- Mend it soon.\n&lt;/smara-memory&gt;</hook_context>"
    )
    others = "<hook_context>The build is red.</hook_context>"
    prompts = [
        [{"text": f"{ours}\n\nMend it"}],
        [{"text": "Go on"}, {"text": others}],
        [{"text": ours}],
    ]
    lines = [
        SESSION,
        *({"id": f"m{n}", "type": "user", "content": each} for n, each in enumerate(prompts)),
    ]
    path = tmp_path / "session-1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert told(read_chat(path)) == [
        ("user", "text", "Mend it"),
        ("system", "text", "The build is red."),
        ("user", "text", "Go on"),
    ]
    assert [each.thread.title for each in read_chat(path) if each.thread is not None][
        -1
    ] == "Mend it"


def test_a_result_that_is_told_with_its_call_and_once_more_is_stored_once_and_its_exit_code_counts(
    tmp_path,
):
    words = (
        "<untrusted_context>\nOutput: no\nExit Code: 1\nProcess Group PGID: 7\n</untrusted_context>"
    )
    said = (
        f"{words}\n\n<hook_context>&lt;smara-memory&gt;\n- "
        "Known.\n&lt;/smara-memory&gt;</hook_context>"
    )
    response = {
        "functionResponse": {"id": "c1", "name": "run_shell_command", "response": {"output": said}}
    }
    call = {
        "id": "c1",
        "name": "run_shell_command",
        "args": {"command": "make"},
        "status": "success",
    }
    lines = [
        SESSION,
        {"id": "a", "type": "gemini", "content": "", "toolCalls": [{**call, "result": [response]}]},
        {"id": "b", "type": "user", "content": [response]},
    ]
    path = tmp_path / "session-1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert told(read_chat(path)) == [
        ("assistant", "tool_call", "run_shell_command"),
        ("tool", "tool_result", words),
    ]
    assert messages(path)[1].content[0].is_error
    assert reasons(read_chat(path))["tells again what was told before"] == 1
