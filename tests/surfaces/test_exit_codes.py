"""Every exit code of docs/reference/cli.md, produced for real; failures say what to do next, on
stderr alone.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import apsw
import pytest

from smara.database.migrate import HEAD
from smara.memory import Memory
from smara.surfaces.cli.app import ELSEWHERE
from tests.surfaces.shell import Said, on_terminal, plain, smara, spawn

ADD = ("messages", "add", "--thread", "login", "--role", "user", "--content", "hello")


def fails(said: Said, code: int, *words: str) -> None:
    """The call left with this code, wrote these words to standard error, and nothing else
    anywhere.
    """
    assert said.code == code, said
    assert said.out == ""
    assert said.err.startswith("smara: ")
    assert said.err.count("\n") == 1, "one line, no traceback"
    assert all(word in said.err for word in words), said.err


def test_done_is_0(store):
    assert spawn(*ADD).code == 0


def test_bug_is_1_and_asks_for_a_report_without_telling_a_secret(store, monkeypatch):
    def broken(memory: Memory) -> None:
        raise RuntimeError("token ghp_16C7e42F292c6912E7710c838347Ae178B4a")

    monkeypatch.setattr(Memory, "status", broken)
    fails(smara("status"), 1, "RuntimeError", "[REDACTED:github-token]", "report this bug")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (["frobnicate"], ["No such command 'frobnicate'", "smara --help"]),
        (["forget", "m-1"], ["No such command 'forget'", "`smara memories forget`"]),
        (["serach", "x"], ["Did you mean `smara search`? `smara --help` shows how."]),
        (["memory", "list"], ["Did you mean `smara memories`?"]),
        (["tasks", "lst"], ["Did you mean `smara tasks list`? `smara tasks --help`"]),
        (["undo"], ["`smara tasks undo`", "`smara setup AGENT --remove`"]),
        (["search"], ["Missing argument 'QUERY'", "smara search --help"]),
        (["search", "x", "--nope"], ["--nope", "smara search --help"]),
        (["status", "x"], ["argument (x). `smara status --help` shows how."]),
        (["search", "x", "--limit", "0"], ["0 is not in the range"]),
        (["search", "x", "--since", "yesterday-ish"], ["since", "2026-03-01"]),
        (
            ["messages", "add", "--thread", "t", "--role", "robot", "--content", "x"],
            ["robot", "'assistant'"],
        ),
        (["compact"], ["--thread", "--undo"]),
        (["completion", "tcsh"], ["tcsh", "'fish'"]),
        (["completion"], ["Choose from: bash, zsh, fish, powershell. `smara completion"]),
        (["status", "--db", ""], ["--db is empty"]),
        (["--project", "", "status"], ["--project is empty"]),
        (["import", "."], ["a folder without transcripts"]),
        (["erase", "m-k3f9"], ["say what it is: `smara erase --memory m-k3f9`"]),
        (["erase", "t-hooks"], ["`smara erase --task t-hooks`"]),
        (["erase", "old things"], ["name it by an option"]),
        (["messages", "add", "--thread", "", "--role", "user", "--content", "x"], ["thread"]),
    ],
)
def test_wrong_usage_or_input_is_2(store, call, words):
    fails(smara(*call), 2, *words)


@pytest.mark.parametrize("call", [["threads", "show", "nope"], ["threads", "update", "nope",
    "--title", "x"],
                                  ["messages", "show", "nope"], ["messages", "show", "login:99"],
                                  ["messages", "show", "nope:1"], ["compact", "--thread", "nope"],
                                  ["compact", "--undo", "nope"], ["import",
                                      "nope.jsonl"]])  # fmt: skip
def test_not_found_is_3(store, call):
    fails(smara(*call), 3, "nope" if "nope" in " ".join(call) else "99")


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (["tasks", "show", "m-k3f9"], "m-k3f9 looks like a memory: `smara memories show m-k3f9`"),
        (["memories", "show", "t-hooks"], "t-hooks looks like a task: `smara tasks show t-hooks`"),
        (["messages", "show", "3f0c1a7e"], "looks like a thread: `smara threads show 3f0c1a7e`"),
        (["tasks", "show", "t-nope"], None),
    ],
)
def test_an_id_of_another_kind_is_told_where_it_belongs(store, call, hint):
    said = smara(*call)
    assert said.code == 3
    assert hint in said.err if hint else "looks like" not in said.err


def test_projects_are_listed_by_their_noun_and_verb(store):
    assert smara("projects", "list").out == smara("projects").out


def test_conflict_is_4(store):
    assert smara(*ADD, "--id", "turn-1").code == 0
    assert smara(*ADD, "--id", "turn-1").code == 0, "the same again is no conflict"
    fails(smara(*ADD[:-1], "other words", "--id", "turn-1"), 4, "turn-1")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("SMARA_DURABILITY", "sometimes", ["full, normal", "sometimes"]),
        ("SMARA_BUSY_TIMEOUT_SECONDS", "soon", ["SMARA_BUSY_TIMEOUT_SECONDS", "number"]),
        ("SMARA_CONFIG", "/nowhere/smara.toml", ["/nowhere/smara.toml", "unset"]),
    ],
)
def test_wrong_setting_is_5(store, monkeypatch, name, value, words):
    monkeypatch.setenv(name, value)
    fails(smara("status"), 5, *words)


def test_file_that_is_no_database_is_6(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("these are notes and no database at all\n" * 100)
    fails(smara("--db", str(path), "status"), 6, "not a SQLite database", "--db")
    assert path.read_text().startswith("these are notes")


def test_database_of_another_program_is_6(tmp_path):
    path = tmp_path / "places.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE places (url TEXT)")
    other.close()
    fails(smara("--db", str(path), "status"), 6, "another program", "--db")


def test_folder_is_6(tmp_path):
    fails(smara("--db", str(tmp_path), "status"), 6, "is a folder")


def test_store_of_a_newer_smara_is_6(store):
    with apsw.Connection(store) as connection:
        connection.pragma("user_version", HEAD + 1)
    connection.close()
    fails(smara("status"), 6, "pip install --upgrade")


def test_unreachable_server_is_6_and_keeps_its_password_to_itself():
    said = smara("--db", "postgresql://me:hunter2pw@127.0.0.1:1/x", "status")
    fails(said, 6, "PostgreSQL", "Check the server")
    assert "hunter2pw" not in said.err


def test_busy_is_7_and_may_be_tried_again(store, monkeypatch):
    monkeypatch.setenv("SMARA_BUSY_TIMEOUT_SECONDS", "0.05")
    holder = apsw.Connection(store)
    holder.execute("BEGIN IMMEDIATE")
    try:
        fails(smara(*ADD), 7, "Try again")
        assert smara(*ADD, "--json").envelope["error"]["retryable"] is True
    finally:
        holder.close(True)
    assert smara(*ADD).code == 0


@pytest.mark.parametrize("call", [["doctor"], ["index", "check"]])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_problems_found_are_8(store, call, form):
    connection = apsw.Connection(store)
    connection.execute("DELETE FROM message_index_docsize WHERE id >> 16 = 2")
    connection.close()
    said = smara(*call, *form)
    assert said.code == 8
    assert "index" in said.out


def test_failure_in_json_is_in_the_envelope_with_the_same_code(tmp_path):
    said = spawn("--db", str(tmp_path), "status", "--json")
    assert said.code == 6
    assert said.envelope["error"]["code"] == "cannot_open"
    assert Path(tmp_path).is_dir()


@pytest.mark.parametrize("call", [["threads"], ["messages"], ["index"]])
def test_bare_group_shows_the_help_on_stderr(call):
    said = smara(*call)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"Usage: {' '.join(['smara', *call])} [OPTIONS] COMMAND")


def test_bare_call_in_json_is_an_error_like_any_other():
    assert smara("threads", "--json").envelope["error"]["code"] == "usage"


@pytest.mark.parametrize("name", [name for names in ELSEWHERE.values() for name in names])
def test_what_is_named_instead_of_an_unknown_command_exists(store, name):
    words = [word for word in name.split() if word != "AGENT"]
    said = smara(*[word for word in words if not word.startswith("--")], "--help")
    assert said.code == 0, said.err
    assert all(word in said.out for word in words if word.startswith("--"))


def test_message_on_a_terminal_breaks_between_words(store):
    said = plain(on_terminal("search", "x", "--limt", "3").out)
    assert max(map(len, said.splitlines())) <= 80
    assert " ".join(said.split()).endswith(
        "Did you mean '--limit'? `smara search --help` shows how."
    )
