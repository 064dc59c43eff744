"""A rule that was settled in a talk reaches the agent before it changes the code.

1. In a session with hooks a person and an agent settle how a fee is capped. 2. The session ends,
  and what waits is taken in by the host's background call. 3. Weeks later a new session begins with
  a complaint about the fee: the rule is told with the first message, quoted and cited. 4. It is not
  told a second time, and other messages are answered by silence. 5. In another session it is told
  when the talk turns to the fee later on, and when the file of the function is opened.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import smara
from tests.contract.test_decisions import PARKING, TASK
from tests.stories.test_hooks_that_teach import hook
from tests.surfaces.shell import smara as call


@pytest.fixture(params=["sqlite", "postgres"])
def repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Path:
    if request.param == "postgres":
        monkeypatch.setenv("SMARA_DB", str(request.getfixturevalue("postgres_url")))
    root = tmp_path / "garage"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.chdir(root)
    monkeypatch.setenv("SMARA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("SMARA_DURABILITY", "normal")
    (root / "fees.py").write_text("def parking_fee(hours):\n    return 4 * hours\n")
    names = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", *names, "commit", "-qm", "Fees"], check=True)
    call("init")
    assert call("setup", "claude", "--yes").code == 0
    return root


def talk(name: str) -> None:
    about = {"session_id": name, "cwd": os.getcwd()}
    hook("SessionStart", **about, source="startup")
    for number, (role, text) in enumerate(PARKING):
        if role == "user":
            hook("UserPromptSubmit", **about, prompt=text, prompt_id=f"{name}-{number}")
        else:
            hook("Stop", **about, last_assistant_message=text)
    hook("SessionEnd", **about, reason="prompt_input_exit")
    hook("drain")


def ask(name: str, prompt: str, number: int = 0) -> str:
    about = {"session_id": name, "cwd": os.getcwd()}
    return hook("UserPromptSubmit", **about, prompt=prompt, prompt_id=f"{name}-{number}")


def test_a_settled_rule_is_told_with_the_first_message_about_it(repository):
    talk("march")
    hook("SessionStart", session_id="june", cwd=os.getcwd(), source="startup")
    reply = ask("june", TASK)
    assert "capped at 24 euros per 24 hours" in reply
    assert "Said by a person on" in reply
    assert ask("june", TASK, 1) == ""
    assert ask("june", "Now run the tests, please.", 2) == ""
    shown = call("receipts", "--json").data
    assert shown is not None


def test_a_project_that_wants_only_the_start_is_told_no_rule_with_a_message(
    repository, monkeypatch
):
    monkeypatch.setenv("SMARA_MOMENTS", "start")
    talk("march")
    hook("SessionStart", session_id="june", cwd=os.getcwd(), source="startup")
    assert ask("june", TASK) == ""
    assert ask("june", TASK, 1) == ""


def test_a_settled_rule_is_told_when_the_talk_turns_to_it_or_its_file_is_opened(repository):
    talk("march")
    hook("SessionStart", session_id="july", cwd=os.getcwd(), source="startup")
    assert ask("july", "Why is the build slow?") == ""
    assert "24 euros" in ask("july", TASK, 1)
    about = {"session_id": "august", "cwd": os.getcwd()}
    hook("SessionStart", **about, source="startup")
    assert ask("august", "Clean up the small modules.") == ""
    opened = hook(
        "PostToolUse",
        **about,
        tool_name="Read",
        tool_use_id="read-1",
        tool_input={"file_path": str(repository / "fees.py")},
        tool_response={"file": {"content": "def parking_fee(hours):"}},
    )
    assert "24 euros" in opened


def test_what_a_commit_decided_is_told_with_the_first_message_about_it(repository):
    text = "GRACE = {}\n\n\ndef free_minutes(car):\n    return GRACE\n"
    names = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    reason = (
        "Give ambulances 45 free minutes\n\nBecause the hospital has no driveway of its own, an"
        " ambulance waits at the barrier of the garage."
    )
    for message, minutes in (("Grace", 30), (reason, 45), ("Simplify", 5)):
        (repository / "grace.py").write_text(text.format(minutes))
        subprocess.run(["git", "add", "-A"], check=True)
        subprocess.run(["git", *names, "commit", "-qm", message], check=True)
    assert call("init", "--yes").code == 0
    hook("SessionStart", session_id="may", cwd=os.getcwd(), source="startup")
    hook("drain")
    reply = ask("may", "The hospital complains that ambulances pay at the barrier after minutes.")
    assert "- Undone in `grace.py`" in reply
    assert "the hospital has no driveway" in reply
    assert ask("may", "And what do ambulances pay at the barrier of the hospital now?", 1) == ""
    (repository / "grace.py").write_text(text.format(45))
    hook("SessionStart", session_id="mended", cwd=os.getcwd(), source="startup")
    assert "Undone" not in ask("mended", "Why do ambulances pay at the barrier of the hospital?")


def test_a_rule_follows_its_file_to_another_name(repository):
    talk("march")
    remembered = "parking_fee returns whole euros; the barrier has no coins"
    assert call("remember", "--type", "gotcha", "--file", "fees.py", remembered).code == 0
    (repository / "garage").mkdir()
    names = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    subprocess.run(["git", "mv", "fees.py", "garage/tariff.py"], check=True)
    subprocess.run(["git", *names, "commit", "-qam", "Move the tariff"], check=True)
    assert call("code", "index").code == 0
    hook("SessionStart", session_id="june", cwd=os.getcwd(), source="startup")
    hook("Stop", session_id="june", cwd=os.getcwd(), last_assistant_message="Ready.")
    hook("drain")
    path = str(repository / "garage" / "tariff.py")
    change = {"file_path": path, "old_string": "4", "new_string": "5"}
    for session in ("june", "july"):
        about = {"session_id": session, "cwd": os.getcwd(), "tool_use_id": f"edit-{session}"}
        told = hook("PreToolUse", **about, tool_name="Edit", tool_input=change)
        assert "24 euros" in told
        assert session == "june" or "whole euros" in told
    with smara.open() as memory:
        injection = memory.moments.before_tool("august", "Edit", change)
    assert injection is not None
    assert "24 euros" in injection.text
    assert "garage/tariff.py]" in injection.text


def test_what_was_told_when_the_file_was_read_is_not_told_again_before_its_edit(repository):
    """1. one of two lines about a file is told as it is read; 2. the other one before the edit."""
    call("remember", "Fees are whole euros in fees.py", "--type", "gotcha", "--file", "fees.py")
    rule = "Every change of fees.py needs a line in CHANGES"
    call("remember", rule, "--type", "requirement", "--file", "fees.py")
    assert call("context", "preview").code == 0
    hook("drain")
    about = {"session_id": "may", "cwd": os.getcwd(), "tool_input": {"file_path": "fees.py"}}
    read = hook("PostToolUse", **about, tool_name="Read", tool_use_id="u1", tool_response="x")
    edit = hook("PreToolUse", **about, tool_name="Edit", tool_use_id="u2")
    assert ("whole euros" in read, "CHANGES" in read) == (True, False)
    assert ("whole euros" in edit, "CHANGES" in edit) == (False, True)


def test_a_session_is_not_told_its_own_words_until_its_context_was_compacted(repository):
    """1. the session that settled a rule goes on; 2. its context is compacted; 3. it goes on."""
    talk("march")
    about = {"session_id": "march", "cwd": os.getcwd()}
    read = {
        "tool_name": "Read",
        "tool_input": {"file_path": str(repository / "fees.py")},
        "tool_response": {"file": {"content": "def parking_fee(hours):"}},
    }
    assert ask("march", TASK, 9) == ""
    assert hook("PostToolUse", **about, **read, tool_use_id="read-1") == ""
    with smara.open() as memory:
        given = {"file_path": "fees.py"}
        assert memory.moments.after_tool("march", "Read", given, output="x") is None
        assert memory.moments.after_tool("april", "Read", given, output="x") is not None
    assert hook("SessionStart", **about, source="compact") == ""
    assert "24 euros" in hook("PostToolUse", **about, **read, tool_use_id="read-2")
