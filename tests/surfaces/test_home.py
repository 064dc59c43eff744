"""`smara` alone says where one stands; commands stand in groups; ids are short."""

from __future__ import annotations

import os
import subprocess
import uuid

import pytest

import smara as library
from smara.surfaces.cli import app
from tests.agent_events import Script
from tests.surfaces.shell import on_terminal, plain, smara

SESSION = "3f0c1a7e-1111-4222-8333-abcdefabcdef"


@pytest.fixture
def threads(db: str) -> str:
    """Return a store with a session of an agent, its sub-agent, and two that began together."""
    with library.open(db) as memory:
        for name in (
            SESSION,
            f"{SESSION}/agent-9b2c",
            "0199a213-c8e1-7aaa-8000-000000000001",
            "0199a213-c8e2-7aaa-8000-000000000002",
        ):
            memory.messages.add(thread_id=name, role="user", content="Sign the webhooks")
    return db


def test_bare_call_without_a_store_names_init_and_makes_nothing(db, tmp_path):
    said = smara()
    assert (said.code, said.err) == (0, "")
    assert "Next  smara init" in said.out
    assert not (tmp_path / "smara.db").exists()


def test_bare_call_says_what_is_known_and_the_next_command(store):
    said = plain(on_terminal().out)
    assert "4 messages in 2 threads" in said
    assert "1 ready, 0 in progress, 2 blocked" in said
    assert "Next  smara tasks ready" in said
    data = smara("--json").data
    assert data["next"][0] == {"command": "smara tasks ready", "why": "1 task can be started"}
    assert data["currency"]["code"]["state"] == "none"


def test_status_says_how_far_code_and_history_are_behind(db, tmp_path, monkeypatch):
    def git(*words: str) -> None:
        who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        subprocess.run(["git", *who, *words], cwd=tmp_path / "shop", check=True)

    (tmp_path / "shop").mkdir()
    monkeypatch.chdir(tmp_path / "shop")
    git("init", "-q")
    for number in range(3):
        (tmp_path / "shop" / f"till{number}.py").write_text("def put():\n    return 1\n")
        git("add", ".")
        git("commit", "-q", "-m", f"Till {number}")
        os.utime(tmp_path / "shop" / f"till{number}.py", (1_760_000_000, 1_760_000_000))
        if number == 0:
            assert smara("code", "index").code == 0
            assert smara("commits", "update").code == 0
    current = smara("status", "--json").data["currency"]
    assert current["code"]["behind"] == 2
    assert current["commits"] == {"total": 1, "behind": 2}
    assert "history\t1 commit, 2 behind" in smara("status").out
    assert "code\t1 file indexed, 2 files behind" in smara().out


def test_outside_of_a_repository_init_is_about_the_folder(db, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "Next  smara init  remember this folder" in smara().out
    subprocess.run(["git", "init", "-q"], check=True)
    assert "Next  smara init  set up this repository" in smara().out


def test_history_is_not_called_current_without_git(db, tmp_path, monkeypatch):
    subprocess.run(["git", "init", "-q", str(tmp_path / "shop")], check=True)
    monkeypatch.chdir(tmp_path / "shop")
    (tmp_path / "shop" / "shop.py").write_text("def sell():\n    return 1\n")
    assert smara("code", "index").code == 0
    assert "git is not" not in smara("doctor").out
    monkeypatch.setenv("PATH", str(tmp_path))
    said = smara("status")
    assert "history\t0 commits that were read; newer ones are not seen" in said.out
    for words in (("status",), ("why", "shop.py"), ("commits", "list"), ("commits", "update")):
        assert smara(*words).err.count("git is not on the PATH") == 1, words
    assert "git is not on the PATH" in smara("doctor").out
    assert smara("status", "--json").data["currency"]["commits"]["behind"] is None


@pytest.mark.parametrize("columns", [50, 80])
def test_next_steps_fit_the_terminal(store, columns):
    seen = plain(on_terminal(columns=columns).out)
    assert max(map(len, seen.splitlines())) <= columns


def test_status_lists_the_retention_of_each_kind_only_on_request(store):
    short, long = smara("status"), smara("status", "--retention")
    assert "7 of 13 kinds have a limit" in short.out
    assert "receipts\t" not in short.out
    assert "receipts\t0\t0 B\t\t180 days" in long.out
    assert smara("status", "--json").data["retention"] != []


def test_every_command_stands_in_one_group_and_programs_in_none():
    listed = [name for group in app.GROUPS.values() for name in group]
    assert len(listed) == len(set(listed))
    page = smara("--help").out
    assert [line[:-1] for line in page.splitlines() if line.endswith(":") and line[0] != " "][
        1:
    ] == list(app.GROUPS)
    assert "\n  hook " not in page


def test_a_former_name_works_and_names_the_new_one(store):
    said = smara("graph", "status", "--json")
    assert (said.code, said.err) == (0, "`smara graph` is now `smara code`.\n")
    assert said.data["state"] == "none"


def test_thread_ids_are_short_on_a_terminal_and_their_beginning_is_enough(threads):
    shown = plain(on_terminal("threads", "list").out)
    names = {line.split()[0] for line in shown.splitlines()[2:]}
    assert names == {"3f0c1a7e", "3f0c1a7e/agent-9b2c", "0199a213-c8e1", "0199a213-c8e2"}
    for name in names:
        found = smara("threads", "show", name, "--json").data["id"]
        assert found.startswith(name.partition("/")[0])
        assert found.partition("/")[2] == name.partition("/")[2]
    assert smara("messages", "show", "3f0c1a7e:1").code == 0
    assert smara("messages", "list", "--thread", "3f0c", "--json").data


def test_ids_of_sub_agents_are_short_and_the_list_says_that_there_is_more(db):
    with library.open(db) as memory:
        for name in ("agent-a476b41a7c7b4de14", "agent-a9692ecc2c22b177a"):
            memory.threads.add(f"{SESSION}/{name}", kind="subagent")
    shown = plain(on_terminal("threads", "list").out)
    assert "3f0c1a7e/agent-a476 " in shown
    assert "There are more" not in shown
    found = smara("threads", "show", "3f0c1a7e/agent-a476", "--json").data
    assert found["id"] == f"{SESSION}/agent-a476b41a7c7b4de14"
    assert "begins several threads" in smara("threads", "show", "3f0c1a7e/agent-a").err
    assert "There are more" in plain(on_terminal("threads", "list", "--limit", "1").out)
    assert "threads\t2 (2 of them of sub-agents)" in smara("status").out


def test_a_beginning_of_several_threads_names_them(threads):
    said = smara("threads", "show", "0199a213")
    assert said.code == 2
    assert "begins several threads: 0199a213-c8e1-7aaa-8000-000000000001, " in said.err


def test_whole_ids_stand_in_a_pipe(threads):
    assert SESSION in {row[0] for row in smara("threads", "list").rows}


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_sessions_fit_the_terminal(db, columns):
    with library.open(db, embedder="off") as memory:
        for number in range(2):
            script = Script(str(uuid.UUID(int=2**120 + number)), 1_760_000_000_000)
            script.fail("npm test", "bash: npm: command not found").run("pnpm test", "12 passed")
            memory.behavior.observe_batch(script.edit("src/a/x.py").green().end().events)
            memory.behavior.finalize(script.id)
    lines = plain(on_terminal("behavior", "sessions", columns=columns).out).splitlines()
    assert max(map(len, lines)) <= columns
    assert len([line for line in lines if line.startswith("01000000 ")]) == 2
    assert ("learned" in lines[0]) == (columns == 140)
