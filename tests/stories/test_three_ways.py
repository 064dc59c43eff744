"""A session teaches the same, however it arrives.

1. Its hooks are drained turn by turn while the transcript grows. 2. They wait, and are drained
once at the end, with the whole transcript. 3. The transcript is imported. 4. Hooks alone, without
a transcript, teach what an import of the same session teaches if the agent had spoken at the end
of its turns only: no host sends more of its words. 5. The Claude Agent SDK hands its lines over, a
few at a time, to processes that come and go.

The sessions of the fixtures are always replayed; real ones are found through SMARA_EVAL_DATA.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import smara
from smara.adapters.hosts.drain import drain
from smara.adapters.hosts.spool import put
from smara.adapters.importer import Importer
from smara.adapters.replay import Learner
from smara.adapters.sdk.claude_agent import SmaraSessionStore
from smara.testing import FakeClock
from tests.faults.sizes import count
from tests.hook_replay import Session, read_session

FIXTURES = Path(__file__).parents[1] / "fixtures" / "transcripts" / "claude_code"
REAL = Path(os.environ.get("SMARA_EVAL_DATA", "/nonexistent")) / "transcripts" / "claude_code"
HOUR_MS = 3_600_000


def sessions() -> list[Any]:
    """The fixtures as one project, then real sessions: all of them in a large run."""
    found = [pytest.param(sorted(FIXTURES.glob("*.jsonl")), id="fixtures")]
    real = sorted(path for path in REAL.glob("*.gz") if not path.name.startswith("agent-"))
    some = sorted(real, key=lambda path: path.stat().st_size)[: count(2, len(real))]
    return found + ([pytest.param(some, id="real")] if some else [])


def read(paths: list[Path], folder: Path) -> list[Session]:
    """Read sessions, with their sub-agents' transcripts unpacked in a folder."""
    found = []
    for path in paths:
        session = read_session(path)
        for agent in sorted(REAL.glob("agent-*.gz")) if path.parent == REAL else ():
            inner = read_session(agent)
            if inner.id == session.id and "acompact" not in agent.name:
                target = folder / agent.name.removesuffix(".gz")
                target.write_text(inner.text())
                session.subagents[target.stem.removeprefix("agent-")] = target
        found.append(session)
    return sorted(found, key=lambda each: next(each.sent()).at_ms)


@pytest.fixture
def store(tmp_path: Path) -> Callable[[str], Any]:
    @contextmanager
    def opened(name: str) -> Iterator[tuple[smara.Memory, FakeClock]]:
        clock = FakeClock()
        with smara.open(
            tmp_path / f"{name}.db",
            durability="normal",
            token_model="estimate",
            embedder="off",
            clock=clock,
        ) as memory:
            yield memory, clock

    return opened


def advance(clock: FakeClock, at_ms: int) -> None:
    clock.advance(max(0, at_ms - clock.now_ms()) / 1000)


