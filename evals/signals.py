"""The seventeen signals on generated sessions with known truth: precision and recall of what is
promoted.

For each signal streams that show it and near misses of it, see ``signal_streams``. Every stream is
a project of its own, goes through ``observe_batch`` and ``finalize`` as from a host, and what came
of each finding is read.
*Recall* is the share of streams with the signal in which a memory was made of it that holds the
  expected words.
*Precision* is the share of the memories of that signal, over both kinds of streams, that are right.
  *Others* are memories of other signals made from the same streams: a stream may show more than
  one.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

import smara
from evals.signal_streams import WRITERS, Stream, streams

NAME = "signals"
SEED = 7
SHOWN, MISSED = 12, 12
TARGET = 0.9


@dataclass(slots=True)
class Counts:
    """What became of the streams of one signal."""

    shown: int = 0
    found: int = 0
    right: int = 0
    wrong: int = 0
    misses: int = 0
    others: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return self.found / self.shown if self.shown else 0.0

    @property
    def precision(self) -> float:
        total = self.right + self.wrong
        return self.right / total if total else 0.0


@dataclass(slots=True)
class Report:
    """All signals, and how long a session took."""

    signals: dict[str, Counts] = field(default_factory=dict)
    sessions: int = 0
    seconds: float = 0.0


def evaluate(shown: int = SHOWN, missed: int = MISSED, seed: int = SEED) -> Report:
    """Every signal on its streams."""
    report = Report()
    with smara.open(":memory:", embedder="off") as memory:
        for kind in WRITERS:
            counts = report.signals[kind] = Counts()
            for is_shown, count in ((True, shown), (False, missed)):
                for number, stream in enumerate(streams(kind, count, is_shown, seed=seed)):
                    project = memory.in_project(f"{kind}-{int(is_shown)}-{number}")
                    _judge(project, stream, is_shown, counts=counts, report=report)
    return report


def _judge(
    memory: smara.Memory, stream: Stream, is_shown: bool, counts: Counts, report: Report
) -> None:
    made: list[str] = []
    for events in stream.sessions:
        memory.behavior.observe_batch(events)
        began = time.perf_counter()
        done = memory.behavior.finalize(events[0].session_id)
        report.seconds += time.perf_counter() - began
        report.sessions += 1
        for each in done.promoted if done is not None else ():
            content = each.draft.content if each.draft is not None else ""
            if each.finding.kind == stream.kind:
                made.append(content)
            else:
                counts.others += 1
    right = [
        content
        for content in made
        if stream.wanted and all(word in content for word in stream.wanted)
    ]
    counts.shown += int(is_shown)
    counts.misses += int(not is_shown)
    counts.found += int(is_shown and bool(right))
    counts.right += len(right)
    counts.wrong += len(made) - len(right)
    if len(right) != len(made) or (is_shown and not right):
        counts.examples.append(
            f"{events[0].session_id}: wanted {stream.wanted or 'nothing'}, made {made}"
        )


def render(report: Report) -> str:
    """The table, and whether the aim is met."""
    total = sum(each.shown + each.misses for each in report.signals.values())
    lines = [
        f"### Signals ({len(report.signals)} signals, {total} generated streams, "
        f"{report.sessions} sessions)",
        "",
    ]
    lines += [
        "| signal | with it | near misses | precision | recall | others |",
        "|---|---|---|---|---|---|",
    ]
    for kind, each in report.signals.items():
        figures = f"{100 * each.precision:.0f} % | {100 * each.recall:.0f} %"
        lines.append(f"| {kind} | {each.shown} | {each.misses} | {figures} | {each.others} |")
    below = [
        kind for kind, each in report.signals.items() if min(each.precision, each.recall) < TARGET
    ]
    verdict = "met" if not below else f"NOT met by {', '.join(below)}"
    lines += [
        "",
        f"Target {100 * TARGET:.0f} % precision and recall for each: {verdict}. "
        f"Deciding on a session took {1000 * report.seconds / max(1, report.sessions):.0f} ms on "
        "average.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    done = evaluate()
    print(render(done))
    for counts in done.signals.values():
        for example in counts.examples[:4]:
            print(example, file=sys.stderr)
