"""What the tests that run on both databases share: the two of them, and short ways to say what is expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from smara.errors import NotFoundError, SmaraError
from tests.stores import BOTH

ON_BOTH = pytest.mark.parametrize("place", BOTH, indirect=True)
"""Put as ``pytestmark``: every test of the file runs on SQLite and on PostgreSQL."""

EACH_DATABASE = [ON_BOTH, pytest.mark.usefixtures("uuids")]
"""The same, with real UUIDs as ids."""


def kinds(history: Iterable[Any]) -> list[str]:
    """The kinds of the events of a task or a memory, oldest first."""
    return [event.kind for event in history][::-1]


def refused(act: Callable[[], Any], error: type[SmaraError]) -> SmaraError:
    """The error with which something is refused: of just this kind."""
    with pytest.raises(error) as caught:
        act()
    assert type(caught.value) is error
    return caught.value


def is_not_found(act: Callable[[], Any]) -> bool:
    """Whether something is refused because there is nothing of the name."""
    try:
        act()
    except NotFoundError:
        return True
    return False
