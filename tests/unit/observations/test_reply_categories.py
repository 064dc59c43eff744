"""A well-formed line of every category becomes the note it should."""

from __future__ import annotations

import pytest

from smara.observations.models import CATEGORIES
from smara.observations.reply.lines import category_of, subject_of
from tests.unit.observations.categories import CASES
from tests.unit.observations.replies import minute, only_note


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_line_of_each_category_becomes_the_right_note(case):
    note = only_note(f"Date: 2025-12-04\n* {case.line}")
    assert (note.category, note.priority) == (case.category, case.priority)
    assert (note.files, note.lines, note.refers_to) == (case.files, case.lines, case.refers_to)
    assert minute(note)[:10] == "2025-12-04"
    assert all(words in note.text for words in case.keeps)
    assert "(09:15)" not in note.text
    assert "🔴" not in note.text


def test_every_category_has_a_case():
    assert {case.category for case in CASES} == set(CATEGORIES)


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("The user requested a dark mode", "request"),
        ("User asked for help with regexes", "request"),
        ("User asked the agent to add logging", "request"),
        ("User wants the agent to stop adding comments", "request"),
        ("User told the assistant to use uv", "request"),
        ("User asked about pagination", "question"),
        ("User asked the agent whether it is done", "question"),
        ("User wonders if Redis is needed", "question"),
        ("User stated preference: tabs", "preference"),
        ("User likes short answers", "preference"),
        ("User said they always squash commits", "preference"),
        ("User said they moved to Oslo", "statement"),
        ("User said they use Fastify instead of Express", "change"),
        ("User no longer uses Express", "change"),
        ("User confirmed the plan", "decision"),
        ("User is waiting for the review", "blocker"),
        ("Assistant resolved the race", "fix"),
        ("Agent ran the unit tests: 3 failed", "test"),
        ("Agent could not reach the registry", "error"),
        ("Agent deployed to staging", "command"),
        ("Agent then carefully updated config.toml", "code"),
        ("Agent is investigating a leak", "finding"),
        ("Agent completed the migration", "completion"),
        ("Agent decided to use a queue", "decision"),
        ("ValueError: bad input", "error"),
        ("Root cause: stale cache", "finding"),
        ("Not found: any caller of parse()", "finding"),
        ("According to the docs, WAL needs shared memory", "finding"),
        ("Decision: keep SQLite", "decision"),
        ("The sky is blue", "note"),
        ("Coverage 81 %", "test"),
        ("", "note"),
    ],
)
def test_paraphrases_are_told_apart(line, category):
    assert category_of(line) == category


@pytest.mark.parametrize(
    ("line", "subject"),
    [
        ("User's lead", "user"),
        ("The assistant ran", "agent"),
        ("Claude said", "agent"),
        ("Users table", None),
        ("Tests", None),
        ("", None),
    ],
)
def test_subject_is_user_agent_or_neither(line, subject):
    assert subject_of(line) == subject
