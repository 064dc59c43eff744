"""What the tests of observing share: an observer that does as it is told, and looks at what is
really stored.

``watch(memory, observer=…)`` puts the room together around observers of the test's own, in the
place of those that think; everything else is the real thing, on the real databases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from smara.observations.models import Note, ObservationDraft, ObserveRequest, ReflectRequest
from smara.observations.observations import Observations
from smara.testing import FakeClock

SMALL = {"observe_after_tokens": 1_000, "reflect_after_tokens": 400, "observe_timezone": "UTC"}
"""Settings with which a dozen messages are many."""


class Watcher:
    """An observer: one note for each message. It can fail, and do something while it thinks.

    ``errors`` are raised one after the other, one per call, before anything succeeds.
    """

    def __init__(
        self,
        errors: Sequence[BaseException] = (),
        meanwhile: Callable[[], object] | None = None,
        method: str = "watcher",
        text: str = "message {seq} says: {words}",
        **draft: Any,
    ) -> None:
        self.method = method
        self.requests: list[ObserveRequest] = []
        self._errors = list(errors)
        self._meanwhile = meanwhile
        self._text = text
        self._draft = draft

    @property
    def seen(self) -> list[tuple[str, int]]:
        """(thread, message) in the order in which they were looked at."""
        return [
            (message.thread_id, message.seq)
            for asked in self.requests
            for message in asked.messages
        ]

    def observe(self, request: ObserveRequest) -> ObservationDraft:
        self.requests.append(request)
        if self._meanwhile is not None:
            self._meanwhile()
        if self._errors:
            raise self._errors.pop(0)
        return ObservationDraft(
            tuple(self._note(message) for message in request.messages), **self._draft
        )

    def _note(self, message: Any) -> Note:
        words = message.raw_content[:40]
        text = self._text.format(seq=message.seq, words=words, whole=message.raw_content)
        return Note(
            "medium",
            "note",
            text,
            said_at=message.created_at,
            first_seq=message.seq,
            last_seq=message.seq,
        )


class Condenser:
    """A reflector: all notes become one short one; or it fails, or makes nothing smaller."""

    def __init__(
        self,
        errors: Sequence[BaseException] = (),
        meanwhile: Callable[[], object] | None = None,
        text: str = "much happened",
        is_smaller: bool = True,
        method: str = "condenser",
    ) -> None:
        self.method = method
        self.requests: list[ReflectRequest] = []
        self._errors = list(errors)
        self._meanwhile = meanwhile
        self._text = text
        self._is_smaller = is_smaller

    def reflect(self, request: ReflectRequest) -> ObservationDraft:
        self.requests.append(request)
        if self._meanwhile is not None:
            self._meanwhile()
        if self._errors:
            raise self._errors.pop(0)
        if not self._is_smaller:
            return ObservationDraft(tuple(request.notes))
        return ObservationDraft(
            (Note("high", "note", self._text, said_at=request.notes[-1].said_at),)
        )


def watch(
    memory: Any,
    observer: Any = None,
    reflector: Any = None,
    fallback: Any = None,
    reflects_without: Any = None,
    owner: str = "first",
) -> Observations:
    """The room of observations around the observers given; the memory uses it from now on."""
    for name in ("observations", "worker", "context", "observing"):
        memory._rooms.__dict__.pop(name, None)
    room: Observations = memory.observations
    _with(
        room._cycle,
        _owner=owner,
        _observer=observer or Watcher(),
        _fallback=fallback or Watcher(method="offline"),
    )
    _with(
        room._reflecting,
        _owner=owner,
        _reflector=reflector or Condenser(),
        _fallback=reflects_without or Condenser(method="offline"),
    )
    return room


def _with(thing: Any, **parts: Any) -> Any:
    """A thing with some of its parts exchanged, each of which must be there."""
    for name, part in parts.items():
        assert hasattr(thing, name)
        setattr(thing, name, part)
    return thing


def fill(
    memory: Any,
    count: int,
    thread_id: str = "t",
    words: str = "It matters a lot for the release. ",
    **given: Any,
) -> None:
    """Add ``count`` messages of about 85 tokens, ten seconds apart: a dozen of them make 1,000."""
    for _ in range(count):
        if isinstance(memory._rooms.project.clock, FakeClock):
            memory._rooms.project.clock.advance(10)
        number = (
            memory.threads.find(thread_id).message_count + 1
            if memory.threads.find(thread_id)
            else 1
        )
        role = "user" if number % 2 else "assistant"
        text = (
            f"{thread_id} number {number}: change src/file{number}.py so that "
            f"handle_{number}() is right. {words * 8}"
        )
        memory.messages.add(thread_id=thread_id, role=role, content=text, **given)


# What is stored, read past the room itself.


def batches(memory: Any) -> list[tuple[str, str, int, int, int]]:
    """(thread, state, first, last, tokens) of every batch, by thread and first message."""
    with memory._rooms.database.read() as session:
        rows = session.all(
            "SELECT t.id, b.state, b.first_seq, b.last_seq, b.message_tokens FROM "
            "observation_batches b"
            " JOIN threads t ON t.no = b.thread_no WHERE b.project_no = ? ORDER BY b.record_no, "
            "t.id, b.first_seq",
            (memory._rooms.scope.project_no,),
        )
    return [tuple(row) for row in rows]


def cursors(memory: Any) -> dict[str, tuple[int, int, int, int]]:
    """(observed message, its tokens, buffered message, its tokens) of each thread."""
    with memory._rooms.database.read() as session:
        rows = session.all(
            "SELECT t.id, c.observed_seq, c.observed_tokens, c.buffered_seq, c.buffered_tokens"
            " FROM observation_cursors c JOIN threads t ON t.no = c.thread_no WHERE c.project_no "
            "= ?",
            (memory._rooms.scope.project_no,),
        )
    return {row[0]: tuple(row[1:]) for row in rows}


def rows(memory: Any) -> dict[str, int]:
    """How many rows each table of observations has, the walls left out."""
    found = {}
    with memory._rooms.database.read() as session:
        for table in ("records", "cursors", "batches", "failures"):
            found[table] = int(session.one(f"SELECT count(*) FROM observation_{table}")[0])
        found["observations"] = int(session.one("SELECT count(*) FROM observations")[0])
    return found


def problems(memory: Any) -> list[str]:
    """What breaks the promise that every message up to the cursor is observed exactly once; for one
    record a thread.
    """
    found: list[str] = []
    stored = batches(memory)
    for thread, cursor in cursors(memory).items():
        mine = [batch[1:] for batch in stored if batch[0] == thread]
        messages = memory.messages.list(thread_id=thread, limit=10_000)
        tokens = {message.seq: message.token_count for message in messages}
        found += broken_promises(thread, mine, cursor, tokens)
    return found


def every_problem(memory: Any) -> list[str]:
    """The same for all projects of a store, read at once: there may be thousands."""
    with memory._rooms.database.read() as session:
        stored = session.all(
            "SELECT thread_no, state, first_seq, last_seq, message_tokens FROM observation_batches"
            " ORDER BY record_no, thread_no, first_seq"
        )
        reached = session.all(
            "SELECT thread_no, observed_seq, observed_tokens, buffered_seq, buffered_tokens"
            " FROM observation_cursors"
        )
        counted = session.all("SELECT thread_no, seq, token_count FROM messages")
    mine: dict[int, list[Any]] = {}
    for thread, *batch in stored:
        mine.setdefault(thread, []).append(tuple(batch))
    tokens: dict[int, dict[int, int]] = {}
    for thread, seq, count in counted:
        tokens.setdefault(thread, {})[seq] = count
    return [
        problem
        for thread, *cursor in reached
        for problem in broken_promises(
            f"thread {thread}", mine.get(thread, []), tuple(cursor), tokens.get(thread, {})
        )
    ]


def broken_promises(
    thread: str, mine: list[Any], cursor: tuple[int, ...], tokens: dict[int, int]
) -> list[str]:
    """What is wrong with one thread: its batches, its cursor, and the tokens of its messages."""
    found: list[str] = []
    observed, _, buffered, _ = cursor
    covered = [seq for batch in mine for seq in range(batch[1], batch[2] + 1)]
    if covered != list(range(1, max(observed, buffered) + 1)):
        found.append(
            f"{thread}: batches {[batch[:3] for batch in mine]}, cursor {observed} and {buffered}"
        )
    if any(one[0] == "buffered" and other[0] == "active" for one, other in pairwise(mine)):
        found.append(f"{thread}: active behind buffered")
    for what, seq, counted in (
        ("observed", observed, cursor[1]),
        ("buffered", buffered, cursor[3]),
    ):
        real = sum(count for each, count in tokens.items() if each <= seq)
        if real != counted:
            found.append(f"{thread}: {what} up to {seq} is {real} tokens, not {counted}")
    active = [batch for batch in mine if batch[0] == "active"]
    if (active[-1][2] if active else 0) != observed:
        found.append(f"{thread}: observed up to {observed}, but active batches are {active}")
    return found


def leases(memory: Any) -> list[tuple[str, str]]:
    """(name, owner) of the leases that are held."""
    with memory._rooms.database.read() as session:
        return [
            tuple(row)
            for row in session.all("SELECT name, owner FROM leases WHERE owner IS NOT NULL")
        ]
