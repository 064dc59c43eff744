"""Read the outcome of a session from its edits, commits and tests.

An outcome is named after the evidence it rests on, and is unknown without any. The sentences say
no more than events show: a commit by its id, tests by their counts, and whether an edit of code
came after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from smara.behavior.models import Outcome
from smara.behavior.scratchpad import NEVER, EventPlace, Pad, PadFacts, code, quote
from smara.knowledge.gate import SessionType

SOUND: frozenset[Outcome] = frozenset({"tested", "committed", "accepted"})
"""Outcomes that let a session's findings be learned."""
_NO_EDIT, _TAKEN_BACK = "It edited no file.", "Its edits were taken back."
SAID_BY_TYPE = frozenset({(_NO_EDIT, "terminal"), (_NO_EDIT, "insights")})
"""Evidence that the reason of a session's type says already."""
_NAMED, _COMMITS, _SUBJECT = 3, 2, 100


class SessionWork(NamedTuple):
    """The outcome of a session, and sentences that its events support."""

    outcome: Outcome
    evidence: tuple[str, ...] = ()


def work_of(type_: SessionType, pads: Sequence[Pad]) -> SessionWork:
    """Return the outcome of a session and its evidence.

    Tests count for the code as it was when they ran: green ones before the last edit of code show
    nothing about it. One agent whose last tests were red is enough to have failed.
    """
    facts = [pad.facts for pad in pads]
    edited = max((each.edit for each in facts), default=NEVER)
    committed = max((each.commit for each in facts), default=NEVER)
    tested = max(facts, key=lambda each: (each.last_test_ok is False, each.test), default=None)
    outcome: Outcome = "unknown"
    if type_ == "build" and tested is not None:
        if tested.last_test_ok is False:
            outcome = "failed"
        elif tested.last_test_ok and tested.test > max(each.code_edit for each in facts):
            outcome = "tested"
        elif committed > edited:
            outcome = "committed"
    elif type_ in ("spec", "pr_review"):
        if any(each.accepted or each.reviewed for each in facts):
            outcome = "accepted"
        elif type_ == "spec" and committed > edited:
            outcome = "committed"
    return SessionWork(outcome, (*_changes(pads, committed), *_tests(facts, tested)))


def continued(before: Sequence[str], now: Sequence[str]) -> tuple[str, ...]:
    """Return the evidence of a session that was finalized before.

    The scratchpads hold its second part alone: that this edited no file says nothing of the first,
    which stands as long as the second is known to have edited nothing.
    """
    if list(now) == [_NO_EDIT]:
        return tuple(before)
    return tuple(each for each in now if each not in (_NO_EDIT, _TAKEN_BACK))


def _changes(pads: Sequence[Pad], committed: EventPlace) -> list[str]:
    """Tell which edits stand, and which commits."""
    standing: dict[str, EventPlace] = {}
    for pad in pads:
        for path, entry in pad.files:
            if entry.standing > 0:
                edit = EventPlace(entry.last_edit_at, entry.last_edit_step)
                standing[path] = max(edit, standing.get(path, edit))
    newest = sorted(standing, key=standing.__getitem__, reverse=True)
    commits = [
        (entry.at_ms, sha, "" if pad.facts.outside else entry.message.split(" ¶ ", 1)[0])
        for pad in pads
        for sha, entry in pad.commits
        if entry.at_ms
    ]
    if not newest and not commits:
        if any(pad.facts.edits for pad in pads):
            return [_TAKEN_BACK]
        is_idle = not any(pad.facts.changing_runs or "mcp" in pad.facts.outside for pad in pads)
        return [_NO_EDIT] if is_idle else []
    found = [f"It edited {_some(newest)}."] if newest else []
    if commits:
        last = sorted(commits, reverse=True)
        named = [
            f'{sha} "{quote(subject, _SUBJECT).replace(chr(34), chr(39))}"' if subject else sha
            for _, sha, subject in last[:_COMMITS]
        ]
        more = f" and {len(last) - _COMMITS} earlier" if len(last) > _COMMITS else ""
        found.append(f"It committed {', '.join(named)}{more}.")
        if later := [path for path in newest if standing[path] > committed]:
            found.append(f"Edited after its last commit: {_some(later)}.")
    return found


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(code(quote(path, 120)) for path in paths[:_NAMED]) + more


def _tests(facts: Sequence[PadFacts], tested: PadFacts | None) -> list[str]:
    if tested is None or tested.last_test_ok is None or not tested.test_command:
        return []
    edit = max(each.code_edit for each in facts)
    when = "it ran last"
    if edit.at_ms:
        when = f"{'after' if tested.test > edit else 'before'} its last edit of code"
    result = tested.test_counts or ("no failure shown" if tested.last_test_ok else "failed")
    return [f"Tests {when}: {code(tested.test_command)}, {result}."]
