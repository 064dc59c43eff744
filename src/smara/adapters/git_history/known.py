"""Which commits memories rest on already, so that each is taken once.

A commit may be known by a short name, when an agent was seen making it. A chain of fixes and the
reason that one of its commits gives are two things; a chain that has grown takes the place of the
shorter one.
"""

from __future__ import annotations

from collections.abc import Iterable

from smara.adapters.git_history.models import Candidate, Kind
from smara.knowledge.models import TypedMemory

_SHORT = 7


def tag_of(kind: Kind) -> str:
    """The tag of memories that were made of such commits."""
    return kind.replace(" ", "-")


_CHAIN = tag_of("fix chain")


class Known:
    """The memories that rest on commits, by commit."""

    def __init__(self, memories: Iterable[TypedMemory]) -> None:
        self._said: dict[str, list[tuple[str, TypedMemory]]] = {}
        self._chains: dict[str, list[tuple[str, TypedMemory]]] = {}
        for memory in memories:
            kept = self._chains if _CHAIN in memory.tags else self._said
            commits = {each.commit.lower() for each in memory.evidence if each.commit}
            for sha in commits | ({memory.commit.lower()} if memory.commit else set()):
                kept.setdefault(sha[:_SHORT], []).append((sha, memory))

    def holder(self, candidate: Candidate) -> TypedMemory | None:
        """The memory that says it already; of a chain, one that has its newest fix, or that a
        person put aside.
        """
        if candidate.kind != "fix chain":
            return self._find(self._said, candidate.sha)
        older = self._older(candidate)
        same = self._find(self._chains, candidate.sha)
        return same or (older if older is not None and not older.is_active else None)

    def shorter(self, candidate: Candidate) -> str | None:
        """The id of the chain that this one continues; nobody's word is replaced who stands behind
        it.
        """
        older = self._older(candidate)
        return (
            older.id if older is not None and not (older.is_verified or older.is_pinned) else None
        )

    def _older(self, candidate: Candidate) -> TypedMemory | None:
        if candidate.kind != "fix chain":
            return None
        found = [
            memory
            for sha, _ in candidate.quotes
            if (memory := self._find(self._chains, sha)) is not None
        ]
        return next((each for each in found if each.is_active), found[0] if found else None)

    @staticmethod
    def _find(kept: dict[str, list[tuple[str, TypedMemory]]], sha: str) -> TypedMemory | None:
        near = kept.get(sha[:_SHORT], ())
        return next(
            (memory for known, memory in near if sha.startswith(known) or known.startswith(sha)),
            None,
        )
