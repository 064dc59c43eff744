"""A person turns "vectors only" on: hooks, commands and tools leave no words in any file."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from smara.adapters.hosts import spool
from tests.hook_replay import read_session
from tests.surfaces.shell import smara as call
from tests.surfaces.test_hooks import home_with, hook
from tests.transcript_texts import ANSWER, PROMPT, THANKS, holding, texts_of, transcript, windows


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository of a person who has Claude Code, one past session, and a store of their own."""
    folder = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    home = home_with(tmp_path, monkeypatch, ".claude")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("SMARA_PROJECT", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("SMARA_DB", str(home / "smara.db"))
    monkeypatch.chdir(folder)
    transcript(home / ".claude" / "projects" / "x" / "kettle.jsonl", cwd=str(folder))
    return folder


def path_of(name: str = "kettle") -> Path:
    return Path.home() / ".claude" / "projects" / "x" / f"{name}.jsonl"


def files() -> list[Path]:
    """Return every file that Smara may write: all of the home but the agent's own folder."""
    return [each for each in Path.home().rglob("*") if ".claude" not in each.parts]


def tell(path: Path, agent: str = "claude", **more: str) -> None:
    """Send every hook of a session."""
    for sent in read_session(path).sent():
        payload = {**sent.payload, **more}
        assert hook(agent, sent.event, json.dumps(payload).encode()).returncode == 0


def test_hooks_of_every_kind_leave_no_piece_of_a_message_after_the_drain(repository):
    """1. A session with a transcript and one without are told by hooks. 2. Their words wait in the
    spool. 3. After the drain and a worker's round no file has a piece of them; those with a
    transcript are found and shown.
    """
    assert call("init", "--keep", "vectors").code == 0
    pieces = windows(texts_of(path_of()))
    tell(path_of(), transcript_path=str(path_of()))
    tell(path_of(), "generic", session_id="without")
    assert holding(files(), pieces)
    assert call("hook", "drain", "--json").data["messages"] == 0
    for _ in range(2):
        assert call("worker", "--once").code == 0
    call("import")
    assert spool.names(f"{Path.home() / 'smara.db'}-spool") == []
    assert holding(files(), pieces) == []
    assert hook("claude", "SessionStart", b'{"session_id": "next"}').returncode == 0
    assert holding(files(), pieces) == []
    assert PROMPT in call("search", "zymurgy kettle").out
    shown = call("messages", "list", "--thread", "kettle", "--json").data
    assert ANSWER in json.dumps(shown)


def test_person_is_told_what_is_kept_and_what_does_not_work(repository):
    said = call("init", "--yes", "--keep", "vectors").out
    assert "Keeps    vectors" in said
    assert "Nothing is learned from them" in said
    status = call("status", "--json").data["keep"]
    assert (status["mode"], status["withoutText"], status["withText"]) == ("vectors", 6, 0)
    assert "vectors (6 messages without text, 0 with text)" in call("status").out
    findings = call("doctor", "--json").data["findings"]
    assert [each["level"] for each in findings if each["check"] == "texts"] == ["ok"]
    words = ("--thread", "t", "--role", "user", "--content", "Some words of mine")
    refused = call("messages", "add", *words)
    assert refused.code == 2
    assert "keeps vectors" in refused.err
    assert "observed" in call("observe", "kettle").err
    path_of().unlink()
    assert "is gone" in call("search", "zymurgy kettle").out
    assert call("doctor", "--json").data["findings"]
    found = [each["text"] for each in call("doctor", "--json").data["findings"]]
    assert any("transcripts that had it are gone" in each for each in found)


def test_stored_texts_are_taken_out_by_a_command_that_lists_them_first(repository):
    call("init", "--yes")
    pieces = windows(texts_of(path_of()))
    assert holding(files(), pieces)
    refused = call("erase", "--transcribed", "--yes")
    assert (refused.code, "--keep vectors" in refused.err) == (2, True)
    said = call("init", "--keep", "vectors").out
    assert "smara erase --transcribed" in said
    planned = call("erase", "--transcribed")
    assert "Would take the text of 6 messages out of the store." in planned.out
    assert holding(files(), pieces)
    done = call("erase", "--transcribed", "--yes", "--json")
    assert (done.code, done.data["messages"], done.data["refused"]) == (0, 6, 0)
    assert holding(files(), pieces) == []
    assert THANKS in call("search", "marmalade").out
    backup = call("backup", str(repository / "b.db")).out
    assert "terms.key" in backup
    assert holding([repository / "b.db"], pieces) == []
