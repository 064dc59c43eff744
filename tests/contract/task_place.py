"""What the tests of tasks share: the two real databases, and short ways to say what is expected."""

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

MINUTE, HOUR, DAY = 60, 3_600, 86_400


def titles(tasks: Iterable[Any]) -> list[str]:
    return [task.title for task in tasks]


def kinds(history: Iterable[Any]) -> list[str]:
    """The kinds of a task's events, oldest first."""
    return [event.kind for event in history][::-1]


def refused(act: Callable[[], Any], error: type[SmaraError]) -> SmaraError:
    """The error with which something is refused."""
    with pytest.raises(error) as caught:
        act()
    assert type(caught.value) is error
    return caught.value
