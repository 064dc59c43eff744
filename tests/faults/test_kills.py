"""``kill -9`` at any moment: what was acknowledged is there, and nothing is half there.

A process is killed at a random moment, right after an acknowledgement, or before one of its own
writes to the disk (a file system that kills). Every death is a real SIGKILL.
"""

from __future__ import annotations

import itertools
import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

import apsw
import pytest

import smara
from smara.adapters.importer import Importer
from smara.core.clock import SystemClock
from smara.database.migrate import HEAD, migrate
from smara.database.sqlite import SqliteDatabase
from tests.faults import recount, vfs, workers
from tests.faults.conftest import Start
from tests.faults.sizes import SEED, count
from tests.faults.workers import READY, text_of

TRIALS_PER_STORE = 12


class Assassin:
    """Chooses how a worker dies, evenly over the ways and over the time and the writes it needs."""

    def __init__(self, rng: random.Random, start: Start, function: Callable[..., None]) -> None:
        self.kills = 0
        self._rng = rng
        self._start = start
        self._function = function
        self._span = 0.0
        self._writes = 0

    def measure(self, path: str, *arguments: Any) -> None:
        """Let it work once undisturbed, here, to know its span in seconds and in writes."""
        began = time.monotonic()
        with suppress(_EnoughError):
            self._function(_Listener(15), path, *arguments, 10**9)
        self._span = time.monotonic() - began
        self._writes = workers.killing[-1].calls
        workers.killing.pop().unregister()

    def trial(self, path: str, *arguments: Any) -> list[Any]:
        """Run it and try to kill it; everything it acknowledged."""
        way = self._rng.choice(("moment", "ack", "write"))
        told: list[Any] = []
        if way == "write":
            worker = self._start(
                self._function, path, *arguments, self._rng.randint(1, self._writes)
            )
            told = worker.rest()
        elif way == "moment":
            worker = self._start(self._function, path, *arguments)
            told = worker.first(1)
            worker.process.join(self._rng.uniform(0, self._span))
            told += worker.kill()
        else:
            worker = self._start(self._function, path, *arguments)
            told = worker.first(self._rng.randint(1, 6))
            told += worker.kill()
        self.kills += worker.process.exitcode == -signal.SIGKILL
        return [each for each in told if each != READY]


class _EnoughError(Exception):
    """The worker has been measured long enough."""


class _Listener:
    """Takes the place of a pipe, and has heard enough after some reports."""

    def __init__(self, patience: int) -> None:
        self._patience = patience

    def send(self, _: Any) -> None:
        self._patience -= 1
        if self._patience < 0:
            raise _EnoughError


@pytest.mark.parametrize(("durability", "small", "large"), [("full", 8, 180), ("normal", 4, 80)])
def test_killed_append_loses_no_acknowledged_message(
    tmp_path: Path, start: Start, rng: random.Random, durability: str, small: int, large: int
) -> None:
    assassin = Assassin(rng, start, workers.append)
    acknowledged: dict[str, str] = {}
    assassin.measure(str(tmp_path / "measured.db"), 0, durability)
    for trial in takewhile(lambda _: assassin.kills < count(small, large), itertools.count()):
        path = str(tmp_path / f"{trial // TRIALS_PER_STORE}.db")
        if trial % TRIALS_PER_STORE == 0:
            acknowledged = {}
        for ids in assassin.trial(path, trial * 100_000, durability):
            acknowledged.update((each, text_of(each)) for each in ids)
        with smara.open(path) as memory:
            assert recount.lost(memory, acknowledged) == [], f"trial {trial}, seed {SEED}"
            assert recount.problems(memory) == [], f"trial {trial}, seed {SEED}"
            assert memory.warnings == [], f"trial {trial}, seed {SEED}"
            for each in rng.sample(sorted(acknowledged), min(2, len(acknowledged))):
                assert f"handle_{each}" in memory.search(f"handle_{each}", limit=1)[0].content, (
                    f"seed {SEED}"
                )


