"""Claude Code itself: its hooks fire as we expect, and what we say reaches the model."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from smara.adapters.host_specs.claude import plugin_folder
from tests.real_hosts.lab import Lab, need
from tests.real_hosts.model_server import Script, call, scripted, text

need("claude")
CENTS = "The cart total must be computed in integer cents, because floats lost a cent in invoices."
PACK = "What earlier sessions of this project left behind"
GATE = "`./run.sh` failed here before"


def claude(lab: Lab, script: Script, prompt: str, *options: str) -> None:
    lab.run(
        "claude",
        "-p",
        prompt,
        "--dangerously-skip-permissions",
        *options,
        ANTHROPIC_BASE_URL=script.url,
        ANTHROPIC_API_KEY="sk-ant-loopback",
        CLAUDE_CODE_MAX_RETRIES="1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1",
        DISABLE_TELEMETRY="1",
    )


def work(lab: Lab) -> None:
    """A session that fails, finds the way, and edits."""
    cart = str(lab.repository / "src" / "cart.py")
    steps = [
        [text("I run it."), call("Bash", command="./run.sh", description="run")],
        [call("Read", file_path=cart)],
        [call("Edit", file_path=cart, old_string="sum(prices)", new_string="sum(prices, 0)")],
        [call("Bash", command="./run.sh", description="again")],
        [call("Bash", command="./run.sh --fast", description="fast")],
        [text("It needs --fast.")],
    ]
    with scripted(*steps) as script:
        claude(lab, script, "Make the run pass")
        assert all(script.heard(PACK))
        assert all(script.heard(CENTS))
        tools = [tool["name"] for tool in script.requests[-1]["tools"]]
    assert any(name.endswith("smara__memory-search") for name in tools)


def learn(lab: Lab) -> None:
    """The session is over: print mode seldom says so, and its drain is cut off."""
    last = lab.heard()[-1].payload
    named = {name: last[name] for name in ("session_id", "transcript_path", "cwd")}
    ended = {**named, "hook_event_name": "SessionEnd", "reason": "other"}
    subprocess.run(
        ["smara", "hook", "claude", "SessionEnd"],
        input=json.dumps(ended),
        text=True,
        check=True,
        cwd=lab.repository,
        env=lab.environment(),
    )
    lab.drain()


def check_quiet(lab: Lab) -> None:
    assert {(each.code, each.complaint) for each in lab.heard()} == {(0, "")}


def test_the_plug_in_is_valid(lab):
    for path in (plugin_folder(), str(Path(plugin_folder()) / ".claude-plugin" / "plugin.json")):
        lab.run("claude", "plugin", "validate", "--strict", path)


def test_a_session_is_told_what_is_known_and_the_next_one_is_warned(lab):
    lab.run("smara", "setup", "claude", "--yes")
    lab.smara("remember", CENTS, "--file", "src/cart.py")
    work(lab)
    told = [each.event for each in lab.heard()]
    assert {
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "Stop",
    } <= set(told)
    learn(lab)
    with scripted([call("Bash", command="./run.sh", description="run")], [text("Done.")]) as script:
        claude(lab, script, "Once more")
        assert script.heard(GATE) == [False, True]  # with the result of the call that brought it up
    learn(lab)
    receipts = lab.smara("receipts")["receipts"]
    assert [each["point"] for each in receipts] == ["before_tool", "start", "start"]
    assert all(each["deliveredAt"] and each["reachedAt"] for each in receipts)
    check_quiet(lab)


def test_a_compaction_is_told_anew_and_a_session_that_goes_on_only_what_is_new(lab):
    lab.run("smara", "setup", "claude", "--yes")
    lab.smara("remember", CENTS)
    steps = [[call("Bash", command=f"echo {n}", description="say a number")] for n in range(4)]
    with scripted(*steps, [text("Done.")]) as script:
        claude(lab, script, "Begin")
    with scripted([text("Nothing was done yet.")]) as script:
        claude(lab, script, "/compact", "--continue")
    lab.smara("remember", "The staging database is wiped every Sunday.")
    with scripted([text("Done.")]) as script:
        claude(lab, script, "Go on", "--continue")
        asked = json.dumps(script.requests[-1])
    assert asked.count(PACK) == 1
    assert asked.count("wiped every Sunday") == 1
    sources = [each.payload["source"] for each in lab.heard() if each.event == "SessionStart"]
    assert sources == ["startup", "resume", "compact", "resume"]
    lab.drain()
    assert [each["kind"] for each in lab.smara("threads", "list")] == ["conversation"]
    check_quiet(lab)


def test_a_helper_hears_what_is_known_about_the_file_it_opens(lab):
    lab.run("smara", "setup", "claude", "--yes")
    lab.smara("remember", CENTS, "--type", "gotcha", "--file", "src/cart.py")
    cart = str(lab.repository / "src" / "cart.py")
    steps = [
        [
            call(
                "Agent",
                description="look",
                prompt="Look at the cart",
                subagent_type="general-purpose",
            )
        ],
        [call("Read", file_path=cart)],
        [text("It sums.")],
        [text("Done.")],
    ]
    with scripted(*steps) as script:
        claude(lab, script, "Let somebody look")
        assert script.heard(CENTS) == [
            True,
            False,
            True,
            True,
        ]  # the second and the third are the helper's
    check_quiet(lab)


def test_the_plug_in_does_the_same_as_the_settings(lab):
    lab.run("claude", "plugin", "marketplace", "add", plugin_folder())
    lab.run("claude", "plugin", "install", "smara@smara")
    lab.smara("remember", CENTS)
    work(lab)
    check_quiet(lab)


def test_a_transcript_is_read_whole_and_without_our_own_words(lab):
    lab.run("smara", "setup", "claude", "--yes")
    lab.smara("remember", CENTS)
    work(lab)
    learn(lab)
    told = lab.smara("import", "--dry-run")
    assert "unknown" not in json.dumps(told)
    found = lab.smara("search", "cents invoices")["results"]
    assert [each["source"] for each in found] == ["memory"]
