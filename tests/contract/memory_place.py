"""What the tests of memories share: the two real databases, and short ways to say what is expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from smara.errors import SmaraError

EACH_DATABASE = [
    pytest.mark.parametrize(
        "place", [pytest.param("sqlite"), pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
    ),
    pytest.mark.usefixtures("uuids"),
]
"""Put as ``pytestmark``: every test of the file runs on SQLite and on PostgreSQL, with real UUIDs as ids."""

DAY = 86_400
OFF = {"embedder": "off"}


def contents(memories: Iterable[Any]) -> list[str]:
    return [memory.content for memory in memories]


def kinds(history: Iterable[Any]) -> list[str]:
    """The kinds of a memory's events, oldest first."""
    return [event.kind for event in history][::-1]


def refused(act: Callable[[], Any], error: type[SmaraError]) -> SmaraError:
    """The error with which something is refused."""
    with pytest.raises(error) as caught:
        act()
    assert isinstance(caught.value, error)
    return caught.value


def learned(memories: Any, content: str, **given: Any) -> Any:
    """A memory that an agent recorded; it must be new."""
    added = memories.add(content, **{"type": "gotcha", "session_id": "s1", **given})
    assert added.outcome == "added", added
    return added.memory


def taught(memories: Any, content: str, **given: Any) -> Any:
    """A memory that a person taught; it must be new."""
    added = memories.add(content, **{"type": "gotcha", "source": "user_taught", "by": "person", **given})
    assert added.outcome == "added", added
    return added.memory
