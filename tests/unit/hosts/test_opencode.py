"""The plug-in of OpenCode, run as OpenCode would: what it hands over, and what it gives the model."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

NODE = shutil.which("node")
PLUGIN = resources.files("smara.adapters.hosts") / "opencode" / "smara.ts"
PROGRAM = """#!/bin/sh
cat >> "$LOG"; echo >> "$LOG"
[ "$3" = "session.idle" ] && exit 0
printf '{"context": "said at %s"}' "$3"
"""
DRIVE = """
import {{ Smara }} from "./smara.mjs"
const hooks = await Smara({{ directory: "/repo" }})
const sessionID = "s1"
const message = {{ parts: [{{ type: "text", text: "Fix it" }}] }}
await hooks["chat.message"]({{ sessionID, messageID: "m1" }}, message)
const prompt = {{ system: [] }}
await hooks["experimental.chat.system.transform"]({{ sessionID }}, prompt)
await hooks["experimental.chat.system.transform"]({{ sessionID }}, prompt)
const result = {{ title: "", output: "3 passed", metadata: {{}} }}
await hooks["tool.execute.after"]({{ tool: "bash", sessionID, callID: "c1", args: {{ command: "ls" }} }}, result)
const part = {{ type: "text", text: "Done", sessionID }}
await hooks.event({{ event: {{ type: "message.part.updated", properties: {{ part }} }} }})
await hooks.event({{ event: {{ type: "session.idle", properties: {{ sessionID }} }} }})
await hooks.event({{ event: {{ type: "server.connected", properties: {{}} }} }})
console.log(JSON.stringify({{ message, prompt, result }}))
"""


def drive(folder: Path, program: str | None) -> dict:
    source = PLUGIN.read_text(encoding="utf-8").replace('"smara"', json.dumps(program or "/nowhere/smara"), 1)
    (folder / "smara.mjs").write_text(source)
    (folder / "drive.mjs").write_text(DRIVE.format())
    done = subprocess.run(
        [str(NODE), "drive.mjs"], cwd=folder, capture_output=True, text=True, timeout=60, check=True,
        env={"PATH": "/usr/bin:/bin", "LOG": str(folder / "log")},
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_it_hands_over_what_happens_and_gives_the_model_what_comes_back(tmp_path):
    program = tmp_path / "smara"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    said = drive(tmp_path, str(program))
    assert said["message"]["parts"][0]["text"] == "Fix it\n\nsaid at chat.message"
    assert said["prompt"]["system"] == ["said at session.start"] * 2
    assert said["result"]["output"] == "3 passed\n\nsaid at tool.execute.after"
    told = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines() if line]
    assert {each["sessionID"] for each in told} == {"s1"}
    assert len(told) == 4  # the pack of a session is asked for once
    assert told[-1]["text"] == "Done"
    assert told[0]["prompt"] == "Fix it"


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_without_the_program_nothing_changes(tmp_path):
    said = drive(tmp_path, None)
    assert said["message"]["parts"][0]["text"] == "Fix it"
    assert said["prompt"]["system"] == []
    assert said["result"]["output"] == "3 passed"


def test_it_is_about_a_hundred_lines():
    assert len(PLUGIN.read_text(encoding="utf-8").splitlines()) < 140
