"""A hook speaks when something is known, in its host's shape and limits, and otherwise opens nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import smara
from smara.adapters.hosts import briefs, telling
from smara.adapters.hosts.emitting import emit, fit
from smara.adapters.hosts.speaking import drain_in_background, instructions_of, speak
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


def bash(command: str, **more: str) -> dict:
    return {"session_id": "s1", "tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "t", **more}


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


def test_a_tool_call_about_what_is_known_is_answered_and_any_other_opens_nothing(folder, moments):
    moments.known = ("program:pytest",)
    assert asked("claude", "PreToolUse", bash("pytest -q"), folder)
    assert briefs.watched(folder, ".") == {"program:pytest"}
    before = len(moments.asked)
    assert asked("claude", "PreToolUse", bash("ls"), folder) is None
    assert len(moments.asked) == before
    assert asked("claude", "PreToolUse", bash("cd x && pytest -q tests"), folder)


def test_a_brief_is_void_as_soon_as_the_store_has_changed(folder, moments, tmp_path):
    asked("claude", "PreToolUse", bash("pytest"), folder)
    assert briefs.watched(folder, ".") == frozenset()
    with smara.open(tmp_path / "smara.db", durability="normal") as memory:
        memory.messages.add(thread_id="t", role="user", content="Redis must run before the tests")
    assert briefs.watched(folder, ".") is None
    assert asked("claude", "PreToolUse", bash("make"), folder)


def test_a_failure_is_answered_when_anything_is_known_at_all(folder, moments):
    moments.known = ("file:a.py",)
    assert asked("claude", "PostToolUseFailure", bash("make", error="Error 2"), folder)
    assert moments.asked[-1] == ("after", "s1", "Bash", "Error 2")
    moments.known = ()
    asked("claude", "PostToolUseFailure", bash("make all", error="Error 2"), folder)
    assert asked("claude", "PostToolUseFailure", bash("make more", error="Error 2"), folder) is None


def test_draining_in_the_background_says_anew_what_is_known(folder, moments, tmp_path):
    moments.known = ("file:cart.py",)
    spooled(folder, claude("UserPromptSubmit", prompt="x", cwd=str(tmp_path)))
    drain_in_background(folder)
    assert briefs.watched(folder, str(tmp_path)) == {"file:cart.py"}


def test_a_start_takes_in_first_what_the_last_session_left(folder, moments, tmp_path):
    spooled(folder, claude("UserPromptSubmit", prompt="left over"))
    assert start(folder, tmp_path)
    with smara.open(tmp_path / "smara.db") as memory:
        assert [each.raw_content for each in memory.messages.list(thread_id="s1")] == ["left over"]


@pytest.fixture
def preparing(monkeypatch: pytest.MonkeyPatch) -> Preparing:
    room = Preparing()
    monkeypatch.setattr(Memory, "moments", room, raising=False)
    return room


def start(folder: str, cwd: Path, session_id: str = "s2", **more: str) -> dict | None:
    payload = {"session_id": session_id, "source": "startup", "cwd": str(cwd), **more}
    spooled(folder, ("claude", "SessionStart", payload))
    return asked("claude", "SessionStart", payload, folder)


def prepare(folder: str, cwd: Path) -> None:
    spooled(folder, claude("UserPromptSubmit", prompt="x", cwd=str(cwd)))
    drain_in_background(folder)


def test_a_start_that_was_prepared_is_said_without_the_store_and_receipted_at_the_drain(folder, preparing, tmp_path):
    (tmp_path / "CLAUDE.md").write_text("Use make.")
    prepare(folder, tmp_path)
    said = start(folder, tmp_path)
    assert said["hookSpecificOutput"]["additionalContext"] == "A fact. For claude; known: ['Use make.']."
    assert preparing.asked == []
    drain_in_background(folder)
    assert preparing.delivered == [("r1", "s2", "startup")]


@pytest.mark.parametrize("change", ["store", "instructions", "events", "compaction", "agent"])
def test_a_start_that_was_prepared_before_something_changed_is_asked_anew(change, folder, preparing, tmp_path):
    prepare(folder, tmp_path)
    more = {}
    if change == "store":
        with smara.open(tmp_path / "smara.db", durability="normal") as memory:
            memory.messages.add(thread_id="t", role="user", content="Redis must run before the tests")
    elif change == "instructions":
        (tmp_path / "CLAUDE.md").write_text("Use make.")
    elif change == "events":
        spooled(folder, claude("SessionEnd", reason="other", cwd=str(tmp_path)))
    elif change == "compaction":
        more = {"source": "compact"}
    if change == "agent":
        assert asked("codex", "SessionStart", {"session_id": "s2", "cwd": str(tmp_path)}, folder)
    else:
        assert start(folder, tmp_path, **more)
    assert [each[0] for each in preparing.asked] == ["start"]


def test_without_a_store_nothing_is_said_and_none_is_made(tmp_path, monkeypatch, moments):
    monkeypatch.setenv("SMARA_DB", str(tmp_path / "none.db"))
    assert speak("claude", "SessionStart", b'{"session_id": "s"}', str(tmp_path / "spool")) == b""
    assert not (tmp_path / "none.db").exists()


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
        ("", {}, ["tool:"]),
    ],
)
def test_what_a_call_is_about(tool, arguments, expected):
    assert triggers_of(tool, arguments) == expected
