"""What memories rest on, as this room sees it: messages and observations are in other rooms, which
answer here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from smara.database.database import Session
from smara.knowledge.models import Evidence


@dataclass(frozen=True, slots=True)
class SourceShown:
    """A piece of evidence as it can be looked at: whether it is there, what it says, and its
    taint.
    """

    evidence: Evidence
    is_there: bool | None
    """``None`` when nobody here can tell, as for a file."""
    text: str = ""
    told_by: str | None = None
    """Who said it: the role of a message."""
    at: int | None = None
    taint: tuple[str, ...] = ()


class Sources(Protocol):
    """Answers for messages and observations."""

    def shown(self, session: Session, evidence: Sequence[Evidence]) -> list[SourceShown]:
        """Pieces of evidence with what they say, in their order."""
        ...

    def ambient_taint(self, session: Session, thread_id: str) -> tuple[str, ...]:
        """What came into a conversation from outside, up to now."""
        ...


class NoSources:
    """Nobody answers: evidence is taken as it is given."""

    def shown(self, session: Session, evidence: Sequence[Evidence]) -> list[SourceShown]:
        return [SourceShown(each, None, each.quote or "") for each in evidence]

    def ambient_taint(self, session: Session, thread_id: str) -> tuple[str, ...]:
        return ()
