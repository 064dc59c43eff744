"""Detect the files that work on a module starts with (signal 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from smara.actions.paths import modules_of
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding, wilson_lower_bound
from smara.behavior.scratchpad import Pad, code
from smara.behavior.signals import read_abandon

SIGNAL = Signal(
    1,
    "file_access",
    0.64,
    relevance=0.90,
    false_positives=0.35,
    targets=("prefetch_pattern",),
    least_sessions=3,
    quotes=(),
    learned_in=("build", "spec"),
    key_field="module_trigger",
)
ALWAYS, FREQUENT = 0.8, 0.5
"""The shares of sessions above which a file is read always, or frequently."""
_MOST_FILES = 40
_LEAST_FILES = 2
_LEAST_DAYS = 2
_FOCUSED = 10
"""Three sessions that read so few files tell what they have in common; with more it takes more
sessions.
"""
_LEAST_SURE, _LEAST_SESSIONS = 0.75, 8


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """The files read while files of a module were changed."""
    # What was opened by mistake was not read for the module.
    wrong = {finding.data["wrong"] for finding in read_abandon.detect(pad, pads)}
    read = [path for path in pad.files_to_read() if path not in wrong][:_MOST_FILES]
    for module in sorted({*modules_of(pad.edited_files())} - {"tests"})[:4]:
        if len(read) >= _LEAST_FILES:
            yield SignalFinding(
                "file_access",
                module,
                f"files read for {module}",
                step=min(entry.first_step for _, entry in pad.files),
                data={"module": module, "files": read, "day": pad.day},
            )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    module = finding.data["module"]
    counted = Counter(path for data in seen.history for path in set(data.get("files", ())))
    total = len(seen.history)
    always = sorted(path for path, count in counted.items() if count / total > ALWAYS)[:12]
    often = sorted(path for path, count in counted.items() if FREQUENT < count / total <= ALWAYS)[
        :12
    ]
    # With many files read it takes more sessions to tell that these are no chance.
    is_focused = max(len(data.get("files", ())) for data in seen.history) <= _FOCUSED
    is_sure = total >= _LEAST_SESSIONS and all(
        wilson_lower_bound(counted[path], total) >= _LEAST_SURE for path in always
    )
    if seen.days < _LEAST_DAYS or not (is_focused or is_sure):
        return None
    # Hundreds of files that are all read always tell of a bulk change, one tells nothing.
    if not _LEAST_FILES <= len(always) <= 10:
        return None
    return prefetch_draft(
        module,
        always,
        often,
        sessions=total,
        evidence=f"read in more than 80 % of {total} sessions: {', '.join(always)}",
    )


def prefetch_draft(
    module: str, always: Sequence[str], often: Sequence[str], *, sessions: int, evidence: str
) -> MemoryDraft:
    """Draft the files that work on a module reads."""
    return MemoryDraft(
        "prefetch_pattern",
        f"Work on {code(module)} reads {', '.join(map(code, always))} in nearly every "
        f"session ({sessions} counted).",
        (evidence,),
        files=tuple(always),
        modules=(module,),
        data={
            "module_trigger": module,
            "always_read_files": always,
            "frequently_read_files": often,
            "session_count": sessions,
        },
        # Modules that are always worked on together read the same files.
        says=" ".join(always),
    )
