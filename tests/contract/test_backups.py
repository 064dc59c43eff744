"""Backups: written while others write, checked, and restored to any place."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import smara
from smara.config import Settings
from smara.database.migrate import HEAD
from smara.doctor import Finding, examine
from smara.errors import (
    BusyError,
    CannotOpenError,
    ConflictError,
    CorruptError,
    InvalidInputError,
    NotFoundError,
    SchemaTooNewError,
)
from smara.privacy import backup
from smara.requests.models import Principal
from smara.testing import FakeClock
from tests.contract.both import EACH_DATABASE
from tests.faults import recount

pytestmark = EACH_DATABASE
NOW = 1_800_000_000_000


@pytest.fixture
def memory(place):
    memory = place.open(embedder="off", project="shop")
    memory.messages.add(thread_id="t", role="user", content="The walrus sleeps.")
    memory.memories.remember("Port 8080 is taken", type="gotcha")
    memory.tasks.add("Mend the door")
    return memory


def kind_of(memory) -> str:
    return memory.internals.database.kind


def contents(memory) -> list[str]:
    return [each.raw_content for each in memory.messages.list(thread_id="t")]


def test_backup_is_private_and_says_what_is_in_it(memory, tmp_path):
    report = memory.privacy.backup(tmp_path / "b")
    assert report.kind == ("sqlite" if kind_of(memory) == "sqlite" else "archive")
    assert stat.S_IMODE(os.stat(report.path).st_mode) == 0o600
    assert report.size_bytes == os.stat(report.path).st_size
    assert {"messages": 1, "memories": 1, "tasks": 1}.items() <= report.counts.items()
    assert [each.name for each in tmp_path.glob("b*")] == ["b"]


def test_backup_never_replaces_a_file(memory, tmp_path):
    (tmp_path / "b").write_text("precious")
    with pytest.raises(InvalidInputError):
        memory.privacy.backup(tmp_path / "b")
    assert (tmp_path / "b").read_text() == "precious"


def test_backup_holds_personal_memories_of_everyone(place, memory, tmp_path):
    ann = place.open(embedder="off", project="shop", actor="ann")
    ann.memories.remember("Ann's own", type="preference", visibility="personal")
    assert memory.privacy.backup(tmp_path / "b").counts["memories"] == 2


def test_backup_is_restored_to_another_place(memory, tmp_path):
    report = memory.privacy.backup(tmp_path / "b")
    with smara.open(tmp_path / "new.db", embedder="off", project="else") as other:
        restored = other.privacy.restore(report.path)
    assert restored.saved_as is None
    with smara.open(tmp_path / "new.db", embedder="off", project="shop") as other:
        assert contents(other) == ["The walrus sleeps."]
        assert other.search("walrus", sources=["messages"]).hits
        assert recount.problems(other) == []
        assert other.tasks.totals().open == 1


def test_restoring_takes_back_what_came_later_and_saves_it(place, memory, tmp_path):
    if kind_of(memory) != "sqlite":
        pytest.skip("an archive adds to what is there")
    memory.privacy.backup(tmp_path / "b")
    memory.messages.add(thread_id="t", role="user", content="later")
    saved = memory.privacy.restore(tmp_path / "b").saved_as
    again = place.open(embedder="off", project="shop")
    assert contents(again) == ["The walrus sleeps."]
    again.messages.add(thread_id="t", role="user", content="goes on")
    assert recount.problems(again) == []
    with smara.open(saved, embedder="off", project="shop") as before:
        assert contents(before) == ["The walrus sleeps.", "later"]


def test_another_process_sees_the_restored_store(place, memory, tmp_path):
    if kind_of(memory) != "sqlite":
        pytest.skip("an archive adds to what is there")
    bystander = place.open(embedder="off", project="shop")
    memory.privacy.backup(tmp_path / "b")
    memory.messages.add(thread_id="t", role="user", content="later")
    assert len(contents(bystander)) == 2
    memory.privacy.restore(tmp_path / "b")
    assert contents(bystander) == ["The walrus sleeps."]
    bystander.messages.add(thread_id="t", role="user", content="goes on")
    assert recount.problems(bystander) == []


def test_backup_of_another_store_does_not_replace_one_in_use(place, memory, tmp_path):
    if kind_of(memory) != "sqlite":
        pytest.skip("an archive adds to what is there")
    with smara.open(tmp_path / "else.db", embedder="off", project="else") as other:
        other.messages.add(thread_id="t", role="user", content="of else")
        other.privacy.backup(tmp_path / "b")
    with pytest.raises(ConflictError):
        memory.privacy.restore(tmp_path / "b")
    assert contents(memory) == ["The walrus sleeps."]
    assert not list(tmp_path.glob("*before-restore*"))


def test_damaged_backup_changes_nothing(memory, tmp_path):
    report = memory.privacy.backup(tmp_path / "b")
    whole = bytearray(Path(report.path).read_bytes())
    middle = len(whole) // 3
    whole[middle : middle + 9000] = b"\xff" * 9000
    (tmp_path / "c").write_bytes(whole)
    with pytest.raises((CorruptError, InvalidInputError)):
        memory.privacy.restore(tmp_path / "c")
    assert contents(memory) == ["The walrus sleeps."]


def test_what_is_no_backup_is_refused(memory, tmp_path):
    (tmp_path / "c").write_text("hello")
    with pytest.raises((CorruptError, InvalidInputError, CannotOpenError)):
        memory.privacy.restore(tmp_path / "c")
    with pytest.raises(NotFoundError):
        memory.privacy.restore(tmp_path / "nowhere")
    assert contents(memory) == ["The walrus sleeps."]


def test_backup_of_a_newer_version_is_refused(memory, tmp_path):
    if kind_of(memory) != "sqlite":
        pytest.skip("archives are tested apart")
    import apsw

    memory.privacy.backup(tmp_path / "b")
    newer = apsw.Connection(str(tmp_path / "b"))
    newer.pragma("user_version", 9_999)
    newer.close()
    with pytest.raises(SchemaTooNewError):
        memory.privacy.restore(tmp_path / "b")
    assert contents(memory) == ["The walrus sleeps."]


@pytest.fixture
def only_sqlite(memory):
    if kind_of(memory) != "sqlite":
        pytest.skip("an archive holds no keys")


@pytest.mark.usefixtures("only_sqlite")
def test_a_restore_does_not_revive_a_revoked_key(place, memory, tmp_path):
    """Neither it nor its browser; a key that was made since goes on, for projects that are left."""
    access = memory.internals.requests.access
    old = access.add(Principal("leaver"), NOW)
    cookie = access.exchange(access.add_code(access.find(old, "key", NOW), NOW), NOW)
    memory.privacy.backup(tmp_path / "b")
    access.revoke("leaver")
    place.open(embedder="off", project="later").close()
    new = access.add(Principal("ci", projects=("shop", "later")), NOW)
    memory.privacy.restore(tmp_path / "b")
    access = place.open(embedder="off", project="shop").internals.requests.access
    assert access.find(old, "key", NOW) is None
    assert access.find(cookie, "session", NOW) is None
    assert [each.name for each in access.list()] == ["ci"]
    assert access.find(new, "key", NOW).projects == ("shop",)


@pytest.mark.usefixtures("only_sqlite")
def test_a_backup_brings_no_keys_to_another_place(memory, tmp_path):
    secret = memory.internals.requests.access.add(Principal("ci"), NOW)
    memory.privacy.backup(tmp_path / "b")
    with smara.open(tmp_path / "new.db", embedder="off", project="else") as other:
        other.privacy.restore(tmp_path / "b")
    with smara.open(tmp_path / "new.db", embedder="off", project="shop") as other:
        assert other.internals.requests.access.find(secret, "key", NOW) is None
    assert [each.name for each in tmp_path.glob("*restore*")] == []


@pytest.mark.usefixtures("only_sqlite")
def test_a_backup_of_an_older_schema_is_restored_in_that_of_today(place, memory, tmp_path):
    """Processes that have the store open never see the older one, and it keeps its keys."""
    import apsw

    memory.privacy.backup(tmp_path / "b")
    older = apsw.Connection(str(tmp_path / "b"))
    older.execute("DROP TABLE access_projects; DROP TABLE access; PRAGMA user_version = 57")
    older.execute("ALTER TABLE migrations DROP COLUMN opened_by")
    older.execute("DELETE FROM migrations WHERE number = 58")
    older.close()
    secret = memory.internals.requests.access.add(Principal("ci"), NOW)
    bystander = place.open(embedder="off", project="shop")
    memory.privacy.restore(tmp_path / "b")
    assert bystander.internals.requests.access.find(secret, "key", NOW) is not None
    assert contents(bystander) == ["The walrus sleeps."]


@pytest.mark.usefixtures("only_sqlite", "in_a_hurry")
@pytest.mark.parametrize("has_log", [True, False], ids=["log", "journal"])
def test_a_key_that_is_revoked_during_a_restore_is_not_valid_again(tmp_path, monkeypatch, has_log):
    """The store is locked from the copy of its keys until the restore has ended."""
    monkeypatch.setattr("smara.database.sqlite.wal_is_safe", lambda version: has_log)
    put_keys, at = backup.put_keys, {"embedder": "off", "project": "shop"}
    memory = smara.open(tmp_path / "a.db", **at)
    other = smara.open(tmp_path / "a.db", busy_timeout_seconds=0.01, **at)
    secret = memory.internals.requests.access.add(Principal("ci"), NOW)
    memory.messages.add(thread_id="t", role="user", content="kept")
    memory.privacy.backup(tmp_path / "b")

    def then_revoke(*given: Any) -> None:
        put_keys(*given)
        with pytest.raises(BusyError):
            other.internals.requests.access.revoke("ci")

    monkeypatch.setattr(backup, "put_keys", then_revoke)
    memory.privacy.restore(tmp_path / "b")
    with other:
        other.internals.requests.access.revoke("ci")
        assert other.internals.requests.access.find(secret, "key", NOW) is None
        assert contents(other) == ["kept"]


KILLED = """
import os, smara, sys
from smara.privacy import backup
backup.migrate = lambda *given: os._exit(9)
smara.open(sys.argv[1], embedder="off", project="shop").privacy.restore(sys.argv[2])
"""


@pytest.fixture
def killed(tmp_path):
    """A store beside which a restore was killed."""
    place = tmp_path / "a.db"
    with smara.open(place, embedder="off", project="shop") as memory:
        memory.messages.add(thread_id="t", role="user", content="The walrus sleeps in Aalborg.")
        memory.privacy.backup(tmp_path / "b")
    assert subprocess.run([sys.executable, "-c", KILLED, place, tmp_path / "b"]).returncode == 9
    (tmp_path / "b").unlink()
    (folder,) = tmp_path.glob("a.db.restore-*")
    assert b"Aalborg" in (folder / "store.db").read_bytes()
    return place


@pytest.mark.usefixtures("only_sqlite")
def test_an_erase_removes_what_a_killed_restore_left(tmp_path, killed):
    with smara.open(killed, embedder="off", project="shop") as memory:
        assert memory.privacy.erase(threads=["t"]).is_clean
    assert not [each for each in tmp_path.rglob("*.db*") if b"Aalborg" in _bytes_of(each)]


@pytest.mark.usefixtures("only_sqlite")
def test_the_next_restore_removes_what_a_killed_one_left(tmp_path, killed):
    with smara.open(killed, embedder="off", project="shop") as memory:
        memory.privacy.backup(tmp_path / "c")
        memory.privacy.restore(tmp_path / "c")
    assert not list(tmp_path.glob("a.db.restore-*"))


@pytest.mark.usefixtures("only_sqlite")
def test_the_doctor_finds_and_removes_what_a_killed_restore_left(tmp_path, killed):
    def finding(fix: bool) -> Finding:
        settings = Settings(db=str(killed), project="shop", embedder="off")
        return next(each for each in examine(settings, fix) if each.check == "erase")

    assert "killed" in finding(fix=False).text
    assert list(tmp_path.glob("a.db.restore-*"))
    assert finding(fix=True).is_fixed
    assert not list(tmp_path.glob("a.db.restore-*"))


@pytest.mark.usefixtures("only_sqlite")
def test_an_erase_during_a_restore_leaves_its_copy_and_does_not_call_itself_clean(
    tmp_path, monkeypatch
):
    memory, other = (smara.open(tmp_path / "a.db", embedder="off", project="shop") for _ in "ab")
    memory.messages.add(thread_id="t", role="user", content="The walrus sleeps in Aalborg.")
    memory.privacy.backup(tmp_path / "b")
    migrate, receipts = backup.migrate, []

    def erase_first(*given: Any) -> None:
        receipts.append(other.privacy.erase(threads=["t"]))
        assert other.privacy.problems() == [
            "The rows of 1 erases are gone, but not yet their bytes."
        ]
        assert not other.privacy.finish_erase()
        migrate(*given)

    monkeypatch.setattr(backup, "migrate", erase_first)
    memory.privacy.restore(tmp_path / "b")
    (receipt,) = receipts
    assert [Path(each).name.startswith("a.db.restore-") for each in receipt.traces] == [True]
    assert not list(tmp_path.glob("a.db.restore-*"))
    other.close()


def _bytes_of(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


@pytest.mark.usefixtures("only_sqlite")
def test_a_store_in_memory_is_restored_and_keeps_its_keys(memory, tmp_path):
    memory.privacy.backup(tmp_path / "b")
    with smara.open(":memory:", embedder="off", project="shop") as other:
        secret = other.internals.requests.access.add(Principal("ci"), NOW)
        database, clock = other.internals.database, FakeClock()
        backup.replace(database, str(tmp_path / "b"), clock, None)
        assert other.internals.requests.access.find(secret, "key", NOW) is not None
        with database.read() as session:
            assert session.one("SELECT count(*) FROM messages") == (1,)


@pytest.mark.usefixtures("only_sqlite")
def test_a_newer_backup_with_another_column_for_keys_is_restored(place, memory, tmp_path):
    import apsw

    memory.privacy.backup(tmp_path / "b")
    newer = apsw.Connection(str(tmp_path / "b"))
    newer.execute("ALTER TABLE access ADD COLUMN seen_at INTEGER")
    number = HEAD + 1
    newer.execute(
        "INSERT INTO migrations (number, name, applied_at, opened_by) VALUES (?, 'seen', 1, ?)",
        (number, HEAD),
    )
    newer.pragma("user_version", number)
    newer.close()
    secret = memory.internals.requests.access.add(Principal("ci"), NOW)
    memory.privacy.restore(tmp_path / "b")
    again = place.open(embedder="off", project="shop")
    assert again.internals.requests.access.find(secret, "key", NOW) is not None
    assert contents(again) == ["The walrus sleeps."]
