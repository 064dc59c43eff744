"""Define the records that frameworks keep: streams of entries, and items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from smara.messages.models import NewMessage

EntryReader: TypeAlias = Callable[[Any], NewMessage | None]
"""Read the message out of an entry; ``None`` for one in which nobody speaks."""


@dataclass(frozen=True, slots=True)
class SdkStream:
    """A framework's session: ordered entries over a thread."""

    id: str
    framework: str
    key: str
    """The framework's name of it, unique within the framework."""
    thread_id: str
    data: Mapping[str, Any]
    """What the framework keeps beside the entries: a summary, a state."""
    last_seq: int
    revision: int
    """Counts the changes; a writer that read an older one can be refused."""
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry on its way in.

    ``key`` is the framework's own id of it: an entry whose key is there is not stored again. One
    that ``may_repeat`` has no id and is always stored; its key is made of its body, so that an
    entry that was taken back and comes again has the same message.
    """

    body: Any
    key: str | None = None
    may_repeat: bool = False


@dataclass(frozen=True, slots=True)
class SdkEntry:
    """An entry as it was handed over, after secrets were redacted."""

    id: str
    seq: int
    key: str | None
    body: Any
    created_at: int


@dataclass(frozen=True, slots=True)
class UnreadEntries:
    """Entries whose messages are not stored yet, and those before."""

    stream: SdkStream
    after_seq: int
    entries: Sequence[SdkEntry]
    before: Callable[[int], Sequence[SdkEntry]]
    """Return up to so many entries that were read before, oldest first."""


@runtime_checkable
class StreamReader(Protocol):
    """Stores the messages of entries that depend on each other."""

    def read_entries(self, unread: UnreadEntries) -> Mapping[int, tuple[str, str]]:
        """Store messages; return their places by the entries' ``seq``.

        A place is the id of the thread and the client id of the message.

        Entries may come again, from several processes at once: client ids must stay the same.
        """
