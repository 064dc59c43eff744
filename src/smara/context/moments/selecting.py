"""Which memories a session begins with: pure arithmetic, the same answer for the same store.

Every type has a share of the room, so that thirty traps cannot crowd out the one decision; what a
type does not use goes to the best of the rest. What is chosen then stands in an order of its own,
by type and age, which does not change when something else becomes a little more important.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from smara.context.moments.wording import TITLES
from smara.knowledge.models import MemoryType
from smara.knowledge.trust import Tellable

SHARES: Mapping[MemoryType, float] = {
    "requirement": 0.10, "decision": 0.20, "preference": 0.10, "pattern": 0.08,
    "workflow_recipe": 0.12,
    "gotcha": 0.20, "error_pattern": 0.10, "dead_end": 0.07,
}  # fmt: skip
MOST = 28
"""More than this nobody reads at the start of a session."""
MOST_UNCONFIRMED = 6
_PINNED, _CONFIRMED = 0.6, 0.3
_NEAR = (0.8, 0.4)
"""What being about the files at hand adds, and about a folder around them."""
_USED = 0.04
_ORDER = {type_: number for number, type_ in enumerate(TITLES)}


class Candidate(NamedTuple):
    """A memory that may be told, its line and what that takes, and how near it is: 0 the file at
    hand, 1 around it.
    """

    told: Tellable
    line: str
    cost: int
    nearness: int | None = None


def score(candidate: Candidate) -> float:
    """How much a memory is worth at the start of a session.

    A pinned decision, confirmed, of confidence 0.9: 0.9 + 0.6 + 0.3 = 1.8. A trap that an agent
    noted for the file at hand, of confidence 0.85: 0.85 + 0.8 = 1.65.
    """
    memory = candidate.told.memory
    near = 0.0 if candidate.nearness is None else _NEAR[min(candidate.nearness, 1)]
    return (
        candidate.told.confidence
        + near
        + _PINNED * memory.is_pinned
        + _CONFIRMED * (memory.tier == "confirmed")
        + _USED * min(memory.verified_uses, 5)
    )


def choose(candidates: Sequence[Candidate], room: int) -> list[Candidate]:
    """Those that are said within a number of tokens, in the order in which they are said."""
    ranked = sorted(candidates, key=lambda each: (-score(each), each.told.memory.id))
    chosen: dict[str, Candidate] = {}
    left = _fill(ranked, chosen, room)
    _take(ranked, chosen, left, type_=None)
    return sorted(chosen.values(), key=_place)


def _fill(ranked: Sequence[Candidate], chosen: dict[str, Candidate], room: int) -> int:
    left = room
    for type_, share in SHARES.items():
        part = min(int(room * share), left)
        left -= part - _take(ranked, chosen, part, type_=type_)
    return left


def _take(
    ranked: Sequence[Candidate], chosen: dict[str, Candidate], room: int, type_: MemoryType | None
) -> int:
    """Put in what fits, of one type or of any; the room that is left."""
    for each in ranked:
        memory = each.told.memory
        is_other = type_ is not None and memory.type != type_
        if is_other or memory.id in chosen or each.cost > room or len(chosen) >= MOST:
            continue
        is_open = memory.tier != "confirmed"
        if (
            is_open
            and sum(other.told.memory.tier != "confirmed" for other in chosen.values())
            >= MOST_UNCONFIRMED
        ):
            continue
        chosen[memory.id] = each
        room -= each.cost
    return room


def _place(candidate: Candidate) -> tuple[bool, int, int, str]:
    memory = candidate.told.memory
    order = _ORDER.get(memory.type, len(_ORDER))
    return (
        memory.tier != "confirmed",
        order if memory.tier == "confirmed" else 0,
        memory.created_at,
        memory.id,
    )
