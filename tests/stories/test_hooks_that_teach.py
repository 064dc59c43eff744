"""A developer goes on working in Claude Code, and the next session knows why a command failed.

1. The agent is set up in a repository. 2. In a session a command fails, another is run, and the
  first one works.
3. The session ends; the hooks only told, and left. 4. The same happens in a second session. 5. What
  waits is taken in by the host's background call. 6. What was said is found, and what was learned
  is in review, with its evidence.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import smara
from tests.surfaces.shell import smara as call

MAIN = "from smara.surfaces.cli import main; main()"


def hook(event: str, **fields: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "hook", "claude", event],
        input=json.dumps(fields).encode(),
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def session(name: str, cwd: str) -> None:
    told = {"session_id": name, "cwd": cwd}
    bash = {**told, "tool_name": "Bash"}
    hook("SessionStart", **told, source="startup")
    hook("UserPromptSubmit", **told, prompt=f"Fix the build of the {name} branch", prompt_id=name)
    hook(
        "PostToolUseFailure",
        **bash,
        tool_use_id=f"{name}-1",
        tool_input={"command": "npm test"},
        error="Exit code 1\nError: Cannot find module 'left-pad'",
    )
    hook(
        "PostToolUse",
        **bash,
        tool_use_id=f"{name}-2",
        tool_input={"command": "npm ci"},
        tool_response={"stdout": "added 10 packages"},
    )
    hook(
        "PostToolUse",
        **bash,
        tool_use_id=f"{name}-3",
        tool_input={"command": "npm test"},
        tool_response={"stdout": "5 passing"},
    )
    hook("Stop", **told, last_assistant_message="The packages had to be installed first.")
    hook("SessionEnd", **told, reason="prompt_input_exit")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    repository = tmp_path / "shop"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    monkeypatch.chdir(repository)
    monkeypatch.setenv("SMARA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("SMARA_DURABILITY", "normal")
    call("init")
    assert call("setup", "claude", "--yes").code == 0
    return repository


def test_the_level_of_trust_rises_with_sessions_that_end_and_memories_that_are_confirmed(
    repository,
):
    for name in ("first", "second", "third"):
        session(name, os.getcwd())
        hook("drain")
        hook("drain")
    shown = call("memories", "trust", "--json").data
    assert (shown["level"], shown["sessions"]) == (1, 3)
    assert len(shown["nextLevelNeeds"]) == 1  # the confirmation, and no more sessions
    call("memories", "review", "accept", "--all")
    with smara.open() as memory:
        for each in memory.memories.to_review():
            memory.memories.accept(each.id)
    shown = call("memories", "trust", "--json").data
    assert (shown["level"], shown["name"]) == (2, "standard")


def test_a_failure_that_was_overcome_in_claude_code_is_known_afterwards(
    repository: Path, tmp_path: Path
):
    for name in ("first", "second"):
        session(name, os.getcwd())
        assert len(os.listdir(tmp_path / "data" / "spool")) >= 7
        hook("drain")
    assert call("setup", "claude", "--remove", "--yes").code == 0
    assert os.listdir(repository) == [".git"]

    assert "build of the second branch" in call("search", "which build did we fix").out
    with smara.open() as memory:
        (learned,) = [
            each
            for each in memory.memories.list(state="all", limit=50)
            if "npm test" in each.content
        ]
    assert "left-pad" in learned.content
    assert "npm ci" in learned.content
    assert "left-pad" in call("memories", "why", learned.id).out
