"""Whether what a memory says may no longer hold: four layers, each with its reason.

1. somebody said so, or a file it speaks of is gone (``stale_at``);
2. it was not used for longer than its half-life;
3. files it speaks of changed since the commit it was learned at: worth less, in proportion;
4. files it speaks of were written more than 30 days after it: to be looked at again.

What files do is asked of a :class:`FileHistory`; without one, layers 3 and 4 are silent. Where the
code that a memory names is known by itself, its verdict speaks in the place of the files: see
``core.freshness``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from smara.core.freshness import Freshness
from smara.knowledge.decay import DAY_MS, half_life_days, used_at
from smara.knowledge.models import TypedMemory

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
