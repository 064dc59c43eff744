"""Pi itself: what it keeps of a session is read."""

from __future__ import annotations

import json

from tests.real_hosts.lab import Lab, need
from tests.real_hosts.model_server import Script, call
from tests.real_hosts.work import Tools, first_session, roles

need("pi")


class PiTools(Tools):
    """It takes several changes at once."""

    def change(self, lab, name, old, new):
        edits = [{"oldText": old, "newText": new}]
        return [call(self.edit, path=str(lab.repository / name), edits=edits)]


TOOLS = PiTools("bash", "read", "edit", "path", "", "")


def pi(lab: Lab, script: Script, prompt: str) -> None:
    provider = {
        "baseUrl": f"{script.url}/v1",
        "api": "openai-completions",
        "apiKey": "loopback",
        "compat": {"supportsDeveloperRole": False, "supportsReasoningEffort": False},
        "models": [{"id": "scripted"}],
    }
    path = lab.home / ".pi" / "agent" / "models.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"providers": {"loopback": provider}}))
    lab.run("pi", "--provider", "loopback", "--model", "scripted", "-p", prompt, PI_OFFLINE="1")


def test_its_sessions_are_imported(lab):
    lab.run("smara", "init", "--yes")
    first_session(lab, pi, TOOLS)
    (file,) = lab.smara("import", "--from", "pi")["files"]
    (session,) = file["threads"]
    assert roles(lab, session) == ["user", "assistant", *["assistant", "tool"] * 4, "assistant"]
