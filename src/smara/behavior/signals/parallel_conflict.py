"""Detect parallel agents that change the same file (signal 16)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.behavior.ledger import FileLedgerEntry
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad, code

SIGNAL = Signal(
    16,
    "parallel_conflict",
    0.90,
    relevance=0.60,
    false_positives=0.05,
    targets=("gotcha",),
    least_sessions=1,
    quotes=(),
    learned_in=("build", "terminal"),
)


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """Detect files that two agents changed at once.

    At overlapping times, or that changed under an edit.
    """
    for path, entry in pad.files:
        entries = (each.files.entries.get(path) for each in pads)
        others = [each for each in entries if each is not None and each.edits]
        is_overlapping = any(other is not entry and _is_beside(entry, other) for other in others)
        if is_overlapping or entry.refusals:
            refused = sum(each.refusals for each in (others if is_overlapping else [entry]))
            # That an edit was refused is seen, whatever became of the work.
            yield SignalFinding(
                "parallel_conflict",
                path,
                f"{path} was changed by two at once",
                step=entry.first_step,
                data={
                    "file": path,
                    "agents": len(others) if is_overlapping else 1,
                    "refused": refused,
                    "from": entry.first_at,
                    "to": entry.last_at,
                },
                is_proven=bool(refused),
            )


def _is_beside(one: FileLedgerEntry, other: FileLedgerEntry) -> bool:
    """Return True if two agents changed a file in turns: one began before the other had done.

    An agent that called another one waits for it: its own changes before and after are not beside
    the other's. So one change of each has to lie between two of the other, or one of them must have
    been refused.
    """
    begin, end = one.first_edit_at, one.last_edit_at
    other_begin, other_end = other.first_edit_at, other.last_edit_at
    if not one.edits or not other_begin <= end or not begin <= other_end:
        return False
    is_within = other_begin <= begin and end <= other_end
    is_around = begin <= other_begin and other_end <= end
    return not (is_within or is_around) or bool(one.refusals or other.refusals)


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft only for changes by two agents.

    A file that changed under one may have been formatted, or saved by a person.

    Agents of one task may each have a session of their own: then both were refused, and at the same
    time. Two that changed a file in turns, once, and of whom no one was refused, were not in each
    other's way.
    """
    path = finding.data["file"]
    newest, *others = seen.history
    beside = [
        each
        for each in others
        if newest.get("refused")
        and each.get("refused")
        and each.get("from")
        and int(each["from"]) <= int(newest.get("to", 0))
        and int(newest.get("from", 0)) <= int(each.get("to", 0))
    ]
    agents = max(int(finding.data["agents"]), 1 + len(beside))
    has_hurt = any(each.get("refused") for each in seen.history)
    if agents < 2 or not (has_hurt or len(seen.history) > 1):
        return None
    return MemoryDraft(
        "gotcha",
        f"{code(path)} was changed by {agents} agents that worked at the same time; give it "
        "to one of them.",
        (f"{agents} agents edited {path} at overlapping times",),
        files=(path,),
        data={
            "symptom": "changes of one agent are lost or refused",
            "workaround": "let one agent change it",
        },
    )
