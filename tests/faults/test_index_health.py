"""A damaged index is seen, named and made again from the messages; a lock is no damage.

What the quick look at every open sees: missing tables, lost records of the index about itself, a
number of rows other than was put in, a last row other than the newest message. What it cannot see
without reading everything: rows in the middle that are gone or wrong, bytes that flipped in pages
it does not touch. Those are seen by the deep check (`smara doctor`), and a search that meets them
says so.
"""

from __future__ import annotations

import random
import shutil
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

import smara
from smara.config import Settings
from smara.doctor import examine
from smara.errors import BusyError, CorruptError, DatabaseError
from tests.faults import recount, workers
from tests.faults.conftest import Start
from tests.faults.sizes import SEED, count
from tests.faults.workers import text_of

MESSAGES = 120


@pytest.fixture
def filled(store: str) -> str:
    """A store with messages, closed."""
    with smara.open(store, compact_every_messages=0) as memory:
        ids = [f"h{number}" for number in range(MESSAGES)]
        batch = [{"role": "user", "content": text_of(each), "client_id": each} for each in ids]
        memory.messages.add_many(thread_id="t", messages=batch)
    return store


def damage(path: str, *statements: str) -> None:
    """Change the file as no program of ours does."""
    connection = apsw.Connection(path)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    connection.execute("PRAGMA writable_schema = ON")
    for statement in statements:
        connection.execute(statement)
    connection.close()


def assert_whole(memory: smara.Memory) -> None:
    assert recount.contents(memory) == {
        f"h{number}": text_of(f"h{number}") for number in range(MESSAGES)
    }
    assert recount.problems(memory) == []
    assert "handle_h7(" in memory.search("handle_h7", limit=1)[0].content


DROPPED = "DROP TABLE {}"
SEEN_AT_OPEN = {
    "all of its data": ["DELETE FROM message_index_data"],
    "its averages": ["DELETE FROM message_index_data WHERE id = 1"],
    "its structure": ["DELETE FROM message_index_data WHERE id = 10"],
    "its segments": ["DELETE FROM message_index_data WHERE id > 10"],
    "the newest content": [
        "DELETE FROM message_index_content WHERE id = (SELECT max(id) FROM message_index_content)"
    ],
    "the newest size": [
        "DELETE FROM message_index_docsize WHERE id = (SELECT max(id) FROM message_index_docsize)"
    ],
    "every content": ["DELETE FROM message_index_content"],
    "every size": ["DELETE FROM message_index_docsize"],
    "its state": ["DELETE FROM index_state"],
    "a wrong state": ["UPDATE index_state SET rows = rows + 1 WHERE name = 'message_index'"],
    "the data table": [DROPPED.format("message_index_data")],
    "the content table": [DROPPED.format("message_index_content")],
    "the size table": [DROPPED.format("message_index_docsize")],
    "the idx table": [DROPPED.format("message_index_idx")],
    "the config table": [DROPPED.format("message_index_config")],
    "the index itself": [DROPPED.format("message_index")],
    "rows through fts5": ["DELETE FROM message_index WHERE rowid >> 16 > 100"],
    "all rows through fts5": ["DELETE FROM message_index"],
}


@pytest.mark.parametrize("lost", SEEN_AT_OPEN)
def test_damage_seen_at_open_is_repaired_from_the_messages(filled: str, lost: str) -> None:
    damage(filled, *SEEN_AT_OPEN[lost])
    with smara.open(filled) as memory:
        assert [warning for warning in memory.warnings if "rebuilt" in warning], "the user is told"
        assert_whole(memory)
    with smara.open(filled) as memory:
        assert memory.warnings == []


SEEN_BY_DOCTOR = {
    "a content in the middle": ["DELETE FROM message_index_content WHERE id >> 16 = 50"],
    "a size in the middle": ["DELETE FROM message_index_docsize WHERE id >> 16 = 50"],
    "a changed content": [
        "UPDATE message_index_content SET c0 = 'other words' WHERE id >> 16 = 50"
    ],
    "a row through fts5, with the state": [
        "DELETE FROM message_index WHERE rowid >> 16 = 50",
        "UPDATE index_state SET rows = rows - 1 WHERE name = 'message_index'",
    ],
}


@pytest.mark.parametrize("lost", SEEN_BY_DOCTOR)
def test_damage_that_only_reading_everything_shows_is_named_and_repaired_by_the_doctor(
    filled: str, lost: str
) -> None:
    """The quick look at open is a few page reads and does not see these; the doctor does."""
    damage(filled, *SEEN_BY_DOCTOR[lost])
    with smara.open(filled) as memory:
        assert memory.warnings == []
    settings = Settings(db=filled)
    assert "search index" in [
        finding.check for finding in examine(settings) if finding.level == "problem"
    ]
    assert [finding.check for finding in examine(settings, fix=True) if finding.is_fixed] == [
        "search index"
    ]
    assert [finding for finding in examine(settings) if finding.level != "ok"] == []
    with smara.open(filled) as memory:
        assert memory.internals.index.problems(deep=True) == []
        assert {f"h{number}" for number in range(MESSAGES)} <= set(recount.contents(memory))


