"""Which suites of the contract run over HTTP too, and which of their tests cannot, with the reason.

A test that is listed must fail: one that passes has to leave the list. Some suites also run on
PostgreSQL behind a pooler; all do with SMARA_TEST_POOLER=1, which `make faults` sets.
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
POOLED = frozenset({"test_idempotency", "test_leases", "test_task_claims", "test_threads"})
REASONS = {
    "function": "it hands an object of this process to the memory",
    "inside": "it looks behind the memory, at its stores or its rooms",
    "path": "it names a folder of the server's disk",
    "system": "no key acts as the system",
    "words": "the server refuses it before the room does, in its own words",
}
DIFFERENT: dict[str, str] = {
    "test_memories.test_search_follows_every_change_and_a_rebuilt_index_says_the_same": "inside",
    "test_memories.test_memories_are_put_aside_together_with_what_is_added_or_not_at_all":
        "function",
    "test_memory_lifecycle.test_meaning_can_be_plugged_in_and_its_trouble_keeps_nothing_out":
        "inside",
    "test_memory_lifecycle.test_what_became_of_files_is_noted_as_an_event": "function",
    "test_memory_lifecycle.test_an_audit_measures_what_a_store_is_full_of": "inside",
    "test_memory_review.test_only_a_person_may[verify as the system]": "system",
    "test_messages.test_a_content_that_is_no_content_is_refused_and_says_why": "words",
    "test_messages.test_add_many_refuses_what_is_no_message_and_says_why": "words",
    "test_one_search.test_rebuilt_index_finds_the_same": "inside",
    "test_relevance.test_code_is_looked_through_where_nothing_remembered_is_relevant": "path",
    "test_working.test_looking_at_a_page_stores_nothing": "inside",
    "test_working.test_secrets_are_replaced_wherever_they_are_written": "inside",
}  # fmt: skip
"""By suite and name, with the values of a parametrized test in brackets: which reason."""


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
            self._services.pop(name, None)  # a test may close it before
            store.close()

        return memory, close


@cache
def switchboard() -> Switchboard:
    """The one server of this process."""
    return Switchboard()


def select(items: list[pytest.Item]) -> None:
    """Drop the tests over HTTP or a pooler of other suites, and mark those that differ."""
    kept = []
    for item in items:
        call = getattr(item, "callspec", None)
        kind = call.params.get("place") if call else None
        suite = item.module.__name__.rpartition(".")[2]  # type: ignore[attr-defined]
        if suite not in {"http": SUITES, "pooled": POOLED}.get(str(kind), {suite}):
            continue
        kept.append(item)
        if kind != "http":
            continue
        values = item.name.partition("[")[2].removesuffix("]")
        others = values.removesuffix("-http").removeprefix("http-")
        name = f"{suite}.{item.originalname}"  # type: ignore[attr-defined]
        why = DIFFERENT.get(name) or DIFFERENT.get(f"{name}[{others}]")
        if why is not None:
            item.add_marker(pytest.mark.xfail(strict=True, reason=REASONS[why]))
    items[:] = kept
