"""Processes that learn are killed at any statement, or do it all at once: nothing is lost, nothing
is doubled.
"""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

import smara
from tests.faults.behavior_workers import die_while_learning, session, tell_and_decide

FORKED = multiprocessing.get_context("forkserver")
LARGE = os.environ.get("SMARA_FAULTS") == "large"
OPEN = {"embedder": "off", "embed_in_background": False, "durability": "normal"}


def everything(memory: Any) -> tuple[Any, ...]:
    """What a lost or doubled event, session or memory would change."""
    behavior = memory.behavior
    return (
        sorted(
            (each.session_id, each.events, each.state, each.steps) for each in behavior.sessions()
        ),
        [
            (each.file_a, each.file_b, each.raw_count, each.session_count, each.directional)
            for each in behavior.edges()
        ],
        [(each.command, each.occurrences, each.sessions, each.fix) for each in behavior.failures()],
        sorted(each.content for each in memory.memories.list()),
        sorted((each.kind, each.sessions) for each in behavior.noticed("s2")),
    )


def expected(folder: Path) -> tuple[Any, ...]:
    with smara.open(folder / "clean.db", **OPEN) as memory:
        for number in range(3):
            memory.behavior.observe_batch(session(number).events)
            memory.behavior.finalize(f"s{number}")
        return everything(memory)


@pytest.mark.parametrize("what", ["tell", "finalize"])
def test_a_process_killed_at_any_statement_leaves_all_or_nothing(where, tmp_path, what):
    """1. Two sessions are learned from. 2. A process is killed in the third. 3. Another does it,
    and all is right.
    """
    wanted = expected(tmp_path)
    with smara.open(where, **OPEN) as memory:
        for number in range(2):
            memory.behavior.observe_batch(session(number).events)
            memory.behavior.finalize(f"s{number}")
    for number in range(0, 400, 3) if LARGE else (1, 4, 17, 40):
        worker = FORKED.Process(target=die_while_learning, args=(where, number, what))
        worker.start()
        worker.join(120)
        if worker.exitcode == 0:
            break
        assert worker.exitcode == -9
        with smara.open(where, **OPEN) as memory:
            states = {each.session_id: each.state for each in memory.behavior.sessions()}
            is_decided = states.get("s2", "open") == "final"
            # What is looked up in the code comes after the deciding, and may be cut off.
            assert is_decided == any(
                "src/a/x.py" in each.content for each in memory.memories.list()
            )
            if is_decided:
                break
    with smara.open(where, **OPEN) as memory:
        memory.behavior.observe_batch(session(2).events)
        memory.behavior.finalize("s2")
        assert everything(memory) == wanted


def test_processes_that_tell_and_decide_at_once_do_it_once(where, tmp_path):
    count = 4 if LARGE else 3
    with smara.open(where, **OPEN):
        pass
    barrier, answers = FORKED.Barrier(count), FORKED.Queue()
    workers = [
        FORKED.Process(target=tell_and_decide, args=(where, barrier, answers)) for _ in range(count)
    ]
    for worker in workers:
        worker.start()
    found = [answers.get(timeout=600) for _ in workers]
    for worker in workers:
        worker.join(600)
    answers.close()
    answers.join_thread()
    assert all(isinstance(each, int) for each in found), found
    with smara.open(where, **OPEN) as memory:
        contents = [each.content for each in memory.memories.list()]
        assert len(contents) == len(set(contents))
        assert [each.events for each in memory.behavior.sessions()] == [len(session(0).events)] * 3
        assert memory.behavior.failures()[0].occurrences == 3
