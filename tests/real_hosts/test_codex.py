"""Codex itself: its hooks fire as we expect, and what we say reaches the model."""

from __future__ import annotations

import json

import pytest

from tests.real_hosts.lab import Lab, need
from tests.real_hosts.model_server import Script, call, scripted, text

need("codex")
CENTS = "The cart total must be computed in integer cents, because floats lost a cent in invoices."
PACK = "What earlier sessions of this project left behind"
GATE = "`./run.sh` failed here before"
PATCH = """\
*** Begin Patch
*** Update File: src/cart.py
@@
-    return sum(prices)
+    return sum(prices, 0)
*** End Patch"""
CONFIG = """\
model = "gpt-5.5"
model_provider = "loopback"

[model_providers.loopback]
name = "loopback"
base_url = "{url}/v1"
env_key = "LOOPBACK_KEY"
wire_api = "responses"

[projects."{repository}"]
trust_level = "trusted"
"""


@pytest.fixture
def ready(lab: Lab) -> Lab:
    lab.run("smara", "setup", "codex", "--yes")
    lab.smara("remember", CENTS, "--file", "src/cart.py")
    return lab


def codex(lab: Lab, script: Script, *words: str) -> None:
    folder = lab.home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(CONFIG.format(url=script.url, repository=lab.repository))
    trust = ["--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"]
    lab.run("codex", "exec", *words[:-1], *trust, words[-1], LOOPBACK_KEY="none")


def work(lab: Lab) -> None:
    steps = [
        [text("I run it."), call("exec_command", cmd="./run.sh")],
        [call("apply_patch", patch=PATCH)],
        [call("exec_command", cmd="./run.sh")],
        [call("exec_command", cmd="./run.sh --fast")],
        [text("It needs --fast.")],
    ]
    with scripted(*steps) as script:
        codex(lab, script, "Make the run pass")
        assert all(script.heard(PACK))
        assert all(script.heard(CENTS))
    lab.drain()


def test_a_failure_is_learned_though_no_hook_is_told_of_it_and_the_next_session_is_warned(ready):
    work(ready)
    events = {each.event for each in ready.heard()}
    assert events == {
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "Stop",
        "SessionEnd",
    }
    assert (
        "exit"
        not in json.dumps([each.payload.get("tool_response") for each in ready.heard()][:5]).lower()
    )
    learned = [each["content"] for each in ready.smara("memories", "list")["memories"]]
    assert any("what worked: `./run.sh --fast`" in each for each in learned)
    with scripted([call("exec_command", cmd="./run.sh")], [text("Done.")]) as script:
        codex(ready, script, "Once more")
        assert script.heard(GATE) == [False, True]
    ready.drain()
    receipts = ready.smara("receipts")["receipts"]
    assert [each["point"] for each in receipts] == ["before_tool", "start", "start"]
    assert all(each["deliveredAt"] and each["reachedAt"] for each in receipts)
    assert {(each.code, each.complaint) for each in ready.heard()} == {(0, "")}


def test_a_file_that_is_shown_by_a_command_brings_up_what_is_known_of_it(ready):
    ready.smara(
        "remember",
        "cart.py is read by the till at night.",
        "--type",
        "gotcha",
        "--file",
        "src/cart.py",
    )
    steps = [
        [
            call("spawn_agent", message="Look at the cart", agent_type="worker")
            | {"namespace": "multi_agent_v1"}
        ],
        [call("exec_command", cmd="sed -n '1,20p' src/cart.py")],
        [call("exec_command", cmd="sed -n '1,20p' src/cart.py")],
        [text("Done.")],
    ]
    with scripted(*steps) as script:
        codex(ready, script, "-c", "features.multi_agent=true", "Let somebody look")
    said = [
        each
        for each in ready.heard()
        if each.event == "PostToolUse" and "read by the till" in each.said
    ]
    assert len(said) == 1
    assert said[0].payload["agent_id"]  # who was not told at the start


def test_a_compaction_is_told_anew_and_a_session_that_goes_on_nothing_twice(ready):
    with scripted([call("exec_command", cmd="echo 1")], [text("Done.")]) as script:
        codex(ready, script, "-c", "model_auto_compact_token_limit=900", "Begin")
        assert script.heard(PACK)[-1]
    with scripted([text("Done.")]) as script:
        codex(ready, script, "resume", "--last", "Go on")
        assert json.dumps(script.requests[-1]).count(PACK) == 1
    sources = [each.payload["source"] for each in ready.heard() if each.event == "SessionStart"]
    assert sources == ["startup", "compact", "resume"]


def test_a_transcript_is_read_whole_and_without_our_own_words(ready):
    work(ready)
    assert "unknown" not in json.dumps(ready.smara("import", "--dry-run"))
    found = ready.smara("search", "cents invoices")["results"]
    assert [each["source"] for each in found] == ["memory"]
