"""OpenCode itself: our plug-in is loaded, and what we say reaches the model."""

from __future__ import annotations

import json

from tests.real_hosts.lab import Lab, need
from tests.real_hosts.model_server import Script
from tests.real_hosts.work import (
    CENTS,
    Tools,
    check_quiet,
    check_second,
    first_session,
    roles,
    second_session,
)

need("opencode")
TOOLS = Tools("bash", "read", "edit", path="filePath", old="oldString", new="newString")


def opencode(lab: Lab, script: Script, prompt: str) -> None:
    model = {"name": "scripted", "tool_call": True, "limit": {"context": 100_000, "output": 4_000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Loopback",
        "models": {"scripted": model},
        "options": {"baseURL": f"{script.url}/v1", "apiKey": "loopback"},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": "loopback/scripted",
        "small_model": "loopback/scripted",
        "enabled_providers": ["loopback"],
        "provider": {"loopback": provider},
    }
    path = lab.home / ".config" / "opencode" / "opencode.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings))
    quiet = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    lab.run("opencode", "run", prompt, OPENCODE_DISABLE_LSP_DOWNLOAD="1", **quiet)


def test_a_session_is_told_what_is_known_and_is_stored_from_its_database(lab):
    lab.run("smara", "setup", "opencode", "--yes")
    lab.smara("remember", CENTS, "--file", "src/cart.py")
    script = first_session(lab, opencode, TOOLS)
    asked = [each for each in script.requests if each.get("tools")]
    assert all(CENTS in json.dumps(each) for each in asked)
    assert "smara_memory-search" in [each["function"]["name"] for each in asked[-1]["tools"]]
    events = [each.event for each in lab.heard()]
    assert events == ["chat.message", "session.start", *["tool.execute.after"] * 4, "session.idle"]
    session = lab.heard()[0].payload["sessionID"]
    check_second(lab, second_session(lab, opencode, TOOLS))
    lab.smara("import", "--from", "opencode")
    assert roles(lab, session) == ["user", "assistant", *["assistant", "tool"] * 4, "assistant"]
    check_quiet(lab)
