"""Tables for people, plain lines for pipes; nothing that was said can command the terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import unicodedata
from typing import Any

import pytest

import smara as library
from tests.surfaces.shell import on_terminal, plain, smara, spawn

HOSTILE = (
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J back\x08space bell\x07 nul\x00 "
    "right\u202eto-left\u2066 lone \ud800 end"
)
OURS = re.compile(r"\x1b\[[0-9;?]*[mlhKA]")
"""Colors, and what a progress bar needs; nothing that was said may add to them."""


@pytest.fixture
def hostile(db: str) -> str:
    with library.open(db) as memory:
        memory.messages.add(thread_id="bad", role="user", content=f"zanzibar {HOSTILE}")
        memory.threads.update("bad", title=HOSTILE)
    return db


def controls(text: str) -> set[str]:
    """Characters that a terminal or a reader obeys instead of showing."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t"}


CALLS = [
    ["threads", "list"], ["threads", "show", "bad"], ["messages", "list", "--thread", "bad"],
    ["messages", "show", "bad:1"], ["search", "zanzibar"], ["search", "zanzibar", "--full",
        "--explain"],
    ["search", "zanzibar", "--threads"], ["compact", "--thread", "bad"],
    ["threads", "update", "bad", "--title", HOSTILE], ["complete", "za"],
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda call: " ".join(call[:2]))
def test_hostile_text_is_not_obeyed_in_a_pipe(hostile, call):
    said = smara(*call)
    assert said.code == 0
    assert controls(said.out + said.err) == set()


@pytest.mark.parametrize(
    "call", [CALLS[0], CALLS[2], CALLS[4]], ids=lambda call: " ".join(call[:2])
)
def test_hostile_text_is_not_obeyed_on_a_terminal(hostile, call):
    seen = on_terminal(*call)
    assert seen.code == 0
    assert controls(OURS.sub("", seen.out).replace("\r\n", "\n")) == set()
    assert "\ufffd[31mred" in plain(seen.out), "what was there is shown as something, not hidden"


@pytest.mark.parametrize(
    "call", [["threads", "show", HOSTILE], ["messages", "show", HOSTILE], ["import", "nope\x1b[2J"],
    ["x\x1b[2J"],
             ["search", "x", "--since", HOSTILE]]
)  # fmt: skip
def test_errors_repeat_hostile_text_without_obeying_it(db, call):
    said = smara(*call)
    assert said.code in (2, 3)
    assert controls(said.err) == set()


def test_what_writing_systems_need_is_shown_as_it_is(db):
    said = "ニュースの\u3000移行 · می\u200cخواهم · 👩\u200d💻 · a\u00a0b"
    with library.open(db) as memory:
        memory.messages.add(thread_id="t", role="user", content=f"{said}\r\nsecond line")
    lines = smara("messages", "show", "t:1").out.splitlines()
    assert lines[1:3] == [said.replace("\u3000", " ").replace("\u00a0", " "), "second line"]


def test_list_is_a_table_on_a_terminal_and_tabs_in_a_pipe(store):
    seen = on_terminal("threads", "list").out
    assert "\x1b[1m" in seen
    head, rule, first, second = plain(seen).splitlines()
    assert head.split() == ["thread", "kind", "messages", "last", "used", "title"]
    assert set(rule) == {"─"}
    assert {first.split()[0], second.split()[0]} == {"login", "deploy"}
    piped = spawn("threads", "list").out
    assert piped.splitlines()[0] == "thread\tkind\tmessages\tlast used\ttitle"
    assert {line.count("\t") for line in piped.splitlines()} == {4}


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_table_fits_the_terminal_and_hides_nothing_of_a_short_id(db, columns):
    thread = "3f0c1a7e-1111-4222-8333-abcdefabcdef/agent-9b2c"
    with library.open(db) as memory:
        memory.messages.add(thread_id=thread, role="user", content="hello")
        memory.threads.update(
            thread, title="A title that is rather long, so that it does not fit " * 2
        )
    lines = plain(on_terminal("threads", "list", columns=columns).out).splitlines()
    assert max(map(len, lines)) <= columns
    if columns >= 80:
        assert lines[2].startswith("3f0c1a7e/agent-9b2c ")
        assert "…" not in "".join(line[: lines[0].index("title")] for line in lines)


