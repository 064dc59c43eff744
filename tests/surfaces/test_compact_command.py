"""``smara compact``: what is shown changes, what is found does not, and it can be taken back."""

from __future__ import annotations

import pytest

import smara as library
from tests.surfaces.shell import smara


@pytest.fixture
def long(db: str) -> str:
    with library.open(db, compact_every_messages=0) as memory:
        memory.messages.add_many(
            thread_id="long",
            messages=[{"role": "user", "content": f"Rename handle_{n}()"} for n in range(40)],
        )
    return db


def levels() -> list[int]:
    data = smara("messages", "list", "--thread", "long", "--limit", "100", "--json").data
    return [message["compactionLevel"] for message in data]


def test_compacted_run_is_reported_and_every_word_stays_findable(long):
    data = smara("compact", "--thread", "long", "--keep", "5", "--json").data
    assert (data["messagesCompacted"], data["messagesWhole"]) == (35, 5)
    assert [(each["startSeq"], each["endSeq"], each["level"]) for each in data["compactions"]] == [
        (1, 10, 1),
        (11, 20, 1),
        (21, 30, 1),
        (31, 35, 1),
    ]
    assert levels() == [1] * 35 + [0] * 5
    assert (
        smara("search", "handle_7", "--limit", "1", "--json").data["results"][0]["content"]
        == "Rename handle_7()"
    )


def test_undo_shows_the_messages_whole_again(long):
    identifier = smara("compact", "--thread", "long", "--json").data["compactions"][0]["id"]
    undone = smara("compact", "--undo", identifier)
    assert undone.out == "Messages 1 to 10 are shown in full again.\n"
    assert levels() == [0] * 10 + [1] * 30
    assert smara("threads", "show", "long", "--json").data["compactions"][0]["undoneAt"] is not None


def test_undo_in_json_names_what_was_undone(long):
    made = smara("compact", "--thread", "long", "--json").data["compactions"][0]
    undone = smara("compact", "--undo", made["id"], "--json").data
    assert undone["undoneAt"] is not None
    assert undone | {"undoneAt": None} == made


def test_table_names_the_compaction_so_that_it_can_be_undone(long):
    lines = smara("compact", "--thread", "long", "--keep", "30").out.splitlines()
    assert lines[0] == "Compacted 10 messages; 30 kept in full."
    assert lines[1] == "compaction\tlevel\tmessages\tsummary"
    identifier, level, messages, summary = lines[2].split("\t")
    assert (level, messages) == ("1", "1–10")
    assert "handle_0" in summary
    assert smara("compact", "--undo", identifier).code == 0


def test_when_due_follows_the_rules(long):
    assert (
        smara("compact", "--thread", "long", "--when-due", "--json").data["messagesCompacted"] > 0
    )
    assert (
        smara("compact", "--thread", "long", "--when-due", "--json").data["messagesCompacted"] == 0
    )


def test_nothing_left_to_compact_is_no_failure(long):
    smara("compact", "--thread", "long")
    said = smara("compact", "--thread", "long")
    assert (said.code, said.out) == (0, "Compacted 0 messages; 0 kept in full.\n")
