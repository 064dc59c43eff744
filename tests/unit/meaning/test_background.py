"""Vectors made by a process that lives: woken by writes, out of everybody's way, gone with the
memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import smara
from smara.core.deadline import Abort, run_within
from smara.meaning.models import EmbeddingProgress
from smara.meaning.room import BackgroundEmbedding
from smara.testing import HashEmbedder

_AGES = 600


class Told(HashEmbedder):
    """An embedder that says when it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.was_asked = threading.Event()

    def embed(self, texts, kind="document", *, deadline_seconds=None):
        try:
            return super().embed(texts, kind)
        finally:
            self.was_asked.set()


def test_a_write_is_followed_by_its_vector_without_being_asked_for(tmp_path: Path) -> None:
    embedder = Told()
    with smara.open(
        tmp_path / "smara.db", embedding_model=embedder, embed_in_background=True
    ) as memory:
        memory.messages.add(thread_id="t", role="user", content="a cat")
        assert embedder.was_asked.wait(_AGES)
        assert ("document", "a cat") in embedder.asked


def test_nothing_is_begun_where_it_is_not_wanted(tmp_path: Path) -> None:
    for number, given in enumerate(
        ({"embed_in_background": False}, {"embedder": "off", "embed_in_background": True})
    ):
        with smara.open(tmp_path / f"{number}.db", **given) as memory:
            memory.messages.add(thread_id="t", role="user", content="a cat")
            assert [each for each in threading.enumerate() if each.name == "smara-vectors"] == []


def test_many_writes_are_one_piece_of_work() -> None:
    ran, may_end = threading.Semaphore(0), threading.Event()
    rounds: list[int] = []

    def work(stop: threading.Event) -> EmbeddingProgress:
        rounds.append(1)
        ran.release()
        may_end.wait(_AGES)
        return EmbeddingProgress()

    filling = BackgroundEmbedding(work, quiet_seconds=0)
    for _ in range(100):
        filling.wake()
    assert ran.acquire(timeout=_AGES)
    for _ in range(100):
        filling.wake()
    may_end.set()
    assert ran.acquire(timeout=_AGES)
    filling.close()
    assert len(rounds) == 2


def test_closing_stops_the_work_and_nothing_begins_afterwards() -> None:
    began = threading.Event()

    def work(stop: threading.Event) -> EmbeddingProgress:
        began.set()
        assert stop.wait(_AGES)
        return EmbeddingProgress(stopped="closed")

    filling = BackgroundEmbedding(work, quiet_seconds=0)
    filling.wake()
    assert began.wait(_AGES)
    thread = filling._thread
    filling.close()
    assert thread is not None
    assert not thread.is_alive()
    filling.wake()
    assert not thread.is_alive()


@pytest.mark.parametrize("error", [ValueError("no"), smara.errors.BusyError("held")])
def test_trouble_in_the_background_is_not_the_writers_trouble(error: Exception) -> None:
    failed = threading.Event()

    def work(stop: threading.Event) -> EmbeddingProgress:
        failed.set()
        raise error

    filling = BackgroundEmbedding(work, quiet_seconds=0)
    filling.wake()
    assert failed.wait(_AGES)
    filling.wake()
    filling.close()


def test_a_write_of_the_background_itself_does_not_wake_it_again() -> None:
    rounds: list[int] = []
    done = threading.Event()
    filling: BackgroundEmbedding

    def work(stop: threading.Event) -> EmbeddingProgress:
        rounds.append(1)
        filling.wake()
        done.set()
        return EmbeddingProgress()

    filling = BackgroundEmbedding(work, quiet_seconds=0)
    filling.wake()
    assert done.wait(_AGES)
    filling.close()
    assert rounds == [1]


SCRIPT = """
import sys, smara
memory = smara.open(sys.argv[1])
memory.messages.add(thread_id="t", role="user", content="a cat")
if sys.argv[2] == "ask":
    print(memory._rooms.meaning.query_vector("a cat and a dog")[1])
"""


@pytest.mark.parametrize("what", ["write", "ask"])
def test_a_short_script_that_closes_nothing_ends_cleanly_and_at_once(
    tmp_path: Path, what: str
) -> None:
    environment = {**os.environ, "SMARA_EMBED_IN_BACKGROUND": "true", "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "smara.db"), what],
        capture_output=True,
        text=True,
        env=environment,
        timeout=_AGES,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_begins_nothing_in_the_background(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "SMARA_EMBED_IN_BACKGROUND": "true",
        "SMARA_DB": str(tmp_path / "smara.db"),
    }
    add = ["messages", "add", "--thread", "t", "--role", "user", "--content", "a cat"]
    subprocess.run(
        [sys.executable, "-m", "smara", *add], env=environment, timeout=_AGES, check=True
    )
    with smara.open(tmp_path / "smara.db") as memory:
        assert memory.embeddings.status().spaces == ()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_forked_child_has_its_own(tmp_path: Path) -> None:
    with smara.open(
        tmp_path / "smara.db", embedding_model=HashEmbedder(), embed_in_background=True
    ) as memory:
        memory.messages.add(thread_id="t", role="user", content="a cat")
        child = os.fork()
        if child == 0:
            memory.messages.add(thread_id="u", role="user", content="a dog")
            done = memory.embeddings.embed_pending().stopped
            os._exit(0 if done in ("done", "busy") else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_closing_a_memory_ends_the_background_of_its_other_projects_too(tmp_path: Path) -> None:
    with smara.open(
        tmp_path / "smara.db", embedding_model=HashEmbedder(), embed_in_background=True
    ) as memory:
        other = memory.in_project("other")
        other._rooms.meaning.query_vector("a cat", deep=True)
        thread = other._rooms.vectors.background._thread
        assert thread is not None
    assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_nothing_is_in_the_middle_of_something_when_a_process_forks_and_it_goes_on_afterwards() -> (
    None
):
    rounds: list[bool] = []
    at_work, again = threading.Event(), threading.Event()

    def work(stop: threading.Event) -> EmbeddingProgress:
        (again if rounds else at_work).set()
        rounds.append(stop.wait(_AGES if not again.is_set() else 0))
        return EmbeddingProgress(stopped="closed")

    filling = BackgroundEmbedding(work, quiet_seconds=0)
    filling.wake()
    assert at_work.wait(_AGES)
    child = os.fork()
    if child == 0:
        os._exit(len(rounds))  # the round at hand has ended before the fork
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert again.wait(_AGES)
    filling.close()
    assert rounds[0] is True


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_fork_waits_for_a_model_that_is_being_loaded(clock) -> None:
    begun, done = threading.Event(), threading.Event()

    def load(stop: Abort) -> None:
        begun.set()
        threading.Event().wait(0.2)  # so long that a fork that does not wait is caught
        done.set()

    def ask() -> None:
        with pytest.raises(TimeoutError):
            run_within(load, 0.0, clock, thread_name="load", is_safe_to_leave=False)

    asking = threading.Thread(target=ask)
    asking.start()
    asking.join()
    assert begun.wait(_AGES)
    child = os.fork()
    if child == 0:
        os._exit(0 if done.is_set() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
