"""The figures as a Markdown table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FIGURES = ("R@5", "any@5", "all@5", "R@10", "any@10", "NDCG@10", "MRR")
TARGETS = {"LoCoMo": ("R@10", 74.0), "LongMemEval_S": ("R@5", 93.0), "Union haystack": ("R@10", 82.0)}


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of one system on one set, in percent, and the median time of a query."""

    dataset: str
    part: str
    system: str
    figures: Mapping[str, float]
    median_ms: float


def render(results: Sequence[Result]) -> str:
    """A table for each set, the target under it."""
    sections = []
    for dataset in dict.fromkeys(result.dataset for result in results):
        rows = [result for result in results if result.dataset == dataset]
        sections.append("\n".join([f"### {dataset} ({rows[0].part})", "", *_table(rows), *_verdict(dataset, rows)]))
    return "\n\n".join(sections) + "\n"


def _table(rows: Sequence[Result]) -> list[str]:
    head = ["| system |", *(f" {name} |" for name in FIGURES), " ms a query |"]
    lines = ["".join(head), "|---" * (len(FIGURES) + 2) + "|"]
    for row in rows:
        cells = " | ".join(f"{row.figures[name]:.1f}" for name in FIGURES)
        lines.append(f"| {row.system} | {cells} | {row.median_ms:.1f} |")
    return lines


def _verdict(dataset: str, rows: Sequence[Result]) -> list[str]:
    ours = next((row for row in rows if row.system == "Smara"), None)
    if ours is None or dataset not in TARGETS:
        return []
    figure, target = TARGETS[dataset]
    verdict = "met" if ours.figures[figure] >= target else "NOT met"
    return ["", f"Target {figure} ≥ {target:g}: {verdict} with {ours.figures[figure]:.1f}."]
