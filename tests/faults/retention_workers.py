"""A process that keeps the rules of retention and dies at a statement of its own."""

from __future__ import annotations

from multiprocessing.connection import Connection

import smara
from smara.privacy import retention
from smara.testing import FakeClock
from tests.faults.copy_workers import kill_before

RULES = {"messages_days": 30, "closed_tasks_rows": 2, "page_versions_rows": 3}


def open_at(address: str, day: int = 0) -> smara.Memory:
    clock = FakeClock()
    clock.advance(day * 86_400)
    return smara.open(
        address, project="shop", clock=clock, embedder="off", durability="normal",
        token_model="estimate", compact_every_messages=0, retention=RULES,
    )  # fmt: skip


def keep(pipe: Connection, address: str, kill_at: int) -> None:
    """Keep the rules in small batches; killed before a statement that would change something."""
    retention._MOST_WALKED = retention._MOST_PLAIN = 3
    with open_at(address, day=40) as memory:
        count = kill_before(kill_at)
        memory.retention.run_due()
        pipe.send(count())
