"""Add and read messages, and build a thread's history.

`Messages` reads windows and streams. `History` gives what a model is shown: whole
messages, and each compacted run once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from smara.core import log
from smara.core.scope import is_id, require_id
from smara.core.tokens import TokenCounter
from smara.database.database import Session
from smara.database.projects import ProjectContext
from smara.errors import InvalidInputError, NotFoundError, SmaraError
from smara.messages.append import Appender, AppendResult
from smara.messages.compaction import Compactions
from smara.messages.models import Message, NewMessage, NewThread, Part, Role
from smara.messages.prepare import PreparedMessage, as_new_message, prepare, repack
from smara.messages.store import MessageStore
from smara.messages.threads import Threads

BATCH = 500
MessageList = list[Message]
"""``Messages.list`` hides the built-in inside the class."""
_ALL = 2**62


class Messages:
    """The messages of one project."""

    def __init__(
        self,
        project: ProjectContext,
        store: MessageStore,
        threads: Threads,
        appender: Appender,
        compactions: Compactions,
    ) -> None:
        self._store = store
        self._threads = threads
        self._appender = appender
        self._compactions = compactions
        self._counter = project.counter
        self._clock = project.clock
        self._max_message_bytes = project.settings.max_message_bytes
        self._compact_every = project.settings.compact_every_messages

    def add(
        self,
        *,
        thread_id: str,
        role: Role,
        content: str | Sequence[Part] | Sequence[Mapping[str, Any]],
        client_id: str | None = None,
        created_at: int | None = None,
        task_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        resource_id: str | None = None,
        session_id: str | None = None,
    ) -> Message:
        """Append one message; the thread is made on first use.

        While the thread works on a task (see ``links``) the message belongs to it, unless
        ``task_id`` says otherwise or ``session_id``, who writes, does not hold the task.

        When this returns, the message survives a killed process (and a power cut, with
        ``durability="full"``) and can be found. Safe to repeat with a ``client_id``.
        """
        new = NewMessage(
            role,
            content,  # type: ignore[arg-type]  # checked by prepare
            client_id,
            created_at=created_at,
            task_id=task_id,
            metadata=metadata or {},
        )
        prepared = prepare(new, self._counter, self._max_message_bytes)
        return self._append(
            NewThread(thread_id, resource_id), [prepared], session_id=session_id
        ).messages[0]

    def add_many(
        self,
        *,
        thread_id: str,
        messages: Iterable[NewMessage | Mapping[str, Any]],
        resource_id: str | None = None,
        session_id: str | None = None,
    ) -> MessageList:
        """Append many messages, in order, 500 to a transaction.

        Each transaction happens whole or not at all.

        Every message is checked before its batch is written: one that is refused stores
        nothing of that batch, and the error says which.
        """
        found: MessageList = []
        stream = iter(messages)
        thread = NewThread(thread_id, resource_id)
        while batch := list(islice(stream, BATCH)):
            found += self.append_batch(
                thread, batch, first=len(found), session_id=session_id
            ).messages
        return found

    def append_batch(
        self,
        thread: NewThread,
        batch: Sequence[NewMessage | Mapping[str, Any]],
        first: int = 0,
        may_differ: bool = False,
        compact: bool = True,
        session_id: str | None = None,
    ) -> AppendResult:
        """Append one batch in one transaction; what importers use. ``first`` numbers errors.

        With ``may_differ`` a known ``client_id`` is left as it is, whatever its text now.
        """
        prepared = [self._prepare(value, position) for position, value in enumerate(batch, first)]
        return self._append(thread, prepared, may_differ, compact, session_id)

    def _prepare(self, value: NewMessage | Mapping[str, Any], position: int) -> PreparedMessage:
        try:
            return prepare(as_new_message(value), self._counter, self._max_message_bytes)
        except InvalidInputError as error:
            raise InvalidInputError(
                f"Message {position}: {error}", position=position, **error.facts
            ) from None

    def _append(
        self,
        thread: NewThread,
        prepared: Sequence[PreparedMessage],
        may_differ: bool = False,
        compact: bool = True,
        session_id: str | None = None,
    ) -> AppendResult:
        now = self._clock.now_ms()
        if not prepared:
            self._threads.row_for(thread)  # a wrong id is told, also when there is nothing to add
            return AppendResult([], [])
        if thread.created_at is None:
            # A thread begins with its first message, which for an imported one was long ago.
            said_at = [now if item.created_at is None else item.created_at for item in prepared]
            thread = replace(thread, created_at=min(said_at))
        row = self._threads.row_for(thread)
        writer = None if session_id is None else require_id(session_id, "session_id")
        appended = self._appender.append(row, prepared, now, thread.resource_id, may_differ, writer)
        if compact:
            self._compact_when_due(thread.id, appended)
        return appended

    def _compact_when_due(self, thread_id: str, appended: AppendResult) -> None:
        """Every so many messages; trouble here must not fail a message that is already stored."""
        if not self._compact_every or not appended.stored:
            return
        last = appended.fresh[-1].seq
        if last // self._compact_every == (last - appended.stored) // self._compact_every:
            return
        try:
            self._compactions.compact_when_due(thread_id, appended.fresh)
        except SmaraError as error:
            log.warning("compaction.failed", thread=thread_id, error=error.code)

    def known_client_ids(self, thread_id: str, client_ids: Sequence[str]) -> set[str]:
        """Return which client ids the thread already has.

        A repeated import need not prepare what is there.
        """
        found: set[str] = set()
        with self._store.database.read() as session:
            for start in range(0, len(client_ids), BATCH):
                found |= self._store.known_client_ids(
                    session, thread_id, client_ids[start : start + BATCH]
                )
        return found

    def get(self, message_id: str) -> Message:
        """The message, or ``NotFoundError``."""
        found = self.find(message_id)
        if found is None:
            raise NotFoundError(
                f"There is no message {message_id!r} in this project. Search for its words, or "
                "list its thread.",
                message_id=message_id,
            )
        return found

    def find(self, message_id: str) -> Message | None:
        """The message, or ``None``."""
        if not is_id(message_id):
            return None
        with self._store.database.read() as session:
            found = self._store.find_message(session, message_id)
        return found[1] if found else None

    def list(
        self,
        *,
        thread_id: str,
        limit: int | None = None,
        after: int | None = None,
        before: int | None = None,
    ) -> MessageList:
        """Messages of a thread, oldest first.

        With ``limit``, the newest that many; with ``after`` (a sequence number), the first
        that many behind it. A thread that does not exist has no messages.
        """
        if limit is not None and limit < 0:
            raise InvalidInputError(f"limit must not be negative; got {limit}.")
        newest_first = limit is not None and after is None
        with self._store.database.read() as session:
            thread_no = self._store.thread_no(session, require_id(thread_id, "thread_id"))
            if thread_no is None:
                return []
            found = self._store.between(
                session,
                thread_no,
                after or 0,
                before if before is not None else _ALL,
                limit if limit is not None else _ALL,
                newest_first,
            )
        return found[::-1] if newest_first else found

    def stream(self, *, thread_id: str, after: int = 0) -> Iterator[Message]:
        """Yield a thread's messages, oldest first, a few hundred at a time.

        No transaction is held open between pages, so a slow reader blocks no writer.
        """
        while page := self.list(thread_id=thread_id, limit=BATCH, after=after):
            yield from page
            after = page[-1].seq

    def last_tokens(
        self, *, thread_id: str, tokens: int, before: int | None = None, after: int = 0
    ) -> MessageList:
        """Return the newest messages within a token budget, oldest first.

        Only those behind ``after``.

        The newest message is always included, whatever its size.
        """
        found: MessageList = []
        used = 0
        while page := self.list(thread_id=thread_id, limit=100, before=before):
            for message in reversed(page):
                if message.seq <= after or (found and used + message.token_count > tokens):
                    return found[::-1]
                used += message.token_count
                found.append(message)
            before = page[0].seq
        return found[::-1]

    def around(self, message_id: str, *, before: int = 2, after: int = 2) -> MessageList:
        """A message with its neighbors in the thread, oldest first."""
        center = self.get(message_id)
        return self.list(
            thread_id=center.thread_id,
            after=max(0, center.seq - before - 1),
            before=center.seq + after + 1,
            limit=before + after + 1,
        )

    def seal(self, *, thread_id: str, up_to_seq: int | None = None) -> int:
        """Seal messages up to a sequence number, or all; return count.

        Content that arrives later for a sealed message becomes a message of its own.
        """
        with self._store.database.write() as session:
            thread_no = self._store.thread_no(session, require_id(thread_id, "thread_id"))
            if thread_no is None:
                return 0
            return self._store.seal(
                session,
                thread_no,
                up_to_seq if up_to_seq is not None else _ALL,
                self._clock.now_ms(),
            )

    def _held(self, session: Session, message_id: str) -> tuple[int, Message]:
        """The message as it is now, and stays until this transaction ends."""
        found = self._store.find_message(session, message_id) if is_id(message_id) else None
        if found is None:
            raise NotFoundError(
                f"There is no message {message_id!r} in this project.", message_id=message_id
            )
        self._store.hold_thread(session, found[1].thread_id)
        return self._store.find_message(session, message_id) or found

    def extend(self, message_id: str, content: str | Sequence[Part]) -> Message:
        """Add parts to an arriving message; a sealed one is continued.

        The new message's metadata names the one it ``continues``.
        """
        with self._store.database.write() as session:
            no, message = self._held(session, message_id)
            packed = repack(
                message.parts, content, self._counter, max_bytes=self._max_message_bytes
            )
            values = (
                packed.raw_content,
                packed.layout,
                packed.token_count,
                packed.token_method,
                packed.term_count,
            )
            is_extended = self._store.replace_content(session, no, values)
            if is_extended:
                self._appender.reindex(session, no, message, packed=packed)
        if is_extended:
            return self.get(message_id)
        return self.add(
            thread_id=message.thread_id,
            role=message.role,
            content=content,
            task_id=message.task_id,
            metadata={"continues": message.id},
        )


_PAGE = 100


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One entry of a window: a message, or a run's summary."""

    role: Role
    text: str
    first_seq: int
    last_seq: int
    token_count: int
    message_id: str | None = None
    compaction_id: str | None = None


