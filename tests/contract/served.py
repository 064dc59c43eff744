"""Which suites of the contract run over HTTP too, and which of their tests cannot, with the reason.

A test that is listed must fail: one that passes has to leave the list.
"""

from __future__ import annotations

import pytest

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
