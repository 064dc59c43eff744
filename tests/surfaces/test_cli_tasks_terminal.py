"""Tasks on a terminal: marks, bars and trees, at most as wide as it is, and never obeying what a
task says.
"""

from __future__ import annotations

import os
import subprocess

import pytest

import smara as library
from smara.surfaces.cli.render import cells, cut
from tests.surfaces.shell import _read_all, command, environment, on_terminal, plain, smara
from tests.surfaces.test_terminal import HOSTILE, OURS, controls

LONG = (
    "日本語のタイトルがとても長いときにも一行に収まることを確認する、本当にとても長いタイトルです"
    * 2
)


def seen(*arguments: str, columns: int = 80, **env: str) -> list[str]:
    said = on_terminal("tasks", *arguments, columns=columns, env=env)
    assert said.code == 0, said.out
    return plain(said.out).splitlines()


def test_list_has_a_line_for_each_task_and_says_what_the_marks_mean(store):
    assert seen("list", "--all") == [
        "○ t-sign   P1 feature Sign outgoing webhooks  #security",
        "⊘ t-docs   P2 chore   Document the headers",
        "⊘ t-hooks  P3 epic    Webhooks",
        "✓ t-old    P2 task    Choose a queue",
        "",
        "○ open  ◐ in progress  ⊘ blocked  ✓ closed",
    ]


def test_ready_says_how_many_are_ready_and_blocked(store):
    assert seen("ready") == [
        "○ t-sign  P1 feature Sign outgoing webhooks  #security",
        "",
        "1 ready, 2 blocked, 0 in progress. `smara tasks claim --next` claims the first.",
    ]


def test_card_shows_what_stands_around_a_task(store):
    smara("tasks", "claim", "t-sign", "--session", "s-1", "--actor", "claude", "--thread", "login")
    smara("tasks", "link", "t-sign", "login:1")
    card = seen("show", "t-sign")
    assert card[0] == "◐ t-sign  Sign outgoing webhooks"
    assert card[1] == "  P1 feature · in progress · @claude · session s-1 · #security"
    text = "\n".join(card)
    for words in (
        "With HMAC",
        "Blocks\n    ⊘ t-docs",
        "Part of\n    ⊘ t-hooks",
        "user · login:1",
        "reference",
    ):
        assert words in text


def test_epic_shows_its_progress(store):
    smara("tasks", "close", "t-sign", "--summary", "Done")
    card = "\n".join(seen("show", "t-hooks"))
    assert "Children  ██████░░░░░░ 1 of 2 (50 %)\n    ✓ t-sign" in card


def test_closed_task_shows_its_summary(store):
    assert "  Summary\n    PostgreSQL it is" in "\n".join(seen("show", "t-old"))


def test_tree_is_drawn(store):
    assert seen("tree")[:4] == [
        "⊘ t-hooks  Webhooks  0/2",
        "├─ ○ t-sign  Sign outgoing webhooks",
        "└─ ⊘ t-docs  Document the headers",
        "   └─ needs ○ t-sign  Sign outgoing webhooks",
    ]


def test_critical_path_is_numbered(store):
    assert [line[:12] for line in seen("tree", "--critical")[:3]] == [
        " 1. ○ t-sign",
        " 2. ⊘ t-docs",
        " 3. ⊘ t-hook",
    ]


def test_changes_are_told_in_sentences(store):
    assert seen("claim", "t-sign") == [
        "Claimed t-sign: Sign outgoing webhooks. `smara tasks show t-sign` shows details."
    ]
    assert seen("close", "t-sign", "--summary", "HMAC") == [
        "Closed t-sign: Sign outgoing webhooks. Ready now: t-docs."
    ]
    assert seen("undo", "t-sign") == [
        "Reverted the last change of t-sign (status closed → in_progress; close reason",
        "completed → none; summary HMAC → none).",
    ]
    assert seen("dep", "add", "t-old", "t-sign") == ["t-old is now blocked until t-sign is closed."]


def test_empty_store_says_what_to_do(db):
    assert "smara tasks add" in seen("list")[0]
    assert seen("tree") == ["Nothing left to do. --all shows closed tasks."]


def test_summary_is_asked_for_where_somebody_can_answer(store):
    """The answer is typed ahead; the terminal keeps it until it is read."""
    ours, theirs = pytest.importorskip("pty").openpty()
    os.write(ours, b"HMAC in sign.py\n")
    call = command("tasks", "close", "t-sign")
    process = subprocess.Popen(call, stdin=theirs, stdout=theirs, stderr=theirs, env=environment())
    os.close(theirs)
    assert "What was done, where, and what was learned:" in _read_all(ours).decode()
    assert process.wait(600) == 0
    assert smara("tasks", "show", "t-sign", "--json").data["task"]["summary"] == "HMAC in sign.py"


@pytest.mark.parametrize("columns", [50, 80, 120])
def test_lines_fit_the_terminal_whatever_the_titles(db, columns):
    with library.open(db) as memory:
        epic = memory.tasks.add(LONG, labels=["a-rather-long-label", "another-one"], type="epic")
        child = memory.tasks.add("x" * 400, assignee="somebody-with-a-name", parent=epic.short_id)
        memory.tasks.add(
            "An ordinary title that is a little longer than the terminal is wide " * 2,
            depends_on=[child.id],
        )
    for call in (["list"], ["ready"], ["tree"], ["tree", "--critical"]):
        for line in seen(*call, columns=columns):
            assert cells(line) <= columns, line


@pytest.mark.parametrize("room", [1, 2, 5, 9])
def test_wide_characters_count_twice(room):
    assert cells("日本a") == 5
    assert cells(cut("日本語日本語", room)) <= room
    assert cut("abc", 3) == "abc"


def test_ascii_terminal_shows_plain_marks(store):
    lines = seen("tree", PYTHONIOENCODING="ascii")
    assert lines[:2] == ["! t-hooks  Webhooks  0/2", "|- o t-sign  Sign outgoing webhooks"]
    assert all(line.isascii() for line in lines)


@pytest.fixture
def hostile(db: str) -> str:
    with library.open(db) as memory:
        epic = memory.tasks.add(
            HOSTILE, description=HOSTILE, assignee="zoë", labels=[HOSTILE], type="epic"
        )
        memory.tasks.add(f"child {HOSTILE}", parent=epic.id)
        memory.messages.add(thread_id="bad", role="user", content=f"zanzibar {HOSTILE}")
        memory.links.add(epic.id, memory.messages.list(thread_id="bad")[0].id)
        memory.tasks.close(memory.tasks.add("other").id, HOSTILE)
        return epic.short_id


CALLS = [
    ["list", "--all"], ["show", "TASK"], ["tree"], ["history", "TASK"], ["search", "red",
        "--messages"],
    ["update", "TASK", "--priority", "0"], ["ready"], ["tree", "--critical"],
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
def test_hostile_text_is_not_obeyed(hostile, call):
    words = ["tasks", *(hostile if word == "TASK" else word for word in call)]
    piped = smara(*words)
    assert piped.code == 0
    assert controls(piped.out + piped.err) == set()
    shown = on_terminal(*words)
    assert shown.code == 0
    assert controls(OURS.sub("", shown.out).replace("\r\n", "\n")) == set()


def test_help_fits_eighty_columns():
    assert max(map(len, seen("--help"))) <= 80
    for name in ("add", "list", "update", "claim", "import"):
        assert max(map(len, seen(name, "--help"))) <= 80
