"""Detect dead ends: an approach abandoned after a failure.

Words alone are not enough. The agent says that it cannot work, the attempt has failed
visibly, and the work succeeded another way afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.actions.error_quote import UNQUOTED, error_quote, evidence_words, failed_words
from smara.behavior.cues import CUES
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding, non_empty
from smara.behavior.scratchpad import Pad, code

SIGNAL = Signal(
    0,
    "dead_end",
    0.85,
    relevance=0.75,
    false_positives=0.30,
    targets=("dead_end",),
    least_sessions=1,
    quotes=("agent", "tool"),
    learned_in=("build",),
    is_observation=True,
    is_merged_by_words=True,
    outlives_failure=True,
)


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    for key, entry in pad.dead_ends:
        worked = pad.facts.last_test_ok is True and pad.facts.last_test > entry.first_step
        yield SignalFinding(
            "dead_end",
            key,
            entry.quote[:160],
            step=entry.first_step,
            data={
                **non_empty(
                    quote=entry.quote,
                    command=entry.command,
                    line=entry.line,
                    edited=entry.edited,
                ),
                "after": pad.edited_files(entry.first_step)[:4],
                "worked": worked,
                "task": pad.facts.prompt[:160],
            },
            is_proven=worked,
        )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    data = finding.data
    command, line, after = data.get("command"), data.get("line"), list(data.get("after", ()))
    if (
        not command
        or not line
        or not data.get("worked")
        or not after
        or not CUES["impossible"].search(str(data["quote"]))
    ):
        return None
    if "/" in str(command) and " " not in str(command):
        return None  # a file that was not there is no approach
    tried = (
        f"{command}, with changes of {', '.join(data['edited'])}"
        if data.get("edited")
        else str(command)
    )
    others = [path for path in after if path not in data.get("edited", ())] or after
    used = f"changes of {', '.join(map(code, others[:3]))}, after which the tests were green"
    return MemoryDraft(
        "dead_end",
        f"Given up: {code(str(command))}, which {failed_words(str(line))} "
        f"(“{str(data['quote']).rstrip('.')}”)."
        f" What was done instead: {used}.",
        (str(data["quote"]), evidence_words(f"$ {command}", str(line))),
        files=tuple(dict.fromkeys([*data.get("edited", ()), *others]))[:4],
        data={
            "approach_tried": tried[:400],
            "why_it_failed": error_quote(str(line)) or UNQUOTED,
            "alternative_used": used.replace("`", ""),
            "task_context": str(data.get("task") or "not said"),
        },
    )
