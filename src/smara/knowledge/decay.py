"""Compute the confidence of a memory today and reasons for staleness.

Confidence fades from the last verified use: stored 0.80, half-life 60 days, last use 90 days ago
gives 0.80 × 0.5^(90/60) = 0.28. Pinned memories and types without a half-life do not fade. A memory
is stale if it was marked, unused for a half-life, or if its files changed since.
"""

from __future__ import annotations

from typing import Protocol

from smara.core.freshness import Freshness
from smara.core.startup.record import dataclass
from smara.knowledge.kinds import KINDS, half_life_of
from smara.knowledge.models import TypedMemory

DAY_MS = 86_400_000
PRUNED_AFTER_HALF_LIVES = 3
"""After three half-lives without verified use an eighth is left, and the memory is put aside."""


@dataclass(frozen=True, slots=True)
class ConfidenceStep:
    """One step of the arithmetic: its name, factor and result."""

    text: str
    factor: float
    value: float


@dataclass(frozen=True, slots=True)
class ConfidenceNow:
    """The worth of a memory now, with the calculation."""

    value: float
    steps: tuple[ConfidenceStep, ...]


def used_at(memory: TypedMemory) -> int:
    """Return the time of a memory's last verified use or its evidence."""
    used = memory.last_verified_use_at
    return memory.evidence_at if used is None else used


def half_life_days(memory: TypedMemory) -> float | None:
    """Return the half-life in force; None for what does not fade."""
    return None if memory.is_pinned else half_life_of(memory.type, memory.half_life_days)


def fading(memory: TypedMemory, now_ms: int) -> float:
    """Return the factor by which time has faded a memory.

    A clock that was set back does not make anything worth more than it was.
    """
    half_life = half_life_days(memory)
    days = max(0, now_ms - used_at(memory)) / DAY_MS
    return 1.0 if half_life is None else 0.5 ** min(days / half_life, 1_000)


def confidence_now(memory: TypedMemory, now_ms: int, *others: tuple[str, float]) -> ConfidenceNow:
    """Return what a memory is worth now; ``others`` are further factors."""
    half_life = half_life_days(memory)
    if memory.is_pinned:
        age = "pinned: it does not fade"
    elif half_life is None:
        age = f"it does not fade: {KINDS[memory.type].because}"
    else:
        days = max(0, now_ms - used_at(memory)) // DAY_MS
        is_used = memory.last_verified_use_at is not None
        since = "it was made" if memory.seen_at is None else "it was seen"
        since = "its last verified use" if is_used else since
        age = f"{days} {'day' if days == 1 else 'days'} since {since}, half-life {half_life:g} days"
    value = memory.confidence
    steps = [ConfidenceStep(f"stored confidence, type {memory.type}", 1.0, round(value, 4))]
    for text, factor in ((age, fading(memory, now_ms)), *others):
        value *= factor
        steps.append(ConfidenceStep(text, round(factor, 4), round(value, 4)))
    return ConfidenceNow(round(value, 4), tuple(steps))


REVIEW_AFTER_DAYS = 30
MOST_LOST_TO_CHANGES = 0.5
"""When every file has changed, half of the confidence is left: what was true of them may still
be.
"""


class FileHistory(Protocol):
    """The history of a project's files; None means unknown."""

    def exists(self, path: str) -> bool | None:
        """Return True if the file is there."""

    def called(self, name: str) -> str | None:
        """Return the one file whose path ends like this."""

    def changed_since(self, path: str, commit: str) -> bool | None:
        """Return True if the file has changed since a commit."""

    def modified_at(self, path: str) -> int | None:
        """Return when the file was last written (ms)."""


@dataclass(frozen=True, slots=True)
class StaleReason:
    """One layer's finding, and the factor it takes from the confidence."""

    layer: int
    text: str
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Staleness:
    """The findings of the four layers."""

    reasons: tuple[StaleReason, ...] = ()
    needs_review: bool = False
    is_withheld: bool = False
    """Whether so much of its code has changed that the policy keeps it back."""
    is_by_code: bool = False
    """Whether the code it names was judged by itself."""

    @property
    def is_stale(self) -> bool:
        """True if it is to be hedged when told."""
        return bool(self.reasons)

    @property
    def is_gone(self) -> bool:
        """True if it was marked, or its subject is gone."""
        return self.is_withheld or any(reason.layer == 1 for reason in self.reasons)

    @property
    def factors(self) -> tuple[tuple[str, float], ...]:
        """The factors it takes from the confidence, besides time."""
        return tuple(
            (reason.text, reason.factor) for reason in self.reasons if reason.factor != 1.0
        )

    @property
    def telling_factors(self) -> tuple[tuple[str, float], ...]:
        """The factors for an injection; for changed code, the policy decides."""
        return () if self.is_by_code else self.factors


def staleness_of(
    memory: TypedMemory,
    now_ms: int,
    files: FileHistory | None = None,
    code: Freshness | None = None,
) -> Staleness:
    """Return what the four layers say of a memory.

    Args:
        memory: The memory.
        now_ms: The time.
        files: The history of its files, for memories that name no code.
        code: The verdict on the code it names, where it names any.
    """
    found: list[StaleReason] = []
    history = files if code is None else None
    gone = [path for path in memory.files if history is not None and history.exists(path) is False]
    if memory.stale_at is not None:
        reason = f"marked as stale: {memory.stale_because or 'no reason given'}"
        found.append(StaleReason(1, reason))
    elif gone and len(gone) == len(memory.files):
        found.append(StaleReason(1, f"{_named(gone)} {'is' if len(gone) == 1 else 'are'} gone"))
    half_life, days = half_life_days(memory), (now_ms - used_at(memory)) / DAY_MS
    if half_life is not None and days > half_life:
        unused = f"not used for {int(days)} days, longer than its half-life of {half_life:g}"
        found.append(StaleReason(2, unused))
    if code is not None:
        if code.needs_review and code.hedge is not None:
            # Changed code takes from the confidence what changed files would, by the share of it
            # that differs.
            share = 1.0 if code.changed is None else code.changed
            is_gone = code.verdict == "orphaned" and code.is_withheld
            factor = 1.0 if is_gone else round(1 - MOST_LOST_TO_CHANGES * share, 4)
            found.append(StaleReason(1 if is_gone else 3, code.hedge, factor))
        return Staleness(tuple(found), code.needs_review, code.is_withheld, is_by_code=True)
    if files is None:
        return Staleness(tuple(found))
    commit, paths = memory.commit, memory.files
    changed = [path for path in paths if commit is not None and files.changed_since(path, commit)]
    if changed and commit is not None:
        factor = 1 - MOST_LOST_TO_CHANGES * len(changed) / len(paths)
        text = (
            f"{len(changed)} of {len(paths)} files changed since {commit[:12]}: {_named(changed)}"
        )
        found.append(StaleReason(3, text, round(factor, 4)))
    seen_at = max(used_at(memory), memory.verified_at or 0)
    limit = seen_at + REVIEW_AFTER_DAYS * DAY_MS
    rewritten = [path for path in paths if (files.modified_at(path) or 0) > limit]
    if rewritten:
        text = f"written more than {REVIEW_AFTER_DAYS} days after it: look at it again"
        found.append(StaleReason(4, f"{_named(rewritten)} {text}"))
    return Staleness(tuple(found), needs_review=bool(rewritten))


def _named(paths: list[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
