"""``smara import``: what a person is told about every line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.shell import on_terminal, plain, smara, spawn

SESSION = "5e551011-0000-4000-8000-000000000001"


def record(number: int, type: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": type,
        "uuid": f"uuid-{number}",
        "parentUuid": None,
        "sessionId": SESSION,
        "isSidechain": False,
        "timestamp": f"2026-02-11T20:16:{number:02}.000Z",
        "cwd": "/home/me/app",
        "version": "2.1.39",
        **fields,
    }


def said(number: int, role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return record(
        number, role, message={"role": role, "content": content, "id": f"msg_{number}"}, **fields
    )


TRANSCRIPT = [
    {"type": "summary", "summary": "Webhook retries", "leafUuid": "uuid-4"},
    said(1, "user", "Add a retry to the webhook sender"),
    said(
        2,
        "assistant",
        [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "npm test"}}],
    ),
    said(3, "user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "42 passing"}]),
    said(4, "assistant", [{"type": "text", "text": "Done: sendWebhook() retries three times."}]),
    said(5, "user", "Look for flaky tests", isSidechain=True, agentId="abc"),
    {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}, "isSnapshotUpdate": False},
]


@pytest.fixture
def transcript(tmp_path: Path) -> str:
    """A compressed transcript with a sub-agent, lines that are no messages, and a broken end."""
    path = tmp_path / "session.jsonl.gz"
    lines = [json.dumps(each) for each in TRANSCRIPT]
    path.write_bytes(gzip.compress("\n".join([*lines, '{"type": "user", "mess']).encode()))
    return str(path)


def test_compressed_transcript_is_accounted_for_line_by_line(db, transcript):
    report = spawn("import", transcript, "--json").data["files"][0]
    counted = sum(each["lines"] for each in report["counted"])
    assert (report["format"], report["lines"], report["stored"], report["refused"]) == (
        "claude-code",
        8,
        5,
        [],
    )
    assert report["lines"] == report["stored"] + report["repeated"] + counted
    assert {each["kind"] for each in report["counted"]} >= {"file-history-snapshot", "summary"}
    assert any("incomplete last line" in each["reason"] for each in report["counted"])
    assert report["threads"] == {SESSION: "conversation", f"{SESSION}/agent-abc": "subagent"}


def test_table_says_the_same(db, transcript):
    said = smara("import", transcript)
    table, reasons = said.out.split("\n\n")
    assert table.splitlines() == [
        "file\tformat\tlines\tstored\tknown\tskipped\trefused",
        f"{transcript}\tclaude-code\t8\t5\t0\t3\t0",
    ]
    assert reasons.startswith("lines\tof\tskipped because\n1\t")
    assert "which files can be restored; no words" in reasons


def test_importing_again_stores_nothing_new(db, transcript):
    smara("import", transcript)
    before = smara("messages", "list", "--thread", SESSION, "--json").data
    report = smara("import", transcript, "--json").data
    assert (report["stored"], report["files"][0]["repeated"]) == (0, 5)
    assert smara("messages", "list", "--thread", SESSION, "--json").data == before


def test_what_was_imported_is_found_where_it_belongs(db, transcript):
    smara("import", transcript, "--resource", "me")
    hit = smara("search", "sendWebhook", "--json").data["results"][0]
    assert (hit["threadId"], hit["resourceId"], hit["role"]) == (SESSION, "me", "assistant")
    thread = smara("threads", "show", f"{SESSION}/agent-abc", "--json").data
    assert (thread["kind"], thread["parentId"]) == ("subagent", SESSION)
    assert [row[0] for row in smara("threads", "list", "--kind", "subagent").rows] == [
        f"{SESSION}/agent-abc"
    ]


def test_sub_agents_are_not_counted_as_sessions(db, transcript):
    said = smara("import", transcript, is_seen=True)
    assert "Imported 5 messages from 1 session and 1 sub-agent." in said.out


def test_a_thread_of_two_files_is_counted_once_and_a_compaction_is_no_session(
    db, transcript, tmp_path
):
    """A sub-agent stands in its own file and in that of its session."""
    own = [said(n, "user", "Look", isSidechain=True, agentId="abc") for n in (5, 6)]
    summary = said(7, "user", "Sum it up", isSidechain=True, agentId="acompact-1")
    paths = [tmp_path / "agent-abc.jsonl", tmp_path / "agent-acompact-1.jsonl"]
    for path, lines in zip(paths, (own, [summary]), strict=True):
        path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    done = smara("import", transcript, *map(str, paths), is_seen=True)
    assert "messages from 1 session, 1 sub-agent and 1 compaction." in done.out


def test_title_is_the_best_that_the_transcript_has(db, transcript):
    smara("import", transcript)
    assert smara("threads", "show", SESSION, "--json").data["title"] == "Webhook retries"


def test_several_files_are_summed_up_on_a_terminal(db, tmp_path, transcript):
    plain_file = tmp_path / "notes.jsonl"
    plain_file.write_text('{"role": "user", "content": "hello"}\nnot json\n')
    seen = plain(on_terminal("import", str(plain_file), transcript, columns=120).out)
    assert "all 2 files" in seen
    assert [line.split()[-5:] for line in seen.splitlines() if line.startswith("all 2")] == [
        ["10", "6", "0", "4", "0"]
    ]
    assert "invalid JSON" in seen


def test_format_may_be_forced(db, transcript):
    report = smara("import", transcript, "--format", "jsonl", "--json").data["files"][0]
    assert report["format"] == "jsonl"
    assert report["lines"] == 8


def test_message_that_cannot_be_stored_is_named_with_its_line(db, tmp_path, monkeypatch):
    monkeypatch.setenv("SMARA_MAX_MESSAGE_BYTES", "1000")
    file = tmp_path / "notes.jsonl"
    file.write_text(
        '{"role": "user", "content": "hello"}\n'
        + json.dumps({"role": "user", "content": "x" * 2000})
    )
    report = smara("import", str(file), "--json").data["files"][0]
    assert (report["stored"], [each["line"] for each in report["refused"]]) == (1, [2])
    assert f"refused: {file}:2: " in smara("import", str(file)).out


def test_missing_file_is_told_before_anything_is_stored(db, tmp_path, transcript):
    said = smara("import", transcript, str(tmp_path / "nope.jsonl"))
    assert (said.code, said.out) == (3, "")
    assert smara("status", "--json").data["messages"] == 0
