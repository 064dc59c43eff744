"""Define the records that frameworks keep: streams of entries, and items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from smara.core.startup.record import dataclass
from smara.messages.models import NewMessage

EntryReader: TypeAlias = Callable[[Any], NewMessage | None]
"""Read the message out of an entry; ``None`` for one without a speaker."""


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


@dataclass(frozen=True, slots=True)
class Item:
    """A value under a name in a namespace, after redaction."""

    no: int
    id: str
    framework: str
    namespace: tuple[str, ...]
    name: str
    value: Any
    fields: tuple[str, ...] | None = None
    """The framework's names of what is searched in it; ``None`` for all, empty for nothing."""
    revision: int = 1
    """Counts the changes; 1 for one that was never changed."""
    ttl_seconds: float | None = None
    expires_at: int | None = None
    created_at: int = 0
    updated_at: int = 0

    @property
    def content(self) -> str:
        """The texts in its value, a line each."""
        return "\n".join(texts_in(self.value))


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        value = value.values()
    if isinstance(value, Iterable) and not isinstance(value, str):
        for each in value:
            yield from texts_in(each)


@dataclass(frozen=True, slots=True)
class NewItem:
    """A value on its way in, checked and redacted; made by ``FrameworkItems.prepare``."""

    value: Any
    text: str
    fields: tuple[str, ...] | None = None
    ttl_seconds: float | None = None
