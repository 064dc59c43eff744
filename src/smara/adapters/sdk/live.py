"""Import a framework's sessions while they go on.

Entries become records, and records go through the importer: what was said is stored under the ids
that the session's transcript has, is learned from, and is not stored again if hooks have told it.
An entry may depend on those before it (a result on its call), so the source of an open session
stays in memory. Another process, or a later one, begins with the entries before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import Protocol

from smara.adapters.importer import Importer, ImportReport
from smara.adapters.lines import FileLine, JsonLine, decode
from smara.adapters.records import Counted, Imported, Record
from smara.adapters.replay import Learner
from smara.core.startup.record import dataclass
from smara.errors import SmaraError
from smara.frameworks.models import SdkEntry, SdkStream, UnreadEntries
from smara.frameworks.streams import Streams
from smara.memory import Memory

_MOST_OPEN = 64
_BEFORE = 500


class EntrySource(Protocol):
    """Reads the entries of one session, in their order."""

    def take(self, entry: SdkEntry) -> Iterator[Record]:
        """Yield the records that an entry gives, or that it settles."""


class LiveLearner(Learner):
    """A learner that also looks for use of injections.

    For a transcript hooks have done that; a framework's session has none.
    """

    def flush(self) -> None:
        """Look for signs of use, then learn from the rest."""
        with suppress(SmaraError):
            if fresh := self._memory.internals.intake.fresh(self._pending):
                self._memory.moments.heed(fresh)
        super().flush()


@dataclass(slots=True)
class _OpenSession:
    source: EntrySource
    importer: Importer
    seq: int = 0


class LiveReader:
    """Imports the entries of a framework's sessions into one memory."""

    def __init__(
        self,
        memory: Memory,
        open_source: Callable[[SdkStream], EntrySource],
        resource_id: str | None = None,
    ) -> None:
        self._memory = memory
        self._open_source = open_source
        self._resource_id = resource_id
        self._sessions: dict[str, _OpenSession] = {}

    def read_entries(self, unread: UnreadEntries) -> Mapping[int, tuple[str, str]]:
        """Import entries; return the thread and client id of each one's message."""
        stream, entries = unread.stream, list(unread.entries)
        session = self._sessions.pop(stream.id, None)  # it comes back when all went well
        if session is None or session.seq != unread.after_seq:
            importer = Importer(self._memory, self._resource_id, learner=LiveLearner(self._memory))
            session = _OpenSession(self._open_source(stream), importer)
            entries = [*unread.before(_BEFORE), *entries]
        places: dict[int, tuple[str, str]] = {}

        def records() -> Iterator[Record]:
            for record in (each for entry in entries for each in session.source.take(entry)):
                if isinstance(record, Imported) and record.message.client_id is not None:
                    places[record.line] = (record.thread.id, record.message.client_id)
                yield record

        session.importer.import_records(records(), ImportReport(stream.key, stream.framework))
        session.seq = unread.entries[-1].seq
        self._sessions[stream.id] = session
        if len(self._sessions) > _MOST_OPEN:
            del self._sessions[next(iter(self._sessions))]
        return places


def line_of(entry: SdkEntry) -> JsonLine | Counted:
    """Return an entry as its line in a transcript, made safe."""
    text = json.dumps(entry.body, ensure_ascii=False, separators=(",", ":"))
    return decode(FileLine(entry.seq, text.encode("utf-8", "surrogatepass")))


def delete_sessions(
    memory: Memory, streams: Streams, keys: Collection[str], *, keeps_messages: bool
) -> None:
    """Delete streams that a framework deletes; safe to repeat.

    Unless messages are kept, what was said in them is erased for good, with all that was made of
    it and with a receipt. A conversation that another stream has a part in stays.
    """
    threads = [stream.thread_id for key in keys if (stream := streams.find(key)) is not None]
    if threads and not keeps_messages:
        own = {(streams.framework, key) for key in keys}
        holders = memory.frameworks.holders(threads)
        if names := sorted(each for each in holders if holders[each] <= own):
            memory.privacy.erase(threads=names)
    for key in keys:
        streams.delete(key)