@pytest.mark.parametrize(
    ("write", "small", "large"), [(workers.write_jsonl, 4, 70), (workers.write_transcript, 2, 50)]
)
def test_killed_import_is_finished_by_running_it_again(
    tmp_path: Path,
    start: Start,
    rng: random.Random,
    write: Callable[[Path, int], dict[str, str]],
    small: int,
    large: int,
) -> None:
    expected: dict[str, dict[str, str]] = {}
    for number in range(5):
        file = tmp_path / f"file{number}.jsonl"
        expected[str(file)] = write(file, 130)
    everything = {each: text for texts in expected.values() for each, text in texts.items()}
    assassin = Assassin(rng, start, workers.import_files)
    assassin.measure(str(tmp_path / "measured.db"), list(expected))
    for trial in takewhile(lambda _: assassin.kills < count(small, large), itertools.count()):
        path = str(tmp_path / f"{trial}.db")
        finished = assassin.trial(path, list(expected))
        with smara.open(path) as memory:
            acknowledged = {
                each: text for file in finished for each, text in expected[file].items()
            }
            assert recount.lost(memory, acknowledged) == [], f"trial {trial}, seed {SEED}"
            assert recount.problems(memory) == [], f"trial {trial}, seed {SEED}"
            for file in expected:
                report = Importer(memory).import_file(file)
                assert report.stored + report.repeated == len(expected[file]), (
                    f"trial {trial}, seed {SEED}"
                )
            assert recount.contents(memory) == everything, f"trial {trial}, seed {SEED}"
            assert memory.threads.totals()["messages"] == len(everything), (
                f"trial {trial}, seed {SEED}"
            )
            assert recount.problems(memory) == [], f"trial {trial}, seed {SEED}"
        Path(path).unlink()


def test_killed_compaction_is_whole_or_absent(
    tmp_path: Path, start: Start, rng: random.Random
) -> None:
    template = str(tmp_path / "template.db")
    with smara.open(template, compact_every_messages=0) as memory:
        ids = {thread: [f"{thread}c{number}" for number in range(210)] for thread in ("t0", "t1")}
        for thread, own in ids.items():
            batch = [{"role": "user", "content": text_of(each), "client_id": each} for each in own]
            memory.messages.add_many(thread_id=thread, messages=batch)
    expected = {each: text_of(each) for own in ids.values() for each in own}
    assassin = Assassin(rng, start, workers.compact)
    assassin.measure(copied(template, tmp_path / "measured.db"))
    for trial in takewhile(lambda _: assassin.kills < count(3, 60), itertools.count()):
        path = copied(template, tmp_path / f"{trial}.db")
        acknowledged = assassin.trial(path)
        with smara.open(path, compact_every_messages=0) as memory:
            assert recount.problems(memory) == [], f"trial {trial}, seed {SEED}"
            assert recount.contents(memory) == expected, f"trial {trial}, seed {SEED}"
            found = {each.id: each for thread in ids for each in memory.compactions.list(thread)}
            for what, named in acknowledged:
                assert set(named) <= set(found), f"trial {trial}, seed {SEED}"
                assert what == "made" or all(found[each].undone_at for each in named), (
                    f"trial {trial}, seed {SEED}"
                )
            assert (
                f"handle_{ids['t0'][5]}"
                in memory.search(f"handle_{ids['t0'][5]}", limit=1)[0].content
            )
        Path(path).unlink()


def copied(template: str, path: Path) -> str:
    return str(shutil.copy(template, path))


