"""Keep a framework's sessions unchanged, and read their messages.

Entries are stored first, in one transaction. The messages in them are then read into a thread of
the same name, where they are observed, searched and learned from like any others. A process that
is killed between the two leaves entries to be read, and the next append reads them.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from smara.core import log
from smara.core.scope import require_id
from smara.database.database import Session
from smara.database.project_store import Tombstones
from smara.database.projects import ProjectContext
from smara.errors import ConflictError, InvalidInputError, SmaraError
from smara.frameworks.models import (
    EntryReader,
    NewEntry,
    SdkEntry,
    SdkStream,
    StreamReader,
    UnreadEntries,
)
from smara.frameworks.store import FrameworkStore, to_json
from smara.messages.messages import Messages
from smara.messages.models import NewMessage, NewThread
from smara.messages.threads import Threads
from smara.secrets.redact import redact_value

DataChange = Callable[[Mapping[str, Any], Sequence[SdkEntry]], Mapping[str, Any]]
"""Make the new data of a stream from those before and from the entries that are new.

It runs inside the transaction.
"""
_BATCH = 500


class EntryMessages:
    """Stores the message of each entry by itself."""

    def __init__(self, messages: Messages, read: EntryReader) -> None:
        self._messages = messages
        self._read = read

    def read_entries(self, unread: UnreadEntries) -> Mapping[int, tuple[str, str]]:
        """Store the messages of entries in the thread of their stream."""
        found: dict[int, NewMessage] = {}
        for entry in unread.entries:
            if (message := self._read(entry.body)) is not None:
                found[entry.seq] = replace(
                    message,
                    client_id=message.client_id or entry.key or entry.id,
                    created_at=message.created_at or entry.created_at,
                )
        thread_id = unread.stream.thread_id
        self._messages.append_batch(NewThread(thread_id), list(found.values()), may_differ=True)
        return {seq: (thread_id, message.client_id or "") for seq, message in found.items()}


class Streams:
    """The sessions of one framework; safe for threads and processes."""

    def __init__(
        self,
        project: ProjectContext,
        messages: Messages,
        threads: Threads,
        *,
        framework: str,
        read: EntryReader | StreamReader,
        is_redacted: bool = True,
    ) -> None:
        """Open the sessions of a framework.

        Args:
            project: The project they are of.
            messages: Where what was said goes.
            threads: Where a session's thread is made.
            framework: The framework's name, for example ``claude-agent``.
            read: Reads the message of an entry, or stores those of many.
            is_redacted: False to store entries with the secrets in them, for a framework that
                must get back every byte. Messages are always redacted.
        """
        self._project = project
        self._threads = threads
        self._store = FrameworkStore(project.database, project.scope)
        self.framework = require_id(framework, "framework")
        self._reader: StreamReader = (
            read if isinstance(read, StreamReader) else EntryMessages(messages, read)
        )
        self._is_redacted = is_redacted
        self._reading = threading.Lock()

    def find(self, key: str) -> SdkStream | None:
        """Return the stream of a key, or ``None``."""
        with self._project.database.read() as session:
            found = self._store.find(session, self.framework, key)
        return None if found is None else found[1]

    def list(self, prefix: str = "") -> list[SdkStream]:
        """Return the streams whose keys begin so, by key."""
        with self._project.database.read() as session:
            return self._store.beginning(session, self.framework, prefix)

    def append(
        self,
        key: str,
        entries: Iterable[NewEntry],
        *,
        thread: NewThread | None = None,
        change: DataChange | None = None,
        revision: int | None = None,
    ) -> SdkStream:
        """Append entries in one transaction, then read their messages.

        The stream is made on first use. Safe to repeat for entries that have keys. Several
        writers take turns; the entries of one call stay together.

        Args:
            key: The framework's name of the stream.
            entries: What to append; each body is anything JSON can store.
            thread: The thread of a new stream; by default one named after the framework and key.
            change: Makes the stream's data from those before and the entries that are new, in the
                same transaction.
            revision: The revision that the writer has read; by default any.

        Returns:
            The stream as it is now.

        Raises:
            InvalidInputError: If a body cannot be written as JSON.
            ConflictError: If the stream has another revision by now.
        """
        prepared = [self._prepared(each) for each in entries]
        place = thread or NewThread(f"{self.framework}:{key}")
        if self.find(key) is None:
            self._threads.put(place)
        with self._project.database.write() as session:
            no, stream = self._hold(session, key, place.id, self._project.clock.now_ms())
            now = max(stream.created_at, self._project.clock.now_ms())
            if revision is not None and revision != stream.revision:
                raise ConflictError(
                    f"Session {key!r} was changed by another writer. Read it again.",
                    key=key,
                    revision=stream.revision,
                )
            fresh = self._fresh(session, no, stream, prepared, now)
            data = stream.data if change is None else change(stream.data, fresh)
            if fresh or data != stream.data:
                self._store.append(session, no, fresh)
                self._store.save(session, no, stream.last_seq + len(fresh), data, now)
        try:
            self.read_messages(key)
        except SmaraError as error:
            # The entries are stored: a framework that is told of trouble would append them again.
            log.warning("frameworks.not_read", framework=self.framework, error=error.code)
        return self.find(key) or stream

    def entries(self, key: str, *, limit: int | None = None) -> Sequence[SdkEntry]:
        """Return entries in order; with a limit, the newest."""
        with self._project.database.read() as session:
            found = self._store.find(session, self.framework, key)
            if found is None:
                return []
            if limit is None:
                return self._store.entries(session, found[0])
            return self._store.last_entries(session, found[0], max(0, limit))

    def pop(self, key: str) -> SdkEntry | None:
        """Remove and return the newest entry.

        Two callers never get the same one. Its message stays in the thread: what was said was said.
        """
        with self._project.database.write() as session:
            locked = self._store.hold(session, self.framework, key)
            last = self._store.last_entries(session, locked[0], 1) if locked else []
            if locked is None or not last:
                return None
            self._store.delete_entry(session, locked[0], last[0].seq)
            now = self._project.clock.now_ms()
            self._store.save(session, locked[0], locked[1].last_seq, locked[1].data, now)
        return last[0]

    def delete(self, key: str) -> bool:
        """Delete a stream with its entries; its thread stays."""
        with self._project.database.write() as session:
            locked = self._store.hold(session, self.framework, key)
            if locked is not None:
                self._store.delete(session, locked[0])
        return locked is not None

    def read_messages(self, key: str) -> int:
        """Read the messages of new entries into the thread.

        Returns:
            How many entries were read.
        """
        count = 0
        with self._reading:  # a reader goes through the entries of a stream one after the other
            while True:
                with self._project.database.read() as session:
                    found = self._store.find(session, self.framework, key)
                    if found is None or found[2] >= found[1].last_seq:
                        return count
                    no, stream, read_seq = found
                    waiting = self._store.entries(session, no, after_seq=read_seq, limit=_BATCH)
                places: Mapping[int, tuple[str, str]] = {}
                if waiting:
                    before = partial(self._before, no, read_seq)
                    unread = UnreadEntries(stream, read_seq, waiting, before)
                    places = self._reader.read_entries(unread)
                # Without any, the last ones were taken back before they were read.
                last = waiting[-1].seq if waiting else stream.last_seq
                with self._project.database.write(is_derived=True) as session:
                    self._store.mark_read(session, no, last, places)
                count += len(waiting)

    def _before(self, no: int, up_to_seq: int, limit: int) -> Sequence[SdkEntry]:
        with self._project.database.read() as session:
            return self._store.last_entries(session, no, limit, up_to_seq)

    def _prepared(self, entry: NewEntry) -> NewEntry:
        body = redact_value(entry.body)[0] if self._is_redacted else entry.body
        try:
            to_json(body)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError(
                f"An entry cannot be written as JSON: {error}. Use texts, numbers, lists, dicts."
            ) from None
        return replace(entry, body=body)

    def _hold(
        self, session: Session, key: str, thread_id: str, now_ms: int
    ) -> tuple[int, SdkStream]:
        locked = self._store.hold(session, self.framework, key)
        if locked is None:
            stones = Tombstones(self._project.database, self._project.scope)
            erased_at = stones.erased(session, "thread", [thread_id]).get(thread_id, -1)
            # What comes after an erase is newer than it, also within the same millisecond.
            now_ms = max(now_ms, erased_at + 1)
            new = SdkStream(
                id=self._project.new_id(),
                framework=self.framework,
                key=key,
                thread_id=thread_id,
                data={},
                last_seq=0,
                revision=0,
                created_at=now_ms,
                updated_at=now_ms,
            )
            self._store.insert(session, new)
            locked = self._store.hold(session, self.framework, key)
        if locked is None:  # its thread was erased between the two transactions
            raise ConflictError(f"Session {key!r} was erased while it was written.", key=key)
        return locked[0], locked[1]

    def _fresh(
        self,
        session: Session,
        no: int,
        stream: SdkStream,
        entries: Sequence[NewEntry],
        now_ms: int,
    ) -> Sequence[SdkEntry]:
        """Return the entries that are not there yet, each key once."""
        seen = self._store.keys(session, no, [each.key for each in entries if each.key is not None])
        repeats: dict[str, int] = {}
        fresh: list[SdkEntry] = []
        for entry in entries:
            key = entry.key
            if entry.may_repeat:
                stem = hashlib.sha256(to_json(entry.body).encode()).hexdigest()[:32]
                if stem not in repeats:
                    repeats[stem] = self._store.last_repeat(session, no, stem)
                repeats[stem] += 1
                key = f"{stem}-{repeats[stem]}"
            if key is None or key not in seen:
                seq = stream.last_seq + len(fresh) + 1
                fresh.append(SdkEntry(self._project.new_id(), seq, key, entry.body, now_ms))
            if key is not None:
                seen.add(key)
        return fresh
