"""The promotion pipeline: from what a session showed to what is remembered of it.

Eight steps: what failed goes, what showed too seldom waits, what is known is not said again, what
came from outside is marked, what is left gets its confidence, a model may put it into words,
vectors are made, and all is written at once. The first five are here, and pure. Novelty is decided
twice: here by what was promoted before, and in the transaction by the words and the meaning of
everything that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from smara.behavior.merging import is_quorum
from smara.behavior.models import Draft, Finding, Judged, Kind, Passed, Seen
from smara.behavior.pad import Pad
from smara.behavior.session_types import Gate
from smara.behavior.signals.co_access import is_implied
from smara.behavior.signals.tool_sequence import own_runs
from smara.behavior.table import draft_of, signal_of
from smara.behavior.trust_gate import taint_of, trusted
from smara.knowledge.models import Evidence, NewMemory, WorkUnit

_PER_SESSION = 0.02
"""What every session beyond the needed ones adds to the confidence."""
_MOST_CONFIDENT = 0.95
TOLD: tuple[Kind, ...] = ("tool_sequence", "co_access")
"""Of these kinds one memory may say what another does, in other words."""


class Known(NamedTuple):
    """What the store knows of a finding: where else it showed, and what it was made into."""

    seen: Seen
    memory_id: str | None = None
    is_told: bool = False
    """Whether a memory says it that did not come of this finding."""


class Judge(NamedTuple):
    """Everything a verdict depends on, beside the finding."""

    passed: Passed
    gate: Gate
    type_name: str
    pads: Sequence[Pad]
    known: Callable[[Finding], Known]

    def judge(self, finding: Finding) -> Judged:
        """The verdict on one finding: ``promoted`` means that nothing speaks against it so far."""
        signal = signal_of(finding.kind)
        against = self._not_valid(finding)
        if against:
            return Judged(finding, "discarded", against)
        taint = taint_of(finding, None, self.pads)
        if not self.gate.lets(finding.kind, signal.targets):
            why = f"nothing is learned from it in a session of type {self.type_name}"
            return Judged(finding, "discarded", why, taint=taint, is_valid=True)
        known = self.known(finding)
        if known.memory_id is not None or known.is_told:
            return Judged(
                finding,
                "known",
                "it was promoted before",
                taint=taint,
                memory_id=known.memory_id,
                is_valid=True,
            )
        needed = 1 if is_quorum(finding) else signal.least_sessions
        if known.seen.sessions < needed:
            why = f"seen in {known.seen.sessions} of the {needed} sessions that it takes"
            return Judged(finding, "waiting", why, taint=taint, is_valid=True)
        made = draft_of(finding, known.seen)
        if made is None:
            return Judged(
                finding, "discarded", "its evidence says too little", taint=taint, is_valid=True
            )
        taint = taint_of(finding, made, self.pads)
        confidence = trusted(confidence_of(signal.value, known.seen.sessions - needed), taint)
        why = (
            f"seen in {known.seen.sessions} sessions"
            if known.seen.sessions > 1
            else "one session is enough for it"
        )
        if is_quorum(finding):
            why = f"seen by {finding.agents} agents"
        return Judged(
            finding, "promoted", why, draft=made, confidence=confidence, taint=taint, is_valid=True
        )

    def _not_valid(self, finding: Finding) -> str | None:
        if self.passed == "failed" and finding.kind != "dead_end":
            return "the work of the session failed"
        if self.passed == "unproven" and not finding.is_proven:
            return "nobody has proven the work of the session, and it does not prove itself"
        return None


def judge_within(
    judge: Callable[[Finding], Judged],
    findings: Sequence[Finding],
    seconds: float,
    cpu: Callable[[], float],
) -> list[Judged]:
    """The verdicts on as many findings as the time allows, which is processor time; the most
    valuable come first.
    """
    judged: list[Judged] = []
    until = cpu() + seconds
    for finding in findings:
        if cpu() > until:
            break
        judged.append(judge(finding))
    return judged


def confidence_of(value: float, further_sessions: int) -> float:
    """What the signal is worth, and a little more for every session beyond the needed ones."""
    return round(min(_MOST_CONFIDENT, value + _PER_SESSION * max(0, further_sessions)), 3)


def choose(
    judged: Iterable[Judged], most: int, told: Sequence[Mapping[str, Any]] = ()
) -> list[Judged]:
    """The best ones of those that could be promoted, each statement once; the others with the
    reason.

    ``told`` are the sequences of commands and the pairs of files that are memories already, as they
    were seen.
    """
    ranked = sorted(judged, key=_rank)
    habits = list(told)
    chosen: list[Judged] = []
    said: set[str] = set()
    count = 0
    for each in ranked:
        content = each.draft.content if each.draft is not None else ""
        if each.verdict == "promoted" and content:
            if content in said or _is_part(each.finding, habits) or _follows(each.finding, habits):
                each = replace(each, verdict="known", why="another finding says it")
            elif count >= most:
                each = replace(
                    each, verdict="discarded", why=f"at most {most} are learned in such a session"
                )
            else:
                count += 1
                said.add(content)
                if each.finding.kind in TOLD:
                    habits.append(each.finding.data)
        chosen.append(each)
    return chosen


def _rank(judged: Judged) -> tuple[bool, float, int, str]:
    """The most certain first; of two sequences the longer one, which says more."""
    return (
        judged.verdict != "promoted",
        -judged.confidence,
        -len(judged.finding.data.get("steps", ())),
        judged.finding.subject,
    )


def _is_part(finding: Finding, others: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a sequence and one that is a memory already have half of the project's own commands
    in common.
    """
    if finding.kind != "tool_sequence":
        return False
    runs = own_runs(finding.data["steps"])
    known = [own_runs(each.get("steps", ())) for each in others]
    return any(2 * len(runs & each) >= min(len(runs), len(each)) for each in known if each)


def _follows(finding: Finding, others: Iterable[Mapping[str, Any]]) -> bool:
    """Whether two files are joined by a third one, of which memories tell already."""
    if finding.kind != "co_access":
        return False
    known = {
        frozenset((str(each["a"]), str(each["b"])))
        for each in others
        if "a" in each and "b" in each
    }
    return is_implied(frozenset((str(finding.data["a"]), str(finding.data["b"]))), known)


def new_memory(
    judged: Judged, content: str, session_id: str, work_unit: WorkUnit | None, methodology: str
) -> NewMemory:
    """A memory on its way into knowledge, with its evidence quoted and its taint kept."""
    made: Draft = judged.draft  # type: ignore[assignment]  # only what has a draft is promoted
    evidence = [Evidence(quote=quote) for quote in made.quotes]
    if made.commit:
        evidence.append(Evidence(commit=made.commit))
    return NewMemory(
        content,
        made.type,
        made.source,
        confidence=judged.confidence,
        tags=made.tags,
        files=made.files,
        modules=made.modules,
        session_id=session_id,
        commit=made.commit,
        evidence=evidence,
        work_unit=work_unit,
        methodology=methodology,
        data=dict(made.data),
        taint=judged.taint,
    )
