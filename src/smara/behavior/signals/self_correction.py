"""Detect agents that correct a mistake of their own (signal 9)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.behavior.cues import CUES
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding, non_empty
from smara.behavior.scratchpad import Pad
from smara.core.startup.regex import regex
from smara.knowledge.models import MemoryType

SIGNAL = Signal(
    9,
    "self_correction",
    0.95,
    relevance=0.75,
    false_positives=0.10,
    targets=("gotcha", "module_insight"),
    least_sessions=1,
    quotes=("agent",),
    learned_in=("build", "insights", "spec", "pr_review"),
    is_observation=True,
    is_merged_by_words=True,
)
_QUOTED = regex(r"`[^`]+`")


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    for key, entry in pad.corrections:
        yield SignalFinding(
            "self_correction",
            key,
            entry.quote[:160],
            step=entry.first_step,
            data=non_empty(
                quote=entry.quote,
                wrong=entry.wrong,
                right=entry.right,
                file=entry.file,
                language=entry.language,
            ),
        )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft if both sides are stated, and the right names code."""
    wrong, right = str(finding.data.get("wrong", "")), str(finding.data.get("right", ""))
    if not wrong or not right or CUES["plan"].match(right) or len(right) < 12:
        return None
    # "it is sync" says nothing without what stood before it, unless that is named on the other
    # side.
    is_named = bool(CUES["names code"].search(right)) and not (
        CUES["vague"].match(right) and not CUES["names code"].search(right.split(" ", 1)[-1])
    )
    if not is_named and not (CUES["of it"].match(right) and _QUOTED.search(wrong)):
        return None
    if not _is_said_of_code(str(finding.data["quote"]), wrong, right):
        return None
    path = str(finding.data.get("file", ""))
    kind: MemoryType = "gotcha" if path else "module_insight"
    return MemoryDraft(
        kind,
        f"Not as first assumed ({wrong}): {right}.",
        (str(finding.data["quote"]),),
        files=(path,) if path else (),
        data={"symptom": f"it is easily taken for: {wrong}"} if kind == "gotcha" else {},
    )


def _is_said_of_code(sentence: str, wrong: str, right: str) -> bool:
    """Whether a sentence corrects a belief about the code, and does not weigh what to do next.

    "Actually … not …" is said of plans and of the last minute far more often than of the code.
    Where no mistake is admitted it must be the sentence's first word, and both sides must name
    something.
    """
    # What was cut in the middle of something says only half of it.
    is_cut = any(right.count(mark) % 2 for mark in ("`", '"')) or any(
        side.count("(") != side.count(")") or CUES["cut sentence"].search(side)
        for side in (wrong, right)
    )
    if is_cut or CUES["hedged"].search(right) or CUES["hedged"].search(wrong):
        return False
    return bool(
        CUES["admitted"].search(sentence)
        or (
            CUES["actually"].match(sentence.strip())
            and CUES["names code"].search(wrong)
            and CUES["named side"].match(right)
        )
    )
