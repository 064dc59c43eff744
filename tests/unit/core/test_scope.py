"""The wall: a statement without it is a bug, and ids are checked where they come in."""

from __future__ import annotations

import pytest

from smara.core.scope import MAX_ID_LENGTH, Scope, require_id, scoped_sql
from smara.errors import InvalidInputError

SCOPE = Scope(7, "alpha")


def test_the_wall_is_put_into_every_place_that_names_it():
    sql = scoped_sql(
        SCOPE,
        "SELECT 1 FROM a WHERE project_no = :project AND b IN (SELECT no FROM b WHERE project_no "
        "= :project)",
    )
    assert (
        sql
        == "SELECT 1 FROM a WHERE project_no = 7 AND b IN (SELECT no FROM b WHERE project_no = 7)"
    )


def test_a_statement_without_the_wall_is_refused():
    with pytest.raises(AssertionError, match="without a wall"):
        scoped_sql(SCOPE, "SELECT * FROM messages")


def test_a_project_number_that_is_no_number_is_refused():
    with pytest.raises(ValueError):
        scoped_sql(Scope("1 OR 1=1", "alpha"), "SELECT :project")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["a", "A b", "会话", "x" * MAX_ID_LENGTH, "a/b:c?d=%20", "é"])
def test_printable_ids_are_given_back_as_they_are(value):
    assert require_id(value, "thread_id") == value


@pytest.mark.parametrize(
    "value",
    ["", "  ", "\n", "a\tb", "a\x00", "\ud800", "x" * (MAX_ID_LENGTH + 1), None, 7, "a\u200b"],
)
def test_other_ids_are_refused_with_their_name(value):
    with pytest.raises(InvalidInputError, match="thread_id") as caught:
        require_id(value, "thread_id")
    assert caught.value.what == "thread_id"
