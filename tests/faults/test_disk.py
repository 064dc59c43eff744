"""A disk that fails: every error is a typed one, nothing is half stored, and service goes on when
the disk is well.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

import smara
from smara.config import Settings
from smara.doctor import examine
from smara.errors import CannotOpenError, DatabaseError, DiskFullError, SmaraError
from tests.faults import recount, vfs
from tests.faults.sizes import SEED, count
from tests.faults.vfs import Faults
from tests.faults.workers import text_of
from tests.other_user import LEAVE_ROOT

Operation = Callable[[smara.Memory, str], list[str]]


def append(memory: smara.Memory, name: str) -> list[str]:
    memory.messages.add(thread_id="t", role="user", content=text_of(name), client_id=name)
    return [name]


def add_many(memory: smara.Memory, name: str) -> list[str]:
    ids = [f"{name}m{number}" for number in range(25)]
    batch = [{"role": "user", "content": text_of(each), "client_id": each} for each in ids]
    memory.messages.add_many(thread_id="t", messages=batch)
    return ids


def compact(memory: smara.Memory, name: str) -> list[str]:
    made = memory.compactions.compact("t").compactions
    for each in made[-2:]:
        memory.compactions.undo(each.id)
    return []


def rebuild(memory: smara.Memory, name: str) -> list[str]:
    memory.internals.index.rebuild()
    return []


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[tuple[smara.Memory, Faults]]:
    """A memory on a disk that can be made to fail, with some messages in it."""
    with (
        vfs.failing("faulty") as faults,
        smara.open(tmp_path / "store.db", vfs="faulty", compact_every_messages=0) as memory,
    ):
        for number in range(4):
            add_many(memory, f"base{number}")
        yield memory, faults


def outcome(
    operation: Operation, memory: smara.Memory, name: str
) -> tuple[list[str], SmaraError | None]:
    """What was acknowledged, or the error; any error but Smara's own fails the test."""
    try:
        return operation(memory, name), None
    except SmaraError as error:
        return [], error


@pytest.mark.parametrize("is_persistent", [False, True], ids=["once", "from_then_on"])
@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError], ids=["full", "broken"])
@pytest.mark.parametrize("operation", [append, add_many, compact, rebuild])
def test_disk_that_fails_at_the_nth_operation_loses_nothing(
    faulty: tuple[smara.Memory, Faults],
    operation: Operation,
    error: type[apsw.Error],
    is_persistent: bool,
) -> None:
    """For every n: fail there, expect a typed error or success, clear, expect normal service at
    once.

    The small tier tries every n up to 4 and then every ninth, the large one every n.
    """
    memory, faults = faulty
    acknowledged = dict.fromkeys(recount.contents(memory))
    faults.clear()
    operation(memory, "measured")
    acknowledged |= dict.fromkeys(recount.contents(memory))
    ordinary, injected, n = faults.calls + 2, 0, 0
    while n <= ordinary:
        n += 1 if n < 4 else count(9, 1)
        faults.plan(n, error, is_persistent)
        ids, raised = outcome(operation, memory, f"{operation.__name__}{n}")
        injected += faults.injected
        assert raised is None or isinstance(raised, DatabaseError), (n, raised)
        assert raised is None or error is not apsw.FullError or isinstance(raised, DiskFullError), (
            n,
            raised,
        )
        acknowledged |= dict.fromkeys(ids)
        found = memory.search("zebrafinch", limit=3)
        assert (len(found), found.warnings) == (3, ()), f"searching while the disk fails, n={n}"
        faults.clear()
        append(memory, f"after{operation.__name__}{n}")
        acknowledged[f"after{operation.__name__}{n}"] = None
        stored = recount.contents(memory)
        half = {each for each in stored if each not in acknowledged}
        assert half == set() or (raised is not None and operation in (append, add_many)), (
            f"n={n}: {half}"
        )
        assert half in (set(), _would_write(operation, n)), f"half stored at n={n}"
        assert all(stored.get(each) == text_of(each) for each in acknowledged), f"lost at n={n}"
        acknowledged |= dict.fromkeys(half)
        assert recount.problems(memory) == [], f"n={n}"
    assert injected > 0


def _would_write(operation: Operation, n: int) -> set[str]:
    """An error after the commit was written may mean stored: then all of it, never a part."""
    name = f"{operation.__name__}{n}"
    return {name} if operation is append else {f"{name}m{number}" for number in range(25)}


