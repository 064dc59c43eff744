"""Boost or lower scores by phase, source, trust, files and age.

Every factor is bounded and named in the explanation of the answer. Trust decides between hits that
answer about equally well; it makes no poor hit a good one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from smara.knowledge.kinds import KINDS
from smara.search.candidate import SearchCandidate
from smara.search.models import PHASES
from smara.search.query import QueryIntent

PHASE_WEIGHTS: dict[str, dict[str, float]] = {
    phase: {kind.type: kind.boost[phase] for kind in KINDS.values() if phase in kind.boost}
    for phase in PHASES
}
"""How much each type of memory helps in a phase of the work; 1 where nothing is said."""

SOURCE_TRUST: dict[str, float] = {
    "user_taught": 1.4, "agent_explicit": 1.2, "qa_auto": 1.1, "mcp_auto": 1.0, "commit_auto": 1.0,
    "observer_inferred": 0.85,
}  # fmt: skip
"""How much a memory counts by where it comes from."""

_DERIVED = {"observation": 0.6, "reflection": 0.55}
"""Where what was said answers about as well as what was noted of it, the words themselves come
first.
"""
_CODE = 0.6
"""The same for the code itself: it holds every name there is, and why it is so was said
elsewhere.
"""
_UNCONFIRMED = 0.85
_TAINTED = 0.7
_IN_PLAY = 1.2
_NEWEST = 0.03
_HALF_LIFE_DAYS = 30.0
_SHORTEST_HALF_LIFE_DAYS = 3.0
_LEAST_CONFIDENT = 0.3
_DAY_MS = 86_400_000

Volatility = Callable[[Sequence[str]], float]
"""How often files changed lately, as changes a month; 0 for what is not known."""


def still(files: Sequence[str]) -> float:
    """A volatility for those who know nothing of the files."""
    return 0.0


class Boost:
    """Applies every factor to what was found."""

    def __init__(self, asked: QueryIntent, now_ms: int, volatility: Volatility = still) -> None:
        self._weights = PHASE_WEIGHTS.get(asked.hints.phase or "", {})
        self._phase = asked.hints.phase
        self._files = asked.hints.files
        self._now_ms = now_ms
        self._volatility = volatility

    def apply(self, found: SearchCandidate) -> None:
        """Set the score of one thing from its fused score."""
        found.score, hit = found.fused, found.hit
        if hit.source == "memory":
            self._judge_memory(found)
        elif hit.source in _DERIVED:
            found.multiply("a note of what was said", _DERIVED[hit.source])
        elif hit.source == "code":
            found.multiply("the code itself", _CODE)
        if hit.files and self._files and _touches(hit.files, self._files):
            found.multiply("about a file in play", _IN_PLAY)
        if found.kind != "message":  # messages are ranked with their age already
            found.multiply("recent", self._freshness(hit.created_at, hit.files))

    def _judge_memory(self, found: SearchCandidate) -> None:
        hit = found.hit
        if self._phase:
            found.multiply(
                f"{hit.type} while {self._phase}", self._weights.get(hit.type or "", 1.0)
            )
        source = str(hit.metadata.get("source", ""))
        found.multiply(f"source {source}", SOURCE_TRUST.get(source, 1.0))
        confidence = hit.metadata.get("confidence")
        if isinstance(confidence, int | float):
            found.multiply("confidence", max(_LEAST_CONFIDENT, float(confidence)))
        if hit.metadata.get("isTainted"):
            found.multiply("from outside, not confirmed by a person", _TAINTED)
        elif not hit.is_confirmed:
            found.multiply("unconfirmed", _UNCONFIRMED)

    def _freshness(self, created_at: int, files: Sequence[str]) -> float:
        """1.03 for what is new, 1.015 after a half-life; what is about files that change often ages
        sooner.

        Eight changes a month bring a half-life of 30 days down to about 7.
        """
        half_life = max(
            _SHORTEST_HALF_LIFE_DAYS,
            _HALF_LIFE_DAYS / (1 + 0.4 * self._volatility(files) if files else 1),
        )
        age_days = max(0, self._now_ms - created_at) / _DAY_MS
        return 1 + _NEWEST * math.exp2(-age_days / half_life)


def _touches(files: Sequence[str], in_play: Sequence[str]) -> bool:
    """Whether two lists of paths name a file in common, one of them perhaps in a longer form.

    >>> _touches(["src/auth.py"], ["/home/me/app/src/auth.py"]), _touches(["h.py"], ["src/auth.py"])
    (True, False)
    """
    return any(_is_same(one, other) for one in files for other in in_play)


def _is_same(one: str, other: str) -> bool:
    shorter, longer = sorted(
        (one.replace("\\", "/").strip("/"), other.replace("\\", "/").strip("/")), key=len
    )
    return longer == shorter or longer.endswith(f"/{shorter}")
