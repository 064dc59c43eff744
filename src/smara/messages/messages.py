"""Add and read messages, and build a thread's history.

`Messages` reads windows and streams. `History` gives what a model is shown: whole
messages, and each compacted run once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from smara.core import log
from smara.core.scope import require_id
from smara.core.startup.record import dataclass, replace
from smara.core.tokens import TokenCounter
from smara.database.projects import ProjectContext
from smara.errors import InvalidInputError, NotFoundError, SmaraError
from smara.messages.append import Appender, AppendResult
from smara.messages.compaction import Compactions
from smara.messages.models import (
    Message,
    MessageSize,
    NewMessage,
    NewThread,
    Part,
    Pointer,
    Role,
)
from smara.messages.prepare import (
    PreparedMessage,
    as_new_message,
    prepare,
    repack,
)
from smara.messages.store import MessageStore
from smara.messages.threads import Threads

BATCH = 500
MessageList = list[Message]
SizeList = list[MessageSize]
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
        withhold: Callable[[PreparedMessage, Pointer | None], PreparedMessage] | None = None,
    ) -> None:
        self._project = project
        self._store = store
        self._withhold = withhold
        self._threads = threads
        self._appender = appender
        self._compactions = compactions

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

        When this returns, the message survives a killed process (and a power cut, with
        ``durability="full"``) and can be found. Safe to repeat with a ``client_id``.

        Args:
            thread_id: The thread.
            role: ``user``, ``assistant``, ``system`` or ``tool``.
            content: A text, or its parts.
            client_id: The caller's own id; it is stored once in a thread.
            created_at: When it was said, in milliseconds; by default now.
            task_id: The task it belongs to. Without it, the task that the thread works on (see
                ``links``), if the session that writes holds it.
            metadata: Anything JSON can store.
            resource_id: The resource that the thread must belong to.
            session_id: The session that writes.

        Returns:
            The message as stored; with a known ``client_id``, the one that was there.

        Raises:
            InvalidInputError: If a value is impossible, or the message is too long.
            ConflictError: If the client id is there with another text, or the thread belongs to
                another resource.
        """
        new = NewMessage(
            role,
            content,  # type: ignore[arg-type]  # checked by prepare
            client_id,
            created_at=created_at,
            task_id=task_id,
            metadata=metadata or {},
        )
        return self._append(
            NewThread(thread_id, resource_id), self._prepare([new]), session_id=session_id
        ).messages[0]

    def _prepare(
        self, batch: Sequence[NewMessage | Mapping[str, Any]], first: int | None = None
    ) -> Sequence[PreparedMessage]:
        prepared = prepare(
            batch, self._project.counter, self._project.settings.max_message_bytes, first
        )
        if self._withhold is None:
            return prepared
        return list(map(self._withhold, prepared, [as_new_message(each).pointer for each in batch]))

    def add_many(
        self,
        *,
        thread_id: str,
        messages: Iterable[NewMessage | Mapping[str, Any]],
        resource_id: str | None = None,
        session_id: str | None = None,
    ) -> MessageList:
        """Append many messages, in order, 500 to a transaction.

        Each transaction happens whole or not at all. Every message is checked before its batch is
        written: one that is refused stores nothing of that batch, and the error says which.

        Args:
            thread_id: The thread.
            messages: The messages, or their fields.
            resource_id: The resource that the thread must belong to.
            session_id: The session that writes.

        Returns:
            The messages as stored, in their order, with those that were there.

        Raises:
            InvalidInputError: If a message is impossible.
            ConflictError: If a client id is there with another text.
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
        """Append one batch in one transaction, as importers do.

        Args:
            thread: The thread.
            batch: The messages.
            first: The number of the first one, for errors.
            may_differ: True to leave a message whose ``client_id`` is there as it is, whatever its
                text now.
            compact: False to leave old messages whole.
            session_id: The session that writes.

        Returns:
            The messages in their order, and which of them are new.

        Raises:
            InvalidInputError: If a message is impossible.
            ConflictError: If a client id is there with another text, without ``may_differ``.
        """
        return self._append(
            thread,
            self._prepare(batch, first),
            may_differ=may_differ,
            compact=compact,
            session_id=session_id,
        )

    def _append(
        self,
        thread: NewThread,
        prepared: Sequence[PreparedMessage],
        *,
        may_differ: bool = False,
        compact: bool = True,
        session_id: str | None = None,
    ) -> AppendResult:
        now = self._project.clock.now_ms()
        if not prepared:
            self._threads.row_for(thread)  # a wrong id is told, also when there is nothing to add
            return AppendResult([], [])
        if thread.created_at is None:
            # A thread begins with its first message, which for an imported one was long ago.
            times = [now if item.created_at is None else item.created_at for item in prepared]
            thread = replace(thread, created_at=min(times))
        row = self._threads.row_for(thread)
        appended = self._appender.append(
            row,
            prepared,
            now,
            resource_id=row[1] if thread.resource_id is not None else None,
            may_differ=may_differ,
            session_id=None if session_id is None else require_id(session_id, "session_id"),
        )
        every, count = self._project.settings.compact_every_messages, appended.stored
        if compact and every and count:
            last = appended.fresh[-1].seq
            try:
                if last // every != (last - count) // every:
                    self._compactions.compact_when_due(thread.id, appended.fresh)
            except SmaraError as error:
                # Trouble here must not fail a message that is already stored.
                log.warning("compaction.failed", thread=thread.id, error=error.code)
        return appended

    def known_client_ids(self, thread_id: str, client_ids: Sequence[str]) -> set[str]:
        """Return which client ids the thread already has.

        A repeated import need not prepare what is there.

        Args:
            thread_id: The thread; one that does not exist has none.
            client_ids: The ids to look for, in any number.

        Returns:
            The ids of messages that the thread holds.
        """
        rows = self._store.ask(
            self._store.rows,
            "SELECT client_id FROM messages WHERE project_no = :project AND thread_no ="
            " (SELECT no FROM threads WHERE project_no = :project AND id = ?)"
            " AND client_id IN (:some)",
            thread_id,
            some=client_ids,
        )
        return {str(row[0]) for row in rows}

    def get(self, message_id: str) -> Message:
        """Return a message.

        Args:
            message_id: The whole id of the message.

        Returns:
            The message.

        Raises:
            NotFoundError: If there is no such message.
        """
        found = self.find(message_id)
        if found is None:
            raise NotFoundError(
                f"There is no message {message_id!r} in this project. Search for its words, or "
                "list its thread.",
                message_id=message_id,
            )
        return found

    def find(self, message_id: str) -> Message | None:
        """Return a message, or ``None``.

        Args:
            message_id: The whole id; a text that cannot be one is not found.

        Returns:
            The message, or ``None`` if there is none of this id.
        """
        found = self._store.ask(self._store.find_message, message_id)
        return found[1] if found else None

    def list(
        self,
        *,
        thread_id: str,
        limit: int | None = None,
        after: int | None = None,
        before: int | None = None,
    ) -> MessageList:
        """Return messages of a thread, oldest first.

        A thread that does not exist has no messages.

        Args:
            thread_id: The thread.
            limit: The most messages: the newest, or with ``after`` the first behind it.
            after: The sequence number that they come after.
            before: The sequence number that they come before.

        Returns:
            The messages.

        Raises:
            InvalidInputError: If the limit is negative.
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
                before=before if before is not None else _ALL,
                limit=limit if limit is not None else _ALL,
                newest_first=newest_first,
            )
        return found[::-1] if newest_first else found

    def stream(self, *, thread_id: str, after: int = 0) -> Iterator[Message]:
        """Yield a thread's messages, oldest first, a few hundred at a time.

        No transaction is held open between pages, so a slow reader blocks no writer.

        Args:
            thread_id: The thread.
            after: The sequence number that they come after.
        """
        while page := self.list(thread_id=thread_id, limit=BATCH, after=after):
            yield from page
            after = page[-1].seq

    def last_tokens(
        self, *, thread_id: str, tokens: int, before: int | None = None, after: int = 0
    ) -> MessageList:
        """Return the newest messages within a token budget, oldest first.

        The newest message is always included, whatever its size.

        Args:
            thread_id: The thread.
            tokens: The budget.
            before: The sequence number that they come before.
            after: The sequence number that they come after.

        Returns:
            The messages.
        """
        sizes = self.sizes(thread_id=thread_id, tokens=tokens, before=before, after=after)
        if not sizes:
            return []
        return self.list(thread_id=thread_id, after=sizes[0].seq - 1, before=sizes[-1].seq + 1)

    def sizes(
        self, *, thread_id: str, tokens: int, before: int | None = None, after: int = 0
    ) -> SizeList:
        """Return the sizes of what `last_tokens` would return, oldest first.

        The newest messages within a token budget. No text is read, so that a
        window is measured in a moment, however many messages fill it.

        Args:
            thread_id: The thread.
            tokens: The budget.
            before: The sequence number that they come before.
            after: The sequence number that they come after.

        Returns:
            The number and the tokens of each message that :meth:`last_tokens` would return.
        """
        found: SizeList = []
        used, first = 0, before if before is not None else _ALL
        with self._store.database.read() as session:
            thread_no = self._store.thread_no(session, require_id(thread_id, "thread_id"))
            while page := self._store.rows(
                session,
                "SELECT m.seq, m.token_count FROM messages m WHERE m.project_no = :project"
                " AND m.thread_no = ? AND m.seq > ? AND m.seq < ? ORDER BY m.seq DESC LIMIT 1000",
                thread_no,
                after,
                first,
            ):
                for size in (MessageSize(*row) for row in page):
                    if found and used + size.tokens > tokens:
                        return found[::-1]
                    used += size.tokens
                    found.append(size)
                first = found[-1].seq
        return found[::-1]

    def around(self, message_id: str, *, before: int = 2, after: int = 2) -> MessageList:
        """Return a message with its neighbors in the thread, oldest first.

        Args:
            message_id: The message.
            before: How many messages before it.
            after: How many messages after it.

        Returns:
            The messages, the one itself among them.

        Raises:
            NotFoundError: If there is no such message.
        """
        center = self.get(message_id)
        return self.list(
            thread_id=center.thread_id,
            after=max(0, center.seq - before - 1),
            before=center.seq + after + 1,
            limit=before + after + 1,
        )

    def seal(self, *, thread_id: str, up_to_seq: int | None = None) -> int:
        """Seal messages up to a sequence number, or all.

        Content that arrives later for a sealed message becomes a message of its own.

        Args:
            thread_id: The thread.
            up_to_seq: The last message to seal.

        Returns:
            How many were sealed.
        """
        with self._store.database.write() as session:
            thread_no = self._store.thread_no(session, require_id(thread_id, "thread_id"))
            if thread_no is None:
                return 0
            last = up_to_seq if up_to_seq is not None else _ALL
            return self._store.seal(session, thread_no, last, self._project.clock.now_ms())

    def extend(self, message_id: str, content: str | Sequence[Part]) -> Message:
        """Add parts to an arriving message; a sealed one is continued.

        Args:
            message_id: The message.
            content: A text, or parts.

        Returns:
            The message; or a new one, whose metadata names the one it ``continues``.

        Raises:
            NotFoundError: If there is no such message.
        """
        with self._store.database.write() as session:
            found = self._store.find_message(session, message_id)
            if found is None:
                raise NotFoundError(
                    f"There is no message {message_id!r} in this project.", message_id=message_id
                )
            # The message as it is now, and stays until this transaction ends.
            self._store.hold_thread(session, found[1].thread_id)
            no, message = self._store.find_message(session, message_id) or found
            if message.pointer is not None:
                raise InvalidInputError(
                    f"The text of message {message_id!r} is in a transcript and not in the store, "
                    "so that it cannot be extended."
                )
            packed = repack(
                message.parts,
                content,
                self._project.counter,
                max_bytes=self._project.settings.max_message_bytes,
            )
            counts = (packed.token_count, packed.token_method, packed.term_count)
            is_extended = session.run(
                self._store.sql(
                    "UPDATE messages SET raw_content = ?, parts = ?, token_count = ?, "
                    "token_method = ?, term_count = ?"
                    " WHERE project_no = :project AND no = ? AND sealed_at IS NULL"
                ),
                (packed.raw_content, packed.layout, *counts, no),
            )
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
        """Return the newest entries, oldest first.

        A compacted run counts as one entry and costs its summary. The newest entry is
        always there, whatever its size.

        Args:
            thread_id: The thread.
            last: The most entries.
            tokens: The most tokens.
            before: The sequence number at which the window ends.

        Returns:
            Messages and summaries.
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
        """Yield entries from the newest to the oldest; a run is stepped over whole."""
        while page := self._messages.list(thread_id=thread_id, limit=_PAGE, before=before):
            for message in reversed(page):
                if before is not None and message.seq >= before:
                    continue  # inside a run whose summary was given
                run = message.compaction
                before = message.seq if run is None else run.start_seq
                text = message.raw_content if run is None else run.injection_text
                yield HistoryEntry(
                    message.role if run is None else "system",
                    text,
                    before,
                    last_seq=message.seq if run is None else run.end_seq,
                    token_count=message.token_count
                    if run is None
                    else self._counter.count(text).tokens,
                    message_id=message.id if run is None else None,
                    compaction_id=None if run is None else run.id,
                )
