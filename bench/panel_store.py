"""A store with a hundred thousand memories and a million messages, made in minutes.

A fiftieth of it is written through the rooms; the rest are copies of those rows, made by statements
of the database with other ids, numbers and times. The copies go through the same tables and indexes
as what a person wrote, so that a page that reads too much reads too much here as well.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import smara
from bench.corpus import Corpus
from smara.database.database import Session
from smara.knowledge.models import NewMemory
from smara.tasks.models import NewTask

COPIES = 50
LONG_THREAD = "t0"
_THREADS, _LONG, _SHORT = 20, 10_000, 526
_MEMORIES, _TASKS = 2_000, 10_000
_TYPES = ("gotcha", "preference", "pattern", "error_pattern", "module_insight")
_OFFSET = 1_000_000
_HALF_DAY_MS = 43_200_000
_UUID, _NAME, _KEY = (
    "substr({0}, 1, 8) || printf('-%04x', ?1) || substr({0}, 14)",
    "{0} || '-' || ?1",
    "{0} || printf('%02x', ?1)",
)
_TABLES: Mapping[str, Mapping[str, str]] = {
    "threads": {"id": _NAME},
    "messages": {"id": _UUID},
    "compactions": {"id": _UUID},
    "observation_records": {"id": _UUID, "lookup_key": _NAME},
    "observation_cursors": {},
    "observation_batches": {"id": _UUID},
    "observations": {"id": _UUID},
    "memories": {
        "id": _UUID, "short_id": _KEY, "key": _KEY, "bare_key": _KEY, "session_id": _NAME,
        "content": "{0} || ' ' || ?1",
    },
    "memory_keys": {"value": "CASE kind WHEN 'session' THEN value || '-' || ?1 ELSE value END"},
    "memory_events": {"id": _UUID, "operation": _UUID},
    "behavior_sessions": {"session_id": _NAME},
    "moment_sessions": {"session_id": _NAME},
    "moment_receipts": {"id": _UUID, "session_id": _NAME},
    "moment_items": {},
}  # fmt: skip
"""The tables that are copied, in this order; how the texts of a copy differ."""


def large_store(path: Path, root: Path) -> Path:
    """Return a large store with the code of a repository; made once, and used again."""
    if not path.is_file():
        unfinished = path.with_suffix(".part")
        for each in unfinished.parent.glob(f"{unfinished.name}*"):
            each.unlink()
        with smara.open(unfinished, project="bench", durability="normal", embedder="off") as memory:
            _seed(memory, root)
            with memory.internals.database.write() as session:
                for number in range(1, COPIES):
                    _copy(session, number)
                _count(session)
            memory.internals.database.shrink_log()
        unfinished.rename(path)
    return path


def _seed(memory: smara.Memory, root: Path) -> None:
    """Write a fiftieth of the store through the rooms."""
    corpus = Corpus()
    memory.code.index(root)
    files = [os.path.relpath(each, root) for each in sorted(root.glob("src/smara/**/*.py"))[:400]]
    for number in range(_THREADS):
        count = _SHORT if number else _LONG
        memory.messages.add_many(thread_id=f"t{number}", messages=corpus.messages(count))
        if number:
            memory.observations.end_session(f"t{number}")
    for start in range(0, _MEMORIES, 100):
        memory.memories.add_many(
            [
                NewMemory(
                    corpus.text(number)[:200],
                    type=_TYPES[number % len(_TYPES)],  # type: ignore[arg-type]
                    files=[files[number % len(files)]],
                    modules=[os.path.dirname(files[number % len(files)])],
                    is_verified=start % 300 == 0,
                    session_id=f"t{number % _THREADS}",
                )
                for number in range(start, start + 100)
            ],
            by="person" if start % 300 == 0 else "agent",
        )
    for number in range(_THREADS):
        memory.moments.start(f"t{number}", agent="claude-code")
    memory.tasks.put_many(
        NewTask(f"task {number}", description="what is to be done " * 10)
        for number in range(_TASKS)
    )


def _copy(session: Session, number: int) -> None:
    """Write one more copy of all that was seeded."""
    for table, texts in _TABLES.items():
        columns = [str(row[1]) for row in session.all(f"PRAGMA table_info({table})")]
        values = [_value(name, texts) for name in columns]
        numbers = [name for name in columns if _is_number(name)]
        seeded = f"{numbers[0]} <= {_OFFSET}" if numbers else "session_id NOT LIKE '%-%'"
        session.run(
            f"INSERT INTO {table} ({', '.join(columns)})"
            f" SELECT {', '.join(values)} FROM {table} WHERE {seeded}",
            (number,),
        )
    limit = _OFFSET << 16
    session.run(
        "INSERT INTO message_index (rowid, prose, code, scope)"
        f" SELECT i.id + (?1 * {_OFFSET} << 16), c0, c1, replace(c2, '^t' || m.thread_no || ' ',"
        f" '^t' || (m.thread_no + ?1 * {_OFFSET}) || ' ') FROM message_index_content i"
        f" JOIN messages m ON m.no = i.id >> 16 WHERE i.id <= {limit}",
        (number,),
    )
    session.run(
        "INSERT INTO record_index (rowid, head, body, scope)"
        f" SELECT id + (?1 * {_OFFSET} << 16), c0, c1, c2 FROM record_index_content"
        f" WHERE id <= {limit} AND (id & 65535) = 768",
        (number,),
    )


def _value(name: str, texts: Mapping[str, str]) -> str:
    if name in texts:
        return texts[name].format(name)
    if _is_number(name):
        return f"{name} + ?1 * {_OFFSET}"
    if name == "at" or name.endswith("_at"):
        return f"{name} - ({COPIES} - ?1) * {_HALF_DAY_MS}"
    return name


def _is_number(name: str) -> bool:
    return name == "no" or (name.endswith("_no") and name != "project_no")


def _count(session: Session) -> None:
    """Bring the counts that the rooms keep up to date."""
    for name in ("message_index", "record_index"):
        session.run(
            f"UPDATE index_state SET rows = (SELECT count(*) FROM {name}_content) WHERE name = ?",
            (name,),
        )
    session.run(
        "UPDATE memory_state SET (total, active, to_review) = (SELECT count(*),"
        " count(*) FILTER (WHERE deprecated_at IS NULL),"
        " count(*) FILTER (WHERE needs_review = 1 AND deprecated_at IS NULL) FROM memories)"
    )
