"""Define the records that frameworks keep: streams of entries, and items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

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

    ``key`` is the framework's own id of it: an entry whose key is there is not stored again.
    """

    body: Any
    key: str | None = None


@dataclass(frozen=True, slots=True)
class SdkEntry:
    """An entry as it was handed over, after secrets were redacted."""

    id: str
    seq: int
    key: str | None
    body: Any
    created_at: int
