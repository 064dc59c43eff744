"""Whether a memory may be told to somebody who did not ask, and what has to be said beside it."""

from __future__ import annotations

from smara.core.freshness import Freshness
from smara.knowledge.decay import confidence_now
from smara.knowledge.models import TypedMemory
from smara.knowledge.staleness import staleness_of
from smara.knowledge.trust import Tellable, may_inject


def told_unasked(
    memory: TypedMemory, now_ms: int, level: int, code: Freshness | None
) -> Tellable | None:
    """The memory as it may be told now, at a level of trust; ``None`` when it may not."""
    stale = staleness_of(memory, now_ms, None, code=code)
    worth = confidence_now(memory, now_ms, *stale.telling_factors).value
    verdict = may_inject(memory, worth, level, is_gone=stale.is_gone)
    if not verdict.allowed:
        return None
    return Tellable(
        memory,
        verdict,
        worth,
        hedge=code.hedge if code is not None and code.telling != "tell" else None,
    )
