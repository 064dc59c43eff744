"""The spool becomes messages, behavior and work to do, exactly once, whatever happens in
between.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import smara
from smara.adapters.hosts import spool
from smara.adapters.hosts.drain import drain, lease_name, sweep
from smara.core.ids import Uuid7
from smara.database.leases import host_name
from smara.errors import DatabaseError
from smara.testing import FakeClock
from tests.unit.hosts.hooks import claude, spooled

TOKEN = "ghp_" + "Ab3dEf6hIj9lMn2pQr5tUv8xYz1B" + "c4De7f"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "spool")


@pytest.fixture
def memory(tmp_path: Path):
    with smara.open(tmp_path / "smara.db", durability="normal", token_model="estimate") as memory:
        yield memory


def texts(memory, thread_id: str = "s1") -> list[tuple[str, str]]:
    return [(each.role, each.raw_content) for each in memory.messages.list(thread_id=thread_id)]


def test_prompts_and_answers_are_stored_word_for_word_and_the_spool_is_empty(memory, folder):
    spooled(
        folder,
        claude("UserPromptSubmit", prompt="Why?\n\n  Because."),
        claude("Stop", last_assistant_message="Done."),
    )
    done = drain(memory, folder)
    assert (done.taken, done.messages, done.unreadable) == (2, 2, 0)
    assert texts(memory) == [("user", "Why?\n\n  Because."), ("assistant", "Done.")]
    assert spool.names(folder) == []


def test_draining_again_and_telling_twice_change_nothing(memory, folder):
    event = claude("UserPromptSubmit", prompt="Once", prompt_id="p1")
    spooled(folder, event, event)
    assert drain(memory, folder).repeated == 1
    spooled(folder, event)
    assert drain(memory, folder).taken == 0
    assert texts(memory) == [("user", "Once")]


def test_a_session_with_a_transcript_is_read_from_it_and_not_from_the_hooks(
    memory, folder, tmp_path
):
    transcript = tmp_path / "s1.jsonl"
    lines = [
        {
            "type": "user",
            "uuid": "u1",
            "parentUuid": None,
            "sessionId": "s1",
            "isSidechain": False,
            "timestamp": "2026-10-01T10:00:00Z",
            "message": {"role": "user", "content": "From the file"},
        },
        {
            "type": "assistant",
            "uuid": "u2",
            "parentUuid": "u1",
            "sessionId": "s1",
            "isSidechain": False,
            "timestamp": "2026-10-01T10:00:05Z",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "Answered"}]},
        },
    ]
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    path = str(transcript)
    spooled(
        folder,
        claude("UserPromptSubmit", prompt="From the file", transcript_path=path),
        claude("Stop", last_assistant_message="Answered", transcript_path=path),
    )
    done = drain(memory, folder)
    assert (done.messages, done.jobs_done, texts(memory)) == (
        0,
        0,
        [],
    )  # it is read when it is worth reading
    spooled(folder, claude("SessionEnd", reason="other", transcript_path=path))
    assert drain(memory, folder).jobs_done == 2
    assert texts(memory) == [("user", "From the file"), ("assistant", "Answered")]


def test_a_session_is_ended_when_it_says_so_and_when_it_has_been_silent(tmp_path, folder):
    clock = FakeClock(2_000_000_000_000)
    with smara.open(
        tmp_path / "smara.db", clock=clock, new_id=Uuid7(clock), token_model="estimate"
    ) as memory:
        spooled(
            folder, claude("Stop", last_assistant_message="x"), claude("SessionEnd", reason="other")
        )
        assert drain(memory, folder).jobs_done == 1
        assert memory.internals.intake.jobs() == []
        spooled(
            folder,
            ("codex", "Stop", {"session_id": "s2", "turn_id": "t", "last_assistant_message": "y"}),
        )
        assert drain(memory, folder).jobs_done == 1  # on this clock the event was hours ago
        assert memory.internals.intake.jobs() == []


def test_behavior_sees_the_events(memory, folder):
    failed = {
        "tool_name": "Bash",
        "tool_input": {"command": "make x"},
        "tool_use_id": "t1",
        "error": "Exit code 2",
    }
    spooled(
        folder, claude("SessionStart", source="startup"), claude("PostToolUseFailure", **failed)
    )
    drain(memory, folder)
    assert [each.events for each in memory.behavior.sessions()] == [2]


def test_events_go_behind_the_wall_of_the_repository_they_happened_in(
    by_folder, tmp_path, folder, monkeypatch
):
    monkeypatch.setenv("SMARA_HOME", str(tmp_path / "home"))
    repositories = [tmp_path / name for name in ("one", "two")]
    for repository in repositories:
        subprocess.run(["git", "init", "-q", str(repository)], check=True)
    monkeypatch.chdir(repositories[0])
    with smara.open(durability="normal", token_model="estimate") as memory:
        for repository in repositories:
            spooled(folder, claude("UserPromptSubmit", prompt=repository.name, cwd=str(repository)))
        drain(memory, folder)
        assert texts(memory) == [("user", "one")]
        (other,) = [each.id for each in memory.projects.list() if each.name == "two"]
        assert texts(memory.in_project(other)) == [("user", "two")]


def test_a_project_that_the_hook_was_told_wins(memory, folder):
    spooled(folder, claude("UserPromptSubmit", prompt="named"), project="chosen", cwd="/nowhere")
    drain(memory, folder)
    assert texts(memory.in_project("chosen")) == [("user", "named")]


def test_a_sub_agent_has_a_thread_of_its_own(memory, folder):
    spooled(folder, claude("SubagentStop", agent_id="a1", last_assistant_message="Found it"))
    drain(memory, folder)
    thread = memory.threads.get("s1/agent-a1")
    assert (thread.kind, thread.parent_id, texts(memory, thread.id)) == (
        "subagent",
        "s1",
        [("assistant", "Found it")],
    )


@pytest.mark.parametrize(
    "content", [b"", b"smara1\tclaude", b"garbage\n{}", b"smara1\ta\tb\t1\t\t\n[1]", b"\xff\xfe"]
)
def test_a_file_that_cannot_be_read_is_put_aside_and_holds_nothing_up(memory, folder, content):
    spooled(folder, claude("UserPromptSubmit", prompt="fine"))
    Path(folder, f"0{spool.ENDING}").write_bytes(content)
    done = drain(memory, folder)
    assert (done.taken, done.unreadable) == (1, 1)
    assert os.listdir(Path(folder, "unreadable")) == [f"0{spool.ENDING}"]


def test_events_that_nobody_has_a_use_for_are_taken_away(memory, folder):
    spooled(folder, claude("Notification", message="hello"))
    assert drain(memory, folder).unreadable == 0
    assert spool.names(folder) == []


def test_while_another_process_drains_nothing_is_done(memory, folder):
    spooled(folder, claude("UserPromptSubmit", prompt="x"))
    lease = memory.internals.leases.acquire(lease_name(folder), f"{host_name()}:{os.getpid()}")
    assert drain(memory, folder).is_busy
    memory.internals.leases.release(lease)
    assert drain(memory, folder).taken == 1


@pytest.mark.skipif(
    sys.platform == "win32",
    reason="there a process that is gone cannot be told from one that is not",
)
def test_nobody_waits_for_a_drain_whose_process_was_killed(memory, folder):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    spooled(folder, claude("UserPromptSubmit", prompt="x"))
    assert (
        memory.internals.leases.acquire(lease_name(folder), f"{host_name()}:{gone.pid}") is not None
    )
    assert drain(memory, folder).taken == 1


def test_a_drain_of_another_machine_is_waited_for(memory, folder):
    spooled(folder, claude("UserPromptSubmit", prompt="x"))
    assert memory.internals.leases.acquire(lease_name(folder), "elsewhere:1") is not None
    assert drain(memory, folder).is_busy


def test_a_store_that_cannot_be_written_leaves_every_file_where_it_was(tmp_path, folder):
    spooled(folder, claude("UserPromptSubmit", prompt="x"))
    memory = smara.open(tmp_path / "smara.db", token_model="estimate")
    memory.close()
    with pytest.raises(DatabaseError):
        drain(memory, folder)
    assert len(spool.names(folder)) == 1


def test_the_deadline_leaves_the_rest_for_the_next_one(memory, folder):
    spooled(folder, claude("UserPromptSubmit", prompt="x"))
    ticks = iter(range(0, 10_000, 50))
    assert drain(memory, folder, deadline_seconds=10, clock=lambda: float(next(ticks))).taken == 0
    assert drain(memory, folder).taken == 1


def test_a_secret_is_gone_before_it_reaches_the_disk(folder):
    spooled(folder, claude("UserPromptSubmit", prompt=f"use {TOKEN}"))
    (name,) = spool.names(folder)
    content = Path(folder, name).read_text()
    assert TOKEN not in content
    assert "[REDACTED:" in content


def test_files_and_their_folder_are_private(folder):
    (path,) = spooled(folder, claude("UserPromptSubmit", prompt="x"))
    assert oct(os.stat(path).st_mode & 0o777) == "0o600"
    assert oct(os.stat(folder).st_mode & 0o777) == "0o700"


def test_a_giant_payload_is_shortened_and_still_an_event(memory, folder):
    giant = {
        "tool_name": "Read",
        "tool_input": {"file_path": "/a"},
        "tool_use_id": "t",
        "tool_response": "x" * 3_000_000,
    }
    (path,) = spooled(folder, claude("PostToolUse", **giant))
    assert os.path.getsize(path) <= spool.MOST_BYTES + 500
    assert drain(memory, folder).taken == 1


def test_too_many_events_let_the_oldest_go_and_are_counted(folder):
    spooled(folder, *(claude("UserPromptSubmit", prompt=str(number)) for number in range(5)))
    oldest = spool.names(folder)[:2]
    assert spool.keep_bounded(folder, most=3) == 2
    assert not set(oldest) & set(spool.names(folder))
    assert Path(folder, "lost").read_text().endswith("\t2\n")


def test_halves_of_killed_hooks_and_old_marks_are_swept_away(memory, folder):
    for name, age in (
        (".half", 7_200),
        (".fresh", 10),
        ("told/old", 8 * 86_400),
        ("told/new", 3_600),
    ):
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (path.stat().st_mtime - age,) * 2)
    drain(memory, folder)
    left = sorted(
        str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file()
    )
    assert left == [".fresh", "told/new"]


def test_what_nobody_will_miss_is_taken_away_in_time(folder):
    hour, week = 3_600, 7 * 86_400
    places = {".half": hour, "told/mark": week, "briefs/old.json": week, "1-1.event": None}
    for name in places:
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    now = os.stat(Path(folder, ".half")).st_mtime
    assert sweep(folder, now + hour - 10) == 0
    assert sweep(folder, now + hour + 10) == 1
    assert sweep(folder, now + week + 10) == 2
    assert [path.name for path in Path(folder).rglob("*") if path.is_file()] == ["1-1.event"]


@pytest.mark.parametrize("cwd", ["locked", "a\0b", "x" * 5_000, "/proc/1/root", "\udcff"])
def test_an_event_from_a_folder_that_cannot_be_looked_into_holds_nothing_up(
    tmp_path, folder, monkeypatch, cwd
):
    monkeypatch.setenv("SMARA_HOME", str(tmp_path / "home"))
    (tmp_path / "locked").mkdir(mode=0o000)
    monkeypatch.chdir(tmp_path)
    with smara.open(durability="normal", token_model="estimate") as memory:
        spooled(
            folder,
            claude("UserPromptSubmit", prompt="fine", cwd=cwd),
            claude("UserPromptSubmit", prompt="next"),
        )
        assert drain(memory, folder).taken == 2
    assert spool.names(folder) == []