def by_hooks(
    memory: smara.Memory,
    clock: FakeClock,
    session: Session,
    folder: Path,
    *,
    path: Path | None,
    is_live: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spool = str(folder / "spool")
    for number, each in enumerate(session.sent()):
        payload = each.payload
        if path is None:
            payload = {key: value for key, value in payload.items() if "transcript" not in key}
        else:
            payload = {**payload, "transcript_path": str(path)}
        now_ns = each.at_ms * 1_000_000 + number
        monkeypatch.setattr("smara.adapters.hosts.spool.time_ns", partial(int, now_ns))
        put(spool, "claude", each.event, json.dumps(payload).encode(), cwd=str(folder))
        advance(clock, each.at_ms)
        if is_live and each.event == "Stop":
            if path is not None:
                path.write_text(session.text(each.lines))
            drain(memory, spool)
    if path is not None:
        path.write_text(session.text())
    advance(clock, clock.now_ms() + 1)
    done = drain(memory, spool)
    assert (done.unreadable, done.jobs_failed) == (0, 0)


def by_import(memory: smara.Memory, clock: FakeClock, session: Session, path: Path) -> None:
    path.write_text(session.text())
    advance(clock, max(each.at_ms for each in session.sent()) + 3 * HOUR_MS)
    learner = Learner(memory, clock=clock)
    importer = Importer(memory, learner=learner)
    for each in (*session.subagents.values(), path):
        importer.import_file(each)
    assert learner.finish().problems == []


def by_store(memory: smara.Memory, clock: FakeClock, session: Session) -> None:
    key: Any = {"project_key": "p", "session_id": session.id}
    store = SmaraSessionStore(memory)
    agents = {f"subagents/agent-{name}": path for name, path in session.subagents.items()}
    for path, text in [*((name, path.read_text()) for name, path in agents.items()),
                       ("", session.text())]:  # fmt: skip
        lines = [json.loads(line) for line in text.splitlines()]
        for at in range(0, len(lines), 7):
            store = store if at % 3 else SmaraSessionStore(memory)
            asyncio.run(store.append(key | ({"subpath": path} if path else {}), lines[at : at + 7]))
    advance(clock, max(each.at_ms for each in session.sent()) + 3 * HOUR_MS)
    assert memory.behavior.run_due(100).failed == 0


def lessons(memory: smara.Memory) -> dict[str, list[Any]]:
    """What was learned, without ids and without what depends on when it was."""
    memories = [
        (
            each.type, each.content, each.files, each.modules, each.tags, round(each.confidence, 6),
            [(piece.path, piece.quote) for piece in each.evidence], each.session_ids,
            json.dumps(dict(each.data), sort_keys=True, default=str), each.taint,
            each.review_reasons,
        )
        for each in memory.memories.list(state="all", limit=500)
    ]  # fmt: skip
    sessions = memory.behavior.sessions()
    return {
        "memories": sorted(memories, key=str),
        "sessions": sorted(
            (each.session_id, each.state, each.type, each.outcome, each.why, each.steps)
            for each in sessions
        ),
        "noticed": [
            replace(noticed, memory_id=None)
            for each in sorted(sessions, key=lambda each: each.session_id)
            for noticed in memory.behavior.noticed(each.session_id)
        ],
        "failures": sorted(
            (
                each.command,
                each.error,
                each.occurrences,
                each.sessions,
                str(each.how),
                str(each.fix),
            )
            for each in memory.behavior.failures()
        ),
    }


def turns(memory: smara.Memory, session: Session) -> list[tuple[str, str]]:
    return [(each.role, each.raw_content) for each in memory.messages.list(thread_id=session.id)]


@pytest.mark.parametrize("paths", sessions())
def test_a_session_teaches_the_same_however_it_arrives(paths, store, tmp_path, monkeypatch):
    learned = {}
    for way in ("live", "end", "import", "store"):
        with store(way) as (memory, clock):
            folder = tmp_path / way
            folder.mkdir()
            for session in read(paths, folder):
                path = folder / f"{session.id}.jsonl"
                if way == "import":
                    by_import(memory, clock, session, path)
                elif way == "store":
                    by_store(memory, clock, session)
                else:
                    by_hooks(
                        memory,
                        clock,
                        session,
                        folder,
                        path=path,
                        is_live=way == "live",
                        monkeypatch=monkeypatch,
                    )
            memory.decisions.update()  # those of the newest, whatever has read the others
            learned[way] = (lessons(memory), [turns(memory, each) for each in read(paths, folder)])
    assert learned["live"] == learned["import"]
    assert learned["end"] == learned["import"]
    assert learned["store"] == learned["import"]


@pytest.mark.parametrize("paths", sessions())
def test_hooks_without_a_transcript_lack_the_words_between_calls_alone(
    paths, store, tmp_path, monkeypatch
):
    with store("hooks") as (memory, clock):
        for session in read(paths, tmp_path):
            by_hooks(
                memory, clock, session, tmp_path, path=None, is_live=True, monkeypatch=monkeypatch
            )
        hooks = lessons(memory)
        heard = [turns(memory, each) for each in read(paths, tmp_path)]
    with store("import") as (memory, clock):
        for session in read(paths, tmp_path):
            session = session.with_last_words_alone()
            by_import(memory, clock, session, tmp_path / f"{session.id}.jsonl")
        imported = lessons(memory)
        stored = [turns(memory, each) for each in read(paths, tmp_path)]
    assert hooks == imported
    for some, every in zip(heard, stored, strict=True):
        assert some
        assert [each for each in some if each not in every] == []
