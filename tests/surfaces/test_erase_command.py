"""``smara erase``: every way to name things, on both databases, as a person sees it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import smara
from tests.stores import BOTH, empty_store
from tests.surfaces.shell import _ESCAPE, on_terminal, spawn
from tests.surfaces.shell import smara as call

LONG_AGO = 1_583_020_800_000  # 2020-03-01


@pytest.fixture(params=BOTH)
def shop(request, tmp_path, monkeypatch):
    """A store in which something was said, done, remembered and decided by two people."""
    with empty_store(request.param, tmp_path) as address:
        monkeypatch.setenv("SMARA_DB", address)
        monkeypatch.setenv("SMARA_PROJECT", "shop")
        monkeypatch.setenv("SMARA_EMBEDDER", "off")
        with smara.open(address, project="shop", embedder="off") as memory:
            for number, person in enumerate(("bob", "bob", "ann")):
                name = f"talk{number}"
                memory.threads.add(name, resource_id=person)
                said = memory.messages.add(
                    thread_id=name, role="user", content=f"My neighbor Zebulon{number} moves out."
                )
                memory.messages.add(thread_id=name, role="user", content="Retry three times.")
                memory.observations.observe(name)
                memory.memories.add(
                    f"Zebulon{number} moves out", type="gotcha", evidence=[f"message:{said.id}"]
                )
            memory.messages.add(
                thread_id="old", role="user", content="A cold day", created_at=LONG_AGO
            )
            memory.memories.remember("Open at nine", type="gotcha", files=["src/till/open.py"])
            memory.tasks.add("Call the plumber", actor="ann")
        yield address


def ids(address):
    with smara.open(address, project="shop", embedder="off") as memory:
        (task,) = memory.tasks.list()
        (taught,) = memory.memories.list(file="src/till/open.py")
        return task.short_id, taught.short_id


SELECTORS = {
    "message": (["--message", "talk0:1"], {"messages": 1}),
    "thread": (["--thread", "talk0"], {"threads": 1}),
    "session": (["--session", "talk0"], {"threads": 1}),
    "memory": (["--memory", "MEMORY"], {"memories": 1}),
    "task": (["--task", "TASK"], {"tasks": 1}),
    "person": (["--person", "ann"], {"threads": 1, "tasks": 1}),
    "path": (["--path", "src/till"], {"memories": 1}),
    "time": (["--since", "2020-01-01", "--until", "2021-01-01"], {"threads": 1}),
    "text": (["--text", "zebulon1"], {"messages": 1, "memories": 1}),
    "query": (["--query", "zebulon1"], {"messages": 1, "memories": 1}),
}


@pytest.mark.parametrize("name", SELECTORS)
def test_each_way_to_name_things_shows_the_rows_and_then_erases_them(shop, name):
    task, memory = ids(shop)
    words, chosen = SELECTORS[name]
    words = [{"TASK": task, "MEMORY": memory}.get(each, each) for each in words]
    shown = call("erase", *words)
    assert shown.code == 0, shown.err
    assert "Nothing was changed. `--yes` erases it; there is no undo." in shown.out
    planned = call("erase", *words, "--json").data
    assert {key: planned["chosen"][key] for key in chosen} == chosen
    assert planned["isDryRun"]
    done = call("erase", *words, "--yes", "--json")
    assert done.code == 0, done.err
    plan = done.data["plan"]
    assert (plan["chosen"], plan["again"]) == (planned["chosen"], planned["again"])
    # The spool is drained before, which reads conversations for decisions.
    assert {**plan["derived"], **planned["derived"]} == plan["derived"]
    assert done.data["traces"] == []
    again = call("erase", *words)
    assert again.code == 3 or "Would erase 0 rows." in again.out or name == "message"


@pytest.mark.parametrize("name", ["--whole-project", "--everything"])
def test_the_whole_goes(shop, name):
    shown = call("erase", name, "--json").data
    assert shown["derived"] == {}
    assert shown["chosen"]["messages"] == 7
    assert call("erase", name, "--yes").code == 0
    with smara.open(shop, project="shop", embedder="off") as memory:
        assert memory.threads.list() == []
        assert not memory.memories.list(state="all").memories


def test_a_person_reads_it_at_80_columns(shop):
    for words in (["--thread", "talk0"], ["--person", "ann"], ["--thread", "talk1", "--yes"]):
        seen = on_terminal("erase", *words)
        lines = [_ESCAPE.sub("", line).rstrip() for line in seen.out.splitlines()]
        assert max(map(len, lines)) <= 80, lines
        assert "made from it" in seen.out
        assert "changes of memories" in seen.out
    assert "none was found" in seen.out
    assert "- the agents' own transcripts" in seen.out


def test_what_is_too_short_to_look_for_is_not_said_to_be_looked_for(shop):
    told = on_terminal("erase", "--thread", "old", "--yes").out
    assert "Looked for" not in told
    assert "Nothing of it was long enough to look for" in told


def test_a_text_of_twelve_letters_is_looked_for(shop):
    _, taught = ids(shop)
    assert "Looked for 1 piece of it" in on_terminal("erase", "--memory", taught, "--yes").out


def test_rows_of_others_are_left_alone(shop):
    """The same words were said in three conversations; one of them goes."""
    plan = call("erase", "--thread", "talk0", "--json").data
    assert plan["derived"]["observations"] == 2
    assert plan["elsewhere"] == {"messages": 2}


HOLD = """
import sys, apsw
reader = apsw.Connection(sys.argv[1])
reader.execute("BEGIN; SELECT count(*) FROM messages").fetchall()
print("reads", flush=True)
sys.stdin.read()
"""


def test_the_process_that_is_in_the_way_is_named_with_its_program(shop):
    if not os.path.exists(shop):
        pytest.skip("see tests/contract/test_erased_bytes.py for PostgreSQL")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, shop], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout.readline() == b"reads\n"
        held = spawn("erase", "--thread", "talk0", "--yes")
        assert held.code == 6, held.err
        assert "not yet all of their bytes" in held.err
        assert f"process {holder.pid} (python" in held.err
        holder.stdin.close()
    assert "They are gone now." in call("doctor", "--fix").out
    with open(shop, "rb") as file:
        assert b"Zebulon0" not in file.read()
