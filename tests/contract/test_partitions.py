"""The large tables of PostgreSQL are divided by project: others cost a project nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from smara.commits.models import Commit
from smara.commits.store import CommitStore
from smara.database.fulltext import Within
from smara.database.partitions import DIVIDED
from smara.errors import DatabaseError, NotFoundError
from smara.meaning.store import VectorStore
from tests.contract.conftest import Place
from tests.rows import insert

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


def test_every_large_table_is_divided_with_the_project_in_every_key(projects: list[Any]) -> None:
    """Also what a distributed PostgreSQL wants of a table."""
    with projects[0]._rooms.database.read() as session:
        parts = session.all(
            "SELECT w.relname, count(*) FROM pg_inherits i JOIN pg_class w ON w.oid = i.inhparent"
            " WHERE w.relnamespace = current_schema()::regnamespace AND w.relkind = 'p' GROUP BY 1"
        )
        keys = session.all(
            "SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c"
            " ON c.oid = i.indrelid WHERE c.relkind = 'p' AND i.indisunique"
            " AND c.relnamespace = current_schema()::regnamespace"
        )
        to = session.all(
            "SELECT conrelid::regclass::text, pg_get_constraintdef(o.oid) FROM pg_constraint o"
            " JOIN pg_class c ON c.oid = o.confrelid WHERE o.contype = 'f' AND c.relkind = 'p'"
            " AND o.conparentid = 0 AND o.connamespace = current_schema()::regnamespace"
        )
    assert dict(parts) == dict.fromkeys(DIVIDED, 16)
    assert len(keys) > len(DIVIDED)
    assert all("project_no" in definition for (definition,) in keys)
    assert len(to) == 7
    assert all("project_no) REFERENCES" in definition for _, definition in to)


def test_a_row_names_no_row_of_another_project(projects: list[Any]) -> None:
    first, second = projects[0], projects[1]
    task = first.tasks.add("Link it")
    said = second.messages.list(thread_id="t")[0]
    with pytest.raises(NotFoundError):
        first.links.add(task.id, said.id)
    database = first._rooms.database
    wanted = "task_messages_message_no_project_no_fkey"
    with pytest.raises(DatabaseError, match=wanted), database.write() as session:
        session.run(
            "INSERT INTO task_messages (project_no, task_no, message_no, relation, created_at,"
            " created_by) SELECT t.project_no, t.no, m.no, 'output', 0, 'ann' FROM tasks t,"
            " messages m WHERE t.id = ? AND m.id = ?",
            (task.id, said.id),
        )


def test_an_entry_of_a_framework_forgets_its_message_and_not_its_project(
    projects: list[Any],
) -> None:
    rooms = projects[2]._rooms
    database, no = rooms.database, rooms.scope.project_no
    with database.write() as session:
        thread_no, message_no = session.one(
            "SELECT thread_no, no FROM messages WHERE project_no = ?", (no,)
        )
        mine = {"project_no": no, "id": "e"}
        insert(database, session, "framework_streams", **mine, no=1, thread_no=thread_no)
        entry = {**mine, "stream_no": 1, "message_no": message_no}
        insert(database, session, "framework_entries", **entry)
        session.run("DELETE FROM messages WHERE project_no = ?", (no,))
        entries = session.all("SELECT project_no, message_no FROM framework_entries")
    assert entries == [(no, None)]


@pytest.mark.parametrize("way", ["removed", "erased"])
def test_no_file_of_a_commit_stays_without_it(projects: list[Any], way: str) -> None:
    """No key says so: files are removed by whoever removes their commit."""
    for memory in projects[:2]:
        store = CommitStore(memory._rooms.database, memory._rooms.scope)
        commits = [
            Commit(f"{number:040x}", number, "ann", "Change it", files=("a.py", f"b{number}.py"))
            for number in range(4)
        ]
        with memory._rooms.database.write() as session:
            assert store.add(session, commits) == 4
            if way == "removed":
                store.remove(session, [each.sha for each in commits[:3]])
    if way == "erased":
        projects[0].privacy.erase(is_project=True)
    with projects[1]._rooms.database.read() as session:
        left = session.all("SELECT project_no, commit_no FROM commit_files")
        there = set(session.all("SELECT project_no, no FROM commits"))
    assert set(left) == there
    assert len(left) == (4 if way == "removed" else 8)


def test_the_page_about_scale_distributes_the_tables_that_are_divided(projects: list[Any]) -> None:
    """What it drops before leaves no foreign key of theirs, and a store that works."""
    page = (Path(__file__).parents[2] / "docs/reference/scale.md").read_text(encoding="utf-8")
    named = re.findall(r"create_distributed_table\('smara\.(\w+)', 'project_no'\)", page)
    assert tuple(named) == DIVIDED
    database = projects[0]._rooms.database
    drop = re.search(r"DO \$\$.*?END \$\$;", page, re.DOTALL)
    assert drop is not None
    with database.write() as session:
        session.run(drop[0].replace("'smara'", f"'{database.schema}'"))
        left = session.one(
            "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND confrelid <> 0 AND"
            " connamespace = current_schema()::regnamespace AND (conrelid IN (SELECT partrelid"
            " FROM pg_partitioned_table) OR confrelid IN (SELECT partrelid FROM"
            " pg_partitioned_table))"
        )
    assert left == (0,)
    projects[0].messages.add(thread_id="t", role="user", content="the walrus wakes")
    assert projects[0].privacy.erase(is_project=True).plan.total > 0
