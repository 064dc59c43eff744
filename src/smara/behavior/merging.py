"""Merging the scratchpads of agents that worked at the same time on one task.

What several of them saw independently is one finding with a quorum: seen by two, it needs no
second session. The same thing said in other words counts as the same when most words are shared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from smara.behavior.models import Finding
from smara.core.text import find_words

SAME = 0.85
QUORUM = 2
_OBSERVED = frozenset(
    {
        "error_retry",
        "self_correction",
        "repeated_grep",
        "read_abandon",
        "glob_ignore",
        "backtrack",
        "dead_end",
        "e2e",
    }
)


def merge(findings: Iterable[Finding]) -> list[Finding]:
    """Each finding once, with how many agents had it; those of one agent are told apart by their
    keys alone.
    """
    merged: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        same = merged.get((finding.kind, finding.key)) or _alike(finding, merged.values())
        if same is None:
            merged[(finding.kind, finding.key)] = finding
        else:
            merged[(same.kind, same.key)] = _joined(same, finding)
    return list(merged.values())


def _joined(one: Finding, other: Finding) -> Finding:
    better = one if one.is_proven or not other.is_proven else other
    agents = one.agents + (0 if one.kind == "parallel_conflict" else other.agents)
    return replace(
        better,
        key=one.key,
        step=min(one.step, other.step),
        agents=agents,
        counts_as=max(one.counts_as, other.counts_as),
        is_proven=one.is_proven or other.is_proven,
    )


def _alike(finding: Finding, others: Iterable[Finding]) -> Finding | None:
    """A correction or a dead end in nearly the same words; other signals have keys that say it
    exactly.
    """
    if finding.kind not in ("self_correction", "dead_end"):
        return None
    words = _words(finding.subject)
    for other in others:
        if other.kind == finding.kind and _share(words, _words(other.subject)) > SAME:
            return other
    return None


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in find_words(text))


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0


def is_quorum(finding: Finding) -> bool:
    """Whether enough agents saw it. Which files a task takes is no observation: its agents share
    the task.
    """
    return finding.agents >= QUORUM and finding.kind in _OBSERVED
