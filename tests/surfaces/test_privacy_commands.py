"""``smara backup``, ``restore``, ``export`` and the import of archives, as people call them."""

from __future__ import annotations

import json
import zipfile

import smara
from tests.surfaces.shell import smara as call


def test_backup_and_restore_to_another_place(store, tmp_path):
    backup = call("backup", str(tmp_path / "b.db"))
    assert backup.code == 0, backup.err
    assert "4 messages" in backup.out
    assert "checked it" in backup.out
    restored = call("restore", str(tmp_path / "b.db"), "--db", str(tmp_path / "new.db"), "--yes")
    assert restored.code == 0, restored.err
    assert "before" not in restored.out
    with smara.open(tmp_path / "new.db") as memory:
        assert memory.threads.totals()["messages"] == 4


def test_restore_says_where_the_former_store_is(store, tmp_path):
    call("backup", str(tmp_path / "b.db"))
    done = call("restore", str(tmp_path / "b.db"), "--json")
    saved = done.data["savedAs"]
    assert saved.startswith(store)
    with smara.open(saved) as memory:
        assert memory.threads.totals()["messages"] == 4


def test_restore_asks_first_and_changes_nothing_without_an_answer(store, tmp_path):
    call("backup", str(tmp_path / "b.db"))
    with smara.open(store) as memory:
        memory.messages.add(thread_id="login", role="user", content="later")
    assert call("restore", str(tmp_path / "b.db"), stdin=b"n\n").code == 130
    with smara.open(store) as memory:
        assert memory.threads.totals()["messages"] == 5


def test_export_and_import_into_another_store(store, tmp_path):
    done = call("export", str(tmp_path / "a.zip"))
    assert done.code == 0, done.err
    assert "4 messages" in done.out
    assert "manifest.json" in zipfile.ZipFile(tmp_path / "a.zip").namelist()
    other = str(tmp_path / "new.db")
    read = call("import", str(tmp_path / "a.zip"), "--db", other)
    assert read.code == 0, read.err
    assert "into default; 0 already there." in read.out
    found = call("search", "LoginSchema", "--db", other)
    assert "LoginSchema" in found.out


def test_export_as_text_goes_to_standard_output_or_a_file(store, tmp_path):
    call("remember", "Port 8080 is taken", "--type", "gotcha")
    assert "- Port 8080 is taken" in call("export", "--format", "claude-md").out
    assert "Sign outgoing webhooks" in call("export", "--format", "markdown").out
    assert len(json.loads(call("export", "--format", "json").out)["messages"]) == 4
    done = call("export", str(tmp_path / "AGENTS.md"), "--format", "agents-md")
    assert done.code == 0, done.err
    assert "- Port 8080 is taken" in (tmp_path / "AGENTS.md").read_text()


def test_existing_file_is_not_replaced(store, tmp_path):
    (tmp_path / "a.zip").write_text("precious")
    for command in ("export", "backup"):
        assert call(command, str(tmp_path / "a.zip")).code == 2
    assert (tmp_path / "a.zip").read_text() == "precious"
