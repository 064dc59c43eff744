"""The async face is typed: its stub is current, and mypy reads a program that uses it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.async_stub import STUB, formatted, stub

ROOT = Path(__file__).parents[1]
PROGRAM = """
import asyncio

import smara
from smara.knowledge.models import TypedMemory
from smara.search.models import MemoryAnswer
from smara.tasks.models import Task


async def main() -> None:
    async with smara.open_async(":memory:", embedder="off") as memory:
        message: smara.Message = await memory.messages.add(
            thread_id="t", role="user", content="the walrus"
        )
        async for each in memory.messages.stream(thread_id="t"):
            words: str = each.raw_content
        task: Task = await memory.tasks.add("Sleep")
        added = await memory.memories.remember("Walruses sleep.", type="gotcha")
        statement: TypedMemory | None = added.memory
        answer: smara.Answer = await memory.search("walrus", 3, sources=["messages"])
        known: MemoryAnswer = await memory.search_memories("walrus")
        print(message.id, words, task.id, statement, answer[0].content, len(known.hits))
    other: smara.AsyncMemory = await smara.open_async(":memory:")
    again: smara.AsyncMemory = await other.in_project("other")
    await again.close()


asyncio.run(main())
"""
WRONG = PROGRAM.replace('"walrus", 3, sources', '"walrus", 3, sauces')


def mypy(program: str, folder: Path) -> str:
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent", str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout


def test_stub_of_the_async_face_is_current():
    assert STUB.read_text(encoding="utf-8") == formatted(stub()), "run python -m tests.async_stub"


def test_program_that_uses_the_async_face_is_typed(tmp_path):
    assert mypy(PROGRAM, tmp_path).startswith("Success")


def test_wrong_filter_of_an_async_search_is_seen_by_mypy(tmp_path):
    assert 'Unexpected keyword argument "sauces"' in mypy(WRONG, tmp_path)


def test_program_that_uses_the_async_face_runs(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert "the walrus" in done.stdout
