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


def test_restore_says_that_what_was_erased_since_is_back(store, tmp_path):
    call("backup", str(tmp_path / "b.db"))
    call("erase", "--thread", "login", "--yes")
    done = call("restore", str(tmp_path / "b.db"), "--yes")
    assert "1 erase came after this backup: what went then is back." in done.err
    assert call("search", "LoginSchema").out


def test_restore_asks_first_and_changes_nothing_without_an_answer(store, tmp_path):
    call("backup", str(tmp_path / "b.db"))
    with smara.open(store) as memory:
        memory.messages.add(thread_id="login", role="user", content="later")
    assert call("restore", str(tmp_path / "b.db"), stdin=b"n\n").code == 130
    unasked = call("restore", str(tmp_path / "b.db"), stdin=b"")
    assert (unasked.code, "Add --yes to restore." in unasked.err) == (2, True)
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


def test_erase_shows_first_and_erases_with_yes(store):
    shown = call("erase", "--thread", "login")
    assert shown.code == 0, shown.err
    assert "Would erase 4 rows" in shown.out
    assert "Nothing was changed. `--yes` erases it; there is no undo." in shown.out
    assert call("search", "LoginSchema").out
    done = call("erase", "--thread", "login", "--yes")
    assert done.code == 0, done.err
    assert "none was found" in done.out
    assert "Out of reach:" in done.out
    assert "LoginSchema" not in call("search", "LoginSchema").out
    with open(store, "rb") as file:
        assert b"LoginSchema" not in file.read()


def test_erase_of_a_message_by_its_place(store):
    done = call("erase", "--message", "login:2", "--yes", "--json")
    assert done.data["plan"]["chosen"] == {"messages": 1}
    assert done.data["traces"] == []
    assert call("messages", "show", "login:2", "--json").data["content"] == "[erased]"


def test_erase_without_a_target_is_refused(store):
    assert call("erase", "--yes").code == 2
    assert call("erase", "--thread", "nowhere", "--yes").code == 3


def test_reader_that_holds_the_store_is_no_obstacle_to_the_rows(store):
    """The bytes of a snapshot that another process reads cannot go before it ends."""
    import apsw

    reader = apsw.Connection(store)
    reader.execute("BEGIN; SELECT count(*) FROM messages").fetchall()
    held = call("erase", "--thread", "login", "--yes")
    reader.close()
    assert "LoginSchema" not in call("search", "LoginSchema").out
    assert held.code == 6
    assert "not yet their bytes" in call("doctor").out
    assert "They are gone now." in call("doctor", "--fix").out
    assert "bytes" not in call("doctor").out
    with open(store, "rb") as file:
        assert b"LoginSchema" not in file.read()


def test_copy_says_what_is_in_both_and_merges_the_second_time(store, tmp_path):
    target = str(tmp_path / "copy.db")
    done = call("copy", store, target)
    assert done.code == 0, done.err
    assert "4 messages" in done.out
    assert "Every row was read in both stores and is equal" in done.out
    assert all(len(line) <= 80 or "/" in line for line in done.out.splitlines())
    with smara.open(target) as memory:
        assert memory.threads.totals()["messages"] == 4
    with smara.open(store) as memory:
        memory.messages.add(thread_id="login", role="user", content="one more")
    again = call("copy", store, target)
    assert again.code == 0, again.err
    assert "Added: 1 message, 1 row in all." in again.out


def test_copy_tells_programs_the_checksum_of_every_table(store, tmp_path):
    done = call("copy", store, str(tmp_path / "copy.db"), "--json").data
    assert done["tables"]["messages"]["rows"] == 4
    assert len(done["tables"]["messages"]["sha256"]) == 64
    assert done["rows"] == sum(each["rows"] for each in done["tables"].values())
    assert not done["isResumed"]


def test_copy_of_what_is_not_there_makes_no_file(store, tmp_path):
    assert call("copy", str(tmp_path / "none.db"), str(tmp_path / "copy.db")).code == 3
    assert call("copy", store, str(tmp_path / "copy.db"), "nowhere").code == 3
    assert call("copy", store, store).code == 2
    assert [each.name for each in tmp_path.glob("*.db")] == ["smara.db"]


def test_status_shows_every_kind_with_its_rule(store, monkeypatch):
    monkeypatch.setenv("SMARA_RETENTION", "messages_days=90; receipts_mib=8")
    shown = call("status", "--retention")
    assert shown.code == 0, shown.err
    lines = dict(line.split("\t", 1) for line in shown.out.splitlines() if "\t" in line)
    assert lines["messages"].split("\t")[-2] == "90 days"
    assert lines["receipts"].split("\t")[-2] == "180 days, 8 MiB"
    assert lines["closed tasks"].split("\t")[-2] == "for ever"


def test_what_is_past_its_rule_is_listed_and_erased(store, monkeypatch):
    monkeypatch.setenv("SMARA_RETENTION", "messages_days=30")
    shown = call("erase", "--expired")
    assert "Would erase 4 rows." in shown.out
    assert "Nothing was changed." in shown.out
    done = call("erase", "--expired", "--yes", "--json")
    assert done.data["rows"] == {"messages": 4}
    assert call("erase", "--expired", "--json").data["rows"] == {}
    with open(store, "rb") as file:
        assert b"LoginSchema" not in file.read()
    assert call("erase", "--expired", "--thread", "login").code == 2


def test_rule_that_is_misspelled_is_refused_at_every_door(store, monkeypatch):
    monkeypatch.setenv("SMARA_RETENTION", "mesages_days=9")
    refused = call("search", "login")
    assert refused.code == 5
    assert "'mesages_days' is not a kind with a unit" in refused.err


def test_an_export_in_markdown_is_edited_and_read_back(store, tmp_path):
    call("remember", "Port 8080 is taken", "--type", "gotcha")
    path = tmp_path / "shop.md"
    call("export", str(path), "--format", "markdown")
    text = path.read_text().replace("Port 8080 is taken", "Port 8081 is taken")
    path.write_text(text.replace("With HMAC", "With HMAC and a date") + "- [ ] Sweep the floor\n")
    planned = call("import", "--dry-run", str(path))
    assert "Would update 2" in planned.out
    done = call("import", str(path))
    assert done.code == 0, done.err
    assert "Updated 2" in done.out
    assert "added 1; 3 unchanged." in done.out
    assert "Port 8081 is taken" in call("memories", "list").out
    assert "Sweep the floor" in call("tasks", "list").out
    again = call("import", str(path), "--json")
    assert (again.data["imports"][0]["updated"], again.data["imports"][0]["added"]) == ([], [])


def test_a_change_on_both_sides_is_shown_and_not_overwritten(store, tmp_path):
    call("remember", "Port 8080 is taken", "--type", "gotcha")
    path = tmp_path / "shop.md"
    call("export", str(path), "--format", "markdown")
    path.write_text(path.read_text().replace("Port 8080 is taken", "Port 8081 is taken"))
    (memory,) = call("memories", "list", "--json").data["memories"]
    edited = call("memories", "edit", memory["id"], "--text", "Port 9090 is taken")
    assert edited.code == 0, edited.err
    done = call("import", str(path))
    assert "was changed here since the export" in done.out
    assert "here: gotcha: Port 9090 is taken" in done.out
    assert "file: gotcha: Port 8081 is taken" in done.out
    assert "Port 9090 is taken" in call("memories", "list").out
