"""The figures as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evals.scoring import average, interval, paired

FIGURES = ("R@5", "any@5", "all@5", "R@10", "any@10", "NDCG@10", "MRR")
TARGETS: dict[str, dict[str, float]] = {
    "LoCoMo": {"R@5": 70.0, "R@10": 80.0},
    "LongMemEval_S": {"R@5": 97.5, "all@5": 94.0},
    "LongMemEval_S, second part": {"R@5": 97.5, "all@5": 94.0},
    "Union haystack": {"R@5": 80.0, "R@10": 88.0},
    "Large haystack": {"R@10": 60.0},
    "CoSQA": {"MRR": 45.0},
}
LEADS = {
    "LongMemEval_S": 1.5,
    "LongMemEval_S, second part": 1.5,
    "LongMemEval_S, messages": 3.0,
    "LongMemEval_S, second part, messages": 3.0,
}
"""The lead over reciprocal ranks at R@5 that is wanted, with an interval above 0."""
RECIPROCAL = "plain hybrid, RRF 60"


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of one system on one set: those of each question, and the median time of a
    query.
    """

    dataset: str
    part: str
    system: str
    questions: Sequence[Mapping[str, float]]
    kinds: Sequence[str]
    median_ms: float
    figures: Mapping[str, float] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "figures", average(self.questions))


def render(results: Sequence[Result]) -> str:
    """A table for each set, the targets under it, and one by the kind of question."""
    sections = []
    for dataset in dict.fromkeys(result.dataset for result in results):
        rows = [result for result in results if result.dataset == dataset]
        ours = next((row for row in rows if row.system == "Smara"), None)
        lines = [f"### {dataset} ({rows[0].part})", "", *_table(rows)]
        if ours is not None:
            lines += ["", *_verdicts(dataset, ours), *_leads(dataset, ours, rows)]
            lines += _kinds(dataset, ours)
        sections.append("\n".join(lines))
    return "\n\n".join(sections) + "\n"


def _table(rows: Sequence[Result]) -> list[str]:
    head = ["| system |", *(f" {name} |" for name in FIGURES), " ms a query |"]
    lines = ["".join(head), "|---" * (len(FIGURES) + 2) + "|"]
    for row in rows:
        cells = " | ".join(f"{row.figures[name]:.1f}" for name in FIGURES)
        lines.append(f"| {row.system} | {cells} | {row.median_ms:.1f} |")
    return lines


def _verdicts(dataset: str, ours: Result) -> list[str]:
    lines = []
    for figure, target in TARGETS.get(dataset, {}).items():
        found = ours.figures[figure]
        low, high = interval([each[figure] for each in ours.questions])
        verdict = "met" if found >= target else "NOT met"
        drawn = f"95 % of redrawn sets: {low:.1f} to {high:.1f}"
        lines.append(f"Target {figure} ≥ {target:g}: {verdict} with {found:.1f} ({drawn}).  ")
    return lines


def _leads(dataset: str, ours: Result, rows: Sequence[Result]) -> list[str]:
    """What Smara is ahead of each other system, question by question."""
    names = list(dict.fromkeys(["R@5", *TARGETS.get(dataset, {}), "R@10"]))
    lines = [
        "",
        f"| Smara ahead of (95 % of redrawn sets) | {' | '.join(names)} |",
        "|---" * (len(names) + 1) + "|",
    ]
    verdict = ""
    for row in (each for each in rows if each is not ours):
        leads = {
            name: paired([e[name] for e in ours.questions], [e[name] for e in row.questions])
            for name in names
        }
        cells = [f"{mean:+.1f} ({low:+.1f} to {high:+.1f})" for mean, low, high in leads.values()]
        lines.append(f"| {row.system} | {' | '.join(cells)} |")
        if row.system == RECIPROCAL and dataset in LEADS:
            mean, low, _ = leads["R@5"]
            is_met = mean >= LEADS[dataset] and low > 0
            verdict = f"Target: ahead of reciprocal ranks by {LEADS[dataset]:g} points at R@5,"
            verdict += f" surely above 0: {'met' if is_met else 'NOT met'} with {mean:+.1f}."
    return [*lines, *(["", verdict] if verdict else [])]


def _kinds(dataset: str, ours: Result) -> list[str]:
    """The figures with a target, for each kind of question."""
    kinds = sorted(set(ours.kinds))
    if len(kinds) < 2:
        return []
    names = list(TARGETS.get(dataset, {})) or ["R@5"]
    lines = [
        "",
        f"| Smara, kind of question | n | {' | '.join(names)} |",
        "|---" * (len(names) + 2) + "|",
    ]
    for kind in kinds:
        chosen = [
            figures
            for figures, each in zip(ours.questions, ours.kinds, strict=True)
            if each == kind
        ]
        found = average(chosen)
        lines.append(
            f"| {kind} | {len(chosen)} | {' | '.join(f'{found[name]:.1f}' for name in names)} |"
        )
    return lines
