"""Learning on the command line: what was watched, what it showed, and why it was or was not
learned.
"""

from __future__ import annotations

import pytest

import smara as library
from tests.agent_events import Script
from tests.surfaces.shell import smara

DAY_MS = 86_400_000


@pytest.fixture
def watched(db: str) -> str:
    """A store with two sessions that were decided on, and one that has only ended."""
    with library.open(db, embedder="off") as memory:
        for number in range(3):
            script = Script(f"s{number}", 1_760_000_000_000 + number * DAY_MS)
            script.fail("npm test", "bash: npm: command not found").run("pnpm test", "12 passed")
            memory.behavior.observe_batch(script.edit("src/a/x.py").green().end().events)
            if number < 2:
                memory.behavior.finalize(f"s{number}")
    return db


def test_status_tells_how_the_watching_stands(watched):
    told = smara("behavior", "status", "--json").data
    assert (told["ended"], told["final"], told["promoted"], told["errors"]) == (1, 2, 1, 1)
    assert "2 learned from" in smara("behavior", "status").out


def test_sessions_are_listed_with_type_outcome_and_reason(watched):
    newest, middle, _ = smara("behavior", "sessions", "--json").data
    assert (newest["state"], newest["type"]) == ("ended", None)
    assert (middle["sessionId"], middle["type"], middle["outcome"], middle["promoted"]) == (
        "s1",
        "build",
        "tested",
        1,
    )
    assert "Tests after its last edit of code" in smara("behavior", "sessions", "--limit", "2").out


def test_signals_say_what_was_learned_and_with_all_why_the_rest_was_not(watched):
    told = smara("behavior", "signals", "s1").out
    assert (
        "promoted   error_retry        0.85  npm test: bash: npm: command not found [tool]: seen "
        "in 2 sessions" in told
    )
    assert "--all lists them" in told
    everything = smara("behavior", "signals", "s0", "--all").out
    assert "seen in 1 of the 2 sessions that it takes" in everything
    data = smara("behavior", "signals", "s1", "--json").data
    assert data["session"]["sessionId"] == "s1"
    assert {"kind", "verdict", "why", "value", "memoryId"} <= set(data["signals"][0])


def test_finalize_decides_on_one_session_or_on_all_that_have_ended(watched):
    assert smara("behavior", "finalize", "s1", "--json").data["isDecided"] is False
    assert smara("behavior", "finalize", "--json").data["finalized"] == 1
    assert "Learned from 0 sessions" in smara("behavior", "finalize").out


def test_the_beginning_of_an_id_names_a_session(db):
    with library.open(db, embedder="off") as memory:
        for name in ("258c7280-1", "258c7280-2", "2600aaaa-0"):
            memory.behavior.observe_batch(Script(name).read("x.py").events)
    shown = smara("behavior", "signals", "2600").out
    assert shown == "2600aaaa-0: 1 event; nothing was learned from it yet.\n"
    assert smara("behavior", "finalize", "258c7280-2", "--json").data["isDecided"] is True
    several = smara("behavior", "signals", "258c7280")
    assert (several.code, "Several sessions begin with" in several.err) == (2, True)
    assert smara("behavior", "signals", "25").code == smara("behavior", "signals", "259c").code != 0


def test_habits_tell_what_was_counted_over_all_sessions(watched):
    told = smara("behavior", "habits").out
    failure = "failed 2 x in 2 sessions  npm test: bash: npm: command not found; command: pnpm test"
    assert failure in told
    assert "module a: 2 sessions" in told
    with library.open(watched, embedder="off") as memory:
        script = Script("pair").edit("src/a/x.py").edit("src/b/y.py").green().end()
        memory.behavior.observe_batch(script.events)
        memory.behavior.finalize("pair")
    (pair,) = smara("behavior", "habits", "--file", "src/b/y.py", "--json").data["pairs"]
    assert (pair["fileA"], pair["directional"], pair["taskTypes"]) == (
        "src/a/x.py",
        1,
        {"build": 1},
    )
    assert "5 s" in smara("behavior", "habits", "--file", "src/b/y.py").out


def test_an_unknown_session_is_not_found(db):
    assert smara("behavior", "signals", "nobody").code == 3
    assert "smara behavior sessions" in smara("behavior", "signals", "nobody").err
