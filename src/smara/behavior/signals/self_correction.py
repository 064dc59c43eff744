"""9, self-correction: an agent says what it had wrong, and what is right."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from smara.behavior.models import Draft, Finding, Seen, Signal
from smara.behavior.pad import Pad
from smara.behavior.paths import module_of
from smara.knowledge.models import MemoryType

SIGNAL = Signal(9, "self_correction", 0.95, 0.75, 0.10, ("gotcha", "module_insight"), 1)
_NAMES_CODE = re.compile(
    r"`[^`]+`|\b\w+_\w+|\b[a-z]+[A-Z]\w+|\b[\w-]+/[\w./-]+|\b\w+\.(?:py|[jt]sx?|go|rs|exs?|json|toml|ya?ml|md)\b|\w+\(\)"
)
_PLAN = re.compile(r"^(?:I |I'll|let me|let's|we should|I should|now )", re.IGNORECASE)
_VAGUE = re.compile(r"^(?:it|this|that|there|they)\b(?! (?:is|are) `)", re.IGNORECASE)


def detect(pads: Sequence[Pad]) -> Iterator[Finding]:
    for pad in pads:
        for key, entry in pad["corrections"]:
            names = ("q", "wrong", "right", "file", "lang")
            data = {name: entry[name] for name in names if entry.get(name)}
            yield Finding("self_correction", key, entry["q"][:160], entry["f"], data)


def draft(finding: Finding, seen: Seen) -> Draft | None:
    """Both sides must be said, and the right one must name something of the code, by itself."""
    wrong, right = str(finding.data.get("wrong", "")), str(finding.data.get("right", ""))
    if not wrong or not right or not _NAMES_CODE.search(right) or _PLAN.match(right) or len(right) < 12:
        return None
    # "it is sync" says nothing without what stood before it.
    if _VAGUE.match(right) and not _NAMES_CODE.search(right.split(" ", 1)[-1]):
        return None
    path = str(finding.data.get("file", ""))
    content = f"Not as first assumed ({wrong}): {right}."
    module = module_of(path) if path else None
    kind: MemoryType = "gotcha" if path else "module_insight"
    data = {"symptom": f"it is easily taken for: {wrong}"} if kind == "gotcha" else {}
    files = (path,) if path else ()
    return Draft(kind, content, (str(finding.data["q"]),), files, (module,) if module else (), data)
