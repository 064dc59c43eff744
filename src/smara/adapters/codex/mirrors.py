"""Events of a rollout that mostly repeat an item: told twice, stored once.

Codex writes what was said and done as items for the model and, beside them, as events for its
screen, in either order and not in every version. An event is held back until its item has come;
one whose item never comes, though its turn has ended, holds words that stand nowhere else.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from smara.adapters.decoding import Entry
from smara.adapters.records import Counted
from smara.messages.models import Part, Role

MAX_HELD = 256


@dataclass(slots=True)
class Held:
    """An event that waits, with what is needed to keep it as a message after all."""

    entry: Entry
    kind: str
    role: Role
    parts: tuple[Part, ...]
    created_at: int | None
    has_turn_ended: bool = False


class Mirrors:
    """Which texts and calls have stood as items, and which events wait for theirs."""

    def __init__(self) -> None:
        self._told: set[bytes] = set()
        self._held: OrderedDict[bytes, Held] = OrderedDict()

    def tell(self, marks: Iterable[str]) -> list[Counted]:
        """An item has come: the events that wait for it are counted."""
        found = []
        for mark in map(_digest, marks):
            self._told.add(mark)
            held = self._held.pop(mark, None)
            if held is not None:
                found.append(counted(held.entry, held.kind))
        return found

    def hold(self, mark: str, held: Held) -> Held | Counted | None:
        """An event: counted when its item has come, otherwise held; when too many wait, the oldest
        comes back.
        """
        digest = _digest(mark)
        if digest in self._told or digest in self._held:
            return counted(held.entry, held.kind)
        self._held[digest] = held
        return self._held.popitem(last=False)[1] if len(self._held) > MAX_HELD else None

    def end_turn(self) -> None:
        """What still waits now has no item."""
        for held in self._held.values():
            held.has_turn_ended = True

    def pop_all(self) -> list[Held]:
        waiting = list(self._held.values())
        self._held.clear()
        return waiting


def counted(entry: Entry, kind: str) -> Counted:
    """An event whose words stand in an item."""
    return Counted(
        entry.line,
        f"event_msg/{kind}"[:100],
        "told again for the screen; kept where the model read it",
    )


def _digest(mark: str) -> bytes:
    return hashlib.blake2b(mark.strip().encode("utf-8", "replace"), digest_size=16).digest()
