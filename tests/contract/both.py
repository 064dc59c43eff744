"""What the tests that run on both databases share: the two of them, and short ways to say what is
expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from smara.errors import NotFoundError, SmaraError
from tests.stores import BOTH, POOLED

ON_BOTH = pytest.mark.parametrize("place", [*BOTH, POOLED, pytest.param("http")], indirect=True)
"""Put as ``pytestmark``: every test of the file runs on SQLite and on PostgreSQL; and over HTTP
or behind a pooler, if the file is one of ``tests.contract.served``.
"""

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


def leaks(
    reads: Mapping[str, Callable[[Any, Any], Any]],
    memories: Mapping[str, Any],
    seen: Mapping[str, Any],
) -> list[tuple[str, str, str]]:
    """The reads that give something of another project: what was read, from where, and whose it
    is.
    """
    return [
        (path, here, there)
        for path, read in reads.items()
        for here, memory in memories.items()
        for there in memories
        if here != there and f"of {there}" in repr(read(memory, seen[there]))
    ]
