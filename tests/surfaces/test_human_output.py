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
from collections.abc import Iterator
from pathlib import Path

import pytest

import smara as package
from smara.surfaces.cli.app import cli
from smara.surfaces.cli.render import cells
from tests.stores import put_file
from tests.surfaces.conftest import filled
from tests.surfaces.shell import plain, smara
from tests.surfaces.test_envelope import CALLS, leaves, words_of, write_files

GOLDEN = Path(__file__).parents[1] / "golden"
WIDTHS = (80, 140)
RAW = {"completion", "setup", "tasks export", "demo"}
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
    "commits show": "test_commits_command::test_show_gives_message_files_and_functions",
    "commits why": "test_commits_command::test_why_tells_the_reason_and_what_undid_it",
    "decisions update": "test_decisions_command::test_update_says_what_was_read_and_found",
    "decisions list": (
        "test_decisions_command::test_the_list_shows_what_is_in_force_and_all_on_request"
    ),
    "decisions search": (
        "test_decisions_command::test_search_finds_the_decision_a_task_is_about_and_nothing_else"
    ),
    "decisions show": (
        "test_decisions_command::test_show_gives_the_rule_the_words_and_what_was_given_up"
    ),
    "decisions why": "test_decisions_command::test_why_shows_the_chain_and_the_trust",
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
    "embeddings drop": "test_embeddings_command::test_dropping_says_how_many_are_gone",
    "behavior signals": (
        "test_behavior_command::test_signals_say_what_was_learned_and_with_all_why_the_rest_was_not"
    ),
    "receipts show": "test_receipts_command::test_on_a_terminal_they_are_a_table_with_a_sum",
}
"""Commands that need a story of their own, and the test that reads what they print."""


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
    for pattern, sign in _VOLATILE:
        text = re.sub(pattern, sign, text)
    path = GOLDEN / str(columns) / f"{call.replace(' ', '-')}.txt"
    if "WRITE_GOLDEN" in os.environ:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over():
    names = {f"{call.replace(' ', '-')}.txt" for call in CALLS}
    assert [{path.name for path in (GOLDEN / str(each)).iterdir()} - names for each in WIDTHS] == [
        set(),
        set(),
    ]


def test_the_output_of_every_command_is_read_by_a_test():
    assert leaves(cli) == set(CALLS) | set(ELSEWHERE)


@pytest.mark.parametrize("place", ELSEWHERE.values())
def test_a_test_that_is_named_here_exists(place):
    module, _, name = place.partition("::")
    assert hasattr(importlib.import_module(f"tests.surfaces.{module}"), name or "__doc__")
