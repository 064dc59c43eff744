"""SQLite: private files, safe versions, local disks, connections that are never carried over a
fork.
"""

from __future__ import annotations

import inspect
import os
import stat
from contextlib import suppress

import apsw
import pytest

import smara
from smara.database.filesystem import filesystem_type, is_network_type
from smara.database.sqlite import APPLICATION_ID, SqliteDatabase, wal_is_safe
from smara.errors import BusyError, CannotOpenError, CorruptError, SmaraError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "smara.db"


@pytest.fixture
def opened(path):
    database = SqliteDatabase(path)
    yield database
    database.close()


def pragma(database, name):
    with database.read() as session:
        return session.one(f"PRAGMA {name}")[0]


@pytest.mark.parametrize(
    ("version", "is_safe"),
    [
        ("3.7.0", False), ("3.44.5", False), ("3.44.6", True), ("3.45.0", False), ("3.50.6", False),
        ("3.50.7", True),
        ("3.51.2", False), ("3.51.3", True), ("3.52.0", True), ("4.0.0", True),
    ],
)  # fmt: skip
def test_the_versions_with_the_wal_reset_bug_are_known(version, is_safe):
    assert wal_is_safe(version) is is_safe


def test_the_sqlite_that_is_linked_is_safe():
    assert wal_is_safe(apsw.sqlite_lib_version())


def test_an_unsafe_sqlite_falls_back_to_the_rollback_journal_with_one_warning(path, monkeypatch):
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    database = SqliteDatabase(path)
    assert (pragma(database, "journal_mode"), len(database.warnings)) == ("delete", 1)
    assert "3.51.2" in database.warnings[0]
    database.close()


def test_the_file_is_readable_by_its_owner_alone(opened, path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_log_beside_the_file_is_private_too(opened, path):
    with opened.write() as session:
        session.run("CREATE TABLE t (x)")
    beside = [file for file in path.parent.iterdir() if file != path]
    assert beside
    assert {stat.S_IMODE(file.stat().st_mode) for file in beside} == {0o600}


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("normal", 1)])
def test_durability_is_a_setting(path, durability, synchronous):
    database = SqliteDatabase(path, durability)
    found = [pragma(database, name) for name in ("synchronous", "journal_mode", "foreign_keys")]
    assert found == [synchronous, "wal", 1]
    database.close()


def test_a_writer_waits_for_the_lock_and_then_says_who_is_in_the_way(path, opened):
    impatient = SqliteDatabase(path, busy_timeout_seconds=0.05)
    with (
        opened.write(),
        pytest.raises(BusyError, match="Another process") as caught,
        impatient.write(),
    ):
        pass
    assert caught.value.is_retryable
    impatient.close()


def test_readers_are_not_held_up_by_a_writer(path, opened):
    with opened.write() as session:
        session.run("CREATE TABLE t (x)")
        assert pragma(opened, "user_version") == 0


def test_a_database_in_memory_is_one_database(tmp_path):
    database = SqliteDatabase(":memory:")
    with database.write() as session:
        session.run("CREATE TABLE t (x)")
        session.run("INSERT INTO t VALUES (1)")
    with database.read() as session:
        assert session.all("SELECT x FROM t") == [(1,)]
    database.close()


def test_a_read_within_a_read_or_a_write_of_a_store_in_memory_is_answered():
    database = SqliteDatabase(":memory:")
    with database.write() as session:
        session.run("CREATE TABLE t (x)")
        session.run("INSERT INTO t VALUES (1)")
        with database.snapshot() as within:
            assert within.one("SELECT x FROM t") == (1,)
    with database.read(60), database.snapshot(), database.read(60) as session:
        assert session.one("SELECT x FROM t") == (1,)
    database.close()


def test_every_public_call_on_a_store_in_memory_comes_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with smara.open(":memory:", token_model="estimate") as memory:
        message = memory.messages.add(thread_id="t", role="user", content="Use tabs in cart.py.")
        ids = {
            "thread_id": "t", "message_id": message.id, "task_id": memory.tasks.add("Cart").id,
            "memory_id": memory.memories.remember("Totals in `cart.py` are cents.").memory.id,
            "session_id": "s", "query": "cents", "text": "the cart", "module": "shop",
            "modules": ["shop"], "pattern": "cents", "prefix": "ca", "target": "cart.py",
            "messages": [], "command": "make", "path": "cart.py", "observations": [],
        }  # fmt: skip
        rooms = [getattr(memory, name) for name in dir(memory) if not name.startswith("_")]
        called = 0
        for room in [memory, *(room for room in rooms if not callable(room))]:
            for name in dir(room) if type(room).__module__.startswith("smara.") else ():
                if name.startswith("_") or name in ("close", "watch", "run", "probe"):
                    continue
                called += _call(getattr(room, name), ids)
        assert called > 140


def _call(call, ids):
    """Call with the arguments it needs; say whether these could be given."""
    if not callable(call):
        return False
    needed = {
        name: ids.get(name)
        for name, parameter in inspect.signature(call).parameters.items()
        if parameter.default is parameter.empty and parameter.kind not in (2, 4)
    }
    if None in needed.values():
        return False
    with suppress(SmaraError):
        answer = call(**needed)
        _ = list(answer) if inspect.isgenerator(answer) else answer
    return True


def test_a_closed_database_says_so(opened):
    opened.close()
    with pytest.raises(CannotOpenError, match="closed"), opened.read():
        pass


def test_a_file_of_random_bytes_is_refused(tmp_path):
    path = tmp_path / "junk.db"
    path.write_bytes(os.urandom(8_192))
    with pytest.raises(CorruptError, match="not a SQLite database"):
        SqliteDatabase(path)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(CannotOpenError, match="Choose another path"):
        SqliteDatabase(tmp_path / "file" / "smara.db")


def test_a_child_process_opens_connections_of_its_own(opened):
    with opened.write() as session:
        session.run("CREATE TABLE t (x)")
    child = os.fork()
    if child == 0:  # in the child: write, and leave without touching pytest
        try:
            with opened.write() as session:
                session.run("INSERT INTO t VALUES (7)")
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with opened.read() as session:
        assert session.all("SELECT x FROM t") == [(7,)]


def test_integrity_finds_nothing_wrong_with_a_new_file(opened):
    assert opened.integrity() == []


def test_the_application_id_spells_our_name():
    assert APPLICATION_ID.to_bytes(4, "big") == b"SMAR"


MOUNTS = """\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
30 22 0:40 / /home/ann/nfs rw - nfs4 server:/x rw
31 22 0:41 / /mnt/my\\040drive rw - fuse.sshfs host: rw
32 22 0:42 / /mnt/local rw - fuse.mergerfs x rw
"""


@pytest.mark.parametrize(
    ("path", "kind", "is_network"),
    [
        ("/home/ann/smara.db", "ext4", False), ("/home/ann/nfs/smara.db", "nfs4", True),
        ("/home/ann/nfs2/smara.db", "ext4", False),
        ("/mnt/my drive/s.db", "fuse.sshfs", True), ("/mnt/local/s.db", "fuse.mergerfs", False),
    ],
)  # fmt: skip
def test_a_network_file_system_is_recognized_by_its_mount(path, kind, is_network):
    assert filesystem_type(path, MOUNTS) == kind
    assert is_network_type(kind) is is_network
