"""The code that memories name, as this room sees it: another room reads code, and answers here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from smara.core.freshness import Freshness
from smara.database.database import Session
from smara.knowledge.models import TypedMemory
from smara.knowledge.store import Stored

_NAMING = ("content", "files", "evidence", "commit", "data")
"""The fields by which a memory names code."""


class NamedCode(Protocol):
    """Knows the code that memories name. Nothing it does may keep a memory from being written or
    read.
    """

    def written(self, memories: Sequence[Stored]) -> None:
        """Memories were made or changed: find the code they name. What they named before stays as
        it was.
        """
        ...

    def verified(self, memories: Sequence[Stored]) -> None:
        """A person said that they are true today: the code of today is what they speak of."""
        ...

    def taken_back(self, memories: Sequence[Stored], since_ms: int) -> None:
        """What a person said at some moment was taken back: what they spoke of before is what they
        speak of.
        """
        ...

    def freshness(self, session: Session, numbers: Sequence[int]) -> Mapping[int, Freshness]:
        """How memories stand to the code they name, by number; those that name none are left
        out.
        """
        ...

    def named_in(self, session: Session, paths: Sequence[str] | None) -> Sequence[int]:
        """The numbers of the memories that name code in some files, or any."""
        ...


class NoCode:
    """Nobody reads code here."""

    def written(self, memories: Sequence[Stored]) -> None:
        return None

    def verified(self, memories: Sequence[Stored]) -> None:
        return None

    def taken_back(self, memories: Sequence[Stored], since_ms: int) -> None:
        return None

    def freshness(self, session: Session, numbers: Sequence[int]) -> Mapping[int, Freshness]:
        return {}

    def named_in(self, session: Session, paths: Sequence[str] | None) -> Sequence[int]:
        return ()


def tell(code: NamedCode, before: TypedMemory | None, after: Stored) -> None:
    """Tell who reads code what a change of a memory means for it: nothing, mostly."""
    if before is None:
        code.written([after])
        return
    memory, was_at = after.memory, before.verified_at
    if (
        memory.verified_at is not None
        and memory.verified_at != was_at
        and memory.verified_at >= (was_at or 0)
    ):
        code.verified([after])
        return
    if was_at is not None and memory.verified_at != was_at:
        code.taken_back([after], was_at)
    if any(getattr(before, name) != getattr(memory, name) for name in _NAMING):
        code.written([after])