class History:
    """Windows over threads, for building a context."""

    def __init__(self, messages: Messages, counter: TokenCounter) -> None:
        self._messages = messages
        self._counter = counter

    def window(
        self,
        thread_id: str,
        *,
        last: int | None = None,
        tokens: int | None = None,
        before: int | None = None,
    ) -> list[HistoryEntry]:
        """The newest entries, oldest first: at most ``last`` of them, within ``tokens``.

        A compacted run counts as one entry and costs its summary. The newest entry is
        always there, whatever its size. ``before`` ends the window at a sequence number.
        """
        if last is not None and last < 1:
            return []
        found: list[HistoryEntry] = []
        used = 0
        for entry in self._backwards(thread_id, before):
            if found and (
                (last is not None and len(found) >= last)
                or (tokens is not None and used + entry.token_count > tokens)
            ):
                break
            used += entry.token_count
            found.append(entry)
        return found[::-1]

    def _backwards(self, thread_id: str, before: int | None) -> Iterator[HistoryEntry]:
        """Entries from the newest to the oldest, a page at a time; a run is stepped over whole."""
        while page := self._messages.list(thread_id=thread_id, limit=_PAGE, before=before):
            skip_from: int | None = None
            for message in reversed(page):
                before = message.seq
                if skip_from is not None and message.seq >= skip_from:
                    continue
                entry = self._entry(message)
                if message.compaction is not None:
                    skip_from = message.compaction.start_seq
                yield entry
            if skip_from is not None:
                before = min(before or skip_from, skip_from)

    def _entry(self, message: Message) -> HistoryEntry:
        run = message.compaction
        if run is None:
            return HistoryEntry(
                message.role,
                message.raw_content,
                message.seq,
                last_seq=message.seq,
                token_count=message.token_count,
                message_id=message.id,
            )
        text = run.injection_text
        return HistoryEntry(
            "system",
            text,
            run.start_seq,
            last_seq=run.end_seq,
            token_count=self._counter.count(text).tokens,
            compaction_id=run.id,
        )
