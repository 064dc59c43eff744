"""Commits as memories (``commit_auto``): those that say why, and those that take another one back.

What a message says is read by :mod:`smara.behavior.reasons`, as that of a commit of the past is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.behavior.models import Draft, Finding, Seen, Signal
from smara.behavior.pad import Pad
from smara.behavior.paths import module_of
from smara.behavior.quoting import quote
from smara.behavior.reasons.reading import reason_of
from smara.behavior.reasons.reverts import revert_of

SIGNAL = Signal(
    0,
    "commit",
    0.70,
    relevance=0.75,
    false_positives=0.30,
    targets=("decision", "gotcha", "dead_end"),
    least_sessions=1,
)
_MOST = 3
_NEAR = 6


def detect(pads: Sequence[Pad]) -> Iterator[Finding]:
    for pad in pads:
        found = 0
        for sha, entry in pad["commits"]:
            message = str(entry["message"]).replace(" ¶ ", "\n").replace("¶", "\n")
            made = revert_of(message) or reason_of(message)
            if made is None or found >= _MOST:
                continue
            found += 1
            first = message.split("\n", 1)[0]
            data = {
                "sha": sha,
                "type": made.type,
                "content": made.content,
                "said": f"{first}\n{made.why}",
                "fields": made.fields,
                "files": list(entry.get("files", ())),
            }
            yield Finding(
                "commit", sha, made.content[:160], step=entry["f"], data=data, is_proven=True
            )


def draft(finding: Finding, seen: Seen) -> Draft | None:
    data = finding.data
    near = tuple(data["files"][:_NEAR])
    modules = tuple(dict.fromkeys(filter(None, map(module_of, near))))[:3]
    return Draft(
        data["type"],
        data["content"],
        (quote(data["said"], 400),),
        files=near,
        modules=modules,
        data=data["fields"],
        tags=("commit",),
        source="commit_auto",
        commit=data["sha"],
    )
