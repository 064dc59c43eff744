"""Which suites of the contract run over HTTP too, and which of their tests cannot, with the reason.

A test that is listed must fail: one that passes has to leave the list.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import smara
from smara.surfaces.http.address import QuietServer, bind, url_of
from smara.surfaces.http.guard import Limits
from smara.surfaces.http.server import ServeOptions, Service
from smara.surfaces.http.store import Store

SUITES = frozenset(
    {
        "test_compaction", "test_idempotency", "test_memories", "test_memory_lifecycle",
        "test_memory_provenance", "test_memory_review", "test_memory_walls", "test_messages",
        "test_one_search", "test_reading", "test_relevance", "test_scopes", "test_sealing",
        "test_search", "test_task_claims", "test_task_decay", "test_task_dependencies",
        "test_task_errors", "test_task_history", "test_task_import", "test_task_links",
        "test_task_search", "test_task_walls", "test_tasks", "test_threads", "test_working",
    }
)  # fmt: skip
REASONS = {
    "settings": "it opens another memory at the same place with settings of its own process",
    "function": "it hands a function or an object of this process to the memory",
    "inside": "it looks behind the memory, at its stores or its rooms",
    "types": "it gives a value that no JSON has, which is refused with another error",
}
DIFFERENT: dict[str, str] = {}
"""By the name of a test, with its suite: which reason."""


class Switchboard:
    """One server for all tests: a request goes to the service whose key it has.

    A server for each test would take longer to start and stop than the test itself.
    """

    def __init__(self) -> None:
        bound = bind("127.0.0.1", 0, "")
        self.url = url_of("127.0.0.1", bound)
        self._services: dict[bytes, Service] = {}
        config = uvicorn.Config(self, log_config=None, access_log=False, lifespan="off", ws="none")
        server = QuietServer(config)
        run = partial(server.run, sockets=[bound])
        thread = threading.Thread(target=run, name="contract-http", daemon=True)
        thread.start()

        def stop() -> None:
            server.should_exit = True
            thread.join(10)
            bound.close()

        atexit.register(stop)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._services[dict(scope["headers"])[b"authorization"]].app(scope, receive, send)

    def connect(
        self, open_memory: Callable[[], smara.Memory], folder: Path, **options: Any
    ) -> tuple[smara.Memory, Callable[[], None]]:
        """Serve a memory, and return a connection to it and what ends both."""
        store = Store(open_memory)
        limits = Limits(requests_per_second=1e9, burst=10**9)
        service = Service(store, ServeOptions(folder=folder, limits=limits), "127.0.0.1", 0)
        name = f"Bearer {service.key}".encode()
        self._services[name] = service
        memory = smara.connect(self.url, key=service.key, **options)

        def close() -> None:
            memory.close()
            del self._services[name]
            store.close()

        return memory, close


@cache
def switchboard() -> Switchboard:
    """The one server of this process."""
    return Switchboard()


def select(items: list[pytest.Item]) -> None:
    """Drop the tests over HTTP of other suites, and mark those that differ."""
    kept = []
    for item in items:
        call = getattr(item, "callspec", None)
        if call is None or call.params.get("place") != "http":
            kept.append(item)
            continue
        suite = item.module.__name__.rpartition(".")[2]  # type: ignore[attr-defined]
        if suite not in SUITES:
            continue
        kept.append(item)
        name = f"{suite}.{item.originalname}"  # type: ignore[attr-defined]
        if name in DIFFERENT:
            item.add_marker(pytest.mark.xfail(strict=True, reason=REASONS[DIFFERENT[name]]))
    items[:] = kept
