"""The transcripts of other agents in tests/fixtures/transcripts, and stores of OpenCode made like
its own.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from smara.adapters.records import Counted, Imported, Record

FIXTURES = Path(__file__).parents[2] / "fixtures" / "transcripts"
CODEX_ID = "0195f3a1-7c00-7000-8000-000000000001"
CODEX_AGENT = "0195f3a1-7c00-7000-8000-0000000000aa"
CODEX = (
    FIXTURES
    / "codex"
    / "sessions"
    / "2026"
    / "03"
    / "02"
    / f"rollout-2026-03-02T09-00-00-{CODEX_ID}.jsonl"
)
CODEX_SUB = CODEX.with_name(f"rollout-2026-03-02T09-00-40-{CODEX_AGENT}.jsonl")
CODEX_OLD = next((FIXTURES / "codex" / "old").iterdir())
CODEX_OLDEST = next((FIXTURES / "codex" / "oldest").iterdir())
GEMINI_ID = "6f1d2a3b-1111-4222-8333-444455556666"
GEMINI = FIXTURES / "gemini" / "tmp" / "shop" / "chats" / "session-2026-03-02T09-10-6f1d2a3b.jsonl"
GEMINI_OLD = GEMINI.with_name("session-2025-12-01T08-00-aaaa1111.json")
GEMINI_SUB = GEMINI.parent / GEMINI_ID / "0b0b0b0b-agent.jsonl"
GEMINI_LOG = GEMINI.parents[1] / "logs.json"
COPILOT_ID = "c0b11070-0000-4000-8000-000000000001"
COPILOT_AGENT = "c0b11070-0000-4000-8000-0000000000aa"
COPILOT = FIXTURES / "copilot" / "session-state" / COPILOT_ID / "events.jsonl"
PI_ID = "0195f3a1-9000-7000-8000-000000000001"
PI = FIXTURES / "pi" / "sessions" / "--home-me-shop--" / f"2026-03-02T09-30-00-000Z_{PI_ID}.jsonl"
OPENCODE = FIXTURES / "opencode" / "storage" / "session" / "proj1" / "ses_0001.json"
GENERIC = FIXTURES / "generic"
ONE_OF_EACH = {
    "codex": CODEX,
    "codex-sub": CODEX_SUB,
    "codex-old": CODEX_OLD,
    "codex-oldest": CODEX_OLDEST,
    "gemini": GEMINI,
    "gemini-old": GEMINI_OLD,
    "gemini-sub": GEMINI_SUB,
    "gemini-log": GEMINI_LOG,
    "copilot": COPILOT,
    "opencode": OPENCODE,
    "pi": PI,
    **{f"generic-{path.stem}": path for path in sorted(GENERIC.iterdir())},
}


def told(records: Iterable[Record]) -> list[tuple[str, str, str]]:
    """Of each message its role, the sort of its parts, and its words."""
    found: list[tuple[str, str, str]] = []
    for record in records:
        if isinstance(record, Imported):
            content = record.message.content
            parts = (
                [("text", content)]
                if isinstance(content, str)
                else [(p.type, p.text or p.name) for p in content]
            )
            found.append(
                (
                    record.message.role,
                    "+".join(kind for kind, _ in parts),
                    "|".join(t or "" for _, t in parts),
                )
            )
    return found


def reasons(records: Iterable[Record]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for record in records:
        if isinstance(record, Counted):
            counted[record.reason] = counted.get(record.reason, 0) + 1
    return counted


def put_homes(home: Path, cwd: str) -> dict[str, str]:
    """The folders of all agents below a home, their sessions held in ``cwd``; the environment that
    names them.
    """
    for name in ("codex", "gemini", "copilot", "pi"):
        shutil.copytree(FIXTURES / name, home / f".{name}")
    shutil.copytree(FIXTURES / "opencode", home / "data" / "opencode")
    for path in [*home.rglob("*.json"), *home.rglob("*.jsonl"), *home.rglob(".project_root")]:
        path.write_text(path.read_text().replace("/home/me/shop", cwd))
    claude = home / ".claude" / "projects" / "-home-me-shop" / "5e551011.jsonl"
    claude.parent.mkdir(parents=True)
    record = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": "5e551011",
        "isSidechain": False,
        "cwd": cwd,
        "timestamp": "2026-02-11T20:16:00.000Z",
        "message": {"role": "user", "content": "Open the shop"},
    }
    claude.write_text(json.dumps(record) + "\n")
    return {
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CODEX_HOME": str(home / ".codex"),
        "GEMINI_CONFIG_DIR": str(home / ".gemini"),
        "COPILOT_HOME": str(home / ".copilot"),
        "PI_CODING_AGENT_DIR": str(home / ".pi"),
        "XDG_DATA_HOME": str(home / "data"),
    }


def opencode_database(path: Path, storage: Path = OPENCODE.parents[2]) -> Path:
    """The same sessions as in the folder of files, in a database with OpenCode's tables."""
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, "
        "slug text NOT NULL,"
        " directory text NOT NULL, title text NOT NULL, version text NOT NULL, time_created "
        "integer NOT NULL,"
        " time_updated integer NOT NULL);"
        "CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created "
        "integer NOT NULL,"
        " time_updated integer NOT NULL, data text NOT NULL);"
        "CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT "
        "NULL,"
        " time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);"
        "CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text "
        "NOT NULL,"
        " seq integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, "
        "data text NOT NULL);"
    )
    for file in sorted((storage / "session").rglob("ses_*.json")):
        one = json.loads(file.read_text())
        times = (one["time"]["created"], one["time"]["updated"])
        connection.execute(
            "INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                one["id"],
                one["projectID"],
                one.get("parentID"),
                "slug",
                one["directory"],
                one["title"],
                "1.2.0",
                *times,
            ),
        )
    for file in sorted((storage / "message").rglob("*.json")):
        one = json.loads(file.read_text())
        at = one["time"]["created"]
        data = {key: value for key, value in one.items() if key not in ("id", "sessionID")}
        connection.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?)",
            (one["id"], one["sessionID"], at, at, json.dumps(data)),
        )
    for file in sorted((storage / "part").rglob("*.json")):
        one = json.loads(file.read_text())
        data = {
            key: value for key, value in one.items() if key not in ("id", "sessionID", "messageID")
        }
        row = (one["id"], one["messageID"], one["sessionID"], 0, 0, json.dumps(data))
        connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()
    return path


def add_row(path: Path, table: str, row: tuple[Any, ...]) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    connection.commit()
    connection.close()


def touch(path: Path, seconds: float) -> None:
    os.utime(path, (seconds, seconds))
