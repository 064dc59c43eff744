"""A session of OpenCode as it comes from any of its stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from smara.adapters.records import Counted


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message with its parts in order; a part that cannot be read is counted."""

    info: Mapping[str, Any]
    parts: tuple[Mapping[str, Any] | Counted, ...]


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session, and its messages in order as they are read."""

    info: Mapping[str, Any]
    messages: Iterator[StoredMessage | Counted]
