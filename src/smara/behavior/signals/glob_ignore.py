"""Detect glob searches that miss the intended file (signal 11)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch

from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad, code

SIGNAL = Signal(
    11,
    "glob_ignore",
    0.62,
    relevance=0.70,
    false_positives=0.40,
    targets=("gotcha",),
    least_sessions=2,
    quotes=(),
    learned_in=("build",),
    is_observation=True,
)


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    for pattern, entry in pad.globs:
        if entry.opened and _is_meant(pattern, entry.opened):
            yield SignalFinding(
                "glob_ignore",
                pattern,
                f"{pattern} did not find {entry.opened}"[:160],
                step=entry.first_step,
                data={"pattern": pattern, "file": entry.opened},
            )


def _is_meant(pattern: str, path: str) -> bool:
    """Whether a pattern could have been after a file: the same ending, a name like its own, and it
    does not match.
    """
    name, glob = path.rsplit("/", 1)[-1], pattern.rsplit("/", 1)[-1]
    ending = glob.rsplit(".", 1)[-1].strip("*{}") if "." in glob else ""
    if ending and name.rsplit(".", 1)[-1] not in ending.split(","):
        return False
    words = [word for word in re.findall(r"[A-Za-z]{4,}", glob.rsplit(".", 1)[0]) if word]
    is_alike = any(word.lower() in name.lower() for word in words) if words else bool(ending)
    return is_alike and not fnmatch(path, pattern) and not fnmatch(path, pattern.replace("**/", ""))


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft if the same file was meant each time.

    And the pattern was after a name like its own.
    """
    pattern, path = finding.data["pattern"], finding.data["file"]
    if any(data.get("file") != path for data in seen.history):
        return None
    return MemoryDraft(
        "gotcha",
        f"{code(pattern)} does not find what is wanted here: in {len(seen.history)} "
        f"sessions it was {code(path)}.",
        (f"searched for files: {pattern}; then read: {path}",),
        files=(path,),
        data={"symptom": f"{pattern} leads elsewhere", "workaround": f"open {path}"},
    )
