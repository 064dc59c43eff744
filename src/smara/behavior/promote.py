"""Promote findings of a session to memories.

The session's type and outcome decide which kinds may be learned. Findings of parallel
agents are merged. Taint follows the source of a finding, not its wording: an agent that
has read a web page may repeat what the page wants. All steps here are pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import Any, NamedTuple

from smara.actions.paths import is_config, is_prose, is_source, is_test, modules_of
from smara.behavior.cues import CUES
from smara.behavior.models import FindingVerdict, Kind, MemoryDraft, Outcome, Seen, SignalFinding
from smara.behavior.outcome import SOUND
from smara.behavior.scratchpad import Pad
from smara.behavior.signals.registry import draft_of, repeat_checks, signal_of
from smara.core.startup.record import replace
from smara.core.text import find_words
from smara.knowledge.gate import SessionType
from smara.knowledge.models import LOCAL_TAINT, Evidence, NewMemory, WorkUnit


def type_of(pads: Sequence[Pad], stated: SessionType | None = None) -> tuple[SessionType, str]:
    """The type of a session, and the reason for it."""
    if stated is not None:
        return stated, "it was stated"
    edited = [path for pad in pads for path in pad.edited_files()]
    sources = [path for path in edited if is_source(path) or is_test(path) or is_config(path)]
    cues = {cue for pad in pads for cue in pad.facts.cues}
    reviewed = any(pad.facts.reviewed for pad in pads)
    if not sources and (reviewed or "review" in cues):
        return (
            "pr_review",
            "a review was submitted"
            if reviewed
            else "a review was asked for, and no edit of code was seen",
        )
    if not sources and (
        "changelog" in cues
        or (edited and all(CUES["changelog path"].search(path) for path in edited))
    ):
        return "changelog", "it was about a changelog"
    # A commit without a known edit: the plan was carried out by what is not seen.
    has_plan = any(pad.facts.accepted for pad in pads) and not any(pad.commits for pad in pads)
    if not sources and has_plan:
        return "spec", "a plan was accepted, and no edit of code was seen"
    if not sources and "spec" in cues and all(map(is_prose, edited)):
        return "spec", "a specification was asked for, and no edit of code was seen"
    if not sources and "roadmap" in cues:
        return "roadmap", "a roadmap was asked for, and no edit of code was seen"
    if edited:
        noun = "file was" if len(edited) == 1 else "files were"
        return "build", f"{len(edited)} {noun} edited"
    steps, runs = sum(pad.step for pad in pads), sum(pad.facts.runs for pad in pads)
    if runs and runs >= steps / 2:
        return (
            "terminal",
            f"no edited file is known, and {runs} of {steps} tool calls were commands",
        )
    return "insights", "no edited file is known"


_PROVABLE = ("build", "spec")
"""The types of sessions that make something; the others have no work to prove."""


def gate_for(type_: SessionType, outcome: Outcome) -> SessionType:
    """Return the session type whose limits hold for an outcome."""
    is_unproven = outcome == "failed" or (type_ in _PROVABLE and outcome not in SOUND)
    return "terminal" if is_unproven else type_


SAME = 0.85
QUORUM = 2


def merge(findings: Iterable[SignalFinding]) -> list[SignalFinding]:
    """Merge findings of several agents, by their keys."""
    merged: dict[tuple[str, str], SignalFinding] = {}
    for finding in findings:
        same = merged.get((finding.kind, finding.key)) or _alike(finding, merged.values())
        if same is None:
            merged[(finding.kind, finding.key)] = finding
            continue
        better = same if same.is_proven or not finding.is_proven else finding
        merged[(same.kind, same.key)] = replace(
            better,
            key=same.key,
            step=min(same.step, finding.step),
            agents=same.agents + finding.agents,
            counts_as=max(same.counts_as, finding.counts_as),
        )
    return list(merged.values())


def _alike(finding: SignalFinding, others: Iterable[SignalFinding]) -> SignalFinding | None:
    """A finding in nearly the same words or at the same failure, of a signal that is merged so;
    others have keys that say it exactly.
    """
    if not signal_of(finding.kind).is_merged_by_words:
        return None
    words, failure = _words(finding.subject), _failure_of(finding)
    for other in (each for each in others if each.kind == finding.kind):
        same = _words(other.subject)
        is_same_failure = all(failure) and failure == _failure_of(other)
        if is_same_failure or len(words & same) > SAME * len(words | same):
            return other
    return None


def _failure_of(finding: SignalFinding) -> tuple[Any, Any]:
    return finding.data.get("command"), finding.data.get("line")


def _words(text: str) -> set[str]:
    return {word.lower() for word in find_words(text)}


OUTSIDE_FACTOR = 0.7


def taint_of(
    finding: SignalFinding, draft: MemoryDraft | None, pads: Sequence[Pad]
) -> tuple[str, ...]:
    """Return the taint that entered before a finding showed."""
    signal = signal_of(finding.kind)
    found = {*signal.taint, *(draft.taint if draft is not None else ())}
    if signal.quotes:
        last = max(finding.step, finding.last_step)
        # Agents that work side by side tell each other what they read, at steps that cannot be
        # compared.
        found.update(
            kind
            for pad in pads
            for kind, step in pad.facts.outside.items()
            if len(pads) > 1 or last > step
        )
    return tuple(sorted(found))


def trusted(confidence: float, taint: Sequence[str]) -> float:
    """Return the confidence that is left with a taint."""
    is_local = LOCAL_TAINT.issuperset(taint)
    return confidence if is_local else round(confidence * OUTSIDE_FACTOR, 3)


_PER_SESSION = 0.02
"""What every session beyond the needed ones adds to the confidence."""
_MOST_CONFIDENT = 0.95


class FindingHistory(NamedTuple):
    """A finding's record in the store: sessions and memories."""

    seen: Seen
    memory_id: str | None = None
    is_told: bool = False
    """Whether a memory says it that did not come of this finding."""


