"""A hook for which nothing was prepared asks the store, and speaks in its host's shape and
limits.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import smara
from smara.adapters.hook_output import emit, fit
from smara.adapters.hosts import brief, reply
from smara.adapters.hosts.hook_store import drain_in_background
from smara.adapters.hosts.precompute import instructions_of
from smara.adapters.hosts.session_log import ROUND, ROUND_SECONDS, _path, leave_mark
from smara.context.models import PrecomputedInjections
from smara.core.tool_triggers import triggers_of
from smara.memory import Memory
from tests.unit.hosts.hooks import Speaking, claude, spooled


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A spool beside a store that exists, in a folder of its own."""
    monkeypatch.setenv("SMARA_DB", str(tmp_path / "smara.db"))
    monkeypatch.chdir(tmp_path)
    smara.open(tmp_path / "smara.db", durability="normal").close()
    return str(tmp_path / "smara.db-spool")


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> Speaking:
    room = Speaking()
    monkeypatch.setattr(Memory, "moments", room, raising=False)
    return room


def asked(agent: str, event: str, payload: dict, folder: str) -> dict | None:
    said = reply.answer(agent, event, json.dumps(payload).encode(), folder=folder)
    return json.loads(said) if said else None


def start(folder: str, cwd: Path, agent: str) -> dict | None:
    payload = {"session_id": "s2", "source": "startup", "cwd": str(cwd)}
    spooled(folder, (agent, "SessionStart", payload))
    return asked(agent, "SessionStart", payload, folder=folder)


def test_a_session_starts_with_what_is_known(folder, moments):
    said = asked(*claude("SessionStart", source="startup"), folder)
    assert said == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "A fact."}
    }
    assert moments.asked == [("start", "s1", "startup", "claude")]


def test_what_is_known_is_said_again_after_a_compaction(folder, moments):
    asked(*claude("SessionStart", source="startup"), folder)
    assert asked(*claude("SessionStart", source="compact"), folder)
    assert [each[2] for each in moments.asked] == ["startup", "compact"]


def test_two_hooks_that_ask_the_same_are_answered_once(folder, moments):
    assert asked(*claude("SessionStart", source="startup"), folder)
    assert asked(*claude("SessionStart", source="startup"), folder) is None


def test_only_the_first_prompt_of_a_session_is_answered(folder, moments):
    assert asked(*claude("UserPromptSubmit", prompt="one"), folder)
    assert asked(*claude("UserPromptSubmit", prompt="two"), folder) is None
    assert moments.asked == [("first", "s1", "one")]


def test_a_helper_of_an_agent_hears_under_a_name_of_its_own(folder, moments):
    assert asked(*claude("SubagentStart", agent_id="a1", agent_type="Explore"), folder)
    assert moments.asked[0][:2] == ("start", "s1/agent-a1")


@pytest.mark.parametrize("agent", ["gemini", "claude"])
def test_a_start_takes_in_first_what_the_last_session_left_unless_the_host_does_so_beside(
    agent, folder, moments, tmp_path
):
    spooled(folder, claude("UserPromptSubmit", prompt="left over"))
    assert start(folder, tmp_path, agent)
    with smara.open(tmp_path / "smara.db") as memory:
        taken = memory.threads.find("s1") is not None
    assert taken is (agent == "gemini")


def test_without_a_store_nothing_is_said_none_is_made_and_it_is_not_looked_for_again(
    tmp_path, monkeypatch, moments
):
    store, folder = tmp_path / "none.db", str(tmp_path / "spool")
    monkeypatch.setenv("SMARA_DB", str(store))
    monkeypatch.chdir(tmp_path)
    assert asked(*claude("SessionStart", source="startup"), folder) is None
    assert not store.exists()
    assert brief.head_of(folder, ".")["stamp"] == []
    smara.open(store).close()
    assert asked(*claude("SessionStart", source="resume"), folder)


@pytest.mark.parametrize("gone", ["gone", "gone/deeper", "a\0b", "file"])
def test_in_a_folder_that_is_not_there_nothing_is_said_and_nothing_prepared(
    gone, folder, moments, tmp_path
):
    """What is known where the process happens to be belongs to another project."""
    (tmp_path / "file").touch()
    moments.ready = PrecomputedInjections()
    assert (
        asked(*claude("SessionStart", source="startup", cwd=str(tmp_path / gone)), folder) is None
    )
    assert moments.asked == []
    assert brief.heads(folder) == {}


def test_what_an_agent_has_read_by_itself_is_known(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("Use uv.")
    (tmp_path / "CLAUDE.md").write_text("Use make.")
    (tmp_path / "deep").mkdir()
    assert instructions_of("codex", str(tmp_path / "deep"), "spool") == ["Use uv."]
    assert instructions_of("claude", str(tmp_path), "spool") == ["Use make."]


@pytest.mark.parametrize(
    ("agent", "event", "shape"),
    [
        (
            "claude",
            "PostToolUse",
            {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "é"}},
        ),
        (
            "codex",
            "SessionStart",
            {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "é"}},
        ),
        (
            "gemini",
            "BeforeAgent",
            {"hookSpecificOutput": {"hookEventName": "BeforeAgent", "additionalContext": "é"}},
        ),
        ("copilot", "sessionStart", {"additionalContext": "é"}),
        ("copilot", "SessionStart", {"additionalContext": "é"}),
        ("cursor", "sessionStart", {"additional_context": "é"}),
        ("opencode", "chat.message", {"context": "é"}),
    ],
)
def test_each_host_is_told_in_its_own_shape(agent, event, shape):
    said = emit(agent, event, "é")
    assert said.isascii()
    assert json.loads(said) == shape


