"""The doctor finds each kind of real problem, says what to do, and mends what it promises to
mend.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

import smara
from smara import doctor
from smara.config import Settings
from smara.database import filesystem, sqlite
from smara.database.migrate import HEAD
from smara.doctor import Finding, examine
from smara.errors import CorruptError
from tests.other_user import open_folder, run_as_user

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="file modes and /proc are looked at"
)

LOADED = """
import sys
import apsw, smara.memory, smara.database.sqlite
from smara.config import Settings
from smara.doctor import examine
"""
EXAMINED = """
for finding in examine(Settings(db=sys.argv[1])):
    print(finding.level, finding.check, finding.text, finding.advice)
"""
READER = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN; SELECT count(*) FROM messages").fetchall()
print("reading", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A healthy store with twenty messages; nothing here waits for the disk."""
    monkeypatch.setenv("SMARA_DURABILITY", "normal")
    path = tmp_path / "smara.db"
    with smara.open(path) as memory:
        memory.messages.add_many(
            thread_id="t",
            messages=[{"role": "user", "content": f"open src/file_{n}.py"} for n in range(20)],
        )
    return str(path)


def look(path: str, fix: bool = False) -> dict[str, Finding]:
    settings = Settings(db=path, busy_timeout_seconds=0.05)  # what is held here is held on purpose
    return {finding.check: finding for finding in examine(settings, fix)}


def problems(path: str) -> list[str]:
    return [check for check, finding in look(path).items() if finding.level == "problem"]


def run_sql(path: str, sql: str) -> None:
    connection = apsw.Connection(path)
    connection.execute(sql).fetchall()
    connection.close()


def test_healthy_store_has_nothing_to_complain_about(path):
    found = look(path)
    assert {finding.level for finding in found.values()} == {"ok"}
    assert list(found) == [
        "sqlite",
        "permissions",
        "file system",
        "disk",
        "write-ahead log",
        "schema",
        "integrity",
        "search index",
        "tasks",
        "memories",
    ]


def test_every_complaint_says_what_to_do(path, monkeypatch):
    os.chmod(path, 0o644)
    monkeypatch.setattr(doctor, "LOW_DISK_BYTES", 2**62)
    run_sql(path, "DELETE FROM message_index_docsize WHERE id >> 16 = 7")
    complaints = [finding for finding in look(path).values() if finding.level != "ok"]
    assert [finding.check for finding in complaints] == ["permissions", "disk", "search index"]
    assert all(finding.advice for finding in complaints)


def test_missing_store_is_a_warning_and_is_not_made(tmp_path):
    found = look(str(tmp_path / "none.db"))
    assert (found["store"].level, "smara init" in found["store"].advice) == ("warning", True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o666, 0o604])
def test_store_that_others_can_read_is_a_problem_and_is_mended(path, mode):
    os.chmod(path, mode)
    finding = look(path)["permissions"]
    assert (finding.level, f"{mode:04o}" in finding.text, "chmod 600" in finding.advice) == (
        "problem",
        True,
        True,
    )
    assert look(path, fix=True)["permissions"].is_fixed
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert problems(path) == []


@pytest.mark.parametrize(
    ("mode", "words"), [(0o000, "cannot be read"), (0o444, "cannot be written")]
)
def test_store_that_the_user_may_not_open_is_a_problem(path, mode, words):
    with open_folder() as folder:
        copy = shutil.copy(path, folder)
        os.chmod(copy, mode)
        told = run_as_user(LOADED, EXAMINED, str(copy))
    assert f"problem access {copy}" in told
    assert words in told


def test_one_problem_does_not_hide_another(path):
    os.chmod(path, 0o644)
    run_sql(path, f"PRAGMA user_version = {HEAD + 1}")
    assert problems(path) == ["permissions", "schema"]


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM message_index_docsize WHERE id >> 16 = 7",
        "UPDATE message_index_content SET c0 = 'other words' WHERE id >> 16 = 7",
        "UPDATE message_index_data SET block = substr(block, 1, 60) || x'41' || substr(block, 62)"
        " WHERE length(block) > 100",
    ],
)
def test_damaged_index_is_found_named_and_rebuilt_only_when_asked(path, damage):
    run_sql(path, damage)
    assert problems(path) == ["search index"]
    assert problems(path) == ["search index"], "looking changes nothing"
    mended = look(path, fix=True)["search index"]
    assert (mended.is_fixed, "rebuilt from 20 messages" in mended.text) == (True, True)
    assert problems(path) == []


def test_store_of_a_newer_smara_is_named_and_not_touched(path):
    run_sql(path, f"PRAGMA user_version = {HEAD + 1}; PRAGMA journal_mode = WAL")
    before = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    finding = look(path, fix=True)["schema"]
    assert (finding.level, str(HEAD + 1) in finding.text) == ("problem", True)
    assert "pip install --upgrade" in finding.advice
    assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == before


def test_file_cut_short_is_damaged_and_the_advice_is_not_to_run_the_doctor(path):
    with open(path, "r+b") as file:
        file.truncate(8192)
    finding = next(finding for finding in look(path).values() if finding.level == "problem")
    assert finding.check == "integrity"
    assert "damaged" in finding.text
    assert "smara doctor" not in finding.text + finding.advice
    assert "backup" in finding.advice


