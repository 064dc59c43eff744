"""Erasing under ``kill -9``: nothing of what was erased is left anywhere, and all else is there.

Canaries are let in by every door and erased in random order, by processes that are killed in
between. Then rows, the bytes of all files and every way to ask are searched for them, and the
store is compared with one that never saw them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smara.privacy import erase as erasing
from smara.privacy import privacy, walk
from smara.search.index import Index
from smara.tools import Toolbox
from tests.faults import canaries, canary_routes, recount
from tests.faults.conftest import Start
from tests.faults.sizes import count
from tests.stores import BOTH, empty_store
from tests.surfaces.shell import smara as call

ASKED = {
    "/search", "/search/threads", "/search/pattern", "/complete", "/memories/search",
    "/memories/for-files", "/tasks/search", "/observations/search", "/decisions/search", "mem0",
    "before-tool", "/threads", "/tasks", "/memories", "/observations", "/decisions", "/receipts",
    "/working", "/behavior/sessions", "/models/calls", "/context/preview", "/export",
    "/tasks/export", "/memories/export", "/threads/{thread_id}", "/threads/{thread_id}/messages",
    "/threads/{thread_id}/window", "/threads/{thread_id}/observations", "/messages/{message_id}",
    "/tasks/{task_id}", "/memories/{memory_id}", "/memories/{memory_id}/why",
    "/observations/{observation_id}", "/decisions/{decision_id}", "/receipts/{receipt_id}",
}  # fmt: skip
"""Routes that tell of canaries before they are erased."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address by which the spool is found; no store is there."""
    address = str(tmp_path / "spool.db")
    monkeypatch.setenv("SMARA_DB", address)
    return address


@pytest.mark.parametrize("kind", BOTH)
def test_nothing_of_canaries_is_left_and_the_rest_is_as_if_they_had_never_been(
    kind: str, home: str, tmp_path: Path, rng: random.Random, start: Start
) -> None:
    # A server rewrites its tables at every erase, which takes a second or more.
    every = canaries.words(rng, count(64 if kind == "sqlite" else len(canaries.KINDS), 2_000))
    (tmp_path / "never").mkdir()
    with empty_store(kind, tmp_path) as address, empty_store(kind, tmp_path / "never") as never:
        with canaries.open_store(never) as memory:
            canaries.plant_rest(memory)
            expected = canaries.facts(memory)
        with canaries.open_store(address) as memory:
            canaries.plant_rest(memory)
            targets = canaries.plant(memory, every)
            memory.embeddings.embed_pending()
            folders = [f"{home}-spool"]
            assert len(canaries.leaks(memory, every[:16], folders)) > 30
            assert canaries.named(memory, targets, every)
        with canary_routes.served(address, tmp_path) as site:
            ids = canary_routes.ids(site, targets)
            some = canary_routes.ids(site, targets[:16])
            assert set(canary_routes.tellers(site, every[:16], some)) >= ASKED
        rng.shuffle(targets)
        acts = list(canaries.acts(targets, rng))
        kills = 0
        while acts:
            fatal = rng.randrange(1, 900) if kills < count(3 if kind == "sqlite" else 1, 40) else 0
            done = start(canaries.erase, address, home, acts, fatal).rest()
            assert [traces for traces in done if traces] == []
            kills += len(done) < len(acts)
            assert fatal or len(done) == len(acts)
            acts = acts[len(done) :]
        assert kills >= count(1, 20)
        with canaries.open_store(address) as memory:
            if memory.privacy.problems():
                assert memory.privacy.finish_erase()
            leaks = canaries.leaks(memory, every, folders)
            assert leaks == []
            assert canaries.named(memory, targets, every) == []
            assert _asked_by_agents(memory, every) == []
            assert canaries.facts(memory) == expected
            assert canaries.leaks(memory, every[:16], folders) == []
            assert recount.problems(memory) == []
            assert memory.memories.problems() == []
            assert memory.privacy.problems() == []
        assert _asked_at_doors(address, rng.sample(every, 4)) == []
        with canary_routes.served(address, tmp_path) as site:
            assert canary_routes.tellers(site, every, ids) == []


@pytest.mark.parametrize("kind", BOTH)
def test_counts_are_right_wherever_an_erase_is_killed(
    kind: str, home: str, tmp_path: Path, rng: random.Random, start: Start
) -> None:
    with empty_store(kind, tmp_path) as address:
        with canaries.open_store(address) as memory:
            canaries.plant_rest(memory)
            kinds = (canaries.in_task, canaries.in_memory, canaries.in_evidence)
            words = canaries.words(rng, count(3, 60))
            targets = [kinds[at % 3](memory, word, at) for at, word in enumerate(words)]
        for number, target in enumerate(targets, 1):
            fatal = canaries.RECEIPT + number if number < 7 else rng.randrange(1, 40)
            assert start(canaries.erase, address, home, [target], fatal).rest() == []
            with canaries.open_store(address) as memory:
                assert memory.tasks.problems() == []
                assert memory.memories.problems() == []
                assert recount.problems(memory) == []


def _asked_by_agents(memory: Any, every: list[str]) -> list[str]:
    """Return the words that a tool of agents answers with."""
    box = Toolbox(memory)
    asked = ((word, box.call("memory-search", {"query": word})) for word in every)
    return [word for word, result in asked if word in str(result.structured.get("results", ""))]


def _asked_at_doors(address: str, every: list[str]) -> list[str]:
    found = []
    for word in every:
        said = call("search", word, "--db", address, "--project", "shop", "--json")
        found += [word] * (word in str(said.data.get("hits", said.data)))
    return found


def _without_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasing, "_INDEXED", ())
    # A trace that is found is mended by making the index again, which hides this for most words.
    monkeypatch.setattr(Index, "rebuild", lambda self: 0)


def _without_spool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privacy, "clear_spool", lambda *given, **named: 0)


def _without_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "_COUNTED", {})


def _without_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasing, "change_pages", lambda walk, is_used: [])


def _without_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasing.Eraser, "_vocabulary", lambda self: [])


@pytest.mark.parametrize(
    "mutate", [_without_index, _without_spool, _without_counts, _without_pages, _without_words]
)
def test_an_erase_that_leaves_something_out_is_caught(
    mutate: Callable[[pytest.MonkeyPatch], None],
    home: str,
    tmp_path: Path,
    rng: random.Random,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = canaries.words(rng, len(canaries.KINDS))
    with empty_store("sqlite", tmp_path) as address, canaries.open_store(address) as memory:
        canaries.plant_rest(memory)
        targets = canaries.plant(memory, every)
        mutate(monkeypatch)
        for act in canaries.acts(targets, rng):
            memory.privacy.erase(**act)
        assert canaries.leaks(memory, every, [f"{home}-spool"])
    assert os.path.exists(address)
