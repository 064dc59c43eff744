"""What unit tests share: no thread that makes a call outlives its test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from smara.core.deadline import CALL_THREAD
from smara.models import http

NAMES = (CALL_THREAD, http.THREAD_NAME)


@pytest.fixture
def calls_under_way() -> Iterator[Callable[[], list[threading.Thread]]]:
    """The threads that make calls; those that are left at the end of a test end soon."""

    def threads() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name in NAMES]

    yield threads
    for thread in threads():
        thread.join(600)
    assert threads() == []