class Judge(NamedTuple):
    """Everything a verdict depends on, beside the finding."""

    outcome: Outcome
    type_name: SessionType
    pads: Sequence[Pad]
    history: Callable[[SignalFinding], FindingHistory]

    def judge(self, finding: SignalFinding) -> FindingVerdict:
        """Judge one finding; ``promoted`` if nothing speaks against it."""
        signal = signal_of(finding.kind)
        if self.outcome == "failed" and not signal.outlives_failure:
            return FindingVerdict(finding, "discarded", "the work of the session failed")
        is_shown = self.outcome in SOUND or self.type_name not in _PROVABLE
        if not is_shown and not finding.is_proven:
            why = "nothing shows that the work of the session is right, nor does it show it itself"
            return FindingVerdict(finding, "discarded", why)
        taint = taint_of(finding, None, self.pads)
        valid = FindingVerdict(finding, "discarded", "", taint=taint, is_valid=True)
        if gate_for(self.type_name, self.outcome) not in signal.learned_in:
            why = f"nothing is learned from it in a session of type {self.type_name}"
            return replace(valid, why=why)
        seen, memory_id, is_told = self.history(finding)
        if memory_id is not None or is_told:
            why = "it was promoted before"
            return replace(valid, verdict="known", why=why, memory_id=memory_id)
        is_quorum = finding.agents >= QUORUM and signal.is_observation
        needed = 1 if is_quorum else signal.least_sessions
        if seen.sessions < needed:
            why = f"seen in {seen.sessions} of the {needed} sessions that it takes"
            return replace(valid, verdict="waiting", why=why)
        draft = draft_of(finding, seen)
        if draft is None:
            return replace(valid, why="its evidence says too little")
        taint = taint_of(finding, draft, self.pads)
        confidence = trusted(confidence_of(signal.value, seen.sessions - needed), taint)
        why = "one session is enough for it"
        if is_quorum:
            why = f"seen by {finding.agents} agents"
        elif seen.sessions > 1:
            why = f"seen in {seen.sessions} sessions"
        return replace(
            valid, verdict="promoted", why=why, draft=draft, confidence=confidence, taint=taint
        )


def judge_within(
    judge: Callable[[SignalFinding], FindingVerdict],
    findings: Sequence[SignalFinding],
    seconds: float,
    cpu: Callable[[], float],
) -> list[FindingVerdict]:
    """Judge the most valuable findings within a processor-time limit."""
    until = cpu() + seconds
    return [judge(finding) for finding in takewhile(lambda _: cpu() <= until, findings)]


def confidence_of(value: float, further_sessions: int) -> float:
    """Return a signal's confidence, raised by further sessions."""
    return round(min(_MOST_CONFIDENT, value + _PER_SESSION * max(0, further_sessions)), 3)


def choose(
    judged: Iterable[FindingVerdict],
    most: int,
    memories: Mapping[Kind, Sequence[Mapping[str, Any]]] = MappingProxyType({}),
) -> list[FindingVerdict]:
    """Choose the best promotable findings; give reasons for the rest.

    ``memories`` are the findings, by kind and as they were seen, that are memories already and that
    one in other words may repeat.
    """
    # The most certain first; of two sequences the longer one.
    ranked = sorted(
        judged,
        key=lambda each: (
            each.verdict != "promoted",
            -each.confidence,
            -each.finding.size,
            each.finding.subject,
        ),
    )
    checks = repeat_checks()
    habits = {kind: list(memories.get(kind, ())) for kind in checks}
    contents: set[str] = set()
    for at, each in enumerate(ranked):
        content = each.draft.says or each.draft.content if each.draft is not None else ""
        if each.verdict != "promoted" or not content:
            continue
        kind, data = each.finding.kind, each.finding.data
        if content in contents or (kind in checks and checks[kind](data, habits[kind])):
            ranked[at] = replace(each, verdict="known", why="another finding says it")
        elif len(contents) >= most:
            why = f"at most {most} are learned in such a session"
            ranked[at] = replace(each, verdict="discarded", why=why)
        else:
            contents.add(content)
            if kind in habits:
                habits[kind].append(data)
    return ranked


def new_memory(
    judged: FindingVerdict,
    content: str,
    session_id: str,
    work_unit: WorkUnit | None,
    methodology: str,
    seen_at: int | None = None,
) -> NewMemory:
    """Build the new memory of a finding, evidence quoted, taint kept."""
    made: MemoryDraft = judged.draft  # type: ignore[assignment]  # only what has a draft is promoted
    evidence = [Evidence(quote=quote) for quote in made.quotes]
    evidence += [Evidence(commit=made.commit)] if made.commit else []
    return NewMemory(
        content,
        made.type,
        made.source,
        confidence=judged.confidence,
        tags=made.tags,
        files=made.files,
        modules=made.modules or modules_of(made.files),
        session_id=session_id,
        seen_at=seen_at,
        commit=made.commit,
        evidence=evidence,
        work_unit=work_unit,
        methodology=methodology,
        data=dict(made.data),
        taint=judged.taint,
    )
