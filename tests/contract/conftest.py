"""The contract runs on five implementations: SQLite, PostgreSQL, PostgreSQL behind a pooler, a
server over HTTP, and the model that says what is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import smara
from smara.core.ids import Uuid7
from smara.testing import CountingIds, FakeClock
from tests import stores
from tests.contract import served
from tests.contract.model import ModelMemory, Store

KINDS = [*stores.BOTH, stores.POOLED, pytest.param("http"), pytest.param("model")]


class Place:
    """Where memories live: opens them, as often as wanted, and closes them all at the end."""

    def __init__(self, kind: str, address: str | Path | Store, clock: FakeClock) -> None:
        self.kind = kind
        self.address = address
        self.clock = clock
        self.new_id: Callable[[], str] = CountingIds()
        self._open: list[Any] = []
        self._ends: list[Callable[[], None]] = []

    def open(self, **settings: Any) -> Any:
        # Estimated tokens: loading a tokenizer's tables for each of a thousand memories would take
        # a minute.
        given = {"clock": self.clock, "new_id": self.new_id, "token_model": "estimate", **settings}
        if isinstance(self.address, Store):
            memory: Any = ModelMemory(self.address, **given)
        elif self.kind == "http":
            memory = self._connect(given)
        else:
            memory = smara.open(self.address, durability="normal", **given)
        self._open.append(memory)
        return memory

    def _connect(self, given: dict[str, Any]) -> Any:
        """Serve a memory with these settings, and connect to it."""
        own = {"session": given.get("session"), "actor": given.get("actor")}
        project = given.pop("project", None) or "default"
        opened = partial(smara.open, self.address, project=project, durability="normal", **given)
        memory, close = served.switchboard().connect(
            opened, Path(str(self.address)).parent / "serve", **own
        )
        self._ends.append(close)
        return memory

    def close(self) -> None:
        for memory in self._open:
            memory.close()
        for end in self._ends:
            end()


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Place]:
    """An empty place for memories, of each kind."""
    kind = request.param
    if kind == "model":
        yield from _closing(Place(kind, Store(), clock))
        return
    with stores.empty_store("sqlite" if kind == "http" else kind, tmp_path) as address:
        kind = "postgres" if kind == "pooled" else kind
        yield from _closing(Place(kind, address if kind == "postgres" else Path(address), clock))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is not served, and hold the list of what differs: it must not pass."""
    served.select(items)


def _closing(place: Place) -> Iterator[Place]:
    try:
        yield place
    finally:
        place.close()


@pytest.fixture
def open_again(place: Place) -> Callable[..., Any]:
    """Opens a memory at the same place once more, as another process would; takes settings."""
    return place.open


@pytest.fixture
def memory(place: Place) -> Any:
    """A memory with the default settings."""
    return place.open()


@pytest.fixture
def say(memory: Any) -> Callable[..., Any]:
    """Adds a message with as little ceremony as a test wants: ``say("hello")``."""

    def add(content: Any = "hello", thread_id: str = "t", role: str = "user", **given: Any) -> Any:
        return memory.messages.add(thread_id=thread_id, role=role, content=content, **given)

    return add


@pytest.fixture
def fill(memory: Any) -> Callable[..., Any]:
    """Adds many numbered messages: ``fill(30)``."""

    def add(count: int, thread_id: str = "t") -> Any:
        wanted = [
            {"role": "user", "content": f"message number {number}"}
            for number in range(1, count + 1)
        ]
        return memory.messages.add_many(thread_id=thread_id, messages=wanted)

    return add


@pytest.fixture
def uuids(place: Place) -> None:
    """Ids are what they are outside of tests: UUIDs."""
    place.new_id = Uuid7(place.clock)


@pytest.fixture
def tasks(memory: Any) -> Any:
    """The task room of a memory with the default settings."""
    return memory.tasks


@pytest.fixture
def task(tasks: Any, clock: FakeClock) -> Callable[..., Any]:
    """Adds a task, a millisecond younger than the one before: ``task("mend the door",
    priority=0)``.
    """

    def add(title: str = "a task", **given: Any) -> Any:
        clock.advance(0.001)
        return tasks.add(title, **given)

    return add
