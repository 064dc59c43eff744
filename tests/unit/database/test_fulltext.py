"""The text index as the rooms see it: rows of terms, matched by term, inside a scope."""

from __future__ import annotations

import random
import string

import pytest

import smara
from smara.database.fulltext import IndexRow, Within, no_of, row_of, terms_of
from tests.rows import insert

# (record, prose, code, project, thread, resource, role)
RECORDS = [
    (1, "walrus sing", "", 1, 1, "ann", "user"),
    (2, "zebra", "parsehead pars head", 1, 1, "ann", "assistant"),
    (3, "walrus zebra", "", 1, 2, "bob", "user"),
    (4, "walrus", "", 2, 3, "ann", "user"),
    (5, "重跑 3.11.7 and or not", "", 1, 2, "bob", "tool"),
]


@pytest.fixture
def index(database):
    """The index, and the messages it speaks of."""
    with database.write() as session:
        for no in (1, 2):
            insert(database, session, "projects", no=no, id=f"p{no}")
        for no, project, resource in ((1, 1, "ann"), (2, 1, "bob"), (3, 2, "ann")):
            insert(
                database,
                session,
                "threads",
                no=no,
                project_no=project,
                id=f"t{no}",
                resource_id=resource,
            )
        for no, prose, code, project, thread, resource, role in RECORDS:
            insert(
                database,
                session,
                "messages",
                no=no,
                project_no=project,
                thread_no=thread,
                seq=no,
                id=f"m{no}",
                role=role,
            )
            database.fulltext.add(
                session,
                [
                    IndexRow(
                        row_of(no),
                        prose,
                        code,
                        project_no=project,
                        thread_no=thread,
                        resource_id=resource,
                        role=role,
                    )
                ],
            )
    return database


def found(index, terms, limit=10, prefix=False, **within):
    with index.read() as session:
        rows = index.fulltext.match(
            session, terms, Within(**{"project_no": 1, **within}), limit, prefix
        )
    return [no_of(row) for row in rows]


def test_rows_that_hold_a_term_come_newest_first(index):
    assert found(index, ["walrus"]) == [3, 1]
    assert found(index, ["walrus"], limit=1) == [3]


def test_all_terms_must_be_held(index):
    assert found(index, ["walrus", "zebra"]) == [3]


def test_terms_of_code_and_of_prose_are_found_alike(index):
    assert found(index, ["parsehead"]) == found(index, ["zebra", "head"]) == [2]


def test_a_project_is_a_wall(index):
    assert found(index, ["walrus"], project_no=2) == [4]
    assert found(index, ["walrus"], project_no=3) == []


def test_thread_resource_and_roles_narrow(index):
    assert found(index, ["walrus"], thread_no=1) == [1]
    assert found(index, ["walrus"], resource_id="bob") == [3]
    assert found(index, ["zebra"], roles=("assistant",)) == [2]
    assert found(index, ["zebra"], roles=("assistant", "user")) == [3, 2]


def test_words_that_are_operators_elsewhere_are_terms_here(index):
    for term in ("and", "or", "not", "3.11.7", "重跑"):
        assert found(index, [term]) == [5]


def test_the_last_term_may_be_a_beginning(index):
    assert found(index, ["wal"], prefix=True) == [3, 1]
    assert found(index, ["zebra", "wal"], prefix=True) == [3]
    assert found(index, ["wal"]) == []


def test_a_term_that_looks_like_a_scope_finds_nothing(index):
    for term in ("1", "p1", "ann", "user", "t1", "r-ann"):
        assert found(index, [term]) == []


def test_a_removed_record_is_not_found(index):
    with index.write() as session:
        index.fulltext.remove(session, 3)
    assert found(index, ["walrus"]) == [1]


def test_the_terms_of_rows_are_given_back(index):
    with index.read() as session:
        assert index.fulltext.texts(session, [row_of(2)]) == {
            row_of(2): ("zebra", "parsehead pars head")
        }


def test_a_sound_index_has_no_problems(index):
    with index.write() as session:
        assert index.fulltext.problems(session, deep=False) == []


def test_recreate_empties_the_index(index):
    with index.write() as session:
        index.fulltext.recreate(session, is_damaged=False)
    assert found(index, ["walrus"]) == []


def test_optimize_changes_no_answer(index):
    with index.write() as session:
        index.fulltext.optimize(session)
    assert found(index, ["walrus"]) == [3, 1]


@pytest.mark.parametrize("seed", range(4))
def test_optimize_leaves_no_term_of_a_removed_record(tmp_path, seed):
    """FTS5 may keep the terms of deleted rows when it merges all segments."""
    chance, there, gone = random.Random(seed), {}, []
    with smara.open(tmp_path / "terms.db", project="shop", embedder="off") as memory:
        database, project = memory.internals.database, memory.internals.scope.project_no
        for number in range(1, 61):
            for no in range(number * 8, number * 8 + chance.randrange(6)):
                there[no] = "".join(chance.choices(string.ascii_lowercase, k=20))
                text = " ".join(f"{there[no]}{each}" for each in range(chance.randrange(1, 40)))
                with database.write() as session:
                    database.records.put(session, "memory", project, [(no, terms_of("", text))])
            with database.write() as session:
                for no in chance.sample(sorted(there), min(len(there), chance.randrange(4))):
                    database.records.remove(session, "memory", [no])
                    gone.append(there.pop(no))
            with database.write() as session:
                database.records.optimize(session)
            with database.read() as session:
                rows = session.all("SELECT block FROM record_index_data")
            blocks = b"".join(row[0] for row in rows)
            assert [word for word in gone if word[4:16].encode() in blocks] == []
    assert gone


def test_a_record_may_have_many_rows():
    assert [no_of(row_of(3, chunk)) for chunk in (0, 1, 65_535)] == [3, 3, 3]
