"""Append messages in one transaction: store, number and index them.

Either every message is stored or none is. One client id stands for one text, so repeating
an append stores nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from smara.core.escape import from_storable
from smara.core.ids import IdMaker
from smara.core.startup.record import dataclass, field
from smara.core.terms import pieces
from smara.core.text import Analysis, analyze_chunks, words
from smara.database.database import Session, marks, parts
from smara.database.fulltext import IndexRow, row_of
from smara.database.project_store import Tombstones
from smara.errors import ConflictError, InvalidInputError, NotFoundError
from smara.messages.models import Message
from smara.messages.parts import pointer_in, unpack
from smara.messages.prepare import PreparedMessage
from smara.messages.store import MessageStore

_MOST_MET = 300_000
_SLICE = 65_536
MOST_NEW = 50_000
"""A single append adds at most so many; a huge dump of random strings is not a vocabulary."""


class AppendResult(NamedTuple):
    """An append's messages in order, and the new ones."""

    messages: list[Message]
    fresh: list[Message]

    @property
    def stored(self) -> int:
        return len(self.fresh)

    @property
    def repeated(self) -> int:
        return len(self.messages) - len(self.fresh)


ActiveTask = Callable[[Session, str, str | None, int], str | None]
"""Which task a thread works on, by its metadata, the session that writes, and the time; see
``links.active``.
"""


