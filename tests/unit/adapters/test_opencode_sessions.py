"""Sessions of OpenCode: from its folder of files, from its database in both shapes, and from an
export.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from smara.adapters.importer import sniff
from smara.adapters.readers.opencode import read_sessions
from smara.adapters.records import Imported
from tests.unit.adapters.foreign import OPENCODE, add_row, opencode_database, reasons, told

SAID = [
    ("system", "text", "Called the Read tool with the following input: {}"),
    ("user", "text+image", "The receipt prints twice. Please fix it.|receipt.png"),
    ("assistant", "reasoning", "The printer may be called twice."),
    ("assistant", "tool_call", "bash"),
    ("tool", "tool_result", "1 failing\n  Error: printed twice"),
    ("assistant", "tool_call", "edit"),
    ("tool", "tool_result", "oldString not found in content"),
    ("assistant", "tool_call", "task"),
    ("tool", "tool_result", "receipt.ts and till.ts"),
    ("assistant", "text", "It is called from receipt.ts and till.ts."),
]


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    shutil.copytree(OPENCODE.parents[2], tmp_path / "storage")
    return tmp_path / "storage"


def test_a_session_is_gathered_from_its_files():
    records = list(read_sessions(OPENCODE))
    assert told(records) == SAID
    assert [record.line for record in records] == list(range(1, 15))
    assert reasons(records)["still being written; import again later"] == 2


def test_the_database_gives_the_same_under_the_same_ids(tmp_path):
    database = opencode_database(tmp_path / "opencode.db")
    assert sniff(database) == "opencode"
    one = [
        record
        for record in read_sessions(database, only="ses_0001")
        if isinstance(record, Imported)
    ]
    files = [record for record in read_sessions(OPENCODE) if isinstance(record, Imported)]
    assert [each.message for each in one] == [each.message for each in files]
    assert {each.thread.id for each in read_sessions(database) if isinstance(each, Imported)} == {
        "ses_0001",
        "ses_0002",
    }


def test_failures_are_told_by_status_and_by_exit_code():
    parts = [
        r.message.content[0]
        for r in read_sessions(OPENCODE)
        if isinstance(r, Imported) and r.message.role == "tool"
    ]
    assert [part.is_error for part in parts] == [True, True, False]


def test_the_thread_has_the_folder_and_a_sub_agent_its_session():
    (record,) = read_sessions(OPENCODE.with_name("ses_0002.json"))
    assert (record.thread.kind, record.thread.parent_id) == ("subagent", "ses_0001")
    assert record.thread.metadata["cwd"] == "/home/me/shop"
    assert record.message.metadata["kind"] == "agent_prompt"


def test_what_was_still_being_written_comes_the_next_time(storage):
    path = storage / "session" / "proj1" / "ses_0001.json"
    before = [r.message.client_id for r in read_sessions(path) if isinstance(r, Imported)]
    text = storage / "part" / "msg_03" / "prt_20.json"
    text.write_text(
        json.dumps(
            {
                **json.loads(text.read_text()),
                "text": "I am now removing it.",
                "time": {"start": 1, "end": 2},
            }
        )
    )
    after = [r.message.client_id for r in read_sessions(path) if isinstance(r, Imported)]
    assert after == [*before, "prt_20"]


def test_files_that_cannot_be_read_are_counted(storage):
    (storage / "part" / "msg_02" / "prt_12.json").write_text("{broken")
    (storage / "message" / "ses_0001" / "msg_03.json").write_text("[]")
    records = list(read_sessions(storage / "session" / "proj1" / "ses_0001.json"))
    assert reasons(records)["invalid JSON"] == 1
    assert reasons(records)["not a JSON object"] == 1
    assert len(told(records)) == len(SAID) - 2


def test_the_first_versions_kept_everything_below_session(tmp_path):
    below = tmp_path / "storage" / "session"
    info = below / "info" / "ses_9.json"
    files = {
        info: {
            "id": "ses_9",
            "title": "Old",
            "version": "0.1",
            "time": {"created": 1, "updated": 2},
        },
        below / "message" / "ses_9" / "msg_1.json": {
            "id": "msg_1",
            "role": "user",
            "time": {"created": 5},
        },
        below / "part" / "ses_9" / "msg_1" / "prt_1.json": {
            "id": "prt_1",
            "type": "text",
            "text": "hello",
        },
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(content, indent=2))
    assert sniff(info) == "opencode"
    assert told(read_sessions(info)) == [("user", "text", "hello")]


def test_an_export_is_read_too(tmp_path, storage):
    infos = [
        json.loads(each.read_text())
        for each in sorted((storage / "message" / "ses_0001").iterdir())
    ]
    parts = {
        each["id"]: [
            json.loads(file.read_text())
            for file in sorted((storage / "part" / each["id"]).iterdir())
        ]
        for each in infos
    }
    export = tmp_path / "export.json"
    messages = [{"info": each, "parts": parts[each["id"]]} for each in infos]
    export.write_text(
        json.dumps({"info": json.loads(OPENCODE.read_text()), "messages": messages}, indent=2)
    )
    assert sniff(export) == "opencode"
    assert told(read_sessions(export)) == SAID


def test_the_next_version_keeps_the_content_in_the_message(tmp_path):
    database = opencode_database(tmp_path / "opencode.db")
    add_row(database, "session", ("ses_2", "p", None, "s", "/app", "Second", "2.0", 1, 99))
    tool = {
        "type": "tool",
        "id": "call_1",
        "name": "bash",
        "time": {"created": 30, "ran": 31, "completed": 40},
        "state": {
            "status": "error",
            "input": {"command": "make"},
            "content": [],
            "structured": {},
            "error": {"type": "unknown", "message": "no rule"},
        },
    }
    rows = [
        (
            "user",
            {
                "text": "Build it",
                "files": [
                    {"uri": "file:///app/Makefile", "mime": "text/plain", "name": "Makefile"}
                ],
                "time": {"created": 10},
            },
        ),
        (
            "assistant",
            {
                "agent": "build",
                "model": {"id": "m", "providerID": "p"},
                "time": {"created": 20, "completed": 50},
                "content": [
                    {"type": "reasoning", "id": "r", "text": "hm"},
                    tool,
                    {"type": "text", "id": "t", "text": "It has no rule."},
                ],
            },
        ),
        (
            "shell",
            {
                "callID": "c2",
                "command": "ls",
                "output": "Makefile",
                "time": {"created": 60, "completed": 61},
            },
        ),
        ("model-switched", {"model": {"id": "n"}, "time": {"created": 62}}),
        (
            "compaction",
            {
                "reason": "auto",
                "summary": "There is no rule.",
                "recent": "",
                "time": {"created": 70},
            },
        ),
    ]
    for number, (kind, data) in enumerate(rows, 1):
        add_row(
            database,
            "session_message",
            (f"msg_{number}", "ses_2", kind, number, 1, 1, json.dumps(data)),
        )
    records = list(read_sessions(database, only="ses_2"))
    assert told(records) == [
        ("user", "text+file", "Build it|Makefile"),
        ("assistant", "reasoning", "hm"),
        ("assistant", "tool_call", "bash"),
        ("tool", "tool_result", "no rule"),
        ("assistant", "text", "It has no rule."),
        ("assistant", "tool_call", "bash"),
        ("tool", "tool_result", "Makefile"),
        ("system", "text", "There is no rule."),
    ]
    assert reasons(records) == {"a setting of the session": 1}


def test_a_damaged_or_foreign_database_is_counted(tmp_path):
    database = opencode_database(tmp_path / "opencode.db")
    content = database.read_bytes()
    database.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    assert list(reasons(read_sessions(database))) == [
        "not a database of OpenCode, or a damaged one"
    ]