def test_a_text_that_is_too_long_is_cut_at_a_line_and_says_so():
    text = "\n".join(f"{number}: a fact with é" for number in range(2000))
    for in_bytes in (False, True):
        cut = fit(text, 9_500, in_bytes)
        assert len(cut.encode() if in_bytes else cut) <= 9_500
        assert cut.splitlines()[-1].startswith("[More is known")
        assert set(cut.splitlines()[:-1]) <= set(text.splitlines())
    assert fit("short", 9_500) == "short"


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        (
            "Bash",
            {"command": "FOO=1 sudo ./bin/run.sh --x | tee log"},
            ["tool:Bash", "program:run.sh", "program:tee"],
        ),
        ("shell", {"command": ["bash", "-lc", "npm test"]}, ["tool:Bash", "program:npm"]),
        (
            "apply_patch",
            {"input": "*** Begin Patch\n*** Update File: a/b.py\n*** End Patch"},
            ["tool:Edit", "file:b.py"],
        ),
        ("Read", {"file_path": "C:\\x\\y.ts"}, ["tool:Read", "file:y.ts"]),
        ("Grep", {"pattern": "x"}, ["tool:Grep"]),
        ("Grep", {"pattern": r"def\s+CartTotal"}, ["tool:Grep", "word:carttotal"]),
        ("", {}, ["tool:"]),
    ],
)
def test_what_a_call_is_about(tool, arguments, expected):
    assert triggers_of(tool, arguments) == expected


def test_what_is_ready_is_said_also_when_the_next_cannot_be_prepared(folder, moments, monkeypatch):
    monkeypatch.setattr(Speaking, "prepared", lambda self, **_: 1 / 0)
    assert asked(*claude("SessionStart", source="startup"), folder)
    assert brief.head_of(folder, ".") is None


def test_what_a_worker_would_do_is_done_once_an_hour_by_whoever_drains(folder, tmp_path):
    def vectors(content: str) -> int:
        with smara.open(tmp_path / "smara.db", durability="normal") as memory:
            memory.messages.add(thread_id="t", role="user", content=content)
        drain_in_background(folder)
        with smara.open(tmp_path / "smara.db", durability="normal") as memory:
            return sum(
                space.vectors.get("message", 0) for space in memory.embeddings.status().spaces
            )

    assert vectors("The cat sleeps on the sofa") == 1
    assert vectors("We deploy with docker") == 1
    mark = Path(_path(folder, ROUND))
    os.utime(mark, (mark.stat().st_mtime - ROUND_SECONDS - 1,) * 2)
    assert vectors("Lunch is at noon") == 3


def test_outside_git_the_store_is_asked_once_and_again_when_the_folder_was_named(
    tmp_path, monkeypatch
):
    """1. A hook outside git asks the store. 2. The next one need not. 3. It asks once more after
    the folder was named, and is told what is known there.
    """
    store, folder, plain = tmp_path / "smara.db", str(tmp_path / "spool"), tmp_path / "plain"
    plain.mkdir()
    monkeypatch.setenv("SMARA_DB", str(store))
    monkeypatch.delenv("SMARA_PROJECT")
    smara.open(store, project="other").close()
    monkeypatch.chdir(plain)
    event = claude("SessionStart", source="startup", cwd=str(plain))
    assert reply.choose(*event, folder) is None
    assert asked(*event, folder) is None
    assert reply.choose(*event, folder) == []
    with smara.open(store, project="other") as memory:
        name = memory.projects.add_folder(str(plain)).project_id
        memory.in_project(name).memories.remember("Redis must run before the tests start.")
    assert reply.choose(*event, folder) is None
    assert "Redis" in str(asked(*claude("SessionStart", source="resume", cwd=str(plain)), folder))


def test_a_round_whose_mark_cannot_be_left_is_not_made(folder):
    os.makedirs(folder, exist_ok=True)
    blocked = str(Path(folder, "a-file"))
    Path(blocked).write_text("")
    assert leave_mark(blocked, ROUND, ROUND_SECONDS)
    assert not leave_mark(blocked, ROUND, ROUND_SECONDS, if_unwritable=False)


def test_a_mark_that_cannot_be_renewed_is_not_the_first_time_for_costly_work(folder):
    mark = Path(_path(folder, ROUND))
    mark.parent.mkdir(parents=True)
    mark.symlink_to(mark)  # it is there, and its time cannot be set
    assert not leave_mark(folder, ROUND, ROUND_SECONDS, if_unwritable=False)
    assert leave_mark(folder, ROUND, ROUND_SECONDS)
