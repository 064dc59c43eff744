"""Define the events of a feed and the cursors into it."""

from __future__ import annotations

from collections.abc import Mapping

from smara.core.items import Items
from smara.core.startup.record import dataclass
from smara.core.startup.regex import regex
from smara.errors import InvalidInputError

LETTERS = "mtkorcw"
"""The sources of a feed, as a cursor names them: messages, tasks, memories, observations, receipts,
model calls and work in the background.
"""
_CURSOR = regex(r"[a-z]\d{1,18}(?:\.[a-z]\d{1,18})*")


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """One thing that happened.

    ``kind`` is the noun and the verb, such as ``task.closed``; ``id`` names what it happened to.
    """

    kind: str
    id: str
    at: int
    thread_id: str | None
    session_id: str | None
    key: str
    """Its own place in the feed, such as ``t12``."""


@dataclass(frozen=True, slots=True)
class FeedPage(Items[FeedEvent]):
    """Some events in order, and the cursor behind them."""

    _FIELD = "events"
    events: tuple[FeedEvent, ...]
    cursor: str


def write_cursor(places: Mapping[str, int]) -> str:
    """Return places as a text.

    >>> write_cursor({"m": 3, "t": 0})
    'm3.t0'
    """
    return ".".join(f"{letter}{no}" for letter, no in places.items())


def read_cursor(text: str) -> dict[str, int]:
    """Return the places of a cursor; 0 where it names none.

    Raises:
        InvalidInputError: If it is not a cursor.
    """
    places: dict[str, int] = dict.fromkeys(LETTERS, 0)
    if not text:
        return places
    if not _CURSOR.fullmatch(text):
        raise InvalidInputError("after is not a cursor of this feed.", field="after")
    for each in text.split("."):
        if each[0] in places:
            places[each[0]] = int(each[1:])
    return places
