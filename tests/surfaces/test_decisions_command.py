"""`smara decisions`: what people settled, as people see it."""

from __future__ import annotations

import json

import pytest

import smara as library
from smara.tools.toolbox import Toolbox
from tests.contract.test_commits import Repository
from tests.contract.test_decisions import AMENDED, PARKING, TASK, say
from tests.surfaces.shell import plain, smara


@pytest.fixture
def talks(store, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with library.open() as memory:
        say(memory, "garage", PARKING)
        say(memory, "council", AMENDED, day=40)


def lines(*words: str) -> list[str]:
    said = smara(*words, is_seen=True)
    assert said.code == 0, said.err
    return [line.rstrip() for line in plain(said.out).splitlines()]


def shown_id() -> str:
    return str(json.loads(smara("decisions", "list", "--json").out)["data"][0]["shortId"])


def test_update_says_what_was_read_and_found(talks):
    assert lines("decisions", "list") == [
        "No decision was found in the sessions that were read. `smara decisions update`",
        "reads new ones.",
    ]
    assert "Read 4 sessions: 2 new decisions, 1 superseded." in lines("decisions", "update")
    assert "Read 0 sessions: 0 new decisions, 0 superseded." in lines("decisions", "update")


def test_the_list_shows_what_is_in_force_and_all_on_request(talks):
    lines("decisions", "update")
    shown = lines("decisions", "list")
    assert shown[0].split() == ["id", "day", "decision"]
    assert "2025-04-10" in shown[2]
    assert "30 euros" in " ".join(shown)
    assert len(json.loads(smara("decisions", "list", "--state", "all", "--json").out)["data"]) == 2


def test_search_finds_the_decision_a_task_is_about_and_nothing_else(talks):
    lines("decisions", "update")
    assert "30 euros" in " ".join(lines("decisions", "search", TASK))
    assert lines("decisions", "search", "rename", "the", "variable") == [
        "No decision is about this. `smara search` looks everywhere."
    ]


@pytest.mark.parametrize("command", ["show", "why"])
def test_an_id_of_no_decision_is_answered_with_where_decisions_are_listed(talks, command):
    failed = smara("decisions", command, "m-0000")
    assert failed.code == 3
    assert "Decision not found: m-0000" in failed.err
    assert "`smara decisions list`" in failed.err
    assert "memories" not in failed.err


def test_show_gives_the_rule_the_words_and_what_was_given_up(talks):
    lines("decisions", "update")
    shown = lines("decisions", "show", shown_id())
    assert shown[0].endswith("decision, in force")
    assert "decided        2025-04-10" in " ".join(shown) or "2025-04-10" in " ".join(shown)
    assert "The person said" in shown
    assert any(line.startswith("  - ") for line in shown)


def test_why_shows_the_chain_and_the_trust(talks):
    lines("decisions", "update")
    shown = " ".join(lines("decisions", "why", shown_id()))
    assert "What took the place of what" in shown
    assert "told to agents: as something known" in shown


def test_an_unknown_decision_is_an_error_that_says_where_to_look(talks):
    said = smara("decisions", "show", "m-zzzz")
    assert said.code == 3
    assert "not found" in said.err.lower()


def test_why_of_a_file_joins_what_people_and_commits_say(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("SMARA_HOME", str(tmp_path / "data"))
    root = tmp_path / "garage"
    root.mkdir()
    monkeypatch.chdir(root)
    repository = Repository(root)
    text = "GRACE = {}\n\n\ndef parking_fee(hours):\n    return 4 * hours - GRACE\n"
    why = "Give ambulances 45 minutes\n\nBecause the hospital has no driveway of its own at all."
    repository.commit("Fees", fees__py=text.format(30))
    repository.commit(why, fees__py=text.format(45))
    repository.commit("Simplify", fees__py=text.format(5))
    assert smara("init", "--yes").code == 0
    with library.open() as memory:
        say(memory, "garage", PARKING)
        memory.decisions.update()
        memory.commits.keep_up()
    shown = lines("decisions", "why", "fees.py:parking_fee")
    assert "said by a person" in shown[0]
    assert "    “24 euros a day, and the day begins when the car enters, not at midnight.”" in shown
    whole = " ".join(lines("decisions", "why", "fees.py"))
    assert "24 euros" in whole
    assert "Undone on" in whole
    assert "the hospital has no driveway of its own" in " ".join(whole.split())
    assert lines("decisions", "why", "other.py") == [
        "Neither a person nor a commit states a reason for what stands there."
    ]
    with library.open() as memory:
        asked = Toolbox(memory).call("memory-search", {"query": "why is fees.py as it is?"}).text
        told = Toolbox(memory).call("memory-search", {"query": "parking_fee"}).text
    said = asked.partition("things match")[0]
    assert "The person: " in said
    assert "Undone in `fees.py`" in said
    assert "What people decided" not in told
