"""A hook for which nothing was prepared asks the store, and speaks in its host's shape and limits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import smara
from smara.adapters.hosts import briefs, telling
from smara.adapters.hosts.emitting import emit, fit
from smara.adapters.hosts.preparing import instructions_of
from smara.core.triggers import triggers_of
from smara.memory import Memory
from tests.unit.hosts.hooks import Preparing, Speaking, claude, spooled


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
    said = telling.answer(agent, event, json.dumps(payload).encode(), folder)
    return json.loads(said) if said else None


def start(folder: str, cwd: Path, session_id: str = "s2", **more: str) -> dict | None:
    payload = {"session_id": session_id, "source": "startup", "cwd": str(cwd), **more}
    spooled(folder, ("claude", "SessionStart", payload))
    return asked("claude", "SessionStart", payload, folder)


def test_a_session_starts_with_what_is_known(folder, moments):
    said = asked(*claude("SessionStart", source="startup"), folder)
    assert said == {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "A fact."}}
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


def test_a_start_takes_in_first_what_the_last_session_left(folder, moments, tmp_path):
    spooled(folder, claude("UserPromptSubmit", prompt="left over"))
    assert start(folder, tmp_path)
    with smara.open(tmp_path / "smara.db") as memory:
        assert [each.raw_content for each in memory.messages.list(thread_id="s1")] == ["left over"]


def test_without_a_store_nothing_is_said_none_is_made_and_it_is_not_looked_for_again(tmp_path, monkeypatch, moments):
    store, folder = tmp_path / "none.db", str(tmp_path / "spool")
    monkeypatch.setenv("SMARA_DB", str(store))
    monkeypatch.chdir(tmp_path)
    assert asked(*claude("SessionStart", source="startup"), folder) is None
    assert not store.exists()
    assert briefs.head_of(folder, ".")["stamp"] == []
    smara.open(store).close()
    assert asked(*claude("SessionStart", source="resume"), folder)


def test_what_an_agent_has_read_by_itself_is_known(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("Use uv.")
    (tmp_path / "CLAUDE.md").write_text("Use make.")
    (tmp_path / "deep").mkdir()
    assert instructions_of("codex", str(tmp_path / "deep")) == ["Use uv."]
    assert instructions_of("claude", str(tmp_path)) == ["Use make."]


@pytest.mark.parametrize(
    ("agent", "event", "shape"),
    [
        ("claude", "PostToolUse", {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "é"}}),
        ("codex", "SessionStart", {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "é"}}),
        ("gemini", "BeforeAgent", {"hookSpecificOutput": {"hookEventName": "BeforeAgent", "additionalContext": "é"}}),
        ("copilot", "sessionStart", {"additionalContext": "é"}),
        (
            "copilot",
            "SessionStart",
            {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "é"}},
        ),
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
        ("Bash", {"command": "FOO=1 sudo ./bin/run.sh --x | tee log"}, ["tool:Bash", "program:run.sh", "program:tee"]),
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


def test_what_is_ready_is_said_also_when_the_next_cannot_be_prepared(folder, monkeypatch):
    room = Preparing()
    monkeypatch.setattr(Preparing, "prepared", lambda self, **_: 1 / 0)
    monkeypatch.setattr(Memory, "moments", room, raising=False)
    assert asked(*claude("SessionStart", source="startup"), folder)
    assert briefs.head_of(folder, ".") is None
