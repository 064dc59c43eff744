"""Append messages in one transaction: store, number and index them.

Either every message is stored or none is. One client id stands for one text, so repeating
an append stores nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from smara.core.escape import from_storable
from smara.core.extract import pieces
from smara.core.ids import IdMaker
from smara.core.text import analyze_chunks, words
from smara.database.database import Session, parts
from smara.database.fulltext import IndexRow, row_of
from smara.errors import ConflictError, NotFoundError
from smara.messages.models import Message
from smara.messages.parts import unpack
from smara.messages.prepare import PreparedMessage
from smara.messages.store import MessageStore

_KEPT = 300_000
_SLICE = 65_536
MOST_NEW = 50_000
"""A single append adds at most so many; a huge dump of random strings is not a vocabulary."""


class Vocabulary:
    """The words of a store, remembered once met."""

    def __init__(self) -> None:
        self._met: set[str] = set()

    def unmet(self, texts: Iterable[str]) -> set[str]:
        """Return words of texts that were not met before."""
        found: set[str] = set()
        for text in texts:
            for piece in pieces(text, _SLICE):
                found.update(piece.split())
            if len(found) > MOST_NEW:
                found -= self._met
                if len(found) > MOST_NEW:
                    return set(sorted(found)[:MOST_NEW])
        return found - self._met

    def remember(self, met: set[str]) -> None:
        """Remember words after the commit.

        What was rolled back must be offered again.
        """
        if len(self._met) + len(met) > _KEPT:
            self._met = set()
        self._met |= met


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


class Appender:
    """Writes prepared messages into one project."""

    def __init__(self, store: MessageStore, new_id: IdMaker, active_task: ActiveTask) -> None:
        self._store = store
        self._new_id = new_id
        self._active_task = active_task
        self._vocabulary = Vocabulary()

    def append(
        self,
        thread_row: Sequence[Any],
        prepared: Sequence[PreparedMessage],
        now_ms: int,
        wanted_resource: str | None = None,
        may_differ: bool = False,
        session_id: str | None = None,
    ) -> AppendResult:
        """Append to the thread of ``thread_row``, created on first use.

        See ``Threads.row_for``.

        A ``client_id`` that is known already is not stored again; when its text differs,
        ``ConflictError``, unless ``may_differ``.
        """
        thread_id = thread_row[0]
        newest = max(now_ms if item.created_at is None else item.created_at for item in prepared)
        met: set[str] = set()
        with self._store.database.write() as session:
            thread_no, resource_id, last_seq, metadata = self._thread(session, thread_row, newest)
            if wanted_resource is not None and wanted_resource != resource_id:
                raise ConflictError(
                    f"Thread {thread_id!r} belongs to resource {resource_id!r}, not "
                    f"{wanted_resource!r}; nothing was "
                    "stored. Leave resource_id out, or use another thread.",
                    thread_id=thread_id,
                )
            known = self._repeated(session, thread_no, prepared, may_differ=may_differ)
            task_id = self._active_task(session, metadata, session_id, now_ms)
            fresh = _about(task_id, _first_of_each(prepared, known))
            messages = self._insert(
                session,
                thread_no,
                last_seq,
                thread_id=thread_id,
                resource_id=resource_id,
                fresh=fresh,
                now_ms=now_ms,
            )
            if fresh:
                met = self._add_words(session, fresh)
        self._vocabulary.remember(met)
        return AppendResult(_in_given_order(prepared, messages, known), messages)

    def reindex(self, session: Session, no: int, message: Message, packed: PreparedMessage) -> None:
        """Replace the index terms of a message that has grown."""
        thread_no = self._store.thread_no(session, message.thread_id) or 0
        fulltext = self._store.database.fulltext
        before = analyze_chunks(message.raw_content)
        fulltext.remove(session, no)
        fulltext.add(
            session,
            [
                IndexRow(
                    row_of(no, chunk),
                    terms.prose,
                    terms.code,
                    project_no=self._store.scope.project_no,
                    thread_no=thread_no,
                    resource_id=message.resource_id,
                    role=message.role,
                )
                for chunk, terms in enumerate(packed.chunks)
            ],
        )
        self._store.grow_thread(
            session,
            thread_no,
            (
                0,
                packed.token_count - message.token_count,
                len(packed.chunks) - len(before),
                packed.term_count - sum(terms.length for terms in before),
            ),
        )
        self._add_words(session, [packed])

    def _thread(
        self, session: Session, thread_row: Sequence[Any], said_at: int
    ) -> tuple[int, str, int, str]:
        locked = self._store.lock_thread(session, thread_row[0], said_at)
        if locked is None:
            self._store.insert_thread(session, thread_row)
            locked = self._store.lock_thread(session, thread_row[0], said_at)
        if locked is None:
            raise NotFoundError(
                f"Thread {thread_row[0]!r} vanished while it was written to. Try again."
            )
        return int(locked[0]), str(locked[1]), int(locked[2]), str(locked[3])

    def _repeated(
        self,
        session: Session,
        thread_no: int,
        prepared: Sequence[PreparedMessage],
        may_differ: bool,
    ) -> dict[str | None, Message]:
        given = list(
            dict.fromkeys(item.client_id for item in prepared if item.client_id is not None)
        )
        found: dict[str | None, Message] = {}
        for part in parts(given):
            found.update(self._store.by_client_ids(session, thread_no, part))
        if not may_differ:
            _refuse_other_texts(
                prepared, {key: message.raw_content for key, message in found.items()}
            )
        return found

    def _insert(
        self,
        session: Session,
        thread_no: int,
        last_seq: int,
        thread_id: str,
        resource_id: str,
        fresh: Sequence[PreparedMessage],
        now_ms: int,
    ) -> list[Message]:
        if not fresh:
            return []
        project_no = self._store.scope.project_no
        rows: list[tuple[Any, ...]] = []
        index: list[IndexRow] = []
        messages: list[Message] = []
        for seq, (no, item) in enumerate(
            zip(self._store.next_numbers(session, len(fresh)), fresh, strict=True), last_seq + 1
        ):
            message_id = self._new_id()
            created_at = now_ms if item.created_at is None else item.created_at
            rows.append(
                (
                    no,
                    thread_no,
                    seq,
                    message_id,
                    item.role,
                    item.raw_content,
                    item.layout,
                    item.token_count,
                    item.token_method,
                    item.term_count,
                    item.client_id,
                    item.task_id,
                    created_at,
                    item.metadata,
                )
            )
            for chunk, terms in enumerate(item.chunks):
                index.append(
                    IndexRow(
                        row_of(no, chunk),
                        terms.prose,
                        terms.code,
                        project_no=project_no,
                        thread_no=thread_no,
                        resource_id=resource_id,
                        role=item.role,
                    )
                )
            messages.append(
                _as_message(
                    item,
                    message_id,
                    thread_id,
                    resource_id=resource_id,
                    seq=seq,
                    created_at=created_at,
                )
            )
        self._store.insert_messages(session, rows)
        self._store.database.fulltext.add(session, index)
        self._store.grow_thread(
            session,
            thread_no,
            (
                len(fresh),
                sum(item.token_count for item in fresh),
                len(index),
                sum(item.term_count for item in fresh),
            ),
        )
        return messages

    def _add_words(self, session: Session, fresh: Sequence[PreparedMessage]) -> set[str]:
        """Add words that were not met before to the vocabulary; what was between spaces and is now
        known.
        """
        unmet = self._vocabulary.unmet(item.raw_content for item in fresh)
        if unmet:
            self._store.database.words.add(
                session, self._store.scope.project_no, words(" ".join(unmet))
            )
        return unmet


def _refuse_other_texts(prepared: Sequence[PreparedMessage], known: dict[str | None, str]) -> None:
    """One client id stands for one text, in the store and within a batch."""
    for item in prepared:
        if item.client_id is None:
            continue
        text = from_storable(item.raw_content)
        if known.setdefault(item.client_id, text) != text:
            raise ConflictError(
                f"A message with client_id {item.client_id!r} is there already, with another text. "
                "Use a new client_id; nothing was changed.",
                client_id=item.client_id,
            )


def _in_given_order(
    prepared: Sequence[PreparedMessage], stored: Sequence[Message], known: dict[str | None, Message]
) -> list[Message]:
    by_client = dict(known)
    by_client.update(
        (message.client_id, message) for message in stored if message.client_id is not None
    )
    without_id = (message for message in stored if message.client_id is None)
    return [
        next(without_id) if item.client_id is None else by_client[item.client_id]
        for item in prepared
    ]


def _first_of_each(
    prepared: Sequence[PreparedMessage], known: dict[str | None, Message]
) -> list[PreparedMessage]:
    seen: set[str] = set()
    fresh = []
    for item in prepared:
        if item.client_id is not None:
            if item.client_id in known or item.client_id in seen:
                continue
            seen.add(item.client_id)
        fresh.append(item)
    return fresh


def _about(task_id: str | None, fresh: list[PreparedMessage]) -> list[PreparedMessage]:
    """The messages as being about a task, but those that say otherwise themselves."""
    if task_id is None:
        return fresh
    return [item if item.task_id is not None else item._replace(task_id=task_id) for item in fresh]


def _as_message(
    item: PreparedMessage,
    message_id: str,
    thread_id: str,
    resource_id: str,
    seq: int,
    created_at: int,
) -> Message:
    import json

    raw = from_storable(item.raw_content)
    return Message(
        id=message_id,
        thread_id=thread_id,
        resource_id=resource_id,
        seq=seq,
        role=item.role,
        raw_content=raw,
        parts=item.parts if item.layout is None else unpack(raw, item.layout),
        token_count=item.token_count,
        token_method=item.token_method,
        created_at=created_at,
        client_id=item.client_id,
        task_id=item.task_id,
        metadata=json.loads(item.metadata) if item.metadata else {},
    )
