"""The vocabulary: words that start with, and words that contain, shortest first."""

from __future__ import annotations

import pytest

from smara.core.scope import Scope
from smara.database.fulltext import after, trigrams


@pytest.fixture
def projects(database):
    with database.write() as session:
        for no, name in ((1, "a"), (2, "b")):
            session.run(
                "INSERT INTO projects (no, id, name, created_at) VALUES (?, ?, ?, 1)",
                (no, name, name),
            )
    return Scope(1, "a"), Scope(2, "b")


@pytest.fixture
def vocabulary(database, projects):
    with database.write() as session:
        database.words.add(
            session, 1, ["refresh_tokens", "refresh", "fresh", "walrus", "50%_off", "école"]
        )
        database.words.add(session, 1, ["refresh", "walrus"])
        database.words.add(session, 2, ["refrain"])
    return database


def starting(database, prefix, project=1, limit=10):
    with database.read() as session:
        return database.words.starting(session, project, prefix, limit=limit)


def containing(database, fragment, project=1, limit=10):
    with database.read() as session:
        return database.words.containing(session, project, fragment, limit=limit)


def test_words_that_start_with_a_prefix_come_shortest_first(vocabulary):
    assert starting(vocabulary, "refr") == ["refresh", "refresh_tokens"]
    assert starting(vocabulary, "refr", limit=1) == ["refresh"]
    assert starting(vocabulary, "zzz") == []


def test_words_that_contain_a_fragment_come_shortest_first(vocabulary):
    assert containing(vocabulary, "fresh") == ["fresh", "refresh", "refresh_tokens"]
    assert containing(vocabulary, "sh_tok") == ["refresh_tokens"]


def test_words_of_another_project_are_not_seen(vocabulary):
    assert starting(vocabulary, "refr", project=2) == ["refrain"]
    assert containing(vocabulary, "fresh", project=2) == []


def test_signs_with_a_meaning_in_patterns_are_plain_here(vocabulary):
    assert starting(vocabulary, "50%") == containing(vocabulary, "0%_") == ["50%_off"]
    assert containing(vocabulary, "0__") == []


def test_recreate_empties_the_vocabulary(vocabulary):
    with vocabulary.write() as session:
        vocabulary.words.recreate(session, is_damaged=False)
    assert (starting(vocabulary, "refr"), containing(vocabulary, "fresh")) == ([], [])


def test_trigrams_are_distinct_runs_of_three():
    assert (trigrams("banana"), trigrams("ab")) == (["ban", "ana", "nan"], [])


@pytest.mark.parametrize("prefix", ["a", "az", "é", "\ud7ff", "\U0010ffff", "z\uffff"])
def test_the_end_of_a_range_lies_behind_every_word_of_it(prefix):
    assert prefix <= prefix + "z" < after(prefix)
