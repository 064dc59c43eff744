"""A store with a little in it, named by ``SMARA_DB``."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import smara
from smara.tasks.models import NewTask
from smara.testing import CountingIds, FakeClock
from tests.stores import put_file

if sys.platform == "win32":
    collect_ignore_glob = ["test_*.py"]  # they look at pseudo-terminals, signals and file modes

SCHEMA = (
    "export const LoginSchema = z.object({\n  email: z.string().email(),\n  password: "
    "z.string().min(12),\n})"
)

TASKS = [
    NewTask("Webhooks", short_id="t-hooks", type="epic", priority=3),
    NewTask("Sign outgoing webhooks", short_id="t-sign", description="With HMAC", priority=1,
    type="feature",
            labels=["security"], depends_on=[("t-hooks", "parent-child")]),
    NewTask("Document the headers", short_id="t-docs", type="chore",
            depends_on=[("t-sign", "blocks"), ("t-hooks", "parent-child")]),
    NewTask("Choose a queue", short_id="t-old", status="closed", close_reason="completed",
    summary="PostgreSQL it is"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here cuts the power."""
    monkeypatch.setenv("SMARA_DURABILITY", "normal")


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a store that does not exist yet."""
    path = str(tmp_path / "smara.db")
    monkeypatch.setenv("SMARA_DB", path)
    return path


@pytest.fixture
def store(db: str) -> str:
    """A store with two threads, ``login`` (three messages) and ``deploy`` (one), and a few tasks.

    ``t-docs`` needs ``t-sign``, both are part of the epic ``t-hooks``; ``t-old`` is closed.
    """
    put_file(Path(db), filled())
    return db


@cache
def filled() -> bytes:
    """What is in the file of ``store``, which is the same each time."""
    with TemporaryDirectory(prefix="smara-") as folder:
        path = Path(folder) / "smara.db"
        _fill(path)
        return path.read_bytes()


def _fill(path: Path) -> None:
    clock = FakeClock()
    with smara.open(path, clock=clock, new_id=CountingIds()) as memory:
        for role, text in (
            ("user", "Implement the login with Zod"),
            ("assistant", SCHEMA),
            ("tool", "42 passing"),
        ):
            memory.messages.add(
                thread_id="login", role=role, content=text, client_id=f"turn-{role}"
            )
            clock.advance(60)
        memory.threads.update("login", title="Login with Zod")
        memory.messages.add(
            thread_id="deploy",
            role="user",
            content="Deploy to staging with retry_policy",
            task_id="7",
        )
        memory.tasks.put_many(TASKS, actor="ann")
        memory.working.put("# Notes\n- Queue: PostgreSQL\n", actor="ann")
