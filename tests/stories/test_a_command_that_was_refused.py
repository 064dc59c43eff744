"""A command that a person refused is not run again without a word.

1. The agent installs a package with pip, and the person objects. 2. Weeks later another session
  is about to start pip: it is told the person's words before the command, once. 3. Commands that
  were not refused are answered by silence, and so is what the person refused for a moment only.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from evals.host import Session, transcript
from tests.stories.test_a_rule_before_the_edit import repository  # noqa: F401
from tests.stories.test_hooks_that_teach import hook


def work(root: Path, *steps: tuple[str, str]) -> None:
    """Play a past session: each step is a person's prompt, an agent's command or its words."""
    roles = {"person": "user", "agent": "assistant", "command": "tool"}
    turns = [
        {"role": roles[kind], "text": text}
        if kind != "command"
        else {"role": "tool", "text": "done", "input": {"command": text}}
        for kind, text in steps
    ]
    lines = transcript(Session("march", datetime(2026, 3, 1, tzinfo=UTC), turns), str(root))
    path = root.parent / "march.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    about = {"session_id": "march", "cwd": str(root), "transcript_path": str(path)}
    hook("SessionStart", **about, source="startup")
    hook("SessionEnd", **about, reason="prompt_input_exit")
    hook("drain")


def before(session: str, command: str, number: int = 0) -> str:
    return hook(
        "PreToolUse",
        session_id=session,
        cwd=os.getcwd(),
        tool_name="Bash",
        tool_use_id=f"{session}-{number}",
        tool_input={"command": command},
    )


def begin(session: str) -> str:
    return hook("SessionStart", session_id=session, cwd=os.getcwd(), source="startup")


OBJECTION = (
    ("person", "the loadings need a plot"),
    ("command", "pip install matplotlib"),
    ("agent", "I installed matplotlib and drew the plot."),
    ("person", "ugh. not pip. packages come from pixi add"),
    ("command", "pixi add matplotlib"),
    ("agent", "Removed, and added with pixi."),
    ("person", "good"),
)


def test_the_words_are_told_before_the_command_is_run_again(repository):  # noqa: F811
    work(repository, *OBJECTION)
    begin("june")
    told = before("june", "python3 --version; pip install scipy", 1)
    assert "not pip. packages come from pixi add" in told
    assert "Said by a person on" in told
    assert before("june", "pip install scipy", 2) == ""
    assert before("june", "pixi add scipy", 3) == ""


def test_what_a_start_has_told_is_told_again_before_the_command(repository):  # noqa: F811
    refusal = ("person", "no, not pip. everything here comes from pixi add, never pip")
    work(repository, *(refusal if "not pip" in each[1] else each for each in OBJECTION))
    assert "never pip" in begin("june")
    assert "never pip" in before("june", "pip install scipy", 1)
    assert before("june", "pip install scipy", 2) == ""


def test_a_command_that_the_agent_went_on_to_run_was_not_refused(repository):  # noqa: F811
    work(
        repository,
        ("person", "put the new code on the board"),
        ("command", "esptool write_flash app.bin"),
        ("agent", "The port is busy."),
        ("person", "no, esptool cannot do it, not allowed on this port"),
        ("command", "sudo usermod -aG dialout ann"),
        ("command", "esptool write_flash app.bin"),
        ("agent", "It runs now."),
        ("person", "good"),
    )
    begin("june")
    assert before("june", "esptool write_flash app.bin", 1) == ""


def test_a_refusal_that_only_puts_off_is_none(repository):  # noqa: F811
    work(
        repository,
        ("person", "swap the bytes of the sensor"),
        ("command", "git commit -am 'Swap bytes'"),
        ("agent", "Committed."),
        ("person", "don't commit yet, I want to look at it"),
        ("command", "git reset --soft HEAD~1"),
        ("agent", "Taken back."),
        ("person", "good"),
    )
    begin("june")
    assert before("june", "git commit -am 'Gain of the sensor'", 1) == ""
