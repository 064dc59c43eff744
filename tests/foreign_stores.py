"""Small stores of other memory tools, in the shapes that those tools write.

The shapes were seen in files of the running tools where they can be run without a network (MCP
memory server 0.6.3, claude-mem 10.6 and 13.25, the history of mem0, the archive of Hindsight), and
taken from their public code otherwise. All records are invented.
"""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

SESSION = "3d1f0c52-7a41-4c7e-9d8e-0b6a5f1e2c33"
DAY = 86_400_000
MAY_4 = 1_777_885_200_000  # 2026-05-04 09:00 UTC


def mem0(folder: Path) -> Path:
    path = folder / "mem0.json"
    at = "2026-02-01T10:00:00.275141-08:00"
    records: dict[str, Any] = {
        "results": [
            {"id": "892db2ae", "memory": "Prefers pnpm over npm", "hash": "5e1f", "user_id": "ann",
             "metadata": {"area": "tooling"}, "created_at": at, "updated_at": None},
            {"id": "992db2ae", "memory": "The trial of Vault runs until spring", "created_at": at,
             "expiration_date": "2026-04-01", "agent_id": "builder", "categories": ["plans"]},
        ],
        "relations": [{"source": "ann", "relationship": "works_on", "target": "harbor"}],
    }  # fmt: skip
    path.write_text(json.dumps(records))
    return path


def mem0_history(folder: Path) -> Path:
    path = folder / "history.db"
    day = "2026-0{}-02T10:00:00+00:00".format
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE history (id, memory_id, old_memory, new_memory, event, created_at,"
            " updated_at, is_deleted, actor_id, role)"
        )
        connection.execute(
            "CREATE TABLE messages (id, session_scope, role, content, name, created_at)"
        )
        connection.executemany(
            "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
            [
                ("1", "a2", None, "Releases happen on Fridays", "ADD", day(2), None, 0),
                ("2", "a2", "Releases happen on Fridays", "Releases happen on Mondays only",
                 "UPDATE", day(2), day(3), 0),
                ("3", "a3", None, "The staging host is called heron", "ADD", day(2), None, 0),
                ("4", "a3", "The staging host is called heron", None, "DELETE", day(2), day(4), 1),
            ],
        )  # fmt: skip
        connection.executemany(
            "INSERT INTO messages VALUES (?, 'user_id=ann', ?, ?, NULL, ?)",
            [("m1", "user", "Which day is the release?", day(3)),
             ("m2", "assistant", "On Mondays.", day(3))],
        )  # fmt: skip
    return path


def mcp_memory(folder: Path) -> Path:
    path = folder / "memory.jsonl"
    records = [
        {"type": "entity", "name": "billing service", "entityType": "service",
         "observations": ["Amounts are integers in cents", "Listens on port 7410 in staging"]},
        {"type": "entity", "name": "ledger", "entityType": "table", "observations": []},
        {"type": "relation", "from": "billing service", "to": "ledger",
         "relationType": "writes_to"},
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, records)))
    return path


NOTE = """---
title: Queue of jobs
type: note
permalink: decisions/queue
tags:
- jobs
created: 2026-04-02T08:00:00+02:00
---

# Queue of jobs

We looked at three brokers.

- [decision] Jobs live in a Postgres table #queue (no broker to run)
- [x] asked Ines
- [00:12:03] a line of a transcript
- Rows are claimed with SKIP LOCKED #postgres

```
- [fake] inside a fence
```

> [!info] a callout

- replaces [[Redis queue]]
- "was proposed by" [[Ines Ortega]] (standup)
"""


def basic_memory(folder: Path) -> Path:
    path = folder / "notes"
    (path / "decisions").mkdir(parents=True)
    (path / "decisions" / "queue.md").write_text(NOTE)
    return path


