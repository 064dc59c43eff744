"""Turn commits that give a reason into memories (``commit_auto``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.actions.paths import modules_of
from smara.behavior.commit_reasons import reason_of, revert_of
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad, quote

SIGNAL = Signal(
    0,
    "commit",
    0.70,
    relevance=0.75,
    false_positives=0.30,
    targets=("decision", "gotcha", "dead_end"),
    least_sessions=1,
    quotes=("agent",),
    learned_in=("build", "roadmap"),
)
_MOST = 3
_NEAR = 6


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    found = 0
    for sha, entry in pad.commits:
        message = entry.message.replace(" ¶ ", "\n").replace("¶", "\n")
        made = revert_of(message) or reason_of(message)
        if made is None or found >= _MOST:
            continue
        found += 1
        first = message.split("\n", 1)[0]
        yield SignalFinding(
            "commit",
            sha,
            made.content[:160],
            step=entry.first_step,
            data={
                "sha": sha,
                "type": made.type,
                "content": made.content,
                "said": f"{first}\n{made.why}",
                "fields": made.fields,
                "files": entry.files,
            },
            is_proven=True,
        )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    data = finding.data
    near = tuple(data["files"][:_NEAR])
    return MemoryDraft(
        data["type"],
        data["content"],
        (quote(data["said"], 400),),
        files=near,
        modules=modules_of(near)[:3],
        data=data["fields"],
        tags=("commit",),
        source="commit_auto",
        commit=data["sha"],
    )