def test_overwritten_pages_are_damage(path):
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        for page in range(3, size // 4096, 3):
            file.seek(page * 4096)
            file.write(b"\xa5" * 4096)
    found = [each for each in examine(Settings(db=path)) if each.level == "problem"]
    assert any("damaged" in each.text for each in found)
    assert len(set(found)) == len(found)
    # The reader has just run the doctor.
    assert [each for each in found if "which says" in each.text or not each.advice] == []


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM message_index_config",
        "DELETE FROM word_trigrams_config",
        "UPDATE message_index_config SET v = 99 WHERE k = 'version'",
    ],
)
def test_an_index_that_lost_its_settings_is_no_damaged_file(path, damage):
    run_sql(path, damage)
    found = [each for each in examine(Settings(db=path)) if each.level != "ok"]
    assert [each.text for each in found if "file is damaged" in each.text] == []
    assert ".recover" not in "".join(each.advice for each in found)
    assert "search index" in [each.check for each in found]


def test_check_that_cannot_read_the_store_says_what_to_do(path, monkeypatch):
    def refuse(self: object) -> list[str]:
        raise CorruptError("The database is damaged. Run `smara doctor`, which says what.")

    monkeypatch.setattr("smara.tasks.tasks.Tasks.problems", refuse)
    monkeypatch.setattr("smara.knowledge.memories.Memories.problems", refuse)
    found = [each for each in examine(Settings(db=path)) if each.level == "problem"]
    assert [each.check for each in found] == ["integrity"]
    assert ".recover" in found[0].advice


def test_search_of_a_message_without_its_place_names_the_damage(path):
    run_sql(
        path,
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET"
        " sql = replace(sql, 'seq           INTEGER NOT NULL', 'seq           INTEGER')"
        " WHERE name = 'messages'",
    )
    run_sql(path, "UPDATE messages SET seq = NULL WHERE no = 7")
    with smara.open(path) as memory, pytest.raises(CorruptError, match="doctor"):
        memory.search("open the file")


def test_file_that_is_no_database_is_said_to_be_none_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("notes " * 1000)
    path.chmod(0o600)
    assert problems(str(path)) == ["integrity"]
    assert "not a database" in look(str(path), fix=True)["integrity"].text
    assert path.read_text() == "notes " * 1000


def test_database_of_another_program_is_named_and_left_alone(tmp_path):
    path = tmp_path / "places.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE places (url TEXT)")
    other.commit()
    other.close()
    path.chmod(0o600)
    before = path.read_bytes()
    assert "another program" in look(str(path), fix=True)["open"].text
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("mount", "level"),
    [
        ("nfs4 server:/home rw", "warning"),
        ("fuse.sshfs me@host: rw", "warning"),
        ("ext4 /dev/sda1 rw", "ok"),
    ],
)
def test_network_file_system_is_a_warning(path, monkeypatch, mount, level):
    """The kernel's table of mounts is the only thing that is made up."""
    table = (
        f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n36 22 0:33 / {os.path.dirname(path)} rw - {mount}\n"
    )

    def network(path: str) -> str | None:
        kind = filesystem.filesystem_type(os.path.realpath(path), table)
        return kind if kind and filesystem.is_network_type(kind) else None

    monkeypatch.setattr(doctor, "network_filesystem", network)
    monkeypatch.setattr(sqlite, "network_filesystem", network)
    finding = look(path)["file system"]
    assert finding.level == level
    if level == "warning":
        assert mount.split()[0] in finding.text
        assert "PostgreSQL" in finding.advice


def test_sqlite_with_the_wal_reset_bug_is_a_warning(path, monkeypatch):
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.46.0")
    finding = look(path)["sqlite"]
    assert (finding.level, "3.46.0" in finding.text, "apsw" in finding.advice) == (
        "warning",
        True,
        True,
    )


def test_full_disk_is_a_problem(path, monkeypatch):
    monkeypatch.setattr(doctor, "LOW_DISK_BYTES", shutil.disk_usage(path).free + 2**40)
    assert problems(path) == ["disk"]


def test_log_that_a_reader_keeps_growing_is_told_with_the_readers_process(path, monkeypatch):
    """The reader is a process of its own that began to read and never ended; the threshold is
    lowered.
    """
    monkeypatch.setattr(doctor, "LARGE_WAL_BYTES", 100_000)
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert reader.stdout is not None
    with smara.open(path) as memory, reader.stdout:
        assert reader.stdout.readline() == "reading\n"
        memory.messages.add_many(
            thread_id="t",
            messages=[{"role": "user", "content": f"word{n} " * 300} for n in range(100)],
        )
        finding = look(path)["write-ahead log"]
        assert (finding.level, "doctor --fix" in finding.advice) == ("warning", True)
        if sys.platform == "linux":
            assert f"Held open by process {reader.pid}" in finding.text
        held = look(path, fix=True)["write-ahead log"]
        assert (held.level, "still holds" in held.text) == ("warning", True)
        assert reader.communicate("")[0] == ""
        assert look(path, fix=True)["write-ahead log"].level == "ok"
        assert os.path.getsize(path + "-wal") == 0
    assert problems(path) == []


@pytest.mark.parametrize("form", ["sqlite:///{}", "{}"])
def test_path_and_url_are_the_same_store(path, form):
    assert look(form.format(path))["search index"].level == "ok"


@pytest.mark.postgres
def test_postgres_is_looked_into_too(postgres_url):
    with smara.open(postgres_url) as memory:
        memory.messages.add(thread_id="t", role="user", content="hello")
    found = look(postgres_url)
    assert {finding.level for finding in found.values()} == {"ok"}
    assert list(found) == ["schema", "integrity", "search index", "tasks", "memories"]


def test_unreachable_server_is_a_problem_that_keeps_the_password():
    finding = look("postgresql://me:hunter2pw@127.0.0.1:1/x")["open"]
    assert finding.level == "problem"
    assert "hunter2pw" not in finding.text
