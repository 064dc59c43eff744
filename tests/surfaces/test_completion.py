"""Completion in the shell, and a start that loads only what is called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.surfaces.shell import environment, smara, spawn

LOADED = """
import sys
sys.argv[1:] = {arguments!r}
try:
    from smara.surfaces.cli import main
    main()
except SystemExit:
    pass
names = [name for name in sys.modules if name.startswith(('smara.surfaces.cli.commands.', 'apsw', 'rich', 'splintr'))]
print(sorted(names), file=sys.stderr)
"""  # noqa: E501


def completed(*words: str, current: str) -> list[str]:
    """What bash would be offered after these words."""
    line = " ".join(["smara", *words, current])
    env = {
        "_SMARA_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) + 1),
    }
    said = spawn(env=env)
    assert said.err == ""
    return [entry.partition(",")[2] for entry in said.out.splitlines() if entry]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_is_printed_for_each_shell(shell):
    script = smara("completion", shell).out
    assert "_SMARA_COMPLETE" in script
    assert smara("completion", shell, "--json").data == {
        "shell": shell,
        "script": script.removesuffix("\n"),
    }


def test_script_is_valid_bash():
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    script = smara("completion", "bash").out
    subprocess.run([bash, "-n"], input=script, text=True, check=True, timeout=600)


def test_thread_ids_are_completed(store):
    assert completed("messages", "list", "--thread", current="") == ["deploy", "login"]
    assert completed("threads", "show", current="lo") == ["login"]


def test_memory_ids_and_types_are_completed(store):
    name = smara("remember", "Use uv, never pip", "--json").data["memory"]["id"]
    for words in (("memories", "show"), ("memories", "pin"), ("memories", "review", "accept")):
        assert completed(*words, current="") == [name]
    assert completed("memories", "show", current="M-") == [name]
    assert completed("remember", "x", "--type", current="work_") == [
        "work_state",
        "work_unit_outcome",
    ]


def test_task_ids_are_completed_unfinished_ones_first(store):
    assert completed("tasks", "show", current="") == ["t-sign", "t-docs", "t-hooks", "t-old"]
    assert completed("tasks", "dep", "add", "t-sign", current="T-D") == ["t-docs"]
    assert completed("tasks", "add", "x", "--needs", current="t-o") == ["t-old"]


def test_thread_ids_are_those_of_the_store_and_project_named_before(store, monkeypatch):
    smara(
        "--project",
        "work",
        "messages",
        "add",
        "--thread",
        "at-work",
        "--role",
        "user",
        "--content",
        "x",
    )
    monkeypatch.delenv("SMARA_DB")
    assert completed("--db", store, "--project", "work", "threads", "show", current="") == [
        "at-work"
    ]


def test_completion_without_a_store_is_silent(tmp_path):
    assert completed("--db", str(tmp_path), "threads", "show", current="") == []


def test_commands_and_choices_are_completed():
    assert completed(current="comp") == ["compact", "completion", "complete"]
    assert completed("messages", "add", "--role", current="a") == ["assistant"]


def test_help_loads_no_command_and_no_database():
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(arguments=["--help"])],
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert "Search everything Smara remembers." in done.stdout
    assert done.stderr == "[]\n"


def test_search_loads_no_other_command_and_nothing_for_drawing(store):
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(arguments=["search", "login"])],
        capture_output=True,
        text=True,
        env={**environment(), "SMARA_DB": os.environ["SMARA_DB"]},
    )
    names = done.stderr.strip().splitlines()[-1]
    assert "smara.surfaces.cli.commands.search" in names
    assert names.count("smara.surfaces.cli.commands.") == 1
    assert "rich" not in names
