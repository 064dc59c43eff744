"""2, co-access: two files that are changed together, session after session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.behavior.models import Draft, Finding, Seen, Signal
from smara.behavior.pad import Pad
from smara.behavior.paths import is_lock, is_prose, is_test_of, module_of
from smara.behavior.quoting import code

SIGNAL = Signal(2, "co_access", 0.92, 0.95, 0.175, ("causal_dependency", "prefetch_pattern"), 3, has_text=False)
_MOST_EDITED = 15
"""A session that changes more files than this is a sweep: everything goes with everything."""
_LEAST_STRENGTH = 0.6
_MOST_PAIRS = 40


def detect(pads: Sequence[Pad]) -> Iterator[Finding]:
    """Pairs of files that were both changed, close in time; not a source with its own test, nor what tools write."""
    for pad in pads:
        if sum(1 for _, entry in pad["files"] if entry.get("e")) > _MOST_EDITED:
            continue
        pairs = sorted(((key, each) for key, each in pad["pairs"] if each.get("e")), key=lambda item: -item[1]["e"])
        for key, entry in pairs[:_MOST_PAIRS]:
            first, second = key.split("|", 1)
            if is_test_of(first, second) or is_lock(first) or is_lock(second) or (is_prose(first) and is_prose(second)):
                continue
            data = {
                "a": first, "b": second, "count": entry["e"], "lead": entry.get("l", 0),
                "apart_ms": round(entry.get("d", 0) / max(1, entry["n"])),
            }  # fmt: skip
            yield Finding("co_access", key, f"{first} with {second}", entry["f"], data)


def draft(finding: Finding, seen: Seen) -> Draft | None:
    first, second = finding.data["a"], finding.data["b"]
    lead = sum(1 if data.get("lead", 0) > 0 else -1 for data in seen.history if data.get("lead"))
    trigger, dependent = (first, second) if lead >= 0 else (second, first)
    together = len(seen.history)
    changed = max(together, seen.edit_sessions.get(trigger, together))
    strength = round(together / changed, 2)
    if strength < _LEAST_STRENGTH:
        return None
    content = (
        f"When {code(trigger)} changes, {code(dependent)} is changed with it: "
        f"in {together} of {changed} sessions that touched it."
    )
    data = {
        "trigger_file": trigger, "dependent_files": [dependent], "strength": strength, "session_count": together,
        "reason": "changed together",
    }  # fmt: skip
    modules = tuple(dict.fromkeys(filter(None, map(module_of, (trigger, dependent)))))
    quotes = (f"{trigger} and {dependent} were both edited in {together} sessions",)
    return Draft("causal_dependency", content, quotes, (trigger, dependent), modules, data)
