"""Completion in the shell, and a start that loads only what is called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

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
names = [name for name in sys.modules if name.startswith(('smara.surfaces.cli.commands.', 'smara.surfaces.terminal.', 'apsw', 'rich', 'splintr'))]
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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_script_is_printed_for_each_shell(shell):
    script = smara("completion", shell).out
    assert "_SMARA_COMPLETE" in script
    answer = smara("completion", shell, "--json").data
    assert (answer["shell"], answer["script"]) == (shell, script.removesuffix("\n"))
    assert f"completion {shell}" in answer["how"]


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


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_the_help_that_is_printed_at_once_is_that_of_the_commands(option):
    code = LOADED.format(arguments=[option]).replace("'rich'", "'rich', 'click'")
    at_once, made = (
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environment() | {"COLUMNS": columns},
        )
        for columns in ("90", "79")
    )
    assert at_once.stderr == "[]\n"
    assert "click" in made.stderr
    assert at_once.stdout == smara(option).out, (
        "Run `python -c \"from smara.surfaces.cli.app import run; run(['--help'])\""
        " > src/smara/surfaces/cli/help.txt`."
    )


def test_the_version_is_printed_at_once_as_the_commands_print_it():
    code = LOADED.format(arguments=["--version"]).replace("'rich'", "'rich', 'click'")
    at_once = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (at_once.stdout, at_once.stderr) == (spawn("--json", "--version").out, "[]\n")


def test_search_loads_no_other_command_and_nothing_for_drawing(store):
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(arguments=["search", "login"])],
        capture_output=True,
        text=True,
        env={**environment(), "SMARA_DB": os.environ["SMARA_DB"]},
    )
    names = done.stderr.strip().splitlines()[-1]
    assert "smara.surfaces.terminal.search" in names
    assert "smara.surfaces.cli.commands." not in names
    assert names.count("smara.surfaces.terminal.") == 1
    assert "rich" not in names


def drive(shell: str, line: str, program: str, tmp_path: Path) -> list[str]:
    """Return what a real shell offers after a line."""
    script = tmp_path / f"completion.{shell}"
    script.write_text(smara("completion", shell).out)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir(exist_ok=True)
    (bin_folder / "smara").write_text(f'#!/bin/sh\nexec {sys.executable} -m smara "$@"\n')
    (bin_folder / "smara").chmod(0o755)
    words = line.split(" ")
    scripts = {
        "bash": f"source {script}; COMP_WORDS=({' '.join(words)} ''); COMP_CWORD={len(words) - 1}; "
        "_smara_completion smara; printf '%s\\n' \"${COMPREPLY[@]}\"",
        "fish": f"source {script}; complete -C '{line}'",
    }  # fmt: skip
    env = environment(PATH=f"{bin_folder}:{os.environ['PATH']}", HOME=str(tmp_path), TERM="xterm")
    done = subprocess.run(
        [program, "-c", scripts[shell]], capture_output=True, text=True, env=env, timeout=600
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_real_shell_offers_ids_and_names(store, shell, tmp_path):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    names = [each.split("\t")[0] for each in drive(shell, "smara tasks show t-", program, tmp_path)]
    assert sorted(names) == ["t-docs", "t-hooks", "t-old", "t-sign"]
    offered = [each.split("\t")[0] for each in drive(shell, "smara wh", program, tmp_path)]
    assert offered == ["why"]


def test_script_is_valid_zsh_and_offers_what_smara_answers(store, tmp_path):
    program = shutil.which("zsh")
    if program is None:
        pytest.skip("there is no zsh here")
    script = smara("completion", "zsh").out
    subprocess.run([program, "-n"], input=script, text=True, check=True, timeout=600)
    env = {
        "_SMARA_COMPLETE": "zsh_complete",
        "COMP_WORDS": "smara tasks show t-",
        "COMP_CWORD": "3",
    }
    answer = spawn(env=env).out.split("\n")
    assert answer[1::3] == ["t-sign", "t-docs", "t-hooks", "t-old"]


def test_powershell_gets_a_script_that_asks_in_its_own_words(store):
    script = smara("completion", "powershell").out
    assert "Register-ArgumentCompleter -Native -CommandName smara" in script
    assert script.count("{") == script.count("}")
    assert script.count("(") == script.count(")")
    for variable in ("COMP_LINE", "COMP_WORD", "_SMARA_COMPLETE"):
        assert f"$env:{variable} = " in script
        assert f"Env:{variable}" in script.partition("finally")[2]


@pytest.mark.parametrize(
    ("line", "word", "names"),
    [
        ("smara tasks show t-", "t-", ["t-sign", "t-docs", "t-hooks", "t-old"]),
        ("smara tasks show ", "", ["t-sign", "t-docs", "t-hooks", "t-old"]),
        ("smara threads show lo", "lo", ["login"]),
        ("smara --project ", "", ["default"]),
        ("smara help work", "work", ["working"]),
        ('smara search "two words" --thread d', "d", ["deploy"]),
    ],
)
def test_powershell_is_answered_with_ids_and_names(store, line, word, names):
    env = {"_SMARA_COMPLETE": "powershell_complete", "COMP_LINE": line, "COMP_WORD": word}
    said = spawn(env=env)
    assert (said.code, said.err) == (0, "")
    rows = [each.split("\t") for each in said.out.splitlines()]
    assert [row[1] for row in rows] == names
    assert {row[0] for row in rows} == {"plain"}


def test_ids_of_decisions_receipts_and_projects_are_completed(store):
    assert completed("--project", current="de") == ["default"]
    assert completed("erase", "--task", current="t-s") == ["t-sign"]
    assert completed("erase", "--thread", current="") == ["deploy", "login"]
    assert completed("receipts", "show", current="") == []
