"""``smara import`` of what other memory tools keep, as people call it."""

from __future__ import annotations

import json

import pytest

from tests import foreign_stores
from tests.surfaces.shell import smara as call


@pytest.mark.parametrize("name", foreign_stores.EVERY)
def test_a_store_is_imported_by_its_path_alone_or_by_its_name(db, tmp_path, name):
    make = foreign_stores.EVERY[name][0]
    path = str(make(tmp_path))
    done = call("import", path, "--project", "harbor")
    assert done.code == 0, done.err
    assert "Imported" in done.out
    assert "smara memories review" in done.out
    again = call("import", "--from", name, path, "--project", "harbor", "--json")
    (report,) = again.data["imports"]
    assert (report["format"], report["added"], report["messages"]) == (name, 0, 0)


def test_the_counts_say_what_was_not_taken(db, tmp_path):
    done = call("import", str(foreign_stores.zep(tmp_path)))
    assert "Imported 2 memories and 1 message from Zep or Graphiti" in done.out
    assert "  No longer in force there, stored as superseded: 1" in done.out
    assert "  Skipped, an entity without a summary: 1" in done.out


def test_a_dry_run_stores_nothing(db, tmp_path):
    done = call("import", "--dry-run", str(foreign_stores.mcp_memory(tmp_path)))
    assert "Would import 3 memories and 0 messages from the MCP memory server" in done.out
    assert "smara memories review" not in done.out
    assert "billing" not in call("memories", "list").out


def test_a_broken_file_is_an_error_that_names_the_line(db, tmp_path):
    path = tmp_path / "memory.jsonl"
    path.write_text('{"type": "entity", "name": "a", "entityType": "b", "observations": ["c"]}\n{')
    done = call("import", str(path))
    assert done.code == 2
    assert "line 2: it is not JSON" in done.err
    assert "Nothing was imported." in done.err


def test_files_of_other_tools_are_not_mixed_with_transcripts(db, tmp_path):
    chat = tmp_path / "chat.jsonl"
    chat.write_text('{"role": "user", "content": "hello"}\n')
    done = call("import", str(chat), str(foreign_stores.mem0(tmp_path)))
    assert done.code == 2
    assert "chat.jsonl is not recognized as a file of another memory tool" in done.err
    assert call("import", str(chat)).code == 0
    assert "Give the file" in call("import", "--from", "mem0").err
    assert "--only is for files" in call("import", str(chat), "--only", "x").err


def test_a_transcript_that_shows_the_words_of_another_tool_is_a_transcript(db, tmp_path):
    session = tmp_path / "session.jsonl"
    shown = {"uuid": "1", "fact": "Ann sails", "source_node_uuid": "2"}
    record = {
        "type": "user", "uuid": "0b6a5f1e-2c33-4c7e-9d8e-3d1f0c527a41", "sessionId": "s-1",
        "timestamp": "2026-05-04T09:00:00Z", "toolUseResult": shown,
        "message": {"role": "user", "content": "Who sails?"},
    }  # fmt: skip
    session.write_text(f"{json.dumps(record)}\n")
    done = call("import", str(session), "--json")
    assert done.data["files"][0]["format"] == "claude-code"
