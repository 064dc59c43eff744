"""Detect files that change together in many sessions (signal 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from smara.actions.paths import is_lock, is_prose, is_test, is_test_of
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding, wilson_lower_bound
from smara.behavior.scratchpad import Pad, code

SIGNAL = Signal(
    2,
    "co_access",
    0.92,
    relevance=0.95,
    false_positives=0.175,
    targets=("causal_dependency", "prefetch_pattern"),
    least_sessions=3,
    quotes=(),
    learned_in=("build", "insights"),
    edited=("first", "second"),
    is_pair=True,
)
_MOST_EDITED = 15
"""A session that changes more files than this is a sweep: everything goes with everything."""
_LEAST_STRENGTH = 0.5
"""How sure it must be, at the least, that the next change of the one will change the other."""
_LEAST_LIFT = 4.0
"""So much more often than without the one the other must be changed: some files are changed in
nearly every session.
"""
_LEAST_DAYS = 3
_NARROW, _LEAST_SUPPORT = 3.0, 1.5
_MOST_PAIRS = 40


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """Detect pairs of files changed close in time.

    Not a source with its own test, nor what tools write.
    """
    width = len(pad.edited_files())
    if width > _MOST_EDITED:
        return
    pairs = sorted(
        ((key, each) for key, each in pad.pairs if each.edits), key=lambda item: -item[1].edits
    )
    for key, entry in pairs[:_MOST_PAIRS]:
        first, second = key.split("|", 1)
        if (
            is_test_of(first, second)
            or is_lock(first)
            or is_lock(second)
            or (is_prose(first) and is_prose(second))
        ):
            continue
        yield SignalFinding(
            "co_access",
            key,
            f"{first} with {second}",
            step=entry.first_step,
            data={
                "first": first,
                "second": second,
                "count": entry.edits,
                "lead": entry.lead,
                "day": pad.day,
                "width": width,
                "apart_ms": round(entry.apart_ms / max(1, entry.count)),
            },
        )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    if seen.days < _LEAST_DAYS or support_of(seen) < _LEAST_SUPPORT:
        return None
    lead = sum(1 if data.get("lead", 0) > 0 else -1 for data in seen.history if data.get("lead"))
    pair = Pair(finding.data["first"], finding.data["second"], lead, together=len(seen.history))
    return coupled(pair, seen.edit_sessions, seen.all_sessions)


class Pair(NamedTuple):
    """Two co-changed files, their order, and joint sessions.

    Above 0: the first was mostly changed first.
    """

    first: str
    second: str
    lead: int
    together: int


def coupled(pair: Pair, edit_sessions: Mapping[str, int], all_sessions: int) -> MemoryDraft | None:
    """Return the coupling of two files in most sessions, or ``None``.

    The one that is changed first calls for the other, if it is seldom changed without it. A test
    that is changed calls for nothing, and neither does prose.
    """
    first, second, lead, together = pair
    for trigger, dependent in (
        ((first, second), (second, first)) if lead >= 0 else ((second, first), (first, second))
    ):
        changed = max(together, edit_sessions.get(trigger, together))
        others = max(0, edit_sessions.get(dependent, together) - together)
        is_calling = not is_test(trigger) and not is_prose(trigger)
        if (
            is_calling
            and wilson_lower_bound(together, changed) >= _LEAST_STRENGTH
            and is_lifted(together / changed, others, all_sessions - changed)
        ):
            break
    else:
        return None
    return MemoryDraft(
        "causal_dependency",
        f"When {code(trigger)} changes, {code(dependent)} is changed with it: "
        f"in {together} of {changed} sessions that changed it.",
        (f"{trigger} and {dependent} were both edited in {together} sessions",),
        files=(trigger, dependent),
        data={
            "trigger_file": trigger,
            "dependent_files": [dependent],
            "strength": round(together / changed, 2),
            "session_count": together,
            "reason": "changed together",
        },
    )


def is_repeated(data: Mapping[str, Any], memories: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if a third file already joins a pair."""
    pairs = {frozenset(SIGNAL.edited_files(each)) for each in memories}
    return is_implied(frozenset(SIGNAL.edited_files(data)), pairs)


def support_of(seen: Seen) -> float:
    """Return the weighted number of supporting sessions.

    Two files of two that were changed belong together, two of a dozen need not.
    """
    return sum(min(1.0, _NARROW / max(1, int(data.get("width", 2)) - 1)) for data in seen.history)


def is_implied(pair: frozenset[str], pairs: Set[frozenset[str]]) -> bool:
    """Return True if a third file already joins the two.

    What follows from two memories need not be a third.
    """
    first, second = sorted(pair)
    around = [{*each} - {name} for name in (first, second) for each in pairs if name in each]
    return any(one == other for at, one in enumerate(around) for other in around[:at])


def is_lifted(share: float, others: int, sessions: int) -> bool:
    """Return True if joint changes exceed separate ones clearly."""
    return sessions <= 0 or share >= _LEAST_LIFT * others / sessions
