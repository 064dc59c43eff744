"""Boost or lower scores by phase, source, trust, files and age.

Every factor is bounded and named in the explanation of the answer. Trust decides between hits that
answer about equally well; it makes no poor hit a good one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from smara.core.startup.regex import regex
from smara.knowledge.kinds import KINDS
from smara.search.languages import STOP_WORDS
from smara.search.models import PHASES, Hit, SearchCandidate
from smara.search.query import QueryIntent
from smara.search.weights import WEIGHTS, BoostWeights

# How much each type of memory helps in a phase of the work; 1 where nothing is said.
PHASE_WEIGHTS: dict[str, dict[str, float]] = {
    phase: {kind.type: kind.boost[phase] for kind in KINDS.values() if phase in kind.boost}
    for phase in PHASES
}

_DAY_MS = 86_400_000
_LONGEST_QUESTION = 400
_SENTENCE_END = regex(r"(?<=[.!?。！？])\s+|\n+|(?<=[。！？])(?=.)")


class Boost:
    """Applies every factor to candidates."""

    def __init__(
        self,
        intent: QueryIntent,
        now_ms: int,
        weights: BoostWeights = WEIGHTS.boost,
    ) -> None:
        self._phase = intent.hints.phase
        self._files = intent.hints.files
        self._words = frozenset(intent.query.texts)
        self._now_ms = now_ms
        self._weights = weights

    def apply(self, candidate: SearchCandidate) -> None:
        """Set the score of one candidate from its fused score."""
        candidate.score, hit, weights = candidate.fused, candidate.hit, self._weights
        if hit.source == "memory":
            if self._phase:
                factor = PHASE_WEIGHTS.get(self._phase, {}).get(hit.type or "", 1.0)
                candidate.multiply(f"{hit.type} while {self._phase}", factor)
            source = str(hit.metadata.get("source", ""))
            candidate.multiply(f"source {source}", weights.source_trust.get(source, 1.0))
            confidence = hit.metadata.get("confidence")
            if isinstance(confidence, int | float):
                candidate.multiply("confidence", max(weights.least_confident, float(confidence)))
            if hit.metadata.get("isTainted"):
                origin = "outside" if hit.metadata.get("tier") == "quarantined" else "tools here"
                candidate.multiply(f"from {origin}, not confirmed by a person", weights.tainted)
            elif not hit.is_confirmed:
                candidate.multiply("unconfirmed", weights.unconfirmed)
        elif hit.source in weights.derived:
            reason = "the code itself" if hit.source == "code" else "a note of what was said"
            candidate.multiply(reason, weights.derived[hit.source])
        elif hit.role == "user" and not _is_quoted(hit) and self._asks_the_same(hit.content):
            candidate.multiply("asks the same", weights.same_question)
        if hit.files and self._files and _touches(hit.files, self._files):
            candidate.multiply("about a file in play", weights.in_play)
        if candidate.kind != "message":  # messages are ranked with their age already
            candidate.multiply("age", self._freshness(hit.created_at))

    def _asks_the_same(self, content: str) -> bool:
        """Return True if a message ends in a question that says little beyond the query."""
        from smara.core.text import analyze

        text = content[-_LONGEST_QUESTION:].rstrip()
        if not text.endswith(("?", "？")):
            return False
        terms = analyze(_SENTENCE_END.split(text)[-1])
        words = {word for word in f"{terms.prose} {terms.code}".split() if word not in STOP_WORDS}
        return bool(words) and len(words & self._words) >= self._weights.same_share * len(words)

    def _freshness(self, created_at: int) -> float:
        """Return 1.03 for what is new, 1.015 after a half-life."""
        age_days = max(0, self._now_ms - created_at) / _DAY_MS
        return 1 + self._weights.newest * math.exp2(-age_days / self._weights.half_life_days)


def _is_quoted(hit: Hit) -> bool:
    """Return True if a hit holds what the query quotes: who quotes a question looks for it."""
    return any(why.startswith("phrase ") for why in hit.why)


def _touches(files: Sequence[str], in_play: Sequence[str]) -> bool:
    """Return True if two lists name a file in common, perhaps one of them in a longer form.

    >>> _touches(["src/auth.py"], ["/home/me/app/src/auth.py"]), _touches(["h.py"], ["src/auth.py"])
    (True, False)
    """
    ours, theirs = (
        [f"/{path.replace(chr(92), '/').strip('/')}" for path in paths]
        for paths in (files, in_play)
    )
    return any(one.endswith(other) or other.endswith(one) for one in ours for other in theirs)
