"""The lines that people see: every command on a small story, at 80 and 140 columns.

`tests/golden/COLUMNS/COMMAND.txt` has what a command prints on a terminal. With the environment
variable ``WRITE_GOLDEN=1`` this test writes the files; ``git diff tests/golden`` shows what
changed. A command without a file must name the test that reads its output.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import smara as package
from smara.surfaces.cli.app import cli
from smara.surfaces.cli.render import cells
from tests.agent_events import Script
from tests.contract.test_commits import REASON, RETRY, Repository
from tests.contract.test_decisions import AMENDED, PARKING, say
from tests.stores import put_file
from tests.surfaces.conftest import filled
from tests.surfaces.shell import plain, smara
from tests.surfaces.test_envelope import CALLS, leaves, words_of, write_files

GOLDEN = Path(__file__).parents[1] / "golden"
WIDTHS = (80, 140)
RAW = {"completion", "man", "setup", "tasks export", "demo"}
"""Commands that print files, or a story with code in it: their lines are not ours to fold."""
_VOLATILE = [
    (re.escape(str(Path(package.__file__).parent)), "/site-packages/smara"),
    (r"/tmp/smara-\w{8}", "/tmp/smara-xxxxxxxx"),
    (r"(?<!\S)\d+\.\d+ (m?s)\b", r"N.NN \1"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d", "YYYY-MM-DD hh:mm"),
    (r"\b20\d\d-\d\d-\d\d\b", "YYYY-MM-DD"),
    (r"\bm-[a-z0-9]{4}\b", "m-xxxx"),
    (r"\bt-(?!sign|docs|hook)[a-z0-9]{4}\b", "t-xxxx"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
    (r"\b[0-9a-f]{9} “", "COMMIT “"),
    (r"[\w-]{43}", "KEY"),
    (r"[\d.,]+ [KM]iB", "N MiB"),
    (r"has schema \d+", "has schema N"),
    (r"[\d,]+ records\s+in\s+all", "N records in all"),
    (r"before-restore-\d+", "before-restore-N"),
    (r"\(Python [\d.]+, SQLite [\d.]+\)", "(Python N, SQLite N)"),
    (r"\b(sqlite|SQLite) 3[\d.]+", r"\1 N"),
]
"""What differs from run to run, and what stands for it."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder whose path is short and always of one length, with the store in it."""
    path = Path(tempfile.mkdtemp(prefix="smara-", dir="/tmp"))
    monkeypatch.setenv("SMARA_DB", str(path / "smara.db"))
    monkeypatch.setenv("SMARA_HOME", str(path / "home"))
    monkeypatch.setenv("SMARA_ACTOR", "ann")
    monkeypatch.chdir(path)
    (tmp_path / "smara").touch(0o755)  # hosts are told its name, not where this Python is
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    put_file(path / "smara.db", filled())
    with pytest.MonkeyPatch.context() as zone:
        zone.setenv("TZ", "UTC")
        time.tzset()
        yield path
    time.tzset()
    shutil.rmtree(path)


ELSEWHERE = {
    "commits update": "test_commits_command::test_update_says_how_many_commits_are_new",
    "commits list": (
        "test_commits_command::test_the_list_shows_the_newest_first_and_one_file_on_request"
    ),
    "decisions update": "test_decisions_command::test_update_says_what_was_read_and_found",
    "decisions list": (
        "test_decisions_command::test_the_list_shows_what_is_in_force_and_all_on_request"
    ),
    "decisions search": (
        "test_decisions_command::test_search_finds_the_decision_a_task_is_about_and_nothing_else"
    ),
    "backup": "test_privacy_commands::test_backup_and_restore_to_another_place",
    "restore": "test_privacy_commands::test_restore_says_where_the_former_store_is",
    "copy": "test_privacy_commands::test_copy_says_what_is_in_both_and_merges_the_second_time",
    "export": ("test_privacy_commands::test_export_as_text_goes_to_standard_output_or_a_file"),
    "erase": "test_privacy_commands::test_erase_shows_first_and_erases_with_yes",
    "mcp": "test_mcp_stdio",
    "serve": (
        "test_http_security"
        "::test_command_prints_an_address_for_a_browser_and_leaves_a_key_for_programs"
    ),
    "ui": "test_panel::test_the_command_opens_the_panel_in_the_browser",
}
"""Commands that need a story of their own, and the test that reads what they print."""


def _history(folder: Path) -> str:
    root = folder / "shop"
    root.mkdir()
    os.chdir(root)
    repository = Repository(root)
    first = repository.commit(REASON, retry__py=RETRY.format(7))
    repository.commit("perf: simplify", retry__py=RETRY.format(10))
    assert smara("commits", "update").code == 0
    return first


def _decisions(folder: Path) -> str:
    with package.open() as memory:
        say(memory, "garage", PARKING)
        say(memory, "council", AMENDED, day=40)
    assert smara("decisions", "update").code == 0
    return str(smara("decisions", "list", "--json").data[0]["shortId"])


