"""Taking turns, percentiles, and the table in which it all ends."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


def seconds(action: Callable[[], object]) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def take_turns(rounds: int, **actions: Callable[[int], object]) -> dict[str, list[float]]:
    """Run every action once a round, so that a busy moment hits all of them."""
    found: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(rounds):
        for name, action in actions.items():
            found[name].append(seconds(lambda action=action, number=number: action(number)))  # type: ignore[misc]
    return found


def p50(values: list[float]) -> float:
    return statistics.median(values)


def p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))]


def p99(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]


@dataclass
class Report:
    """Rows of what was measured, each with its target where there is one."""

    rows: list[tuple[str, str, str, str]] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def add(self, what: str, value: str, target: str = "", is_met: bool | None = None) -> None:
        verdict = "" if is_met is None else ("met" if is_met else "MISSED")
        self.rows.append((what, value, target, verdict))
        print(f"{what:<62} {value:>34}  {target:<26} {verdict}", flush=True)

    def figure(self, name: str, value: float) -> None:
        self.figures[name] = value

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        lines = ["| what | measured | target | |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        (folder / "report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (folder / "report.json").write_text(json.dumps(self.figures, indent=1), encoding="utf-8")

    @property
    def missed(self) -> list[str]:
        return [row[0] for row in self.rows if row[3] == "MISSED"]
