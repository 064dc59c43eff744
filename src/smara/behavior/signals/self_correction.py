"""Detect agents that correct a mistake of their own (signal 9)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.actions.paths import modules_of
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding, non_empty
from smara.behavior.scratchpad import Pad
from smara.core.startup.regex import re, regex
from smara.knowledge.models import MemoryType

SIGNAL = Signal(
    9,
    "self_correction",
    0.95,
    relevance=0.75,
    false_positives=0.10,
    targets=("gotcha", "module_insight"),
    least_sessions=1,
    is_observation=True,
)
_NAMES_CODE = regex(
    r"`[^`]+`|\b\w+_\w+|\b[a-z]+[A-Z]\w+|\b[\w-]+/[\w./-]+|\b\w+\.(?:py|[jt]sx?|go|rs|exs?|json"
    r"|toml|ya?ml|md)\b|\w+\(\)"
)
_PLAN = regex(
    r"^(?:I |I'll|let me|let's|we should|I should|now |looking|thinking|maybe|perhaps)",
    re.IGNORECASE,
)
_HEDGED = regex(
    r"\b(?:might|maybe|perhaps|probably|I think|I guess|not sure|approach|simplest|cleanest"
    r"|easiest|best|better|fix is"
    r"|should|would|could|let me|wondering)\b|:\s*[-*]",
    re.IGNORECASE,
)
_ADMITTED = regex(
    r"\bI was wrong\b|\bI mis(?:understood|read)\b|\bI [a-z]*ly (?:thought|assumed|believed"
    r"|expected)\b"
    r"|\bI first (?:thought|assumed)\b|assumption|mistaken|pensais|croyais|dachte|nahm|pens[éa]"
    r"|creía|asumí|以为|认为|思って|考えて|勘違",
    re.IGNORECASE,
)
_NAMED = regex(
    r"(?:the|an?|each|every|both|all|only|our|le|la|les|der|die|das|el|los)\s|[`A-Z]|\w*[_.(/]"
    r"|\W*[^\x00-\x7f]"
)
"""How a side begins that says of what it speaks: "shows the default" does not."""
_CUT = regex(
    r"\b(?:but|and|or|is|are|was|the|a|an|to|with|of|for|because|which|that|it's)\W*$",
    re.IGNORECASE,
)
_ACTUALLY = regex(r"^(?:actually|en fait|tatsächlich|en realidad|实际上|実際)", re.IGNORECASE)
_OF_IT = regex(r"(?:it|they)(?:'s|'re)? ", re.IGNORECASE)
_QUOTED = regex(r"`[^`]+`")
_VAGUE = regex(r"^(?:it|this|that|there|they)\b(?! (?:is|are) `)", re.IGNORECASE)


def detect(pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    for pad in pads:
        for key, entry in pad.corrections:
            data = non_empty(
                q=entry.quote,
                wrong=entry.wrong,
                right=entry.right,
                file=entry.file,
                lang=entry.language,
            )
            yield SignalFinding(
                "self_correction", key, entry.quote[:160], step=entry.first_step, data=data
            )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft if both sides are stated, and the right names code."""
    wrong, right = str(finding.data.get("wrong", "")), str(finding.data.get("right", ""))
    if not wrong or not right or _PLAN.match(right) or len(right) < 12:
        return None
    # "it is sync" says nothing without what stood before it, unless that is named on the other
    # side.
    is_named = bool(_NAMES_CODE.search(right)) and not (
        _VAGUE.match(right) and not _NAMES_CODE.search(right.split(" ", 1)[-1])
    )
    if not is_named and not (_OF_IT.match(right) and _QUOTED.search(wrong)):
        return None
    if not _is_said_of_code(str(finding.data["q"]), wrong, right):
        return None
    path = str(finding.data.get("file", ""))
    content = f"Not as first assumed ({wrong}): {right}."
    kind: MemoryType = "gotcha" if path else "module_insight"
    data = {"symptom": f"it is easily taken for: {wrong}"} if kind == "gotcha" else {}
    files = (path,) if path else ()
    return MemoryDraft(
        kind,
        content,
        (str(finding.data["q"]),),
        files=files,
        modules=modules_of(files),
        data=data,
    )


def _is_said_of_code(sentence: str, wrong: str, right: str) -> bool:
    """Whether a sentence corrects a belief about the code, and does not weigh what to do next.

    "Actually … not …" is said of plans and of the last minute far more often than of the code.
    Where no mistake is admitted it must be the sentence's first word, and both sides must name
    something.
    """
    if (
        _HEDGED.search(right)
        or _HEDGED.search(wrong)
        or any(right.count(mark) % 2 for mark in ("`", '"'))
    ):
        return False
    if right.count("(") != right.count(")") or wrong.count("(") != wrong.count(")"):
        return False  # the sentence was cut in the middle of something
    if _CUT.search(right) or _CUT.search(wrong):
        return False
    return bool(
        _ADMITTED.search(sentence)
        or (_ACTUALLY.match(sentence.strip()) and _NAMES_CODE.search(wrong) and _NAMED.match(right))
    )
