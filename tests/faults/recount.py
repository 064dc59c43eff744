"""Counting everything again: what a store says of itself against what is in it."""

from __future__ import annotations

from collections.abc import Mapping

from smara.core.escape import from_storable
from smara.core.text import analyze_chunks
from smara.database.database import Session
from smara.memory import Memory
from smara.messages.compaction import FOLD

INDEX_ROWS = {
    "sqlite": "SELECT count(*) FROM message_index_docsize WHERE id BETWEEN m.no << 16 AND (m.no "
    "<< 16) + 65535",
    "postgres": "SELECT count(*) FROM message_index i WHERE i.no = m.no",
}


def problems(memory: Memory) -> list[str]:
    """Everything that does not add up; empty for a store that is whole."""
    found = memory.internals.database.integrity() + memory.internals.index.problems(deep=True)
    with memory._rooms.database.snapshot() as session:
        found += (
            _sequences(session)
            + _index(session, memory._rooms.database.kind)
            + _compactions(session)
        )
    return found


def contents(memory: Memory) -> dict[str, str]:
    """The text of every message that has a client id."""
    return {
        message.client_id: message.raw_content
        for thread in memory.threads.list()
        for message in memory.messages.list(thread_id=thread.id)
        if message.client_id is not None
    }


def lost(memory: Memory, acknowledged: Mapping[str, str]) -> list[str]:
    """The acknowledged messages that are not there, or not as they were."""
    stored = contents(memory)
    return [client_id for client_id, text in acknowledged.items() if stored.get(client_id) != text]


def _sequences(session: Session) -> list[str]:
    rows = session.all(
        "SELECT t.id, t.last_seq, t.tokens, count(m.no), count(DISTINCT m.seq), "
        "coalesce(min(m.seq), 1),"
        " coalesce(max(m.seq), 0), coalesce(sum(m.token_count), 0)"
        " FROM threads t LEFT JOIN messages m ON m.thread_no = t.no GROUP BY t.no, t.id, "
        "t.last_seq, t.tokens"
    )
    return [
        f"thread {row[0]}: says {row[1]} messages and {row[2]} tokens; has {row[3:]}"
        for row in rows
        if not (row[1] == row[3] == row[4] == row[6] and row[5] == 1 and row[2] == row[7])
    ]


def _index(session: Session, kind: str) -> list[str]:
    found = []
    expected: dict[int, list[int]] = {}
    for no, thread_no, raw, rows in session.all(
        f"SELECT m.no, m.thread_no, m.raw_content, ({INDEX_ROWS[kind]}) FROM messages m"
    ):
        chunks = analyze_chunks(from_storable(raw))
        if rows != len(chunks):
            found.append(f"message {no}: {rows} rows in the index instead of {len(chunks)}")
        counted = expected.setdefault(thread_no, [0, 0])
        counted[0] += len(chunks)
        counted[1] += sum(terms.length for terms in chunks)
    for no, rows, terms in session.all("SELECT no, index_rows, index_terms FROM threads"):
        if [rows, terms] != expected.get(no, [0, 0]):
            found.append(
                f"thread {no}: says {rows} rows and {terms} terms of index; has {expected.get(no)}"
            )
    if kind == "sqlite":
        state = session.one(
            "SELECT rows, (SELECT count(*) FROM message_index_docsize) FROM index_state"
        )
        if state is None or state[0] != state[1]:
            found.append(
                f"index_state says {state and state[0]} rows, there are {state and state[1]}"
            )
    return found


def _compactions(session: Session) -> list[str]:
    """A compaction is whole or not there: its record, its messages, for level 2 its three children
    side by side.
    """
    rows = session.all(
        "SELECT c.no, c.thread_no, c.level, c.start_seq, c.end_seq, c.message_count,"
        " (SELECT count(*) FROM messages m WHERE m.thread_no = c.thread_no AND m.seq BETWEEN "
        "c.start_seq AND c.end_seq)"
        " FROM compactions c WHERE c.undone_at IS NULL AND c.parent_no IS NULL ORDER BY "
        "c.thread_no, c.start_seq"
    )
    found = []
    reached: dict[int, int] = {}
    for no, thread_no, level, start_seq, end_seq, message_count, messages in rows:
        if not message_count == messages == end_seq - start_seq + 1:
            found.append(
                f"compaction {no} stands for {message_count} messages; there are {messages}"
            )
        if start_seq <= reached.get(thread_no, 0):
            found.append(f"compaction {no} overlaps the one before it")
        reached[thread_no] = end_seq
        children = session.all(
            "SELECT start_seq, end_seq FROM compactions WHERE parent_no = ? ORDER BY start_seq",
            (no,),
        )
        covered = [seq for first, last in children for seq in range(first, last + 1)]
        if len(children) != (FOLD if level == 2 else 0) or (
            level == 2 and covered != list(range(start_seq, end_seq + 1))
        ):
            found.append(f"compaction {no} of level {level} has the children {children}")
    orphans = session.one(
        "SELECT count(*) FROM compactions c WHERE c.parent_no IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM compactions p WHERE p.no = c.parent_no AND p.level = 2 AND p.undone_at "
        "IS NULL)"
    )
    if orphans and orphans[0]:
        found.append(f"{orphans[0]} compactions are folded into one that is not in force")
    return found