def test_failing_disk_while_opening_gives_a_typed_error_and_opens_when_well(tmp_path: Path) -> None:
    with vfs.failing("opening") as faults:
        smara.open(tmp_path / "measured.db", vfs="opening").close()
        for n in range(1, faults.calls + 1, count(1 + faults.calls // 40, 1)):
            path = tmp_path / f"{n}.db"
            faults.plan(n, apsw.IOError, is_persistent=True)
            try:
                smara.open(path, vfs="opening").close()
            except DatabaseError:
                pass
            faults.clear()
            with smara.open(path, vfs="opening") as memory:
                append(memory, "one")
                assert recount.problems(memory) == [], f"n={n}"
                assert memory.warnings == [], f"n={n}"


@pytest.fixture
def emptied(tmp_path: Path) -> str:
    """A store with nothing in it yet; making one takes longer than a crash."""
    path = str(tmp_path / "empty.db")
    smara.open(path).close()
    return path


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_power_loss_keeps_what_full_promised_and_never_corrupts(
    tmp_path: Path, emptied: str, rng: random.Random, durability: str
) -> None:
    """The machine stops between two calls: unsynced writes are there in part, in any order, one of
    them torn.

    ``full`` keeps every acknowledged message; ``normal`` keeps a beginning of them, whole.
    """
    for trial in range(count(8, 300)):
        (folder := tmp_path / f"{trial}").mkdir()
        live = tmp_path / "live.db"
        if trial % 4:
            shutil.copy(emptied, live)
        acknowledged = _write_until_the_power_fails(live, folder, rng, durability=durability)
        with smara.open(folder / "live.db") as memory:
            assert recount.problems(memory) == [], f"trial {trial}, seed {SEED}"
            stored = [message.client_id for message in memory.messages.list(thread_id="t")]
            assert stored == acknowledged[: len(stored)], (
                f"not a beginning; trial {trial}, seed {SEED}"
            )
            assert durability == "normal" or stored == acknowledged, (
                f"lost; trial {trial}, seed {SEED}"
            )
        shutil.rmtree(folder)
        live.unlink()


def _write_until_the_power_fails(
    live: Path, folder: Path, rng: random.Random, durability: str
) -> list[str]:
    """Write, checkpoint and compact for a while; the ids that were acknowledged before the power
    went out.
    """
    acknowledged: list[str] = []
    disk = vfs.PowerLoss("power")
    with smara.open(live, vfs="power", durability=durability, compact_every_messages=0) as memory:
        for step in range(rng.randint(1, 25)):
            kind = rng.random()
            if kind < 0.7:
                acknowledged += append(memory, f"p{step}")
            elif kind < 0.85:
                acknowledged += add_many(memory, f"p{step}")
            elif kind < 0.95:
                memory.internals.database.shrink_log()
            elif acknowledged:
                memory.compactions.compact("t")
        disk.crash(folder, rng)
    disk.unregister()
    return acknowledged


def test_power_loss_detector_sees_a_database_that_does_not_sync(
    tmp_path: Path, emptied: str, rng: random.Random
) -> None:
    """The mutant: with syncing off, acknowledged messages are lost, and the test above would see
    it.
    """
    losses = 0
    for trial in range(8):
        (folder := tmp_path / f"{trial}").mkdir()
        disk = vfs.PowerLoss("forgetful")
        live = shutil.copy(emptied, tmp_path / "live.db")
        with smara.open(live, vfs="forgetful") as memory:
            with memory._rooms.database._borrow() as connection:  # type: ignore[attr-defined]  # the mutation itself
                connection.execute("PRAGMA synchronous = OFF")
            acknowledged = [each for number in range(8) for each in append(memory, f"p{number}")]
            disk.crash(folder, rng)
        disk.unregister()
        try:
            with smara.open(folder / "live.db") as memory:
                losses += not set(acknowledged) <= set(recount.contents(memory))
        except DatabaseError:
            losses += 1
    assert losses > 0, f"seed {SEED}"


# Real limits of the operating system, in a process of its own.


def run(code: str, *arguments: str, **options: object) -> str:
    """The output of a Python program that imports smara."""
    program = "import os, sys, resource, signal, smara\nfrom smara import errors\n" + code
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


FULL_DISK = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
memory = smara.open(sys.argv[1])
memory.messages.add(thread_id="t", role="user", content="first zebrafinch")
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, resource.RLIM_INFINITY))
stored = 1
try:
    while True:
        memory.messages.add(thread_id="t", role="user", content=f"zebrafinch number {stored} " + "word " * 2000)
        stored += 1
except errors.DatabaseError as error:
    code = error.code
