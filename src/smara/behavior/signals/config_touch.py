"""Detect configuration files that change with a source file (signal 14)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.actions.paths import is_manifest, is_source, modules_of
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad, code
from smara.behavior.signals.co_access import is_lifted, support_of

SIGNAL = Signal(
    14,
    "config_touch",
    0.60,
    relevance=0.80,
    false_positives=0.40,
    targets=("causal_dependency",),
    least_sessions=2,
    quotes=(),
    learned_in=("build",),
    edited=("config", "sources"),
)
_MOST_EDITED = 15
_LEAST_STRENGTH = 0.6
_LEAST_DAYS, _LEAST_SUPPORT = 2, 1.2
_OF_MANIFESTS = 3
"""A version is raised and a dependency added beside any change: of such files it takes more
sessions.
"""


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """Detect a configuration changed beside source files.

    In a session that is no sweep.
    """
    edited = pad.edited_files()
    sources = [path for path in edited if is_source(path)]
    if not sources or len(edited) > _MOST_EDITED:
        return
    for path, entry in pad.configs:
        yield SignalFinding(
            "config_touch",
            path,
            f"{path} with {', '.join(sources)}"[:160],
            step=entry.first_step,
            data={"config": path, "sources": sources, "day": pad.day, "width": len(edited)},
        )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft for the source file changed with it each time.

    And seldom without the configuration.
    """
    config, total = finding.data["config"], len(seen.history)
    if seen.days < _LEAST_DAYS or support_of(seen) < _LEAST_SUPPORT:
        return None
    if is_manifest(config) and (total < _OF_MANIFESTS or seen.days < _OF_MANIFESTS):
        return None
    same = set.intersection(*(set(data.get("sources", ())) for data in seen.history))
    strengths = {path: total / max(total, seen.edit_sessions.get(path, total)) for path in same}
    others = max(0, seen.edit_sessions.get(config, total) - total)
    coupled = sorted(
        (
            path
            for path, strength in strengths.items()
            if strength >= _LEAST_STRENGTH
            and is_lifted(strength, others, seen.all_sessions - total)
        ),
        key=lambda p: (-strengths[p], p),
    )
    if not coupled or len(coupled) > 2:
        return None
    trigger = coupled[0]
    return MemoryDraft(
        "causal_dependency",
        f"When {code(trigger)} changes, the configuration {code(config)} is changed, too "
        f"({total} sessions).",
        (f"{trigger} and {config} were both edited in {total} sessions",),
        files=(trigger, config),
        modules=modules_of((trigger,)),
        data={
            "trigger_file": trigger,
            "dependent_files": [config],
            "reason": "configuration",
            "strength": round(strengths[trigger], 2),
            "session_count": total,
        },
    )