def claude_mem(folder: Path, is_old: bool = False) -> Path:
    """The tables of today, or those of before sessions were renamed and observations had titles."""
    path = folder / ("claude-mem-old.db" if is_old else "claude-mem.db")
    content, memory = ("claude", "sdk") if is_old else ("content", "memory")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            f"CREATE TABLE sdk_sessions (id, {content}_session_id, {memory}_session_id, project,"
            " user_prompt, started_at, started_at_epoch)"
        )
        connection.executemany(
            "INSERT INTO sdk_sessions VALUES (?, ?, ?, ?, 'Why do charges run twice?', '', ?)",
            [(1, SESSION, "s1", "harbor", MAY_4), (2, "other-session", "s2", "docs", MAY_4)],
        )
        columns = "text" if is_old else "title, narrative, facts, concepts, files_modified"
        connection.execute(
            f"CREATE TABLE observations (id, {memory}_session_id, project, type, {columns},"
            " created_at_epoch)"
        )
        observations: list[tuple[Any, ...]]
        if is_old:
            observations = [(1, "s1", "harbor", "decision", "Locks live in Redis", MAY_4)]
        else:
            observations = [
                (1, "s1", "harbor", "decision", "Locks live in Redis", "The pooler drops sessions.",
                 '["A lease lasts 20 seconds"]', '["trade-off"]', '["src/lock.py"]', MAY_4),
                (2, "s1", "harbor", "feature", "Leases are renewed", "A thread renews them.", "[]",
                 "[]", "[]", MAY_4),
            ]  # fmt: skip
        marks = ", ".join("?" * len(observations[0]))
        connection.executemany(f"INSERT INTO observations VALUES ({marks})", observations)
        if not is_old:
            connection.execute(
                "CREATE TABLE session_summaries (id, memory_session_id, project, request, learned,"
                " created_at_epoch)"
            )
            connection.execute(
                "INSERT INTO session_summaries VALUES (1, 's1', 'harbor', 'Find the double run',"
                " 'A lock must outlive its job', ?)",
                (MAY_4 + 1000,),
            )
            connection.execute(
                "CREATE TABLE user_prompts (id, content_session_id, prompt_number, prompt_text,"
                " created_at_epoch)"
            )
            connection.executemany(
                "INSERT INTO user_prompts VALUES (?, ?, ?, ?, ?)",
                [(1, SESSION, 1, "Why do charges run twice?", MAY_4),
                 (2, "other-session", 1, "Fix the typo", MAY_4)],
            )  # fmt: skip
    return path


def claude_mem_export(folder: Path) -> Path:
    """What its export script writes."""
    path = folder / "export.json"
    records = {
        "exportedAt": "2026-05-05T00:00:00Z", "exportedAtEpoch": MAY_4, "query": "",
        "totalObservations": 1,
        "observations": [
            {"id": 1, "memory_session_id": "s1", "project": "harbor", "text": None,
             "type": "discovery", "title": "The pooler drops sessions", "facts": "[]",
             "narrative": "", "concepts": '["how-it-works"]', "files_read": '["src/pool.py"]',
             "created_at_epoch": MAY_4},
        ],
        "sessions": [{"id": 1, "content_session_id": SESSION, "memory_session_id": "s1",
                      "project": "harbor", "user_prompt": "Why?", "started_at_epoch": MAY_4}],
        "summaries": [],
        "prompts": [{"id": 1, "content_session_id": SESSION, "prompt_number": 1,
                     "prompt_text": "Why?", "project": "harbor", "created_at_epoch": MAY_4}],
    }  # fmt: skip
    path.write_text(json.dumps(records, indent=2))
    return path


def hindsight_list(folder: Path) -> Path:
    """What its API lists."""
    path = folder / "memories.json"
    items = [{"id": "u1", "text": "The quay floods in autumn", "fact_type": "world",
              "date": "2026-05-04T09:00:00+00:00", "entities": "quay"}]  # fmt: skip
    path.write_text(json.dumps({"items": items, "total": 1}))
    return path