def test_line_of_a_pipe_is_one_line_whatever_was_said(db):
    with library.open(db) as memory:
        memory.messages.add(
            thread_id="t", role="user", content="one\ntwo\tthree\r\nfour\x0bfive\u2028six"
        )
        memory.threads.update("t", title="a\nb\tc")
    assert len(smara("messages", "list", "--thread", "t").rows) == 1
    assert smara("threads", "list").rows[0][-1] == "a b c"
    assert ["title", "a b c"] in [
        line.split("\t") for line in smara("threads", "show", "t").out.splitlines()
    ]


def test_empty_store_says_what_to_do_on_a_terminal_and_nothing_in_a_pipe(db):
    assert "smara import" in on_terminal("threads", "list").out
    assert smara("threads", "list").out == "thread\tkind\tmessages\tlast used\ttitle\n"


@pytest.mark.parametrize("streams", ["err", "out"])
def test_progress_is_shown_only_where_stderr_is_a_terminal(db, tmp_path, streams):
    file = tmp_path / "[bold]notes.jsonl"  # "[bold]" means something to the library that draws
    file.write_text('{"role": "user", "content": "hello"}\n')
    said = on_terminal("import", str(file), streams=streams)
    assert said.code == 0
    if streams == "err":
        assert "[bold]notes.jsonl" in said.out
        assert "━" in said.out
        assert said.err.startswith("file\tformat\t"), "the answer went to the pipe"
    else:
        assert said.err == "", "no progress in a pipe"
        assert "━" not in said.out


@pytest.mark.parametrize(
    "call", [["demo", "--fast"], ["threads", "list"], ["search", "zanzibar"], ["doctor"]]
)
def test_ascii_terminal_is_no_failure(hostile, call):
    said = smara(*call, encoding="ascii")
    assert said.code == 0
    assert said.out.isascii()


def test_ascii_is_honored_by_a_real_process(hostile):
    said = spawn("demo", "--fast", env={"PYTHONIOENCODING": "ascii"})
    assert said.code == 0
    assert "late_fee" in said.out
    assert (said.out + said.err).isascii()


def test_ascii_terminal_still_shows_tables(store):
    assert "login" in on_terminal("threads", "list", env={"PYTHONIOENCODING": "ascii"}).out


def test_json_is_laid_out_for_a_person(store):
    assert on_terminal("status", "--json").out.startswith('{\r\n  "schema": 1,')


def test_help_fits_eighty_columns():
    assert max(map(len, plain(on_terminal("--help").out).splitlines())) <= 80


def test_demo_fits_eighty_columns_and_tells_the_agent_before_it_acts():
    seen = plain(on_terminal("demo", "--fast").out)
    assert max(map(len, re.split(r"[\r\n]+", seen))) <= 80
    assert "[REDACTED:github-token]" in seen
    assert "capped at 40 euros" in seen.partition("about to change billing/fees.py")[2]
    assert "It worked after `docker compose up -d db`" in " ".join(seen.replace("┃", "").split())
    assert "fees.py:late_fee is now money/late.py:late_fee" in seen
    assert "In a browser: `smara ui`" in seen


