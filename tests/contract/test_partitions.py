"""The text indexes of PostgreSQL are divided by project: others cost a search nothing."""

from __future__ import annotations

from typing import Any

import pytest

from smara.database.fulltext import Within
from smara.meaning.store import VectorStore
from tests.contract.conftest import Place

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.parametrize("place", ["postgres"], indirect=True),
    pytest.mark.usefixtures("uuids"),
]
_LOCKED = (
    "SELECT c.relname FROM pg_locks l JOIN pg_class c ON c.oid = l.relation"
    " WHERE l.pid = pg_backend_pid() AND c.relispartition AND c.relkind = 'r'"
)


@pytest.fixture
def projects(place: Place) -> list[Any]:
    """Twenty projects that speak of the same things."""
    memories = [place.open(project=f"p{number}") for number in range(20)]
    for number, memory in enumerate(memories):
        memory.messages.add(thread_id="t", role="user", content=f"the walrus sleeps {number}")
        memory.tasks.add(f"wake the walrus {number}")
    return memories


def test_a_look_for_words_locks_one_partition_however_many_projects_there_are(
    projects: list[Any],
) -> None:
    rooms = projects[3]._rooms
    database, no = rooms.database, rooms.scope.project_no
    with database.read() as session:
        rows = database.fulltext.match(session, ["walrus"], Within(no), 50)
        database.fulltext.texts(session, rows, no)
        found = database.records.match(session, "walrus", no, "task", 50)
        database.records.texts(session, found, no)
        database.words.containing(session, no, "alru", 5)
        locked = sorted(row[0].rstrip("0123456789") for row in session.all(_LOCKED))
    assert (len(rows), len(found)) == (1, 1)
    assert locked == ["message_index_", "record_index_", "words_"]


def test_a_look_at_vectors_locks_one_partition(projects: list[Any]) -> None:
    memory = projects[3]
    memory.embeddings.embed_pending()
    rooms = memory._rooms
    database, store = rooms.database, VectorStore(rooms.database, rooms.scope)
    with database.read() as session:
        shelf = store.shelf(session, store.spaces(session)[0].no, "message")
        rows, _ = database.vectors.scan(session, shelf)
        assert len(database.vectors.by_rows(session, shelf, rows.tolist())) == 1
        locked = [row[0].rstrip("0123456789") for row in session.all(_LOCKED)]
    assert locked == ["vectors_"]


def test_projects_of_one_partition_have_lists_of_their_own(projects: list[Any]) -> None:
    """Twenty projects share sixteen partitions; the word alone finds no row of another."""
    with projects[0]._rooms.database.read() as session:
        counts = [
            session.one(
                "SELECT count(*) FROM message_index WHERE terms @@ quote_literal(?)::tsquery",
                (f"{memory._rooms.scope.project_no}:walrus",),
            )
            for memory in projects
        ]
    assert counts == [(1,)] * 20


def test_twenty_projects_each_find_their_own(projects: list[Any]) -> None:
    for number, memory in enumerate(projects):
        hits = [hit for hit in memory.search("walrus", limit=50) if hit.source == "raw"]
        assert [hit.content.split()[-1] for hit in hits] == [str(number)]
