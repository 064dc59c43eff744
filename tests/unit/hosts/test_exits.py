"""How a command of Codex ended is looked up in its session's record, since its hooks do not tell
it.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smara.adapters.hosts import reply
from smara.adapters.hosts.exit_codes import failure_at_hand, with_exits
from smara.adapters.hosts.normalize import events_of
from smara.core import host_table
from smara.core.events import HostEvent

WROTE = "ModuleNotFoundError: No module named shop\n"


def ended(call_id: str, code: object, output: str = WROTE) -> dict[str, Any]:
    """What Codex writes when a command has ended, before it calls the hook."""
    item = {
        "type": "CommandExecution",
        "id": call_id,
        "command": ["/bin/bash", "-lc", "make"],
        "status": "failed",
        "aggregated_output": output,
        "exit_code": code,
    }
    return {
        "type": "event_msg",
        "payload": {"type": "item_completed", "thread_id": "t", "item": item},
    }


def answered(call_id: str, output: str) -> dict[str, Any]:
    """What Codex writes when the model is given the result."""
    return {
        "type": "response_item",
        "payload": {"type": "function_call_output", "call_id": call_id, "output": output},
    }


def called(call_id: str) -> dict[str, Any]:
    item = {
        "type": "function_call",
        "name": "exec_command",
        "call_id": call_id,
        "arguments": '{"cmd": "make"}',
    }
    return {"type": "response_item", "payload": item}


def rollout(path: Path, *records: object) -> str:
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return str(path)


def event(path: str, call_id: str = "call_1", output: str = WROTE, tool: str = "Bash") -> HostEvent:
    payload = {
        "session_id": "s",
        "turn_id": "t",
        "transcript_path": path,
        "cwd": "/w",
        "hook_event_name": "PostToolUse",
        "tool_name": tool,
        "tool_input": {"command": "make"},
        "tool_response": output,
        "tool_use_id": call_id,
    }
    return events_of("codex", "PostToolUse", json.dumps(payload).encode(), at_ms=1_793_000_000_000)[
        0
    ]


def test_a_host_reads_its_own_record_of_exit_codes(tmp_path, monkeypatch):
    """Another host than Codex that tells its hooks none, with a transcript of its own form."""
    monkeypatch.setitem(host_table.EXIT_CODES, "quill", f"{__name__}:quill_codes")
    path = tmp_path / "quill.log"
    path.write_text("call_1 3")
    told = replace(event(str(path)), agent="quill")
    assert [each.kind for each in with_exits([told])] == ["tool_fail"]
    payload = {"transcript_path": str(path), "tool_use_id": "call_1"}
    assert failure_at_hand("quill", payload, "") == "Exit code 3"


def quill_codes(path, calls, most):
    call, code = Path(path).read_text().split()
    return {call: int(code)} if call in calls else {}


@pytest.mark.parametrize(
    "record",
    [
        ended("call_1", 3),
        {"payload": {"type": "exec_command_end", "call_id": "call_1", "exit_code": 3}},
        answered(
            "call_1",
            f"Chunk ID: 8a\nWall time: 0.1 seconds\nProcess exited with code 3\nOutput:\n{WROTE}",
        ),
        answered("call_1", f"Exit code: 3\nWall time: 0 seconds\nOutput:\n{WROTE}"),
        answered(
            "call_1",
            json.dumps({"output": WROTE, "metadata": {"exit_code": 3, "duration_seconds": 0.1}}),
        ),
    ],
    ids=["item", "end", "heading", "short heading", "metadata"],
)
def test_a_command_that_failed_by_the_record_is_a_failure(record, tmp_path):
    path = rollout(tmp_path / "r.jsonl", called("call_1"), record, called("call_2"))
    before = event(path)
    after = with_exits([before])[0]
    assert (before.kind, before.error) == ("tool_post", None)
    assert (after.kind, after.error, after.tool_output) == ("tool_fail", WROTE, WROTE)
    assert after.key == before.key


def test_a_failure_that_wrote_nothing_tells_its_code(tmp_path):
    path = rollout(tmp_path / "r.jsonl", ended("call_1", 1, ""))
    assert with_exits([event(path, output="")])[0].error == "Exit code 1"


@pytest.mark.parametrize(
    "record",
    [
        ended("call_1", 0),
        ended("call_1", None),
        ended("call_1", True),
        ended("call_2", 3),
        ended("call_11", 3),
        answered("call_1", "Chunk ID: 8a\nProcess exited with code 0\nOutput:\nExit code: 3\n"),
        answered("call_1", "Wall time: 0 seconds\nOutput:\na\nb\nc\nProcess exited with code 3\n"),
        ended("call_1", 0, '{"exit_code": 3, "id": "call_1"}'),
        {"payload": {"type": "message", "id": "call_1", "content": "exit_code"}},
        {"payload": ["exit_code", {"id": "call_1"}]},
        ["exit_code", {"id": "call_1"}],
        {"exit_code": 3, "id": "call_1"},
    ],
)
def test_what_the_record_does_not_call_a_failure_is_none(record, tmp_path):
    path = rollout(tmp_path / "r.jsonl", record)
    told = event(path)
    assert with_exits([told]) == [told]


def test_records_that_cannot_be_read_change_nothing(tmp_path):
    (tmp_path / "damaged").write_bytes(
        b'{"payload": {"exit_code": 3, "id": "call_1"\n\xff\xfe exit_code "id":"call_1"\n'
    )
    (tmp_path / "folder").mkdir()
    for name in ("damaged", "folder", "missing", "\0"):
        told = event(str(tmp_path / name))
        assert with_exits([told]) == [told]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes of this kind")
def test_a_pipe_in_the_place_of_the_record_holds_nobody_up(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    told = event(str(tmp_path / "pipe"))
    assert with_exits([told]) == [told]


def test_other_agents_tools_and_told_failures_are_left_as_they_are(tmp_path):
    path = rollout(tmp_path / "r.jsonl", ended("call_1", 3))
    patched = event(path, tool="apply_patch")
    claude = HostEvent(
        "claude", "tool_post", "s", at_ms=1, tool="Bash", tool_use_id="call_1", transcript_path=path
    )
    known = HostEvent(
        "codex",
        "tool_fail",
        "s",
        at_ms=1,
        tool="Bash",
        error="x",
        tool_use_id="call_1",
        transcript_path=path,
    )
    assert with_exits([patched, claude, known]) == [patched, claude, known]


def test_calls_far_back_in_a_long_record_are_found(tmp_path):
    noise = [answered(f"other_{n}", "x" * 4_000) for n in range(200)]
    path = rollout(
        tmp_path / "r.jsonl", ended("call_1", 3), *noise, ended("call_2", 0), ended("call_3", 4)
    )
    kinds = [each.kind for each in with_exits([event(path, f"call_{n}") for n in (1, 2, 3)])]
    assert kinds == ["tool_fail", "tool_post", "tool_fail"]


def test_a_hook_knows_of_the_failure_it_is_called_for(tmp_path):
    path = rollout(tmp_path / "r.jsonl", called("call_1"), ended("call_1", 3))
    told = {
        "session_id": "s",
        "turn_id": "t",
        "transcript_path": path,
        "cwd": "/w",
        "tool_name": "Bash",
        "tool_input": {"command": "make"},
        "tool_response": WROTE,
        "tool_use_id": "call_1",
    }
    assert reply.call_of("codex", "PostToolUse", told) == ("Bash", {"command": "make"}, WROTE)
    assert failure_at_hand("codex", {**told, "transcript_path": None}, WROTE) is None
    unmarked = {name: value for name, value in told.items() if name != "turn_id"}
    assert reply.call_of("claude", "PostToolUse", unmarked)[2] is None