hits = memory.search("zebrafinch", limit=5)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
memory.messages.add(thread_id="t", role="user", content="zebrafinch after the disk has room again")
print(code, stored + 1, memory.threads.get("t").message_count, len(hits), memory.internals.index.problems(deep=True))
"""  # noqa: E501


def test_full_disk_refuses_writes_keeps_reading_and_goes_on_when_there_is_room(store: str) -> None:
    """The kernel itself stops the file from growing (RLIMIT_FSIZE)."""
    code, acknowledged, stored, hits, problems = run(FULL_DISK, store).split(" ", 4)
    assert code in ("disk_full", "database")
    assert (acknowledged, hits, problems) == (stored, "5", "[]")
    with smara.open(store) as memory:
        assert recount.problems(memory) == []


def test_memory_limit_gives_an_error_and_loses_nothing(store: str) -> None:
    code = """
memory = smara.open(sys.argv[1])
memory.messages.add(thread_id="t", role="user", content="zebrafinch before")
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + 40_000_000, used + 40_000_000))
try:
    memory.messages.add(thread_id="t", role="user", content="word " * 4_000_000)
    print("stored")
except (MemoryError, errors.SmaraError) as error:
    print("refused")
memory.messages.add(thread_id="t", role="user", content="zebrafinch after")
"""
    came_of_it = run(code, store)
    with smara.open(store) as memory:
        assert memory.threads.get("t").message_count == (3 if came_of_it == "stored" else 2)
        assert recount.problems(memory) == []


class NoWriting:
    """A store that the account cannot write: its own for a user, that of ``nobody`` for root."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "store.db")
        self._is_root = os.geteuid() == 0

    def run(self, code: str) -> str:
        return run(
            "sys.modules  # everything is imported while still root; /root may be closed to "
            "others\n"
            "import smara.memory, smara.doctor, smara.database.sqlite, smara.search.search, "
            "smara.core.tokens\n"
            "from smara.testing import open_temporary\n"
            "with open_temporary() as warm:\n"
            "    warm.messages.add(thread_id='w', role='user', content='warm it up'); "
            "warm.search('warm')\n"
            "os.environ['XDG_CONFIG_HOME'] = os.path.dirname(sys.argv[1])\n" + LEAVE_ROOT + code,
            self.path,
        )

    def give(self, *paths: str | Path) -> None:
        if self._is_root:
            for path in paths:
                shutil.chown(path, "nobody")


@pytest.fixture
def no_writing() -> Iterator[NoWriting]:
    """In a folder that ``nobody`` can reach, which pytest's own are not."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="smara-faults-", dir="/tmp"))
    folder.chmod(0o755)
    case = NoWriting(folder)
    with smara.open(case.path) as memory:
        append(memory, "one")
    case.give(folder, case.path)
    try:
        yield case
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


ADD_AND_SEARCH = """
try:
    memory = smara.open(sys.argv[1])
except errors.SmaraError as error:
    print("open", error.code)
    sys.exit()
try:
    memory.messages.add(thread_id="t", role="user", content="more")
    print("added", end=" ")
except errors.SmaraError as error:
    print(error.code, end=" ")
print(len(memory.search("zebrafinch")), len(memory.messages.list(thread_id="t")))
"""
EXAMINE = """
from smara.config import Settings
from smara.doctor import examine
print([finding.check for finding in examine(Settings(db=sys.argv[1])) if finding.level == "problem"])
"""  # noqa: E501


def test_read_only_file_can_be_searched_and_not_written(no_writing: NoWriting) -> None:
    os.chmod(no_writing.path, 0o400)
    assert no_writing.run(ADD_AND_SEARCH) == "read_only 1 1"
    assert no_writing.run(EXAMINE) == "['access']"


def test_read_only_folder_can_be_searched_and_not_written(no_writing: NoWriting) -> None:
    os.chmod(no_writing.path, 0o400)
    os.chmod(os.path.dirname(no_writing.path), 0o555)
    assert no_writing.run(ADD_AND_SEARCH) == "read_only 1 1"
    assert no_writing.run(EXAMINE) == "['access']"


def test_unreadable_file_is_refused_with_what_to_do(no_writing: NoWriting) -> None:
    os.chmod(no_writing.path, 0)
    assert no_writing.run(ADD_AND_SEARCH) == "open cannot_open"
    assert no_writing.run(EXAMINE) == "['access']"


def test_folder_and_foreign_file_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CannotOpenError):
        smara.open(tmp_path)
    text = tmp_path / "notes.txt"
    text.write_text("This is a text, and a long one at that. " * 200)
    with pytest.raises(DatabaseError, match="not a SQLite database"):
        smara.open(text)
    assert text.read_text().startswith("This is a text")
    foreign = apsw.Connection(str(tmp_path / "foreign.db"))
    foreign.execute(
        "PRAGMA application_id = 77; CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)"
    )
    foreign.close()
    with pytest.raises(CannotOpenError, match="another program"):
        smara.open(tmp_path / "foreign.db")
    (tmp_path / "foreign.db").chmod(0o600)
    assert examine(Settings(db=str(tmp_path / "foreign.db")))[-1].level == "problem"
