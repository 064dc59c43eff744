"""An erase on PostgreSQL writes again where its project lies, and leaves the parts of others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from smara.database import vacuum
from smara.database.servers import split_schema
from smara.database.vacuum import write_each
from smara.errors import BusyError
from tests.contract.conftest import Place
from tests.contract.test_erased_bytes import files_with
from tests.contract.test_erasing import CANARY, say

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.parametrize("place", ["postgres"], indirect=True),
    pytest.mark.usefixtures("uuids"),
]
DAY = 86_400
_FILES = (
    "WITH parts AS (SELECT oid, relname, reltoastrelid FROM pg_class WHERE relkind = 'r'"
    " AND relispartition AND relnamespace = current_schema()::regnamespace)"
    " SELECT p.relname, c.relname, c.relfilenode::bigint FROM parts p JOIN pg_class c"
    " ON c.oid IN (p.oid, p.reltoastrelid) OR c.oid IN (SELECT indexrelid FROM pg_index"
    " WHERE indrelid IN (p.oid, p.reltoastrelid))"
)
_STATISTICS = (
    "SELECT tablename, attname, s::text FROM pg_stats s WHERE schemaname = current_schema()"
    " AND tablename ~ '_[0-9]+$'"
)


@pytest.fixture
def projects(place: Place) -> dict[int, Any]:
    """A project in each of some parts, with the same words in all, which the server counted."""
    found: dict[int, Any] = {}
    for number in range(9):
        memory = place.open(project=f"p{number}", embedder="off")
        for at in range(3):
            say(memory, f"The walrus {at} sleeps in the harbor of {number}")
        memory.memories.remember("Walruses sleep in harbors", type="gotcha")
        memory.tasks.add("Wake the walrus")
        found.setdefault(part_of(memory), memory)
    assert len(found) > 3
    run(memory, "ANALYZE")
    return found


def part_of(memory: Any) -> int:
    internals = memory.internals
    with internals.database.read() as session:
        return int(internals.database.fulltext.part(session, internals.scope.project_no))


def run(memory: Any, statement: str) -> None:
    with memory.internals.database.autocommit() as session:
        session.run(statement)


def look(memory: Any, part: int) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Return the files and the statistics of the other parts."""
    with memory.internals.database.read() as session:
        found = [session.all(_FILES), session.all(_STATISTICS)]
    files, statistics = (
        {tuple(row[:2]): row[2] for row in rows if not row[0].endswith(f"_{part}")}
        for rows in found
    )
    assert len(files) > 600
    assert len(statistics) > 20
    return files, statistics


def files_of_part(memory: Any, part: int) -> dict[str, int]:
    with memory.internals.database.read() as session:
        rows = session.all(_FILES)
    return {name: number for table, name, number in rows if table.endswith(f"_{part}")}


def change_often(memory: Any) -> None:
    """Let words in and take them out again, so that nothing but freed bytes holds them."""
    found = memory.memories.remember(f"{CANARY} pays late", type="gotcha", tags=[CANARY]).memory
    memory.memories.update(found.id, content="Customers pay late", tags=["late"], by="person")
    task = memory.tasks.add(f"Call {CANARY}", labels=[CANARY])
    memory.tasks.update(task.id, title="Call the customer")
    memory.threads.add("own", title=f"About {CANARY}", metadata={"note": CANARY})
    memory.threads.update("own", title="About nothing", metadata={})
    memory.working.put(f"# Page\n- {CANARY}", scope="resource", resource_id="default")
    memory.working.put("# Page\n- nothing", scope="resource", resource_id="default")


@pytest.mark.parametrize("is_vacuumed", [False, True], ids=["dead", "cleaned up"])
def test_an_erase_leaves_files_and_statistics_of_other_parts(
    projects: dict[int, Any], is_vacuumed: bool
) -> None:
    """1. Words stand in rows that were changed and removed. 2. Their project is erased."""
    part, memory = next(iter(projects.items()))
    other = projects[max(projects)]
    change_often(memory)
    say(memory, f"My neighbor {CANARY} wants a refund")
    if is_vacuumed:
        run(memory, "ANALYZE")
        run(memory, "VACUUM")
    assert files_with(memory, CANARY.encode())
    before, own = look(memory, part), files_of_part(memory, part)
    receipt = memory.privacy.erase(is_project=True)
    assert receipt.is_clean, receipt.traces
    assert look(other, part) == before
    after = files_of_part(other, part)
    assert {name for name, number in own.items() if after[name] != number} >= {
        f"messages_{part}", f"message_index_{part}", f"words_{part}", f"memories_{part}",
    }  # fmt: skip
    windows = {CANARY[at : at + 12].encode() for at in range(len(CANARY) - 11)}
    assert [files_with(other, window) for window in sorted(windows)] == [[]] * len(windows)
    assert other.search("walrus harbor").hits


