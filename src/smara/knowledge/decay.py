"""Compute the confidence of a memory today and reasons for staleness.

Confidence fades from the last verified use: stored 0.80, half-life 60 days, last use 90 days ago
gives 0.80 × 0.5^(90/60) = 0.28. Pinned memories and types without a half-life do not fade. A memory
is stale if it was marked, unused for a half-life, or if its files changed since.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from smara.core.freshness import Freshness
from smara.knowledge.kinds import KINDS, half_life_of
from smara.knowledge.models import TypedMemory

DAY_MS = 86_400_000
PRUNED_AFTER_HALF_LIVES = 3
"""After three half-lives without verified use an eighth is left, and the memory is put aside."""


@dataclass(frozen=True, slots=True)
class ConfidenceStep:
    """One step of the arithmetic: what it is, by what it multiplies, and what comes out."""

    text: str
    factor: float
    value: float


@dataclass(frozen=True, slots=True)
class ConfidenceNow:
    """What a memory is worth now, and how that was worked out."""

    value: float
    steps: tuple[ConfidenceStep, ...]


def used_at(memory: TypedMemory) -> int:
    """When a memory was last known to be right: its last verified use, or when it was made."""
    return (
        memory.last_verified_use_at
        if memory.last_verified_use_at is not None
        else memory.created_at
    )


def half_life_days(memory: TypedMemory) -> float | None:
    """The half-life in force; ``None`` for what does not fade."""
    return None if memory.is_pinned else half_life_of(memory.type, memory.half_life_days)


def fading(memory: TypedMemory, now_ms: int) -> float:
    """The factor by which time has faded a memory, from 1 down to 0.

    A clock that was set back does not make anything worth more than it was.
    """
    half_life = half_life_days(memory)
    days = max(0, now_ms - used_at(memory)) / DAY_MS
    return 1.0 if half_life is None else 0.5 ** min(days / half_life, 1_000)


def confidence_now(memory: TypedMemory, now_ms: int, *others: tuple[str, float]) -> ConfidenceNow:
    """What a memory is worth now; ``others`` are further factors, such as files that have
    changed.
    """
    value = memory.confidence
    steps = [ConfidenceStep(f"stored confidence of a {memory.type}", 1.0, round(value, 4))]
    for text, factor in ((_told(memory, now_ms), fading(memory, now_ms)), *others):
        value *= factor
        steps.append(ConfidenceStep(text, round(factor, 4), round(value, 4)))
    return ConfidenceNow(round(value, 4), tuple(steps))


def is_due(memory: TypedMemory, now_ms: int) -> bool:
    """Whether a memory has faded so far that it is put aside; what a person verified or pinned
    never is.
    """
    half_life = half_life_days(memory)
    if half_life is None or memory.is_verified:
        return False
    return now_ms - used_at(memory) > PRUNED_AFTER_HALF_LIVES * half_life * DAY_MS


def _told(memory: TypedMemory, now_ms: int) -> str:
    if memory.is_pinned:
        return "pinned: it does not fade"
    half_life = half_life_days(memory)
    if half_life is None:
        return f"it does not fade: {KINDS[memory.type].because}"
    days = max(0, now_ms - used_at(memory)) // DAY_MS
    since = "its last verified use" if memory.last_verified_use_at is not None else "it was made"
    return f"{days} days since {since}, half-life {half_life:g} days"


REVIEW_AFTER_DAYS = 30
MOST_LOST_TO_CHANGES = 0.5
"""When every file has changed, half of the confidence is left: what was true of them may still
be.
"""


class FileHistory(Protocol):
    """What is known of the files of a project. Every answer may be ``None``: nobody knows."""

    def exists(self, path: str) -> bool | None:
        """Whether the file is there."""
        ...

    def changed_since(self, path: str, commit: str) -> bool | None:
        """Whether the file has changed since a commit."""
        ...

    def modified_at(self, path: str) -> int | None:
        """When the file was last written (ms)."""
        ...


@dataclass(frozen=True, slots=True)
class StaleReason:
    """One layer that found something: what, and by what factor the memory is worth less for it."""

    layer: int
    text: str
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Staleness:
    """What the four layers found."""

    reasons: tuple[StaleReason, ...] = ()
    needs_review: bool = False
    is_withheld: bool = False
    """Whether so much of its code has changed that the policy keeps it back."""
    is_by_code: bool = False
    """Whether the code it names was judged by itself."""

    @property
    def is_stale(self) -> bool:
        """Whether it is to be hedged when told: something found it, be it only in part."""
        return bool(self.reasons)

    @property
    def is_gone(self) -> bool:
        """Whether it is not to be told unasked at all: it was marked, or what it speaks of is
        gone.
        """
        return self.is_withheld or any(reason.layer == 1 for reason in self.reasons)

    @property
    def factors(self) -> tuple[tuple[str, float], ...]:
        """What it takes from the confidence; time is counted by the decay already."""
        return tuple(
            (reason.text, reason.factor) for reason in self.reasons if reason.factor != 1.0
        )

    @property
    def telling_factors(self) -> tuple[tuple[str, float], ...]:
        """What it takes when it is decided whether a memory is told unasked: for changed code, the
        policy decides.
        """
        return () if self.is_by_code else self.factors


def staleness_of(
    memory: TypedMemory,
    now_ms: int,
    files: FileHistory | None = None,
    code: Freshness | None = None,
) -> Staleness:
    """What the four layers say of a memory; ``code`` is the verdict on the code it names, where it
    names any.
    """
    if code is not None:
        found = [*_marked(memory, None), *_unused(memory, now_ms), *_code(code)]
        return Staleness(tuple(found), code.needs_review, code.is_withheld, is_by_code=True)
    found = [*_marked(memory, files), *_unused(memory, now_ms)]
    changed = _changed(memory, files)
    rewritten = _rewritten(memory, files)
    return Staleness((*found, *changed, *rewritten), needs_review=bool(rewritten))


def _marked(memory: TypedMemory, files: FileHistory | None) -> list[StaleReason]:
    if memory.stale_at is not None:
        return [StaleReason(1, f"marked as stale: {memory.stale_because or 'no reason given'}")]
    gone = [path for path in memory.files if files is not None and files.exists(path) is False]
    if gone and len(gone) == len(memory.files):
        return [StaleReason(1, f"{_named(gone)} {'is' if len(gone) == 1 else 'are'} gone")]
    return []


def _unused(memory: TypedMemory, now_ms: int) -> list[StaleReason]:
    half_life = half_life_days(memory)
    days = (now_ms - used_at(memory)) / DAY_MS
    if half_life is None or days <= half_life:
        return []
    return [
        StaleReason(2, f"not used for {int(days)} days, longer than its half-life of {half_life:g}")
    ]


def _changed(memory: TypedMemory, files: FileHistory | None) -> list[StaleReason]:
    if files is None or not memory.files or memory.commit is None:
        return []
    changed = [path for path in memory.files if files.changed_since(path, memory.commit)]
    if not changed:
        return []
    factor = 1 - MOST_LOST_TO_CHANGES * len(changed) / len(memory.files)
    text = (
        f"{len(changed)} of {len(memory.files)} files changed since {memory.commit[:12]}: "
        f"{_named(changed)}"
    )
    return [StaleReason(3, text, round(factor, 4))]


def _code(code: Freshness) -> list[StaleReason]:
    """Changed code takes from the confidence what changed files would, by the share of it that
    differs.
    """
    if not code.needs_review or code.hedge is None:
        return []
    if code.verdict == "orphaned" and code.is_withheld:
        return [StaleReason(1, code.hedge)]
    share = 1.0 if code.changed is None else code.changed
    return [StaleReason(3, code.hedge, round(1 - MOST_LOST_TO_CHANGES * share, 4))]


def _rewritten(memory: TypedMemory, files: FileHistory | None) -> list[StaleReason]:
    if files is None:
        return []
    known = max(used_at(memory), memory.verified_at or 0)
    found = []
    for path in memory.files:
        written = files.modified_at(path)
        if written is not None and written - known > REVIEW_AFTER_DAYS * DAY_MS:
            found.append(path)
    if not found:
        return []
    return [
        StaleReason(
            4,
            f"{_named(found)} written more than {REVIEW_AFTER_DAYS} days after it: look at it "
            "again",
        )
    ]


def _named(paths: list[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
