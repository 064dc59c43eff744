"""`smara help` shows the guide and the help of commands; `smara man` is a manual page."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from smara.surfaces.cli.app import GROUPS
from smara.surfaces.terminal.help import pages
from tests.surfaces.shell import on_terminal, plain, smara, spawn

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


def test_every_page_of_the_guide_is_a_topic():
    topics = smara("help", "--json").data["topics"]
    assert [each["name"] for each in topics] == sorted(path.stem for path in GUIDE.glob("*.md"))
    assert all(each["title"] for each in topics)


@pytest.mark.parametrize("columns", [80, 140])
@pytest.mark.parametrize("topic", ["why", "hosts", "tasks"])
def test_a_page_fits_the_terminal_and_has_its_words(topic, columns):
    seen = plain(on_terminal("help", topic, columns=columns).out)
    assert max(map(len, seen.splitlines())) <= columns
    assert "](" not in seen
    words = re.findall(r"[a-z]{5,}", (GUIDE / f"{topic}.md").read_text(encoding="utf-8"))[:200]
    shown = set(re.findall(r"[a-z]+", seen))
    assert len([word for word in words if word in shown]) > 0.9 * len(words)


def test_in_a_pipe_a_page_is_the_markdown_itself():
    assert smara("help", "why").out == (GUIDE / "why.md").read_text(encoding="utf-8")


def test_a_command_is_explained_and_an_unknown_word_gets_near_ones():
    assert smara("help", "tasks", "claim").out.startswith("Usage: smara tasks claim")
    said = smara("help", "taks")
    assert said.code == 3
    assert "Near it: tasks" in said.err


def test_the_manual_page_names_every_command_and_is_clean_for_man(tmp_path):
    page = smara("man").out
    for names in GROUPS.values():
        for name in names:
            assert f'.SS "smara {name}"' in page
    assert '.SS "smara tasks dep add"' in page
    man = shutil.which("man")
    if man is None:
        pytest.skip("there is no man here")
    (tmp_path / "smara.1").write_text(page)
    done = subprocess.run(
        [man, "--warnings=all", "-l", str(tmp_path / "smara.1")], capture_output=True, text=True
    )
    assert "SMARA(1)" in done.stdout
    assert [line for line in done.stderr.splitlines() if "cannot" not in line] == []


def test_pages_come_from_the_package_where_it_has_them():
    assert set(pages()) == {path.stem for path in GUIDE.glob("*.md")}


@pytest.mark.parametrize("words", [["man"], ["help", "hosts"], ["watch", "--seconds", "0"]])
def test_pages_are_printed_in_any_encoding(words, db):
    said = spawn(*words, env={"PYTHONIOENCODING": "ascii"})
    assert (said.code, said.err) == (0, "")
    assert said.out.isascii()