@dataclass(eq=False)
class Appender:
    """Writes prepared messages into one project."""

    store: MessageStore
    new_id: IdMaker
    active_task: ActiveTask
    _met: set[str] = field(default_factory=set, init=False)
    """Words that are in the vocabulary of the store."""

    def append(
        self,
        thread_row: Sequence[Any],
        prepared: Sequence[PreparedMessage],
        now_ms: int,
        *,
        resource_id: str | None = None,
        may_differ: bool = False,
        session_id: str | None = None,
    ) -> AppendResult:
        """Append to the thread of ``thread_row``, created on first use.

        Args:
            thread_row: The row of a new thread; see ``Threads.row_for``.
            prepared: The messages.
            now_ms: The time of messages without one.
            resource_id: The resource that the thread must belong to, if any.
            may_differ: True to leave a message whose ``client_id`` is there as it is, whatever
                its text now.
            session_id: The session that writes.

        Raises:
            InvalidInputError: If the thread was erased after a message was said.
            ConflictError: If the thread belongs to another resource, or a ``client_id`` is there
                with another text; nothing is stored.
        """
        thread_id = thread_row[0]
        newest = max(now_ms if item.created_at is None else item.created_at for item in prepared)
        oldest = min(now_ms if item.created_at is None else item.created_at for item in prepared)
        with self.store.database.write() as session:
            stones = Tombstones(self.store.database, self.store.scope)
            if oldest <= stones.erased(session, "thread", [thread_id]).get(thread_id, oldest - 1):
                raise InvalidInputError(
                    f"Thread {thread_id!r} was erased; what was said before that is not stored"
                    " again."
                )
            locked = self.store.lock_thread(session, thread_id, newest)
            if locked is None:
                self.store.insert_thread(session, thread_row)
                locked = self.store.lock_thread(session, thread_id, newest)
            if locked is None:
                raise NotFoundError(
                    f"Thread {thread_id!r} vanished while it was written to. Try again."
                )
            thread_no, owner, last_seq, metadata = locked
            if resource_id is not None and resource_id != owner:
                raise ConflictError(
                    f"Thread {thread_id!r} belongs to resource {owner!r}, not "
                    f"{resource_id!r}; nothing was "
                    "stored. Leave resource_id out, or use another thread.",
                    thread_id=thread_id,
                )
            by_client = self._repeated(session, thread_no, prepared, may_differ=may_differ)
            task_id = self.active_task(session, metadata, session_id, now_ms)
            # A client id that comes twice in a batch is stored once.
            first_with = {item.client_id: at for at, item in reversed([*enumerate(prepared)])}
            fresh = [
                item
                for at, item in enumerate(prepared)
                if item.client_id is None
                or (item.client_id not in by_client and first_with[item.client_id] == at)
            ]
            if task_id is not None:
                fresh = [each if each.task_id else each._replace(task_id=task_id) for each in fresh]
            stored = self._insert(
                session, (thread_no, thread_id, owner), last_seq, fresh=fresh, now_ms=now_ms
            )
            met = self._add_words(session, fresh)
        # What was rolled back must be offered again, so words are met after the commit.
        if len(self._met) + len(met) > _MOST_MET:
            self._met = set()
        self._met |= met
        by_client.update((each.client_id, each) for each in stored if each.client_id is not None)
        without_id = (message for message in stored if message.client_id is None)
        return AppendResult(
            [
                next(without_id) if item.client_id is None else by_client[item.client_id]
                for item in prepared
            ],
            stored,
        )

    def reindex(self, session: Session, no: int, message: Message, packed: PreparedMessage) -> None:
        """Replace the index terms of a message that has grown."""
        thread_no = self.store.thread_no(session, message.thread_id) or 0
        before = analyze_chunks(message.raw_content)
        self.store.database.fulltext.remove(session, no)
        thread = (thread_no, message.thread_id, message.resource_id)
        self._index(session, thread, [(no, message.role, packed.chunks)])
        grown = (
            0,
            packed.token_count - message.token_count,
            len(packed.chunks) - len(before),
            packed.term_count - sum(terms.length for terms in before),
        )
        self.store.grow_thread(session, thread_no, grown)
        self._add_words(session, [packed])

    def _repeated(
        self,
        session: Session,
        thread_no: int,
        prepared: Sequence[PreparedMessage],
        may_differ: bool,
    ) -> dict[str | None, Message]:
        """Return the messages that are there already, by client id."""
        given = [item.client_id for item in prepared if item.client_id is not None]
        found: dict[str | None, Message] = {}
        for part in parts(list(dict.fromkeys(given))):
            rest = f" AND m.thread_no = ? AND m.client_id IN ({marks(len(part))})"
            rows = self.store.select(session, rest, (thread_no, *part))
            found.update((message.client_id, message) for _, message in rows)
        texts = {
            client_id: message.raw_content
            for client_id, message in found.items()
            if message.pointer is None
        }
        for item in prepared:
            if item.client_id is None or may_differ:
                continue
            text = from_storable(item.raw_content)
            if texts.setdefault(item.client_id, text) != text:
                raise ConflictError(
                    f"A message with client_id {item.client_id!r} is there already, with another "
                    "text. Use a new client_id; nothing was changed.",
                    client_id=item.client_id,
                )
        return found

    def _insert(
        self,
        session: Session,
        thread: tuple[int, str, str],
        last_seq: int,
        fresh: Sequence[PreparedMessage],
        now_ms: int,
    ) -> list[Message]:
        if not fresh:
            return []
        thread_no, thread_id, resource_id = thread
        numbers = self.store.next_numbers(session, len(fresh))
        messages: list[Message] = []
        rows: list[tuple[Any, ...]] = []
        for seq, (no, item) in enumerate(zip(numbers, fresh, strict=True), last_seq + 1):
            raw = from_storable(item.raw_content)
            message = Message(
                id=self.new_id(),
                thread_id=thread_id,
                resource_id=resource_id,
                seq=seq,
                role=item.role,
                raw_content=raw,
                parts=item.parts if item.layout is None else unpack(raw, item.layout),
                token_count=item.token_count,
                token_method=item.token_method,
                created_at=now_ms if item.created_at is None else item.created_at,
                client_id=item.client_id,
                task_id=item.task_id,
                metadata=json.loads(item.metadata) if item.metadata else {},
                pointer=pointer_in(item.withheld[1]) if item.withheld else None,
            )
            messages.append(message)
            content = (
                *(item.withheld or (item.raw_content, item.layout)),
                item.token_count,
                item.token_method,
            )
            rest = (item.term_count, item.client_id, item.task_id, message.created_at)
            rows.append((no, thread_no, seq, message.id, item.role, *content, *rest, item.metadata))
        session.run_many(
            self.store.sql(
                "INSERT INTO messages (project_no, no, thread_no, seq, id, role, raw_content, "
                "parts, token_count,"
                " token_method, term_count, client_id, task_id, created_at, metadata)"
                " VALUES (:project, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            ),
            rows,
        )
        records = [(no, item.role, item.chunks) for no, item in zip(numbers, fresh, strict=True)]
        self._index(session, thread, records)
        grown = (
            len(fresh),
            sum(item.token_count for item in fresh),
            sum(len(item.chunks) for item in fresh),
            sum(item.term_count for item in fresh),
        )
        self.store.grow_thread(session, thread_no, grown)
        return messages

    def _index(
        self,
        session: Session,
        thread: tuple[int, str, str],
        records: Iterable[tuple[int, str, Sequence[Analysis]]],
    ) -> None:
        """Index messages of a thread: number, role and terms of each."""
        self.store.database.fulltext.add(
            session,
            [
                IndexRow(
                    row_of(no, chunk),
                    terms.prose,
                    terms.code,
                    project_no=self.store.scope.project_no,
                    thread_no=thread[0],
                    resource_id=thread[2],
                    role=role,
                )
                for no, role, chunks in records
                for chunk, terms in enumerate(chunks)
            ],
        )

    def _add_words(self, session: Session, added: Sequence[PreparedMessage]) -> set[str]:
        """Add words that were not met before to the vocabulary; return them."""
        unmet: set[str] = set()
        for item in added:
            for piece in () if item.withheld else pieces(item.raw_content, _SLICE):
                unmet.update(piece.split())
            if len(unmet) > MOST_NEW:
                unmet -= self._met
            if len(unmet) > MOST_NEW:
                unmet = set(sorted(unmet)[:MOST_NEW])
                break
        unmet -= self._met
        # A word of plain letters that was met is in the vocabulary, whatever stood around it now.
        fresh = [
            word
            for word in words(" ".join(unmet))
            if not (word in self._met and word.isascii() and word.isalpha())
        ]
        if fresh:
            self.store.database.words.add(session, self.store.scope.project_no, fresh)
        return unmet.union(fresh)