def old_store(path: str, version: int) -> int:
    """A store of an older schema; from version 1 on it holds messages, not indexed before version
    2.
    """
    database = SqliteDatabase(path)
    migrate(database, SystemClock(), target=version)
    if version:
        with database.write() as session:
            session.run(
                "INSERT INTO projects (id, name, created_at) VALUES ('default', 'default', 1)"
            )
            session.run(
                "INSERT INTO threads (project_no, id, resource_id, kind, metadata, created_at, "
                "updated_at, last_seq,"
                " tokens) VALUES (1, 't', 'default', 'conversation', '{}', 1, 1, 80, 80)"
            )
            session.run_many(
                "INSERT INTO messages (project_no, thread_no, seq, id, role, raw_content, "
                "token_count, token_method,"
                " term_count, client_id, created_at) VALUES (1, 1, ?, ?, 'user', ?, 1, 'test', 1, "
                "?, 1)",
                [(seq, f"id{seq}", text_of(f"m{seq}"), f"m{seq}") for seq in range(1, 81)],
            )
    database.close()
    return 80 if version else 0


def tables_of(path: str) -> tuple[int, int, frozenset[str]]:
    """The schema's number, the number of migrations written down, and the tables there are."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        tables = frozenset(
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        )
        written = (
            connection.execute("SELECT count(*) FROM migrations").get
            if "migrations" in tables
            else 0
        )
        return connection.pragma("user_version"), written, tables
    finally:
        connection.close()


def test_killed_migration_is_whole_or_absent(
    tmp_path: Path, start: Start, rng: random.Random
) -> None:
    templates = {version: str(tmp_path / f"version{version}.db") for version in range(HEAD)}
    messages = {version: old_store(path, version) for version, path in templates.items()}
    before = {version: tables_of(path) for version, path in templates.items()}
    migrate(whole := SqliteDatabase(tmp_path / "whole.db"), SystemClock())
    whole.close()
    after = tables_of(str(tmp_path / "whole.db"))
    assassin = Assassin(rng, start, workers.migrate)
    assassin.measure(copied(templates[1], tmp_path / "measured.db"))
    for trial in takewhile(lambda _: assassin.kills < count(3, 60), itertools.count()):
        version = trial % HEAD
        path = copied(templates[version], tmp_path / f"{trial}.db")
        acknowledged = assassin.trial(path)
        allowed = [after] if acknowledged else [before[version], after]
        assert tables_of(path) in allowed, f"trial {trial}, version {version}, seed {SEED}"
        with smara.open(path) as memory:
            expected = {f"m{seq}": text_of(f"m{seq}") for seq in range(1, messages[version] + 1)}
            assert recount.contents(memory) == expected, (
                f"trial {trial}, version {version}, seed {SEED}"
            )
            assert memory.internals.index.problems(deep=True) == [], (
                f"trial {trial}, version {version}, seed {SEED}"
            )
            assert memory.internals.database.integrity() == [], (
                f"trial {trial}, version {version}, seed {SEED}"
            )
            assert not expected or "handle_m7(" in memory.search("handle_m7", limit=1)[0].content
        Path(path).unlink()


def test_migration_killed_before_each_of_its_writes_is_whole_or_absent(
    tmp_path: Path, start: Start
) -> None:
    """Not at random: before the 1st, the 2nd, … write of the whole migration (thirty of them,
    evenly spread, when small: every migration that is added makes more).
    """
    template = str(tmp_path / "template.db")
    old_store(template, 1)
    before = tables_of(template)
    with vfs.failing("counting") as faults:
        smara.open(copied(template, tmp_path / "counted.db"), vfs="counting").close()
        writes = faults.calls
    after = tables_of(str(tmp_path / "counted.db"))
    for at in range(1, writes + 1, count(1 + writes // 30, 1)):
        path = copied(template, tmp_path / f"{at}.db")
        told = start(workers.migrate, path, at).rest()
        assert tables_of(path) in ([after] if len(told) > 1 else [before, after]), (
            f"killed at write {at}"
        )
        with smara.open(path) as memory:
            assert memory.threads.totals()["messages"] == 80
            assert memory.internals.index.problems(deep=True) == [], f"killed at write {at}"
        Path(path).unlink()