VOCABULARY = {
    "every word": ["DELETE FROM words"],
    "the trigrams' data": ["DELETE FROM word_trigrams_data"],
    "the trigrams' table": [DROPPED.format("word_trigrams_data")],
    "the trigrams": [DROPPED.format("word_trigrams")],
    "the words' table": [DROPPED.format("words")],
}


@pytest.mark.parametrize("lost", VOCABULARY)
def test_damaged_vocabulary_never_stops_a_search_and_is_repaired_by_the_doctor(
    filled: str, lost: str
) -> None:
    damage(filled, *VOCABULARY[lost])
    with smara.open(filled) as memory:
        memory.search("andle_h7")
        memory.messages.add(
            thread_id="t", role="user", content="a new_word_for_it", client_id="later"
        )
        assert "handle_h7(" in memory.search("handle_h7", limit=1)[0].content
    assert [
        finding for finding in examine(Settings(db=filled), fix=True) if finding.level == "problem"
    ] == []
    with smara.open(filled) as memory:
        assert "handle_h7(" in memory.search("andle_h7", limit=1)[0].content
        assert memory.complete("handle_h7") != []


def index_pages(path: str) -> list[tuple[int, int]]:
    """(offset, size) of the pages of the file that belong to the index."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = connection.execute(
            "SELECT pgoffset, pgsize FROM dbstat WHERE name GLOB 'message_index_*'"
        ).fetchall()
    except apsw.SQLError:
        rows = _pages_by_root(connection)
    finally:
        connection.close()
    return [(int(offset), int(size)) for offset, size in rows]


def _pages_by_root(connection: apsw.Connection) -> list[tuple[int, int]]:
    """Without the dbstat table: the root pages alone."""
    size = connection.pragma("page_size")
    roots = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name GLOB 'message_index_*' AND rootpage > 0"
    )
    return [((root - 1) * size, size) for (root,) in roots]


def test_flipped_bytes_in_the_blocks_of_the_index_are_seen_by_the_doctor_and_repaired(
    filled: str, tmp_path: Path, rng: random.Random
) -> None:
    """FTS5's own records are damaged, the tables that hold them are not."""
    for trial in range(count(6, 200)):
        path = shutil.copy(filled, tmp_path / "flipped.db")
        connection = apsw.Connection(str(path))
        segments = connection.execute(
            "SELECT id, block FROM message_index_data WHERE id > 10"
        ).fetchall()
        number, block = rng.choice(segments)
        flipped = bytearray(block)
        flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
        connection.execute(
            "UPDATE message_index_data SET block = ? WHERE id = ?", (bytes(flipped), number)
        )
        connection.close()
        if not _survives(str(path), f"trial {trial}, seed {SEED}"):
            # Some bits tell nothing (FTS5's own check does not see them either); then nothing may
            # be missing.
            with smara.open(path) as memory:
                for name in (f"handle_h{number}" for number in range(MESSAGES)):
                    assert f"{name}(" in memory.search(name, limit=1)[0].content, (
                        f"trial {trial}, seed {SEED}"
                    )


def flipped(original: bytes, pages: list[tuple[int, int]], path: Path, rng: random.Random) -> Path:
    """A copy of a store with some bits of these pages turned over."""
    image = bytearray(original)
    for _ in range(rng.randint(1, 64)):
        offset, size = rng.choice(pages)
        image[offset + rng.randrange(size)] ^= 1 << rng.randrange(8)
    path.write_bytes(image)
    path.chmod(0o600)
    return path


def test_flipped_bytes_in_the_pages_of_the_index_are_repaired(
    filled: str, tmp_path: Path, rng: random.Random
) -> None:
    """A typed error or an answer; the doctor sees what is broken; a rebuild brings everything
    back.
    """
    original = Path(filled).read_bytes()
    pages = index_pages(filled)
    for trial in range(count(6, 300)):
        path = flipped(original, pages, tmp_path / f"{trial}.db", rng=rng)
        _survives(str(path), f"trial {trial}, seed {SEED}")


def test_flipped_bytes_in_the_pages_of_the_index_never_touch_a_message(
    filled: str, tmp_path: Path, rng: random.Random
) -> None:
    """Whatever happens to the index and whatever is tried to mend it, the messages are in the file
    as they were.
    """
    original = Path(filled).read_bytes()
    pages = index_pages(filled)
    for trial in range(count(6, 300)):
        path = flipped(original, pages, tmp_path / f"{trial}.db", rng=rng)
        with suppress(Exception):
            examine(Settings(db=str(path)), fix=True)
        connection = apsw.Connection(str(path))
        stored = dict(connection.execute("SELECT client_id, raw_content FROM messages").fetchall())
        connection.close()
        assert stored == {f"h{number}": text_of(f"h{number}") for number in range(MESSAGES)}, (
            f"{trial}, seed {SEED}"
        )


