"""A developer types one command, works on as ever, and the next session knows.

1. Two sessions of Claude Code lie in its folder. `smara init` sets it up, `smara import` brings the
  sessions in, and
   what they show waits for review.
2. A session starts: the agent is told what is known, with its source.
3. It is about to run a command that failed before: it is told so, once.
4. The developer adds a trap of a file; after the turn the agent hears it before it changes that
  file.
5. A command fails twice, another helps.
6. The context is compacted, and what is known is said again.
7. The session ends; the right new memory waits for review with its evidence, everything that was
  said has a receipt,
   and what was heeded is seen to be used.
8. Another agent, in the same repository, knows it too.
9. Everything is taken out again, byte for byte, and no process is left.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.shell import smara as call

MAIN = "from smara.surfaces.cli import main; main()"
SESSIONS = Path(__file__).parents[1] / "fixtures" / "transcripts" / "claude_code"
REAL = Path(os.environ.get("SMARA_EVAL_DATA", "/nonexistent")) / "transcripts" / "claude_code"
DAY = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%d")
MINE = '{\n  // mine\n  "model": "opus",\n}\n'


def hook(agent: str, event: str, **fields: Any) -> str:
    """Run a hook as the host does; what the model is told by it."""
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "hook", agent, event],
        input=json.dumps(fields).encode(),
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    if not done.stdout:
        return ""
    said = json.loads(done.stdout)["hookSpecificOutput"]
    assert said["hookEventName"] == event
    return str(said["additionalContext"])


class Session:
    """A session of an agent in the current folder."""

    def __init__(self, agent: str, name: str) -> None:
        self.agent = agent
        self.common = {"session_id": name, "cwd": os.getcwd(), "transcript_path": ""}
        self.calls = 0

    def tell(self, event: str, **fields: Any) -> str:
        return hook(self.agent, event, **self.common, hook_event_name=event, **fields)

    def tool(self, event: str, tool: str, given: dict[str, Any], **fields: Any) -> str:
        self.calls += 1
        return self.tell(
            event, tool_name=tool, tool_input=given, tool_use_id=f"t{self.calls}", **fields
        )

    def end_turn(self, words: str) -> None:
        self.tell("Stop", last_assistant_message=words, stop_hook_active=False)
        hook(self.agent, "drain")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in the home of a developer who has used Claude Code in it twice."""
    shop, home = tmp_path / "shop", tmp_path / "home"
    (shop / "src").mkdir(parents=True)
    (shop / "src" / "cart.js").write_text("export const total = 0\n")
    (shop / ".claude").mkdir()
    (shop / ".claude" / "settings.json").write_text(MINE)
    subprocess.run(["git", "init", "-q", str(shop)], check=True)
    told = home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(shop))
    told.mkdir(parents=True)
    for path in SESSIONS.glob("*.jsonl"):
        text = path.read_text().replace("__ROOT__", str(shop))
        # The sessions are of yesterday: what only old ones show is not said before it is confirmed.
        (told / path.name).write_text(re.sub(r'("timestamp": ?")[\d-]{10}', rf"\g<1>{DAY}", text))
    monkeypatch.chdir(shop)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SMARA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("SMARA_DURABILITY", "normal")
    for name in ("CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return shop


def waiting() -> list[str]:
    return [each["content"] for each in call("memories", "review", "--json").data["memories"]]


class Day:
    """A day in the shop; each part of the story, by its number, is a method."""

    def __init__(self, shop: Path) -> None:
        self.shop = shop
        self.files = self.found()
        self.live = Session("claude", "live")

    def found(self) -> list[Path]:
        return sorted(path for path in self.shop.rglob("*") if ".git/" not in f"{path}/")

    def one_command_brings_everything_in(self) -> None:
        assert call("init", "--yes").code == 0
        assert call("import").code == 0
        assert [content for content in waiting() if "left-pad" in content and "npm ci" in content]

    def session_starts_and_is_told(self) -> None:
        pack = self.live.tell("SessionStart", source="startup", model="claude-sonnet-4-5")
        assert "left-pad" in pack
        assert re.search(r"\[Memory #m-\w+", pack)
        assert len(pack) <= 9_500
        assert self.live.tell("UserPromptSubmit", prompt="Seed the database") == ""

    def command_that_failed_before_is_warned_of_once(self) -> None:
        npm = {"command": f"cd {self.shop} && npm test 2>&1 | tail -20"}
        warned = self.live.tool("PreToolUse", "Bash", npm)
        assert "failed here before" in warned
        assert "npm ci" in warned
        assert self.live.tool("PreToolUse", "Bash", {"command": "npm test"}) == ""
        self.live.tool(
            "PostToolUse",
            "Bash",
            {"command": "npm ci"},
            tool_response={"stdout": "added 214 packages"},
        )

    def trap_of_a_file_is_told_before_it_is_changed(self) -> None:
        remembered = call(
            "remember",
            "--type",
            "gotcha",
            "--file",
            "src/cart.js",
            "Totals in src/cart.js are integer cents: never divide before rounding",
        )
        assert remembered.code == 0
        self.live.end_turn("Ready.")
        edit = {
            "file_path": str(self.shop / "src" / "cart.js"),
            "old_string": "0",
            "new_string": "1",
        }
        assert "never divide before rounding" in self.live.tool("PreToolUse", "Edit", edit)
        assert (
            self.live.tool(
                "PostToolUse", "Edit", edit, tool_response={"filePath": edit["file_path"]}
            )
            == ""
        )

    def command_fails_twice_and_another_helps(self) -> None:
        tool = self.live.tool
        seed, error = (
            {"command": "make seed"},
            "Exit code 2\npsycopg.OperationalError: connection refused on port 5432",
        )
        for _ in range(2):
            tool("PostToolUseFailure", "Bash", seed, error=error)
        tool(
            "PostToolUse",
            "Bash",
            {"command": "docker compose up -d db"},
            tool_response={"stdout": "Started"},
        )
        tool("PostToolUse", "Bash", seed, tool_response={"stdout": "seeded 40 rows"})
        tool(
            "PostToolUse",
            "Bash",
            {"command": "npm test"},
            tool_response={"stdout": "Tests  31 passed (31)"},
        )

    def compaction_is_survived(self) -> None:
        self.live.end_turn("The database had to run first.")
        again = self.live.tell("SessionStart", source="compact")
        assert "left-pad" in again
        assert "never divide before rounding" in again

    def new_memory_waits_with_its_evidence(self) -> None:
        self.live.tell("SessionEnd", reason="prompt_input_exit")
        hook("claude", "drain")
        (learned,) = [content for content in waiting() if "make seed" in content]
        assert "connection refused" in learned
        assert "docker compose up -d db" in learned
        new = next(
            each
            for each in call("memories", "review", "--json").data["memories"]
            if each["content"] == learned
        )
        assert "connection refused on port 5432" in call("memories", "why", new["id"]).out

    def everything_said_has_a_receipt(self) -> None:
        receipts = call("receipts", "--session", "live", "--json").data["receipts"]
        assert sorted(each["point"] for each in receipts) == [
            "before_tool",
            "before_tool",
            "start",
            "start",
        ]
        assert all(each["deliveredAt"] for each in receipts)
        assert [each for each in receipts if each["usedAt"] and "npm ci" in each["text"]]

    def another_agent_knows_it_too(self) -> None:
        codex = Session("codex", "other")
        assert "docker compose up -d db" in codex.tell(
            "SessionStart", source="startup", model="gpt-5"
        )
        shell = {"command": ["bash", "-lc", "make seed"]}
        assert "docker compose up -d db" in codex.tool("PreToolUse", "shell", shell, turn_id="1")
        codex.tell("SessionEnd", reason="other")
        hook("codex", "drain")

    def everything_is_taken_out_again(self) -> None:
        assert call("setup", "claude", "--remove", "--yes").code == 0
        assert (self.shop / ".claude" / "settings.json").read_text() == MINE
        assert self.found() == self.files
        assert processes_in(self.shop) == []


def test_the_next_session_knows_what_the_last_ones_learned(shop):
    day = Day(shop)
    day.one_command_brings_everything_in()  # 1
    day.session_starts_and_is_told()  # 2
    day.command_that_failed_before_is_warned_of_once()  # 3
    day.trap_of_a_file_is_told_before_it_is_changed()  # 4
    day.command_fails_twice_and_another_helps()  # 5
    day.compaction_is_survived()  # 6
    day.new_memory_waits_with_its_evidence()  # 7
    day.everything_said_has_a_receipt()
    day.another_agent_knows_it_too()  # 8
    day.everything_is_taken_out_again()  # 9


def processes_in(folder: Path) -> list[str]:
    """The processes that still work in a folder, this one aside; they can be seen on Linux
    alone.
    """
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if place.name != str(os.getpid()) and os.readlink(place / "cwd") == str(folder):
                found.append((place / "cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.mark.skipif(not REAL.is_dir(), reason="needs SMARA_EVAL_DATA")
def test_sessions_that_really_took_place_make_the_first_day_warm(shop, tmp_path):
    """What real sessions show is said when the next one starts, with its source, within the hosts'
    limits.
    """
    real = tmp_path / "real"
    real.mkdir()
    for path in sorted(REAL.glob("*.jsonl.gz")):
        (real / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    assert call("init", "--yes").code == 0
    assert call("import", str(real)).code == 0
    learned = waiting()
    assert learned
    live = Session("claude", "live")
    pack = live.tell("SessionStart", source="startup", model="claude-sonnet-4-5")
    assert re.search(r"\[(?:Memory #m-\w+|Thread )", pack)
    assert len(pack) <= 9_500
    hook("claude", "drain")
    assert live.tell("SessionStart", source="resume") == ""  # it has it before its eyes
    (receipt,) = [
        each for each in call("receipts", "--json").data["receipts"] if each["source"] == "startup"
    ]
    assert receipt["text"] == pack