def _sessions(folder: Path) -> str:
    with package.open(embedder="off") as memory:
        for number in range(2):
            script = Script(f"s{number}", 1_760_000_000_000 + number * 86_400_000)
            script.fail("npm test", "bash: npm: command not found").run("pnpm test", "12 passed")
            memory.behavior.observe_batch(script.edit("src/a/x.py").green().end().events)
            memory.behavior.finalize(f"s{number}")
    return "s1"


def _receipts(folder: Path) -> str:
    with package.open(embedder="off") as memory:
        text = "src/queue.py is drained with `drain_queue()` before its rules change"
        memory.memories.add(
            text, type="gotcha", source="user_taught", by="person", files=["src/queue.py"]
        )
        injection = memory.moments.after_tool("tuesday", "Read", {"file_path": "src/queue.py"})
        memory.moments.mark_delivered(injection.receipt_id)
        memory.moments.mark_used(injection.receipt_id, "the agent said so")
    return str(injection.receipt_id)


def _vectors(folder: Path) -> str:
    assert smara("embeddings", "run").code == 0
    return str(smara("embeddings", "status", "--json").data["spaces"][0]["model"])


STORIES: dict[str, tuple[Callable[[Path], str], list[str]]] = {
    "commits show": (_history, ["NAME"]),
    "commits why": (_history, ["retry.py"]),
    "commits list, with some": (_history, []),
    "why, with reasons": (_history, ["retry.py"]),
    "decisions show": (_decisions, ["NAME"]),
    "decisions why": (_decisions, ["NAME"]),
    "decisions list, with some": (_decisions, []),
    "behavior signals": (_sessions, ["NAME"]),
    "behavior sessions, with some": (_sessions, []),
    "receipts show": (_receipts, ["NAME"]),
    "embeddings drop": (_vectors, ["NAME"]),
    "setup, listed": (lambda folder: "", ["--list"]),
    "status, with retention": (lambda folder: "", ["--retention"]),
}
"""Commands that need a story of their own: what makes it, and the words after the command."""


def seen(call: str, folder: Path, columns: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a person sees of a command on a terminal."""
    monkeypatch.setenv("COLUMNS", str(columns))
    said = smara(*words_of(call, write_files(folder)), is_seen=True)
    assert said.code == 0, said.err
    return "".join(f"{line.rstrip()}\n" for line in plain(said.out).splitlines())


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("call", CALLS)
def test_people_see_these_lines(folder, call, columns, monkeypatch):
    text = seen(call, folder, columns, monkeypatch)
    longest = max((cells(line) for line in text.splitlines()), default=0)
    assert call in RAW or longest <= columns, text
    if call in ("backup", "export", "restore"):  # a size moves the end of a line
        text = " ".join(text.split()) + "\n"
    if call == "man":  # every option of every command: its beginning shows its form
        text = text.partition(".SS")[0]
    for pattern, sign in _VOLATILE:
        text = re.sub(pattern, sign, text)
    path = GOLDEN / str(columns) / f"{call.replace(' ', '-')}.txt"
    if "WRITE_GOLDEN" in os.environ:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", STORIES)
def test_people_see_these_lines_of_a_story(folder, name, columns, monkeypatch):
    make, more = STORIES[name]
    given = make(folder)
    monkeypatch.setenv("COLUMNS", str(columns))
    words = [*name.partition(",")[0].split(), *(given if each == "NAME" else each for each in more)]
    said = smara(*words, is_seen=True)
    assert said.code == 0, said.err
    text = "".join(f"{line.rstrip()}\n" for line in plain(said.out).splitlines())
    assert max(map(cells, text.splitlines())) <= columns, text
    for pattern, sign in [
        *_VOLATILE,
        (r"\b[0-9a-f]{9,40}\b", "012345678"),
        (r"\br-\w+", "r-x"),
        (r"\b\d+ (ms|tokens)\b", r"N \1"),
    ]:
        text = re.sub(pattern, sign, text)
    path = GOLDEN / str(columns) / f"{name.replace(',', '').replace(' ', '-')}.txt"
    if "WRITE_GOLDEN" in os.environ:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over():
    names = {f"{each.replace(',', '').replace(' ', '-')}.txt" for each in (*CALLS, *STORIES)}
    assert [{path.name for path in (GOLDEN / str(each)).iterdir()} - names for each in WIDTHS] == [
        set(),
        set(),
    ]


def test_the_output_of_every_command_is_read_by_a_test():
    assert leaves(cli) == set(CALLS) | set(ELSEWHERE) | (set(STORIES) & leaves(cli))


@pytest.mark.parametrize("place", ELSEWHERE.values())
def test_a_test_that_is_named_here_exists(place):
    module, _, name = place.partition("::")
    assert hasattr(importlib.import_module(f"tests.surfaces.{module}"), name or "__doc__")
