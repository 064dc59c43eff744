"""What the tests of adapters share: an agent's events, and who touches the store."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Any

import pytest


def watch_threads(memory: Any, monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The threads that read or write the store from now on, filled as they do."""
    database = memory.internals.database
    seen: set[int] = set()

    def watched(name: str) -> None:
        real = getattr(database, name)

        @contextmanager
        def open_session(*args: Any, **given: Any) -> Any:
            seen.add(threading.get_ident())
            with real(*args, **given) as session:
                yield session

        monkeypatch.setattr(database, name, open_session)

    watched("read")
    watched("write")
    return seen


def stored_words(memory: Any) -> str:
    """Everything that was said in a project, as it is stored and searched."""
    threads = memory.threads.list()
    streams = (memory.messages.stream(thread_id=thread.id) for thread in threads)
    return "\n".join(message.raw_content for stream in streams for message in stream)
