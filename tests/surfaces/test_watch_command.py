"""`smara watch` shows what hooks hear and tell, once each, and ends cleanly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any

import pytest

from smara.adapters.hosts.drain import drain
from smara.adapters.hosts.precompute import prepare_ahead
from smara.environment import spool_folder
from smara.memory import open_memory
from smara.surfaces.terminal.watch import Watch
from tests.surfaces.shell import command, environment, plain, smara, spawn


def hook(event: str, **facts: Any) -> None:
    payload = {"session_id": "s1", "cwd": os.getcwd(), **facts}
    assert spawn("hook", "claude", event, stdin=json.dumps(payload).encode()).code == 0


def seen(watch: Watch) -> list[tuple[str, str, str]]:
    return [(each.verb, each.session_id, each.text) for each in watch.look()]


def test_what_hooks_hear_and_tell_is_shown_once(store):
    assert smara("remember", "Use pnpm, never npm").code == 0
    prepare_ahead(os.getcwd(), ["claude"])
    with open_memory() as memory:
        watch = Watch(memory, spool_folder())
        hook("SessionStart", source="startup")
        hook("UserPromptSubmit", prompt="Make the tests pass")
        hook("PostToolUseFailure", tool_name="Bash", tool_use_id="t1",
             tool_input={"command": "npm test"}, error="no left-pad")  # fmt: skip
        heard = seen(watch)
        assert ("hears", "s1", "session starts (startup)") in heard
        assert ("hears", "s1", "is asked: Make the tests pass") in heard
        assert ("hears", "s1", "Bash: npm test; failed: no left-pad") in heard
        tells = [text for verb, _, text in heard if verb == "tells"]
        assert len(tells) == 1
        assert "Use pnpm, never npm" in tells[0]
        drain(memory, spool_folder())
        after = seen(watch)
        assert "tells" not in {verb for verb, *_ in after}  # its receipt is of the same telling
        assert ("stores", "s1", "1 message") in after
        assert seen(watch) == []


def test_what_another_project_hears_is_not_shown(store, monkeypatch):
    with open_memory(project="mine") as memory:
        mine, every = Watch(memory, spool_folder()), Watch(memory, spool_folder(), True)
        monkeypatch.setenv("SMARA_PROJECT", "theirs")
        hook("UserPromptSubmit", prompt="Something private")
        assert seen(mine) == []
        assert len(seen(every)) == 1


def test_in_a_pipe_it_writes_lines_and_an_interrupt_ends_it_with_0(store):
    with subprocess.Popen(
        command("watch", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        # Asked until it is heard: the process needs a moment to begin.
        line = b""
        os.set_blocking(process.stdout.fileno(), False)
        for number in range(200):
            hook("UserPromptSubmit", prompt=f"Question {number}")
            line = process.stdout.readline() or b""
            if line:
                break
        process.send_signal(signal.SIGINT)
        assert (process.wait(600), process.stderr.read()) == (0, b"")
    told = json.loads(line)["data"]
    assert (told["verb"], told["agent"], told["sessionId"]) == ("hears", "claude", "s1")
    assert told["text"].startswith("is asked: Question")


@pytest.mark.parametrize("columns", [80, 140])
def test_lines_fit_the_terminal(store, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    said = smara("watch", "--seconds", "0", is_seen=True)
    assert said.code == 0
    assert "Ctrl-C ends it" in plain(said.out)