def _survives(path: str, case: str) -> bool:
    """Whether the damage was seen; what a user would do then must bring everything back."""
    was_seen = False
    try:
        with smara.open(path) as memory:
            was_seen = bool(memory.warnings)
            answer = memory.search("handle_h7 zebrafinch")
            was_seen = was_seen or bool(answer.warnings)
    except DatabaseError:
        was_seen = True
    findings = examine(Settings(db=path))
    was_named = any(finding.level != "ok" for finding in findings)
    examine(Settings(db=path), fix=True)
    with smara.open(path) as memory:
        texts = {f"h{number}": text_of(f"h{number}") for number in range(MESSAGES)}
        assert recount.contents(memory) == texts, case
        assert memory.internals.index.problems(deep=True) == [], case
        assert "handle_h7(" in memory.search("handle_h7", limit=1)[0].content, case
    return was_seen or was_named


def test_search_that_meets_a_damaged_index_answers_from_the_newest_messages_and_says_so(
    filled: str,
) -> None:
    """Damaged while it is open: the check at open has passed already."""
    with smara.open(filled) as memory:
        assert memory.search("handle_h7").warnings == ()
        damage(
            filled, "UPDATE message_index_data SET block = zeroblob(length(block)) WHERE id > 10"
        )
        with smara.open(filled) as other:
            answer = other.search("handle_h7")
            assert "handle_h7(" in answer[0].content
    with smara.open(filled) as memory:
        memory.internals.index.rebuild()
        assert_whole(memory)


def test_first_openers_at_once_make_one_store(store: str, start: Start) -> None:
    for trial in range(count(3, 60)):
        path = f"{store}.{trial}"
        openers = [start(workers.open_first, path) for _ in range(3)]
        assert [opener.pipe.recv() for opener in openers] == ["ready"] * 3
        for opener in openers:
            opener.pipe.send("now")
        assert [opener.rest() for opener in openers] == [[("done", [])]] * 3
        with smara.open(path) as memory:
            assert memory.threads.get("t").message_count == 3
            assert recount.problems(memory) == []


def test_locked_store_is_no_damaged_store(filled: str, start: Start) -> None:
    """While another process writes: opening and searching work, a write says busy, nothing is
    rebuilt.
    """
    holder = start(workers.hold_the_lock, filled)
    assert holder.pipe.recv() == "ready"
    with smara.open(filled, busy_timeout_seconds=0.01) as memory:
        assert memory.warnings == []
        assert "handle_h7(" in memory.search("handle_h7", limit=1)[0].content
        with pytest.raises(BusyError):
            memory.messages.add(thread_id="t", role="user", content="later")
        with pytest.raises(BusyError):
            memory.internals.index.rebuild()
    holder.pipe.send("done")
    holder.rest()
    with smara.open(filled) as memory:
        assert memory.warnings == []
        assert_whole(memory)


def test_damaged_index_of_a_locked_store_is_reported_and_left_alone(
    filled: str, start: Start
) -> None:
    """The rebuild cannot be done now; it is not half done, and the next open does it."""
    damage(filled, "DELETE FROM message_index_docsize")
    connection = apsw.Connection(filled)
    connection.execute("BEGIN IMMEDIATE")
    with smara.open(filled, busy_timeout_seconds=0.01) as memory:
        assert "could not be rebuilt" in memory.warnings[0]
        assert len(memory.messages.list(thread_id="t")) == MESSAGES
    connection.execute("ROLLBACK")
    connection.close()
    with smara.open(filled) as memory:
        assert "was rebuilt" in memory.warnings[0]
        assert_whole(memory)


def test_damaged_messages_are_an_error_and_never_a_rebuild(filled: str) -> None:
    """Damage outside the index: nothing may be thrown away on account of it."""
    connection = apsw.Connection(filled, flags=apsw.SQLITE_OPEN_READONLY)
    size = connection.pragma("page_size")
    root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages'").get
    connection.close()
    with open(filled, "r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * 64)
    with pytest.raises(CorruptError), smara.open(filled) as memory:
        memory.messages.list(thread_id="t")
    findings = examine(Settings(db=filled), fix=True)
    assert any(finding.level == "problem" for finding in findings)


def test_a_message_appended_while_the_index_is_looked_at_is_no_damage(
    store: str, start: Start
) -> None:
    with smara.open(store) as memory:
        writer = start(workers.append_until_told, store)
        assert writer.pipe.recv() == "ready"
        found = [memory.internals.index.problems() for _ in range(count(300, 5_000))]
        writer.pipe.send("stop")
        assert writer.rest() == ["done"]
    assert found == [[]] * len(found)
