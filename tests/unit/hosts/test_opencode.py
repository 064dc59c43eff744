"""The plug-in of OpenCode, run as OpenCode would: what it hands over, and what it gives the
model.
"""

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
const message = {{ message: {{ id: "m1" }}, parts: [{{ id: "prt_1", type: "text", text: "Fix it" }}] }}
await hooks["chat.message"]({{ sessionID }}, message)
const own = {{ type: "text", text: "Fix it", sessionID, messageID: "m1" }}
await hooks.event({{ event: {{ type: "message.part.updated", properties: {{ part: own }} }} }})
await hooks.event({{ event: {{ type: "session.idle", properties: {{ sessionID }} }} }})
const prompt = {{ system: [] }}
await hooks["experimental.chat.system.transform"]({{ sessionID }}, prompt)
await hooks["experimental.chat.system.transform"]({{ sessionID }}, prompt)
const result = {{ title: "", output: "3 passed", metadata: {{}} }}
await hooks["tool.execute.after"]({{ tool: "bash", sessionID, callID: "c1", args: {{ command: "ls" }} }}, result)
const info = {{ id: "s2", parentID: sessionID }}
await hooks.event({{ event: {{ type: "session.created", properties: {{ info }} }} }})
await hooks["chat.message"]({{ sessionID: "s2" }}, {{ parts: [] }})
const part = {{ type: "text", text: "Done", sessionID }}
await hooks.event({{ event: {{ type: "message.part.updated", properties: {{ part }} }} }})
await hooks.event({{ event: {{ type: "session.idle", properties: {{ sessionID }} }} }})
await hooks.event({{ event: {{ type: "server.connected", properties: {{}} }} }})
console.log(JSON.stringify({{ message, prompt, result }}))
"""  # noqa: E501


WAITING = """
import {{ existsSync }} from "node:fs"
import {{ Smara }} from "./smara.mjs"
const hooks = await Smara({{ directory: "/repo" }})
await hooks["experimental.chat.system.transform"]({{ sessionID: "s1" }}, {{ system: [] }})
while (!existsSync(process.env.LOG + ".pid")) await new Promise((resolve) => setImmediate(resolve))
await hooks.dispose()
console.log("{{}}")
"""


def drive(folder: Path, program: str | None, script: str = DRIVE) -> dict:
    source = PLUGIN.read_text(encoding="utf-8").replace(
        '"smara"', json.dumps(program or "/nowhere/smara"), 1
    )
    (folder / "smara.mjs").write_text(source)
    (folder / "drive.mjs").write_text(script.format())
    done = subprocess.run(
        [str(NODE), "drive.mjs"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        env={"PATH": "/usr/bin:/bin", "LOG": str(folder / "log")},
    )
    return json.loads(done.stdout)


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_it_hands_over_what_happens_and_gives_the_model_what_comes_back(tmp_path):
    program = tmp_path / "smara"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    said = drive(tmp_path, str(program))
    own, told_too = said["message"]["parts"]
    assert own["text"] == "Fix it"  # what a person said stays as it was said
    assert told_too == {
        "id": "prt_10",
        "type": "text",
        "text": "said at chat.message",
        "synthetic": True,
    }
    assert said["prompt"]["system"] == ["said at session.start"] * 2
    assert said["result"]["output"] == "3 passed\n\nsaid at tool.execute.after"
    told = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines() if line]
    (helped,) = [each for each in told if each["sessionID"] == "s2"]
    assert (helped["agentId"], helped["parentAgentId"]) == ("s2", "s1")
    told.remove(helped)
    assert {(each["sessionID"], each.get("parentAgentId")) for each in told} == {("s1", None)}
    assert len(told) == 5  # the pack of a session is asked for once
    assert (told[0]["prompt"], told[0]["messageID"]) == ("Fix it", "m1")
    assert told[1]["text"] == ""  # a prompt is no answer
    assert told[-1]["text"] == "Done"


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_what_it_started_in_the_background_goes_with_the_host(tmp_path):
    program = tmp_path / "smara"
    program.write_text(
        '#!/bin/sh\n[ "$3" = drain ] || exit 0\necho $$ > "$LOG.new"\n'
        'mv "$LOG.new" "$LOG.pid"\nexec sleep 600\n'
    )
    program.chmod(0o755)
    drive(tmp_path, str(program), WAITING)
    drained = int((tmp_path / "log.pid").read_text())
    assert wait_until_gone(drained)


def wait_until_gone(process: int) -> bool:
    """Whether a process that was told to go has gone; nobody reaps it at once, and a dead one
    counts as gone.
    """
    for _ in range(1_000_000):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
    return False


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_without_the_program_nothing_changes(tmp_path):
    said = drive(tmp_path, None)
    assert said["message"]["parts"][0]["text"] == "Fix it"
    assert said["prompt"]["system"] == []
    assert said["result"]["output"] == "3 passed"


def test_it_is_about_a_hundred_lines():
    assert len(PLUGIN.read_text(encoding="utf-8").splitlines()) < 160
