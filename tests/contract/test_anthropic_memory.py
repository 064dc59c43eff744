"""Anthropic's memory tool over a memory: files, and the memories in them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818ViewCommand,
)

from smara.adapters.sdk.anthropic_memory import MemoryFiles, SmaraAsyncMemoryTool, SmaraMemoryTool
from tests.contract.both import EACH_DATABASE
from tests.contract.sdk import watch_threads

pytestmark = EACH_DATABASE

PNPM = "The build uses pnpm and not npm, since the lock file is pnpm's."
REDIS = "Tests need Redis on port 6380."
NOTES = f"# Build\n\n- {PNPM}\n- {REDIS}\n"
PATH = "/memories/notes/build.md"


@pytest.fixture
def files(memory: Any) -> MemoryFiles:
    return MemoryFiles(memory, "s1")


def contents(memory: Any, **given: Any) -> set[str]:
    return {each.content for each in memory.memories.list(**given)}


def test_statements_of_a_file_are_an_agents_memories_to_review(
    memory: Any, files: MemoryFiles
) -> None:
    files.create(PATH, NOTES)
    assert contents(memory) == {PNPM, REDIS}
    for each in memory.memories.list():
        assert (each.source, each.tier, each.needs_review) == (
            "agent_explicit",
            "unconfirmed",
            True,
        )
    assert files.files() == {PATH: NOTES}


def test_an_edit_of_a_file_is_an_edit_of_its_memory(memory: Any, files: MemoryFiles) -> None:
    files.create(PATH, NOTES)
    before = {each.content: each.id for each in memory.memories.list()}
    files.str_replace(PATH, "6380", "6381")
    after = {each.content: each.id for each in memory.memories.list()}
    assert after == {PNPM: before[PNPM], REDIS.replace("6380", "6381"): before[REDIS]}


def test_a_line_taken_out_is_forgotten_and_one_put_in_is_remembered(
    memory: Any, files: MemoryFiles
) -> None:
    files.create(PATH, NOTES)
    files.str_replace(PATH, f"- {REDIS}\n", "")
    files.insert(PATH, 3, "- Releases are signed with the key of the build server.")
    assert contents(memory) == {PNPM, "Releases are signed with the key of the build server."}
    assert contents(memory, state="deprecated") == {REDIS}


def test_a_file_reads_as_a_person_has_reviewed_it(memory: Any, files: MemoryFiles) -> None:
    files.create(PATH, NOTES)
    ids = {each.content: each.id for each in memory.memories.list()}
    memory.memories.update(ids[REDIS], by="person", content="Tests need Redis on port 7000.")
    assert files.files()[PATH] == NOTES.replace("6380", "7000")
    memory.memories.reject(ids[PNPM], by="person")
    assert files.files()[PATH] == "# Build\n\n- Tests need Redis on port 7000.\n"
    assert PNPM not in str([hit.content for hit in memory.search("pnpm npm lock file")])
    # What a person has confirmed is changed by no edit of the file.
    memory.memories.verify(ids[REDIS], by="person")
    files.str_replace(PATH, "7000", "7001")
    assert "Tests need Redis on port 7000." in contents(memory)


def test_what_people_taught_is_read_and_never_written(memory: Any, files: MemoryFiles) -> None:
    memory.memories.remember("We deploy on Mondays only", type="decision")
    path = "/memories/from_people/decision.md"
    assert path in files.view("/memories")
    assert "     1\t- We deploy on Mondays only [Memory #m-" in files.view(path)
    for act in (
        lambda: files.str_replace(path, "Mondays", "Fridays"),
        lambda: files.insert(path, 0, "Always deploy."),
        lambda: files.delete("/memories/from_people"),
        lambda: files.rename(path, "/memories/mine.md"),
        lambda: files.create("/memories/from_people/more.md", "More."),
        lambda: files.rename(PATH, "/memories/from_people/x.md"),
    ):
        with pytest.raises(ToolError, match="belongs to people"):
            act()
    assert files.clear() == "All memory cleared"
    assert contents(memory) == {"We deploy on Mondays only"}


def test_words_from_the_web_are_quarantined_and_say_so(memory: Any) -> None:
    memory.messages.add(
        thread_id="t",
        role="tool",
        content=[{"type": "tool_result", "text": "Use port 6380.", "name": "WebFetch"}],
    )
    files = MemoryFiles(memory, "s1", thread_id="t")
    files.create(PATH, NOTES)
    assert {each.tier for each in memory.memories.list()} == {"quarantined"}
    assert f"     4\t- {REDIS} [not confirmed; from the web]" in files.view(PATH)
    files.str_replace(PATH, "6380", "6381")
    assert "[not confirmed" not in files.files()[PATH]


def test_deleting_and_renaming_take_the_memories_along(memory: Any, files: MemoryFiles) -> None:
    files.create(PATH, NOTES)
    files.create("/memories/other.md", f"- {REDIS}\n")
    files.rename("/memories/notes", "/memories/archive/2026")
    assert list(files.files()) == ["/memories/archive/2026/build.md", "/memories/other.md"]
    assert contents(memory) == {PNPM, REDIS}
    files.delete("/memories/archive")
    # The other file says it still.
    assert contents(memory) == {REDIS}
    assert files.files() == {"/memories/other.md": f"- {REDIS}\n"}


def test_line_ends_are_kept(files: MemoryFiles) -> None:
    text = "line1\r\nline2\r\nline3\r\n"
    files.create("/memories/crlf.txt", text)
    assert files.view("/memories/crlf.txt").endswith(
        "     1\tline1\r\n     2\tline2\r\n     3\tline3\r\n     4\t"
    )
    files.str_replace("/memories/crlf.txt", "line2", "LINE2")
    assert files.files()["/memories/crlf.txt"] == text.replace("line2", "LINE2")
    files.insert("/memories/crlf.txt", 1, "Inserted")
    assert files.files()["/memories/crlf.txt"] == "line1\r\nInserted\nLINE2\r\nline3\r\n"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "memories/x",
        "/memoriesx/y",
        "/memories/../etc/passwd",
        "/memories/a/../../b",
        "/memories/\0",
    ],
)
def test_a_path_outside_is_refused(files: MemoryFiles, path: str) -> None:
    for act in (
        lambda: files.create(path, "x"),
        lambda: files.view(path),
        lambda: files.delete(path),
        lambda: files.rename(path, "/memories/y"),
    ):
        with pytest.raises(ToolError, match=r"must start with /memories|would escape /memories"):
            act()


def test_a_file_is_no_folder_and_a_folder_no_file(files: MemoryFiles) -> None:
    files.create("/memories/a/b.md", "x")
    for act, words in (
        (lambda: files.create("/memories/a", "x"), "File /memories/a already exists"),
        (lambda: files.create("/memories", "x"), "File /memories already exists"),
        (lambda: files.create("/memories/a/b.md/c", "x"), "a/b.md is not a directory"),
        (lambda: files.insert("/memories/a", 0, "x"), "The path /memories/a is not a file."),
        (lambda: files.rename("/memories/a", "/memories/a/b.md"), "already exists"),
    ):
        with pytest.raises(ToolError, match=words):
            act()


def test_hidden_files_and_deep_ones_are_not_listed(files: MemoryFiles) -> None:
    for name in ("a/b/c/d.md", ".hidden/x.md", "a/.secret", "z.md"):
        files.create(f"/memories/{name}", "12345")
    assert files.view("/memories/").split("\n")[1:] == [
        "10B\t/memories/",
        "5B\t/memories//a/",
        "5B\t/memories//a/b/",
        "5B\t/memories//z.md",
    ]


def test_secrets_do_not_reach_the_store(memory: Any, files: MemoryFiles) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    files.create(PATH, f"The token of the bot is {key}.\n")
    assert key not in str(files.files())
    assert key not in str(contents(memory))


def test_files_are_there_in_the_next_process_and_not_in_another_project(
    files: MemoryFiles, open_again: Callable[..., Any]
) -> None:
    files.create(PATH, NOTES)
    other = open_again()
    assert MemoryFiles(other).files() == {PATH: NOTES}
    assert MemoryFiles(other.in_project("elsewhere")).files() == {}


def test_writers_of_one_file_lose_nothing(files: MemoryFiles, open_again: Any) -> None:
    files.create("/memories/list.md", "")

    def add(name: str) -> None:
        tree = MemoryFiles(open_again(), name)
        for number in range(4):
            tree.insert("/memories/list.md", 0, f"{name}{number}")

    workers = [threading.Thread(target=add, args=(name,)) for name in "ab"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    lines = files.files()["/memories/list.md"].split()
    assert sorted(lines) == [f"{name}{number}" for name in "ab" for number in range(4)]


def test_the_tools_answer_as_commands_and_off_the_event_loop(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = SmaraAsyncMemoryTool(memory)
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
    threads = watch_threads(memory, monkeypatch)

    async def act() -> Any:
        await tool.call({"command": "create", "path": PATH, "file_text": NOTES})
        return await tool.call({"command": "view", "path": PATH, "view_range": [3, 3]})

    shown = asyncio.run(act())
    assert shown == f"Here's the content of {PATH} with line numbers:\n     3\t- {PNPM}"
    assert threads
    assert threading.get_ident() not in threads


def test_trouble_with_the_store_is_told_to_the_model(
    memory: Any, caplog: pytest.LogCaptureFixture
) -> None:
    tool = SmaraMemoryTool(memory)
    tool.create(BetaMemoryTool20250818CreateCommand(command="create", path=PATH, file_text="Note."))
    memory.close()
    with (
        caplog.at_level(logging.WARNING, "smara"),
        pytest.raises(ToolError, match="Go on without it"),
    ):
        tool.view(BetaMemoryTool20250818ViewCommand(command="view", path=PATH))
    assert "adapter.failed" in caplog.text
