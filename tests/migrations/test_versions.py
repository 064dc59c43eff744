"""Two versions on one PostgreSQL during an upgrade: both go on, and nothing is lost."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import smara
from smara.database.migrate import migrate
from smara.database.partitions import move_rows
from smara.testing import FakeClock, HashEmbedder

ROOT = Path(__file__).parents[2]
OLDER = "5864a185"
"""A commit whose schema is 42: text indexes are divided there, vectors are not."""
UNDIVIDED = "efc077bb"
"""A commit whose schema is 46: the tables of records are not divided there."""
DIVIDED_MESSAGES = 56
"""The step that ends the division of the messages."""
pytestmark = pytest.mark.postgres


class OlderProcess:
    """A process with the source of an older version."""

    def __init__(self, source: Path, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("older_version.py")), url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(source), "SMARA_EMBED_IN_BACKGROUND": "false"},
        )
        self.first = self._read()

    def ask(self, line: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture
def older(tmp_path: Path) -> Iterator[Callable[..., OlderProcess]]:
    processes: list[OlderProcess] = []

    def start(url: str, commit: str = OLDER) -> OlderProcess:
        source = tmp_path / commit
        if not source.exists():
            _unpack(commit, source)
        processes.append(OlderProcess(source / "src", url))
        return processes[-1]

    yield start
    for process in processes:
        process.end()


def _unpack(commit: str, target: Path) -> None:
    packed = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=False
    )
    if packed.returncode:
        pytest.skip(f"commit {commit} is not in this checkout")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(target, filter="data")


def test_an_older_process_goes_on_while_a_newer_one_upgrades_the_store(
    older: Callable[..., OlderProcess], postgres_url: str
) -> None:
    """1. The older writes and embeds. 2. The newer opens, which migrates. 3. Both write and find
    what the other wrote. 4. The older cannot write vectors any more, and says so; the newer
    writes them. 5. What the older erases is gone from the newer's vectors too. 6. The older can
    end, and does not open the store again.
    """
    old = older(postgres_url)
    assert OLDER in old.first["source"]
    assert old.ask("add the walrus sleeps") == {"answer": 1}
    assert old.ask("embed") == {"answer": True}

    with smara.open(
        postgres_url, project="p", embedding_model=HashEmbedder(), embed_in_background=False
    ) as new:
        assert new.embeddings.problems() == []
        assert old.ask("add the walrus wakes") == {"answer": 2}
        assert new.messages.add(thread_id="t", role="user", content="the walrus eats").seq == 3
        every = ["the walrus eats", "the walrus sleeps", "the walrus wakes"]
        assert old.ask("search walrus") == {"answer": every}
        assert sorted(hit.content for hit in new.search("walrus", limit=50)) == every

        assert old.ask("embed") == {"refused": "database"}
        assert new.embeddings.embed_pending().is_done
        assert old.ask("search walrus") == {"answer": every}

        first = new.messages.list(thread_id="t", limit=50)[0]
        assert old.ask(f"erase {first.id}") == {"answer": True}
        assert new.embeddings.embed_pending().is_done
        assert new.embeddings.problems() == []
        assert sorted(hit.content for hit in new.search("walrus", limit=50)) == [every[0], every[2]]
    old.end()
    assert older(postgres_url).first == {"refused": "schema_too_new"}


def test_an_older_process_goes_on_while_the_tables_of_records_are_divided(
    older: Callable[..., OlderProcess], postgres_url: str, open_database: Callable[..., Any]
) -> None:
    """1. The older writes. 2. The newer has begun to divide the messages: what the older writes
    and erases meanwhile goes to both. 3. The newer ends it: nothing is missing. 4. Both go on, and
    see what the other does. 5. The older does not open the store again.
    """
    old = older(postgres_url, UNDIVIDED)
    assert UNDIVIDED in old.first["source"]
    for number, word in enumerate(("sleeps", "wakes", "eats"), 1):
        assert old.ask(f"add the walrus {word}") == {"answer": number}
    assert old.ask("embed") == {"answer": True}
    database = open_database(postgres_url)
    migrate(database, FakeClock(), target=DIVIDED_MESSAGES - 1)
    move_rows(database, DIVIDED_MESSAGES, lambda session: False)
    assert old.ask("add the walrus swims") == {"answer": 4}
    with database.read() as session:
        first = session.one("SELECT id FROM messages WHERE seq = 1")[0]
    assert old.ask(f"erase {first}") == {"answer": True}

    settings = {"embedding_model": HashEmbedder(), "embed_in_background": False}
    with smara.open(postgres_url, project="p", **settings) as new:
        every = [f"the walrus {word}" for word in ("wakes", "eats", "swims")]
        assert [each.raw_content for each in new.messages.list(thread_id="t")][1:] == every
        assert sorted(hit.content for hit in new.search("walrus")) == sorted(every)
        assert old.ask("add the walrus dives") == {"answer": 5}
        assert new.messages.add(thread_id="t", role="user", content="the walrus dries").seq == 6
        assert old.ask("embed") == {"answer": True}
        every += ["the walrus dives", "the walrus dries"]
        assert old.ask("list")["answer"][1:] == every
        assert old.ask("search walrus") == {"answer": sorted(every)}
        last = new.messages.list(thread_id="t")[-1]
        assert old.ask(f"erase {last.id}") == {"answer": True}
        assert new.embeddings.embed_pending().is_done
        assert new.embeddings.problems() == []
        assert sorted(hit.content for hit in new.search("walrus")) == sorted(every[:-1])
    old.end()
    assert older(postgres_url, UNDIVIDED).first == {"refused": "schema_too_new"}
