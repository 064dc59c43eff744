"""Notes of agents are read as what they are, whatever they hold."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from smara.adapters.host import NoteForm
from smara.adapters.vendor_memories import read_note

FOLDER = Path(__file__).parents[2] / "fixtures" / "vendor_memories"


def test_the_first_form_of_the_handbook_is_read_too():
    text = (FOLDER / "codex" / "older.md").read_text().replace("ROOT", "/home/me/shop")
    parsed = read_note(
        "handbook", "MEMORY.md", text, belongs_here=lambda folder: folder == "/home/me/shop"
    )
    assert [(each.text.split(" ")[1], each.first_line) for each in parsed.statements] == [
        ("queue", 8)
    ]


LINES = [
    "---", "# Task Group: a", "applies_to: cwd=/r", "## User preferences",
    "- rule one is good [Task 1]", "**Why:** x",
    "type: feedback", "metadata:", "- [a](b.md)", "```", "## Gemini Added Memories", "| a | b |",
    "\x0c", "> quote",
    "1. do this", "2. do that", "", "   - nested thing here", "<tag>", "cwd=", "# ", "\ufeff",
]  # fmt: skip
lines = st.lists(st.sampled_from(LINES) | st.text(max_size=30), max_size=30)


@settings(max_examples=150)
@given(
    lines,
    st.sampled_from(get_args(NoteForm)),
    st.sampled_from(["MEMORY.md", "GEMINI.md", "x.md"]),
)
def test_whatever_a_note_holds_its_statements_lie_in_its_lines(some, form, name):
    text = "\n".join(some)
    parsed = read_note(form, name, text, belongs_here=lambda folder: folder == "/r")
    last = len(text.splitlines()) + len(text) + 1
    assert all(1 <= each.first_line <= each.last_line <= last for each in parsed.statements)
