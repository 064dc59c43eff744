"""No command shows control, bidirectional or invisible characters; bombs stop at a limit."""

from __future__ import annotations

import gzip
import json
import re

import click
import pytest
import zstandard

import smara as library
from smara.core.extract import word_set
from smara.surfaces.cli.app import cli
from tests.surfaces.shell import smara

EVIL = (
    "EVILa\x1b]0;PWN\x07b\x1b[2Jd\x1b[8mhid\x9b31m e\u202egnirts\u202c f\u200bg\u2066h\x08\x7f end"
)
UNSEEN = re.compile(
    "\x1b\\]|\x1b\\[2J|\x1b\\[8m|[\x07\x08\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]"
)
READING = word_set(
    "list show status review audit history ready tree export preview map modules hotspots signals"
    " sessions habits receipts projects doctor blocked versions"
)
MORE = [
    ("search", "EVILa"), ("search", "EVILa", "--explain"), ("messages", "list", "--thread", "a"),
    ("threads", "show", "a"), ("tasks", "search", "EVILa"), ("memories", "search", "EVILa"),
    ("context", "preview", "a"), ("tasks", "export"),
]  # fmt: skip


def reading_commands() -> list[tuple[str, ...]]:
    """Every command that shows something and needs no argument, by its words."""
    found: list[tuple[str, ...]] = []

    def walk(group: click.Group, words: tuple[str, ...]) -> None:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                walk(command, (*words, name))
            elif name in READING and command and not any(each.required for each in command.params):
                found.append((*words, name))

    walk(cli, ())
    return found


@pytest.fixture
def hostile(db, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with library.open() as memory:
        memory.messages.add(thread_id="a", role="user", content=EVIL, metadata={"k": EVIL})
        memory.threads.update("a", title=EVIL)
        task = memory.tasks.add(EVIL, description=EVIL, metadata={"a": EVIL})
        memory.tasks.close(memory.tasks.add("real " + EVIL).id, EVIL)
        memory.tasks.claim(task.id)
        memory.working.put("# W\n" + EVIL)
    smara("remember", "Always use " + EVIL.replace("\x00", ""))


@pytest.mark.parametrize("is_seen", [False, True])
def test_no_command_shows_what_cannot_be_seen(hostile, is_seen):
    commands = reading_commands() + MORE
    assert len(commands) > 20
    shown = {" ".join(each): UNSEEN.findall((s := smara(*each, is_seen=is_seen)).out + s.err)
             for each in commands}  # fmt: skip
    assert {name: found for name, found in shown.items() if found} == {}


def test_an_export_to_standard_output_parses_to_the_very_text(hostile):
    titles = [json.loads(line)["title"] for line in smara("tasks", "export").out.splitlines()]
    assert EVIL in titles


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_bomb_stops_at_a_stated_limit_that_says_what_to_do(db, tmp_path, monkeypatch, pack):
    monkeypatch.setenv("SMARA_IMPORT_UNPACKED_MIB", "1")
    monkeypatch.setenv("SMARA_IMPORT_UNPACK_RATIO", "100")
    bomb = tmp_path / "bomb.jsonl"
    bomb.write_bytes(pack((b" " * 1023 + b"\n") * 8_192))
    done = smara("import", str(bomb), "--format", "jsonl")
    assert done.code != 0
    assert "unpacks to more than 100 times its size" in " ".join(done.err.split())
    assert "gunzip FILE" in done.err
    monkeypatch.setenv("SMARA_IMPORT_UNPACKED_MIB", "16")
    assert smara("import", str(bomb), "--format", "jsonl").code == 0


def test_a_small_bomb_stops_before_its_lines_take_minutes(db, tmp_path):
    bomb = tmp_path / "bomb.jsonl.gz"
    bomb.write_bytes(gzip.compress((b" " * (1 << 20) + b"\n") * 24))
    done = smara("import", str(bomb), "--format", "jsonl")
    assert "unpacks to more than 200 times its size" in " ".join(done.err.split())


def test_a_number_of_five_thousand_digits_is_named_as_such(db, tmp_path):
    file = tmp_path / "n.jsonl"
    file.write_text('{"thread": "t", "role": "user", "content": "x", "n": ' + "9" * 5_000 + "}")
    done = smara("import", str(file), "--format", "jsonl")
    assert "too many digits" in done.out + done.err
    assert "incomplete" not in done.out + done.err
