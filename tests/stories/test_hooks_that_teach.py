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


def hook(event: str, **fields: Any) -> str:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "hook", "claude", event],
        input=json.dumps(fields).encode(),
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


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


def tool(event: str, name: str, given: dict[str, Any], number: int, **fields: Any) -> str:
    told = {"session_id": f"s{number}", "cwd": os.getcwd(), "tool_use_id": f"t{number}"}
    return hook(event, **told, tool_name=name, tool_input=given, **fields)


def test_a_path_in_the_words_ties_a_memory_to_that_file(repository: Path):
    file = repository / "src" / "shop" / "billing" / "invoice.py"
    file.parent.mkdir(parents=True)
    file.write_text("TOTAL = 0\n")
    call("remember", "Totals in src/shop/billing/invoice.py are integer cents")
    with smara.open() as memory:
        (taught,) = memory.memories.list()
        noted = memory.memories.add(
            "Rounding in ./src/shop/billing/invoice.py:10 is half up", type="gotcha"
        ).memory
    assert taught.files == noted.files == ("src/shop/billing/invoice.py",)
    edit = {"file_path": str(file), "old_string": "0", "new_string": "1"}
    assert "integer cents" in tool("PreToolUse", "Edit", edit, 1)
    other = {**edit, "file_path": str(repository / "src" / "shop" / "cart.py")}
    assert tool("PreToolUse", "Edit", other, 2) == ""


def test_a_name_in_the_words_ties_a_memory_to_the_one_file_that_has_it(repository: Path):
    files = ["src/shop/cart.py", "src/shop/__init__.py", "src/__init__.py", "Makefile", "Notes"]
    for name in (*files, "deploy/Dockerfile"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("x = 1\n")
    subprocess.run(["git", "add", "."], check=True)
    said = {
        "cart.py must never round before the discount": ("src/shop/cart.py",),
        "Totals in shop/cart.py are integer cents": ("src/shop/cart.py",),
        "Makefile targets are phony": ("Makefile",),
        "Every __init__.py of ours is empty": (),  # two have this name
        "Use the Dockerfile, its notes and makefile": (),
        "example.com/cart.py is no file of ours": (),
    }
    for text in said:
        call("remember", text)
    with smara.open() as memory:
        assert {each.content: each.files for each in memory.memories.list()} == said
    edit = {"file_path": str(repository / files[0]), "old_string": "1", "new_string": "2"}
    assert "before the discount" in tool("PreToolUse", "Edit", edit, 1)


def test_a_search_is_answered_whether_or_not_the_name_stood_in_backticks(repository: Path):
    call("remember", "The retry_budget value is configured by Shop.Limits in one place")
    call("remember", "Every page_limit of the shop is a setting, and CartTotal reads it")
    answers = {
        "retry_budget": "configured",
        "def page_limit": "a setting",
        "CartTotal": "a setting",
        "Limits": "",
        "shop": "",
        "setting": "",
        "configured": "",
    }
    for number, (pattern, words) in enumerate(answers.items()):
        given = {"pattern": pattern}
        told = tool("PostToolUse", "Grep", given, number, tool_response={"filenames": []})
        assert words in told if words else not told, pattern


def test_what_reading_a_file_costs_is_told_by_a_hook_before_it_is_read_whole(repository: Path):
    file = repository / "src" / "api_pb2.py"
    file.parent.mkdir()
    file.write_text("x = 1\n")
    cost = "Reading src/api_pb2.py whole takes 21,067 tokens at once"
    call("remember", cost, "--type", "context_cost")
    assert tool("PreToolUse", "Read", {"file_path": str(file), "limit": 50}, 1) == ""
    assert "21,067 tokens" in tool("PreToolUse", "Read", {"file_path": str(file)}, 2)
