"""What agents were told, on the command line: the list, one receipt in full, the experiment, the
bytes of a start.
"""

from __future__ import annotations

import pytest

import smara as library
from smara.adapters.hook_output import emit
from tests.surfaces.shell import on_terminal, plain, smara

TRAP = "src/queue.py is drained with `drain_queue()` before its rules change"


@pytest.fixture
def told(db: str, tmp_path, monkeypatch) -> str:
    """A store with a trap that one session was told at its start and another at a file."""
    (tmp_path / "app").mkdir()
    monkeypatch.chdir(tmp_path / "app")
    with library.open(db, embedder="off") as memory:
        memory.memories.add(
            TRAP, type="gotcha", source="user_taught", by="person", files=["src/queue.py"]
        )
        memory.moments.start("monday", agent="claude")
        said = memory.moments.after_tool("tuesday", "Read", {"file_path": "src/queue.py"})
        memory.moments.mark_delivered(said.receipt_id)
        memory.moments.mark_used(said.receipt_id, "the agent said so")
    return db


def test_receipts_are_listed_with_what_why_cost_and_use(told):
    data = smara("receipts", "--json").data
    assert [each["sessionId"] for each in data["receipts"]] == ["tuesday", "monday"]
    newest = data["receipts"][0]
    assert (newest["point"], newest["usedHow"], newest["isSaid"]) == (
        "after_tool",
        "the agent said so",
        True,
    )
    assert newest["items"][0]["why"] == "it is about the file that was opened"
    assert (data["totals"]["receipts"], data["totals"]["used"], data["nextOffset"]) == (2, 1, None)
    assert smara("receipts", "list", "--limit", "1", "--json").data["nextOffset"] == 1
    assert (
        smara("receipts", "list", "--session", "monday", "--json").data["receipts"][0]["point"]
        == "start"
    )


def test_bare_receipts_lists_them(told):
    assert smara("receipts").out == smara("receipts", "list").out
    assert smara("receipts").out.splitlines()[0].startswith("receipt\twhen\tpoint")


def test_one_receipt_gives_the_very_words_and_the_reasons(told):
    newest = smara("receipts", "--json").data["receipts"][0]
    said = smara("receipts", "show", newest["id"][:7]).out
    assert newest["text"] in said
    assert "it is about the file that was opened" in said
    assert smara("receipts", "show", newest["id"], "--json").data == newest
    missing = smara("receipts", "show", "r-000000")
    assert (missing.code, "smara receipts list" in missing.err) == (3, True)


def test_on_a_terminal_they_are_a_table_with_a_sum(told):
    seen = plain(on_terminal("receipts", columns=140).out)
    assert "used (the agent said" in seen
    assert "2 receipts: 2 injected with" in seen
    newest = smara("receipts", "--json").data["receipts"][0]
    assert "Text" in plain(on_terminal("receipts", "show", newest["id"]).out)


def test_an_empty_list_says_what_to_do_next(db):
    library.open(db).close()
    assert "smara context preview" in plain(on_terminal("receipts").out)


def test_the_experiment_is_off_until_it_is_turned_on(told):
    assert smara("receipts", "arms", "--json").data == {"isOn": False, "arms": {}}
    assert "is on" in smara("receipts", "arms", "--on").out
    assert smara("receipts", "arms", "--json").data["isOn"] is True
    assert "is off" in smara("receipts", "arms", "--off").out


def test_the_preview_is_what_a_session_is_told_byte_for_byte(told):
    shown = smara("context", "preview", "--json").data
    assert smara("context", "preview").out == shown["text"] + "\n"
    with library.open(told, embedder="off") as memory:
        said = memory.moments.start("wednesday", agent="claude")
    assert said.text == shown["text"]
    assert shown["tokens"] <= shown["estimatedTokens"] <= 2_400
    assert (
        said.text.replace("\n", "\\n").replace('"', '\\"')
        in emit("claude", "SessionStart", said.text).decode()
    )
    assert len(smara("receipts", "--json").data["receipts"]) == 3


def test_the_preview_leaves_out_what_the_agent_reads_by_itself(told, tmp_path):
    (tmp_path / "app" / "CLAUDE.md").write_text(f"- {TRAP}.\n")
    assert "drain_queue" not in smara("context", "preview").out
    assert "drain_queue" in smara("context", "preview", "--agent", "codex").out
    assert "nothing" in plain(on_terminal("context", "preview").out)