def test_demo_leaves_the_environment_and_the_folder_as_they_were(tmp_path, monkeypatch):
    monkeypatch.setenv("SMARA_DB", str(tmp_path / "mine.db"))
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    said = smara("demo", "--json")
    assert said.code == 0
    heard = said.data["heard"]
    assert heard["prompt"] == ""
    assert "late_fee is capped at 40 euros" in heard["beforeTheEdit"]
    assert "failed here before (2 times in 2 sessions" in heard["beforeTheCommand"]
    assert "money/late.py]" in heard["afterTheMove"]
    assert said.data["panel"]["receipts"]["delivered"] == 3
    assert (dict(os.environ), os.getcwd()) == (before, str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def alone(tmp_path, db):
    """Return the environment of a person who has Claude Code and nothing else."""
    (tmp_path / "home/.claude").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    home = str(tmp_path / "home")
    ours = {"SMARA_HOME": home, "SMARA_PROJECT": "auto"}
    return {"HOME": home, "CLAUDE_CONFIG_DIR": f"{home}/.claude", "PATH": "", **ours}


@pytest.mark.parametrize(("typed", "is_asked_for"), [("y\nn\n", True), ("n\n", False)])
def test_init_outside_git_asks_for_the_folder_that_it_shall_remember(
    alone, tmp_path, typed, is_asked_for
):
    work = tmp_path / "work"
    seen = on_terminal("init", env=alone, typed=typed, cwd=str(work), columns=200)
    assert seen.code == 0
    assert f"No git repository here. Remember {work} alone?" in plain(seen.out)
    assert ("Set up and read all of this?" in plain(seen.out)) == is_asked_for
    assert ("smara init --folder" in plain(seen.out)) != is_asked_for
    assert list(work.iterdir()) == []


def test_init_shows_one_screen_first_and_diffs_to_who_asks(alone, tmp_path):
    work = tmp_path / "work"
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    short = plain(on_terminal("init", env=alone, typed="n\n", cwd=str(work)).out)
    assert "Writes   .claude/settings.local.json (new, for Claude Code)\n" in short
    assert len(short.splitlines()) < 24
    assert "@@" not in short
    long = plain(on_terminal("init", env=alone, typed="d\nn\n", cwd=str(work)).out)
    assert "+++" in long
    assert "@@" in plain(on_terminal("init", "--diff", env=alone, typed="n\n", cwd=str(work)).out)
    assert not (work / ".claude").exists()
    done = plain(on_terminal("init", env=alone, typed="y\n", cwd=str(work)).out)
    assert "Set up   Claude Code" in done
    assert (work / ".claude/settings.local.json").exists()


def test_init_reads_history_and_code_and_says_what_is_known_now(alone, tmp_path):
    work = tmp_path / "work"

    def git(*words: str) -> None:
        who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        subprocess.run(["git", *who, *words], cwd=work, check=True)

    git("init", "-q")
    for number in range(3):
        (work / "cart.py").write_text(f"def total():\n    return {number}\n")
        (work / "till.py").write_text(f"def pay():\n    return {number}\n")
        git("add", ".")
        git("commit", "-q", "-m", f"Step {number}")
    env = {**alone, "SMARA_ACTOR": "ann", "PATH": os.environ["PATH"]}
    shown = plain(on_terminal("init", env=env, typed="c\nn\nn\n", cwd=str(work)).out)
    assert "Found    3 commits of this repository" in shown
    assert "Found    python (2 files)" in shown
    assert "Reads    the code: a moment" in shown
    assert "Read 3 commits of this repository." in shown
    assert "Indexed 2 files." in shown
    assert "cart.py and till.py changed in 3 of the same commits" in " ".join(shown.split())
    assert "Next:  smara why cart.py" in shown
    assert not (work / ".claude").exists()


def test_setup_of_another_agent_writes_into_the_work_tree_only_when_asked_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = smara("setup", "generic", "--yes")
    assert said.code == 0
    assert "## Memory" in said.out
    assert "smara setup generic --project" in said.out
    assert not (tmp_path / "AGENTS.md").exists()
    assert smara("setup", "generic", "--project", "--yes").code == 0
    assert "## Memory" in (tmp_path / "AGENTS.md").read_text()


def test_setup_lists_agents_and_init_completes_what_is_missing(alone, tmp_path):
    work = tmp_path / "work"
    subprocess.run(["git", "init", "-q", str(work)], check=True)

    def listed() -> dict[str, Any]:
        said = on_terminal("setup", "--list", "--json", env=alone, cwd=str(work))
        return {each["agent"]: each for each in json.loads(said.out)["data"]["agents"]}

    assert listed()["claude"]["setUp"] == []
    assert (listed()["claude"]["isHere"], listed()["codex"]["isHere"]) == (True, False)
    assert on_terminal("init", "--yes", "--no-read", env=alone, cwd=str(work)).code == 0
    assert (listed()["claude"]["setUp"], listed()["claude"]["missing"]) == (["project"], [])
    (work / ".claude/.gitignore").unlink()
    assert listed()["claude"]["missing"] == [os.path.join(".claude", ".gitignore")]
    assert on_terminal("setup", "claude", "--check", env=alone, cwd=str(work)).code == 8
    assert on_terminal("init", "--yes", "--no-read", env=alone, cwd=str(work)).code == 0
    assert on_terminal("setup", "claude", "--check", env=alone, cwd=str(work)).code == 0
