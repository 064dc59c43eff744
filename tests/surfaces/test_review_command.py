"""`smara review`: one key for each decision, evidence beside it, and an editor for many."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import smara as library
from smara.surfaces.terminal.keyboard import WindowsKeyboard
from tests.surfaces.shell import on_terminal, plain, smara

STATEMENTS = (
    "The parser reads tabs in all of its files",
    "Deploys to staging need the VPN to be up",
    "The queue drops messages of more than 1 MB",
)


@pytest.fixture
def waiting(db: str) -> list[str]:
    """Return the ids of three memories that wait for a person, in the order of their review."""
    for text in STATEMENTS:
        said = smara("memories", "add", text, "--type", "gotcha", "-e", "src/parse.py:3")
        assert said.code == 0
    return [each["id"] for each in smara("review", "--json").data["memories"]]


def states(ids: list[str]) -> list[str]:
    """Return what became of memories."""
    found = [smara("memories", "show", each, "--json").data for each in ids]
    return [
        "rejected" if not each["isActive"] else "confirmed" if each["isVerified"] else "waiting"
        for each in found
    ]


def test_one_key_accepts_rejects_and_skips(waiting):
    seen = plain(on_terminal("review", typed="ars").out)
    assert states(waiting) == ["confirmed", "rejected", "waiting"]
    assert "1 of 3" in seen
    assert "evidence" in seen
    assert "1 accepted, 1 rejected, 1 skipped; 1 left to review." in seen
    assert max(map(len, seen.splitlines())) <= 80


def test_a_review_counts_what_waits_beyond_its_limit(waiting):
    seen = plain(on_terminal("review", "--limit", "2", typed="q").out)
    assert "1 of 3" in seen
    assert "3 left to review" in seen


def test_undo_takes_the_last_decision_back_and_asks_again(waiting):
    seen = plain(on_terminal("review", typed="auraq").out)
    assert states(waiting) == ["rejected", "confirmed", "waiting"]
    assert "was accepted" in seen


def test_why_explains_and_asks_again_and_a_key_without_meaning_is_read_over(waiting):
    seen = plain(on_terminal("review", typed="xwaq").out)
    assert states(waiting) == ["confirmed", "waiting", "waiting"]
    assert "confidence" in seen


def test_an_edited_memory_is_accepted_in_the_new_words(waiting, tmp_path):
    editor = script(tmp_path, "printf 'The parser takes tabs' > \"$1\"")
    on_terminal("review", typed="eq", env={"EDITOR": editor, "VISUAL": editor})
    with library.open(os.environ["SMARA_DB"]) as memory:
        assert memory.memories.get(waiting[0]).content == "The parser takes tabs"
    assert states(waiting)[0] == "confirmed"


def test_an_editor_decides_on_many_at_once(waiting, tmp_path):
    words = (
        f"-e 's/^skip {waiting[0]}/accept {waiting[0]}/' -e 's/^skip {waiting[1]}/r {waiting[1]}/'"
    )
    editor = script(tmp_path, f'sed -i {words} "$1"')
    seen = plain(on_terminal("review", "--editor", env={"EDITOR": editor, "VISUAL": editor}).out)
    assert states(waiting) == ["confirmed", "rejected", "waiting"]
    assert "1 accepted, 1 rejected, 1 skipped" in seen


def test_a_line_that_cannot_be_read_decides_nothing(waiting, tmp_path):
    editor = script(
        tmp_path, f"sed -i -e 's/^skip {waiting[0]}/a {waiting[0]}/' -e '$s/^skip/perhaps/' \"$1\""
    )
    said = on_terminal("review", "--editor", env={"EDITOR": editor, "VISUAL": editor})
    assert said.code == 2
    assert "Nothing was decided" in plain(said.out)
    assert states(waiting) == ["waiting"] * 3


def test_a_pipe_lists_what_waits(waiting):
    assert {row[-1] for row in smara("review").rows} == set(STATEMENTS)


def script(folder: Path, text: str) -> str:
    """Return an editor that does what a line of shell says."""
    path = folder / "editor.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


class _Console:
    """The two functions of ``msvcrt`` that are used, over a list of keys."""

    def __init__(self, keys: str) -> None:
        self._keys = iter(keys)

    def getwch(self) -> str:
        return next(self._keys)


def test_a_windows_console_gives_keys_and_arrows_are_no_decision():
    keyboard = WindowsKeyboard(_Console("a\xe0Hr\x00;"))
    assert [keyboard.read() for _ in range(4)] == ["a", "\x1bH", "r", "\x1b;"]
    with pytest.raises(KeyboardInterrupt):
        WindowsKeyboard(_Console("\x03")).read()


def test_arrows_of_a_terminal_are_read_over(waiting):
    on_terminal("review", typed="\x1b[A\x1bOBaq")
    assert states(waiting) == ["confirmed", "waiting", "waiting"]