def test_a_table_whose_pages_were_given_back_is_written_again(projects: dict[int, Any]) -> None:
    """Its indexes keep the values."""
    memory = projects[min(projects)]
    task = memory.tasks.add("Paint the door", labels=[CANARY])
    schema = memory.internals.database.schema
    run(memory, f"DELETE FROM {schema}.task_labels")
    run(memory, f"VACUUM {schema}.task_labels")
    with memory.internals.database.read() as session:
        assert session.one("SELECT pg_relation_size('task_labels')") == (0,)
    assert files_with(memory, CANARY.encode())
    memory.privacy.erase(tasks=[task.id])
    assert files_with(memory, CANARY.encode()) == []


def test_a_thread_is_erased_while_another_part_is_locked(
    projects: dict[int, Any], place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who works in another part waits for no erase, and no erase for them."""
    part, memory = next(iter(projects.items()))
    database = memory.internals.database
    begin = database._begin.replace("lock_timeout TO 30000", "lock_timeout TO 50")
    assert begin != database._begin
    monkeypatch.setattr(database, "_begin", begin)
    others = [
        f"{database.schema}.{table}_{other}"
        for other in projects
        for table in ("message_index", "record_index", "words", "commits")
        if other != part
    ]
    with psycopg.connect(split_schema(str(place.address))[0]) as writer:
        writer.execute(f"LOCK TABLE {', '.join(others)} IN ROW EXCLUSIVE MODE")
        assert memory.privacy.erase(threads=["t"]).is_clean
        writer.rollback()


def test_others_go_on_while_an_erase_waits_for_a_reader(
    projects: dict[int, Any], place: Place
) -> None:
    """1. A reader keeps its part. 2. An erase begins and waits for it. 3. Who writes to the part
    meanwhile does not wait behind the erase. 4. The reader ends, and the erase comes to its end.
    """
    part, memory = next(iter(projects.items()))
    url = split_schema(str(place.address))[0]
    table = f"{memory.internals.database.schema}.messages_{part}"
    with psycopg.connect(url) as reader, psycopg.connect(url, autocommit=True) as other:
        reader.execute(f"SELECT count(*) FROM {table}")
        erase = threading.Thread(target=memory.privacy.erase, kwargs={"threads": ["t"]})
        erase.start()
        waits = f"SELECT FROM pg_locks WHERE relation = '{table}'::regclass AND NOT granted"
        while other.execute(waits).fetchone() is None and erase.is_alive():
            pass
        assert erase.is_alive(), "it waits for the reader"
        # As long as many of its moments; less than it would wait in one go.
        other.execute("SET lock_timeout TO '10s'")
        for _ in range(3):
            with other.transaction():
                other.execute(f"LOCK TABLE {table} IN ROW EXCLUSIVE MODE")
        assert erase.is_alive()
        reader.rollback()
        erase.join()
    assert memory.privacy.problems() == []


class Watched:
    """A session whose statements are seen before they run."""

    def __init__(self, session: Any, see: Callable[[str], object] = str) -> None:
        self.statements: list[str] = []
        self._session, self._see = session, see

    def run(self, statement: str) -> int:
        self._note(statement)
        return int(self._session.run(statement))

    def one(self, statement: str, values: Any = ()) -> Any:
        self._note(statement)
        return self._session.one(statement, values)

    def _note(self, statement: str) -> None:
        self.statements.append(statement)
        self._see(statement)

    def count(self, start: str) -> int:
        return sum(each.startswith(start) for each in self.statements)


FILENODE = "SELECT pg_relation_filenode(?::text::regclass)"
HELD = "tables that another transaction holds"


def test_a_table_that_is_locked_at_the_moment_is_written_again_later(place: Place) -> None:
    """The server leaves it out and says nothing: as when its autovacuum begins just then."""
    memory = place.open(project="p", embedder="off")
    say(memory, "The walrus sleeps")
    database = memory.internals.database
    table = f"{database.schema}.threads"
    with (
        psycopg.connect(split_schema(str(place.address))[0]) as other,
        database.autocommit() as session,
    ):

        def lock_once(statement: str) -> None:
            if watched.count("VACUUM") == 1 and statement.startswith("VACUUM"):
                other.execute(f"LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE")
            elif "pg_sleep" in statement:
                other.rollback()

        watched: Any = Watched(session, lock_once)
        before = session.one(FILENODE, (table,))
        left = write_each(
            database.write, watched, database.schema, tables=["threads"], busy_ms=30_000
        )
        assert (left, watched.count("VACUUM")) == ([], 2)
        assert session.one(FILENODE, (table,)) != before


def test_an_erase_is_not_clean_while_a_table_was_left_out(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1. A reader begins just before a table is written. 2. The role may not read files, so that
    nothing but the server's word says what was written. 3. The reader ends.
    """
    memory = place.open(project="p", embedder="off")
    say(memory, f"My neighbor {CANARY} wants a refund")
    table = f"{memory.internals.database.schema}.messages_{part_of(memory)}"
    write_again = vacuum.write_again
    with (
        psycopg.connect(split_schema(str(place.address))[0]) as reader,
        monkeypatch.context() as patch,
    ):

        def write_late(session: Any, name: str) -> bool:
            if name == table:
                reader.execute(f"SELECT count(*) FROM {table}")
            return write_again(session, name)

        patch.setattr("smara.database.vacuum.write_again", write_late)
        patch.setattr("smara.privacy.probe.may_read_files", lambda session: False)
        patch.setattr(memory.internals.database, "_busy_ms", 500)
        receipt = memory.privacy.erase(threads=["t"])
        assert receipt.traces == (HELD,)
        assert memory.privacy.problems()
        assert not memory.privacy.finish_erase()
        assert files_with(memory, CANARY.encode())
    assert memory.privacy.finish_erase()
    assert memory.privacy.problems() == []
    assert files_with(memory, CANARY.encode()) == []


def test_an_erase_is_not_clean_while_an_older_transaction_sees_what_is_gone(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are copied into the new files. It uses none of the tables."""
    memory = place.open(project="p", embedder="off")
    say(memory, f"My neighbor {CANARY} wants a refund")
    with (
        psycopg.connect(split_schema(str(place.address))[0]) as reader,
        monkeypatch.context() as patch,
    ):
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        patch.setattr("smara.database.vacuum._MOST_WAITS", 3)
        patch.setattr("smara.privacy.probe.may_read_files", lambda session: False)
        assert memory.privacy.erase(threads=["t"]).traces == (HELD,)
        assert files_with(memory, CANARY.encode())
    assert memory.privacy.finish_erase()
    assert files_with(memory, CANARY.encode()) == []


def test_older_transactions_are_waited_for_once_in_a_run(place: Place) -> None:
    """For the tables and, of what is left of the time, for the statistics."""
    memory = place.open(project="p", embedder="off")
    with (
        psycopg.connect(split_schema(str(place.address))[0]) as reader,
        memory.internals.database.autocommit() as session,
    ):
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        say(memory, "It is older than this")
        watched: Any = Watched(session)
        waits = iter(range(3))
        assert not vacuum.wait_for_older(watched, waits)
        assert watched.count("SELECT pg_sleep") == 3
        assert not vacuum.wait_for_older(watched, waits)
        assert watched.count("SELECT pg_sleep") == 3
        reader.rollback()
        assert vacuum.wait_for_older(watched, iter(range(300)))


def test_a_table_in_use_does_not_keep_the_others_from_being_rewritten(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = place.open(project="p", embedder="off")
    say(memory, f"My neighbor {CANARY} wants a refund")
    part, database = part_of(memory), memory.internals.database
    monkeypatch.setattr(database, "_busy_ms", 500)
    before = files_of_part(memory, part)
    with psycopg.connect(split_schema(str(place.address))[0]) as reader:
        reader.execute(f"SELECT count(*) FROM {database.schema}.message_index_{part}")
        with pytest.raises(BusyError, match=rf"in use all the time: message_index_{part}\."):
            database.vacuum([memory.internals.scope.project_no])
    after = files_of_part(memory, part)
    assert after[f"messages_{part}"] != before[f"messages_{part}"]
    assert after[f"words_{part}"] != before[f"words_{part}"]
    assert after[f"message_index_{part}"] == before[f"message_index_{part}"]
    with database.read() as session:
        counted = "SELECT count(*) FROM pg_stats WHERE tablename = 'message_index_' || ?::text"
        assert session.one(counted, (part,)) != (0,), "it is not planned without statistics"


def test_many_tables_in_use_are_waited_for_no_longer_than_each_a_moment(place: Place) -> None:
    memory = place.open(project="p", embedder="off")
    say(memory, "The walrus sleeps")
    database, waits = memory.internals.database, 0
    tables = ["threads", "tasks", "memories", "sessions", "erasures"]

    @contextmanager
    def write() -> Iterator[Any]:
        nonlocal waits
        waits += 1
        with database.write() as session:
            yield session

    with (
        psycopg.connect(split_schema(str(place.address))[0]) as other,
        database.autocommit() as session,
    ):
        names = ", ".join(f"{database.schema}.{table}" for table in tables)
        other.execute(f"LOCK TABLE {names} IN ROW EXCLUSIVE MODE")
        # A round of five moments and a pause is 1.3 s: the second one is the last.
        left = write_each(write, session, database.schema, tables=tables, busy_ms=2_000)
    assert (left, waits) == (tables, 10)


def test_a_role_that_may_not_write_the_statistics_again_tries_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = place.open(project="p", embedder="off")
    monkeypatch.setattr("smara.database.vacuum._MOST_TRIES", 2)
    with (
        psycopg.connect(split_schema(str(place.address))[0]) as other,
        memory.internals.database.autocommit() as session,
    ):
        other.execute("CREATE ROLE plain_statistics")
        other.commit()
        try:
            session.run("SET ROLE plain_statistics")
            watched: Any = Watched(session)
            assert vacuum.write_statistics(watched, iter(()))
            assert watched.count("VACUUM") == 1
            session.run("RESET ROLE")
            other.execute("LOCK TABLE pg_catalog.pg_statistic IN SHARE UPDATE EXCLUSIVE MODE")
            owner: Any = Watched(session)
            assert not vacuum.write_statistics(owner, iter(range(300)))
            assert owner.count("VACUUM") == 2
        finally:
            other.rollback()
            other.execute("DROP ROLE plain_statistics")


def test_the_same_words_in_another_part_are_no_trace(projects: dict[int, Any]) -> None:
    """They stand in the statistics of both, which the server keeps in one file."""
    words = 'The "walrus" of the harbor \\ wakes up at nine'
    first, second = list(projects.values())[:2]
    for memory in (first, second):
        for thread in range(4):
            say(memory, words, f"same{thread}")
    run(first, "ANALYZE")
    part = part_of(first)
    before = look(first, part)
    receipt = first.privacy.erase(text=words)
    assert receipt.samples
    assert receipt.is_clean, receipt.traces
    assert look(first, part) == before
    assert second.messages.list(thread_id="same0")[0].raw_content == words


def test_an_unfinished_erase_is_finished_where_it_was(
    projects: dict[int, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    part, memory = next(iter(projects.items()))
    other = projects[max(projects)]
    change_often(memory)
    say(memory, f"My neighbor {CANARY} wants a refund")
    with monkeypatch.context() as patch:
        patch.setattr(type(memory.internals.database), "vacuum", lambda self, projects: None)
        assert memory.privacy.erase(is_project=True).traces
    before = look(other, part)
    assert other.privacy.problems()
    assert other.privacy.finish_erase()
    assert look(other, part) == before
    assert files_with(other, CANARY.encode()) == []
    assert other.privacy.problems() == []


def test_retention_writes_a_part_again_once_for_all_its_projects(place: Place, clock: Any) -> None:
    """1. Two projects of a part and one of another lose words. 2. Each part is written once."""
    found: dict[int, list[Any]] = {}
    while not any(len(each) == 2 for each in found.values()) or len(found) < 2:
        number = sum(map(len, found.values()))
        memory = place.open(project=f"p{number}", embedder="off", retention={"messages_days": 1})
        found.setdefault(part_of(memory), []).append(memory)
    (part, pair) = next(item for item in found.items() if len(item[1]) == 2)
    single = next(memories[0] for at, memories in found.items() if at != part)
    for memory in (*pair, single):
        say(memory, f"{CANARY} said this")
        say(memory, "And this stays a day", "later")
    clock.advance(2 * DAY)
    run(single, "ANALYZE")
    numbers = []
    for memory in (*pair, single):
        before, own = look(memory, part_of(memory)), files_of_part(memory, part_of(memory))
        memory.retention.run_due(is_patient=True)
        assert look(memory, part_of(memory)) == before
        numbers.append(files_of_part(memory, part_of(memory)) != own)
        clock.advance(60)
    assert numbers == [True, False, True]


def test_a_part_of_projects_that_stay_closed_is_written_again_by_another(
    place: Place, clock: Any
) -> None:
    """1. The part of a project is written again. 2. Within a week it loses more words, and is not
    opened again. 3. Later the worker of a project in another part looks.
    """
    closed: Any = None
    for number in range(40):
        memory = place.open(project=f"p{number}", embedder="off", retention={"messages_days": 1})
        closed = closed or memory
        if part_of(memory) != part_of(closed):
            break
    say(closed, "Words of the first day")
    clock.advance(2 * DAY)
    closed.retention.run_due(is_patient=True)
    say(closed, f"{CANARY} said this", "later")
    clock.advance(2 * DAY)
    closed.retention.run_due(is_patient=True)
    assert closed.threads.list() == []
    assert files_with(memory, CANARY.encode())
    closed.close()
    memory.retention.run_due(is_patient=True)
    assert files_with(memory, CANARY.encode()), "not yet"
    clock.advance(7 * DAY)
    memory.retention.run_due(is_patient=True)
    assert files_with(memory, CANARY.encode()) == []