def mem0_lines(folder: Path) -> Path:
    """One memory a line, as people save what the platform lists."""
    path = folder / "mem0.jsonl"
    lines = [{"id": f"{number}", "memory": f"Berth {number} is for {kind}", "app_id": "port",
              "created_at": "2026-02-01T10:00:00Z"}
             for number, kind in enumerate(("ferries", "tugs"))]  # fmt: skip
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def mem0_notes(folder: Path) -> Path:
    """The Markdown that its plugin for agents writes."""
    path = folder / "mem0-export.md"
    path.write_text(
        "---\nid: k1\ncreated_at: 2026-02-01T10:00:00Z\ntype: task_learnings\nconfidence: 0.9\n"
        "files: src/crane.py\ncategories: tools, cranes\n---\nThe crane needs two operators\n\n"
        "---\nid: k2\ncategories:\n---\nGates open: 6\n"
    )
    return path


def hindsight(folder: Path) -> Path:
    path = folder / "bank.zip"
    facts = [
        {"text": "The importer stalls on large files", "fact_type": "world",
         "mentioned_at": "2026-05-04T09:00:00Z", "entities": ["importer"], "tags": []},
        {"text": "The timeout was raised to 90 seconds", "fact_type": "experience",
         "causal_relations": [{"relation_type": "caused_by", "target_fact_index": 0}]},
    ]  # fmt: skip
    files: dict[str, Any] = {
        "documents/000000.json": {
            "id": "standup/1", "original_text": "Ines: the importer stalls. We raised the timeout.",
            "tags": ["standup"], "created_at": "2026-05-04T08:00:00Z", "chunks": [], "facts": facts,
        },
        "observations.json": [
            {"text": "Imports are the slowest step of a release", "proof_count": 1, "sources": []}
        ],
        "banks.json": [{"bank_id": "harbor"}],
        "mental_models.json": [{"id": "r", "name": "Release", "content": "Releases wait."}],
        "manifest.json": {"schema_version": 1, "source_bank_id": "harbor", "fact_count": 2},
    }  # fmt: skip
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, json.dumps(content))
    return path


def zep(folder: Path) -> Path:
    path = folder / "zep.json"
    at = "2026-03-01T10:00:00Z"
    graph = {
        "user_id": "ann",
        "episodes": [
            {"uuid": "e1", "content": "I moved from Lyon to Bergen.", "role": "Ann",
             "role_type": "user", "source": "message", "thread_id": "t1", "created_at": at},
        ],
        "nodes": [
            {"uuid": "n1", "name": "Ann", "summary": "A sailor", "labels": ["Entity", "Person"],
             "created_at": at},
            {"uuid": "n2", "name": "Lyon", "summary": "", "labels": ["Entity"], "created_at": at},
        ],
        "edges": [
            {"uuid": "f1", "name": "LIVES_IN", "fact": "Ann lives in Lyon", "episodes": [],
             "source_node_uuid": "n1", "target_node_uuid": "n2", "created_at": "2026-01-01",
             "valid_at": "2025-06-01T00:00:00Z", "invalid_at": at, "expired_at": at},
            {"uuid": "f2", "name": "LIVES_IN", "fact": "Ann lives in Bergen", "episodes": ["e1"],
             "source_node_uuid": "n1", "target_node_uuid": "n3", "created_at": at,
             "valid_at": at, "invalid_at": None, "expired_at": None},
        ],
    }  # fmt: skip
    path.write_text(json.dumps(graph))
    return path


EVERY: dict[str, tuple[Callable[[Path], Path], ...]] = {
    "mem0": (mem0, mem0_history, mem0_lines, mem0_notes),
    "mcp-memory": (mcp_memory,),
    "basic-memory": (basic_memory,),
    "claude-mem": (
        claude_mem,
        lambda folder: claude_mem(folder, is_old=True),
        claude_mem_export,
    ),
    "hindsight": (hindsight, hindsight_list),
    "zep": (zep,),
}
"""The makers of stores, by format."""
