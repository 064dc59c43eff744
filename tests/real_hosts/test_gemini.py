"""Gemini CLI itself: its hooks fire as we expect, and what we say reaches the model."""

from __future__ import annotations

import json

from tests.real_hosts.lab import Lab, need
from tests.real_hosts.model_server import Script
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

need("gemini")
TOOLS = Tools(
    "run_shell_command",
    "read_file",
    "replace",
    path="file_path",
    old="old_string",
    new="new_string",
    more=(("instruction", "mend"),),
)


def gemini(lab: Lab, script: Script, prompt: str) -> None:
    settings = lab.home / ".gemini" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
    lab.run(
        "gemini",
        "-m",
        "gemini-2.5-flash",
        "--yolo",
        "-p",
        prompt,
        GEMINI_API_KEY="loopback",
        GOOGLE_GEMINI_BASE_URL=script.url,
        GEMINI_CLI_TRUST_WORKSPACE="true",
        **PATIENT,
    )


def test_a_session_is_told_what_is_known_and_is_taken_in_at_the_next_start(lab):
    lab.run("smara", "setup", "gemini", "--yes")
    lab.smara("remember", CENTS, "--file", "src/cart.py")
    script = first_session(lab, gemini, TOOLS)
    assert all(script.heard(CENTS))
    tools = [each["name"] for each in script.requests[-1]["tools"][0]["functionDeclarations"]]
    assert "mcp_smara_memory-search" in tools
    events = [each.event for each in lab.heard()]
    assert events == ["SessionStart", "BeforeAgent", *["AfterTool"] * 4, "AfterAgent", "SessionEnd"]
    session = lab.heard()[0].payload["session_id"]
    second = second_session(lab, gemini, TOOLS)
    assert roles(lab, session)[1:] == ["user", "assistant", *["assistant", "tool"] * 4, "assistant"]
    check_second(lab, second)
    failed = [each for each in lab.heard() if "Exit Code: 3" in json.dumps(each.payload)]
    assert len(failed) == 1
    check_quiet(lab)
