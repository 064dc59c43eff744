"""Copilot CLI itself: its hooks fire as we expect, and what we say reaches the model."""

from __future__ import annotations

import json

from tests.real_hosts.lab import Lab, need
from tests.real_hosts.model_server import Script, scripted, text
from tests.real_hosts.work import (
    CENTS,
    PATIENT,
    Tools,
    check_quiet,
    check_second,
    first_session,
    roles,
    second_session,
)

need("copilot")
TOOLS = Tools("bash", "view", "edit", path="path", old="old_str", new="new_str")


def copilot(lab: Lab, script: Script, prompt: str) -> None:
    lab.run(
        "copilot",
        "--allow-all-tools",
        "--allow-all-paths",
        "-p",
        prompt,
        COPILOT_OFFLINE="true",
        COPILOT_PROVIDER_BASE_URL=f"{script.url}/v1",
        COPILOT_PROVIDER_API_KEY="loopback",
        COPILOT_MODEL="gpt-4.1",
        COPILOT_AUTO_UPDATE="false",
        COPILOT_ALLOW_ALL="true",
        **PATIENT,
    )


def test_a_session_is_told_what_is_known_and_is_taken_in_at_the_next_start(lab):
    lab.run("smara", "setup", "copilot", "--yes")
    lab.smara("remember", CENTS, "--file", "src/cart.py")
    script = first_session(lab, copilot, TOOLS)
    assert all(script.heard(CENTS))
    assert "smara-memory-search" in [
        each["function"]["name"] for each in script.requests[-1]["tools"]
    ]
    events = [
        each.event for each in sorted(lab.heard(), key=lambda each: each.payload["timestamp"])
    ]
    assert events == [
        "sessionStart",
        "userPromptSubmitted",
        *["postToolUse"] * 4,
        "agentStop",
        "sessionEnd",
    ]
    session = lab.heard()[0].payload["sessionId"]
    second = second_session(lab, copilot, TOOLS)
    assert roles(lab, session) == ["user", "assistant", *["assistant", "tool"] * 4, "assistant"]
    check_second(lab, second)
    check_quiet(lab)


def test_hooks_of_claude_code_do_not_stand_in_its_way(lab):
    """It runs these, too, without their list of arguments and waiting for each."""
    lab.run("smara", "setup", "claude", "--yes")
    lab.smara("remember", CENTS, "--file", "src/cart.py")
    script = first_session(lab, copilot, TOOLS)
    assert all(script.heard(CENTS))
    assert not any("Denied" in json.dumps(each) for each in script.requests)
    check_quiet(lab)
    with scripted([text("Done.")]) as script:
        copilot(lab, script, "Once more")
    assert {each["agent"] for each in lab.smara("receipts")["receipts"]} == {"copilot"}
