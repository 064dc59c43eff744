"""What is learned from real sessions, and how much of it is worth having: the precision of promoted
memories.

Every session of a project goes through ``observe_batch`` and ``finalize`` in the order in which it
began, with the background's work in between, and every memory that came of it is collected. Each
was labelled by hand: *keep* when a developer would be glad to be told it in the next session, it is
true by its evidence, and it names something; otherwise *junk*, *duplicate* (another memory says it)
or *wrong*. For files that change together, "true" was also looked up in the sessions that came
later. What sessions left unfinished counts along.

A second judge, stricter, read all of them before seeing the first one's verdicts (*second* in the
label file): a memory that anybody knows who knows the tools, or that the later commits of the
repository do not bear out, is no *keep*. Both precisions are told, what both keep, and how far the
two agree.

A label names a memory by project, signal and a digest of its words without numbers: no text of a
session is in the label file, and a memory that comes out in other words has no label and is counted
apart.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import smara
from evals.transcripts import Project

NAME = "promoted"
LABELS = Path(__file__).parent / "promoted_labels.json"
TARGET = 0.9

PARTS: dict[str, tuple[Project, ...]] = {
    "data folder": (Project("spotter"),),
    "tuned on": (
        Project("cli", "entireio/cli"),
        Project("context-evaluator", "PackmindHub/context-evaluator"),
        Project("cipher-box", "FSM1/cipher-box"),
        Project("git-sync", "entireio/git-sync"),
    ),
    "checked on": (
        Project("external-agents", "entireio/external-agents"),
        Project("cc-backend", "ClusterCockpit/cc-backend"),
        Project("oh-my-posh", "JanDeDobbeleer/oh-my-posh"),
        Project("langlearn-tts", "punt-labs/langlearn-tts"),
        Project("orpheus", "dougnukem/orpheus"),
        Project("auth-go", "entireio/auth-go"),
        Project("skills", "entireio/skills"),
        Project("entire-graph", "entireio/entire-graph"),
    ),
    "tuned on later": (
        Project("tan-mapper-app", "Ri5ha6h/tan-mapper-app"),
        Project("pup-mcp", "codyborders/pup-mcp"),
        Project("tij", "nakamura-shuta/tij"),
        Project("agentv", "EntityProcess/agentv"),
        Project("entire-bmad", "ShamsiievDmytro/entire-bmad"),
        Project("planetfall-seed-signalkit", "blackgirlbytes/planetfall-seed-signalkit"),
        Project("imessage-mail", "stat-guy/imessage-mail"),
        Project("StarCar", "polecatspeaks/StarCar"),
        Project("strato", "samcat116/strato"),
    ),
    "held out": (
        Project("CyberVPN", "Beep206/CyberVPN"),
        Project("leeson", "rommeld/leeson"),
        Project("safecast-map-MCP", "Safecast/safecast-map-MCP"),
        Project("dotfiles", "shaheislam/dotfiles"),
        Project("gaia", "theexperiencecompany/gaia"),
        Project("me", "ta93abe/me"),
    ),
}
"""By what was done with them: rules were changed after looking at those tuned on; of the others see
the page.
"""


@dataclass(frozen=True, slots=True)
class Learned:
    """A memory that came of a session; ``session`` is empty for what was synthesized over
    several.
    """

    project: str
    session: str
    signal: str
    content: str

    @property
    def id(self) -> str:
        words = re.sub(r"\d+", "N", self.content)
        return f"{self.project}:{self.signal}:{hashlib.sha256(words.encode()).hexdigest()[:12]}"


@dataclass(slots=True)
class Figures:
    """What came of one project."""

    part: str
    project: str
    sessions: int = 0
    events: int = 0
    learned: list[Learned] = field(default_factory=list)
    is_absent: bool = False


@dataclass(slots=True)
class Report:
    """All projects, with the labels."""

    figures: list[Figures]
    labels: dict[str, str]
    seconds: dict[str, str] = field(default_factory=dict)

    def counts(self, learned: Sequence[Learned]) -> Counter[str]:
        return Counter(self.labels.get(each.id, "unlabelled") for each in learned)

    def judged_by_both(self, learned: Sequence[Learned]) -> list[tuple[bool, bool]]:
        """Whether the first and whether the second judge would keep it, of each that both have
        seen.
        """
        return [
            (self.labels[each.id] == "keep", self.seconds[each.id] == "keep")
            for each in learned
            if each.id in self.labels and each.id in self.seconds
        ]


def evaluate(data: Path | None, parts: Sequence[str] = tuple(PARTS)) -> Report:
    """Every project of the parts that is at hand."""
    entries = json.loads(LABELS.read_text(encoding="utf-8"))
    labels, seconds = (
        {each["id"]: each[name] for each in entries if name in each}
        for name in ("verdict", "second")
    )
    figures = []
    for part in parts:
        for project in PARTS[part]:
            found = Figures(part, project.name, is_absent=not project.is_at_hand(data))
            if not found.is_absent:
                found.learned = list(learn(project, data, found))
            figures.append(found)
    return Report(figures, labels, seconds)


def learn(project: Project, data: Path | None, found: Figures) -> Iterator[Learned]:
    """Run the sessions of a project through a store of its own."""
    with smara.open(":memory:", embedder="off") as memory:
        left: set[str] = set()
        for events in project.sessions(data):
            found.sessions += 1
            found.events += len(events)
            session = events[0].session_id
            memory.behavior.observe_batch(events)
            done = memory.behavior.finalize(session)
            for each in done.promoted if done is not None else ():
                if each.draft is not None:
                    yield Learned(
                        project.name, session[:8], each.finding.kind, content=each.draft.content
                    )
            for state in memory.memories.list(type="work_state", limit=50):
                if state.id not in left:
                    left.add(state.id)
                    yield Learned(project.name, session[:8], "work_state", content=state.content)
            memory.behavior.run_due()
        for kept in memory.memories.to_review():
            if "synthesis" in kept.tags:
                yield Learned(project.name, "", "synthesis", content=kept.content)


def render(report: Report) -> str:
    """A row for each project, a sum for each part, and whether the aim is met."""
    lines = ["### Memories promoted from real sessions", ""]
    lines += [
        "| part | project | sessions | events | memories | keep | junk | duplicate | wrong | "
        "unlabelled |"
    ]
    lines += ["|" + "---|" * 10]
    verdicts = ("keep", "junk", "duplicate", "wrong", "unlabelled")
    for part in dict.fromkeys(each.part for each in report.figures):
        shown = [each for each in report.figures if each.part == part]
        for each in shown:
            if each.is_absent:
                lines.append(f"| {part} | {each.project} | not at hand | | | | | | | |")
                continue
            counts = report.counts(each.learned)
            cells = " | ".join(str(counts[verdict]) for verdict in verdicts)
            seen = f"{each.sessions} | {each.events} | {len(each.learned)}"
            lines.append(f"| {part} | {each.project} | {seen} | {cells} |")
        lines.append(_sum(part, [one for each in shown for one in each.learned], report))
    everything = [one for each in report.figures for one in each.learned]
    lines += [
        _sum("all", everything, report),
        "",
        "By signal: " + _by_signal(everything, report) + ".",
        "",
    ]
    lines += ["| part | second judge | both keep | agree | kappa |", "|---|---|---|---|---|"]
    for part in dict.fromkeys(each.part for each in report.figures):
        lines.append(
            _second(
                part,
                [one for each in report.figures if each.part == part for one in each.learned],
                report,
            )
        )
    lines.append(_second("**all**", everything, report))
    return "\n".join(lines) + "\n"


def _second(part: str, learned: Sequence[Learned], report: Report) -> str:
    """What the second judge says of a part, and how far the two agree."""
    seen = [report.seconds[each.id] == "keep" for each in learned if each.id in report.seconds]
    pairs = report.judged_by_both(learned)
    both, same = (
        sum(one and other for one, other in pairs),
        sum(one == other for one, other in pairs),
    )
    cells = (
        _share(sum(seen), len(seen)),
        _share(both, len(pairs)),
        _share(same, len(pairs)),
        kappa(pairs),
    )
    return f"| {part} | {' | '.join(cells)} |"


def _share(count: int, of: int) -> str:
    return f"{count} of {of} ({100 * count / of:.0f} %)" if of else "none"


def kappa(pairs: Sequence[tuple[bool, bool]]) -> str:
    """Agreement beyond chance (Cohen's); a dash where one judge has only one verdict.

    >>> kappa([(True, True)] * 8 + [(True, False), (False, False)])
    '0.62'
    """
    total = len(pairs)
    first, second = sum(one for one, _ in pairs), sum(other for _, other in pairs)
    chance = (first * second + (total - first) * (total - second)) / total**2 if total else 1.0
    same = sum(one == other for one, other in pairs)
    return f"{(same / total - chance) / (1 - chance):.2f}" if chance < 1 else "–"


def _sum(part: str, learned: Sequence[Learned], report: Report) -> str:
    counts = report.counts(learned)
    labelled = len(learned) - counts["unlabelled"]
    share = f"{100 * counts['keep'] / labelled:.0f} % of {labelled}" if labelled else "none"
    aim = f"aim {100 * TARGET:.0f} %"
    return (
        f"| **{part}** | **precision {share}** ({aim}) | | | {len(learned)} | {counts['keep']} "
        "| | | | |"
    )


def _by_signal(learned: Sequence[Learned], report: Report) -> str:
    found = []
    for signal in sorted({each.signal for each in learned}):
        of_it = [each for each in learned if each.signal == signal]
        found.append(f"{signal} {report.counts(of_it)['keep']}/{len(of_it)}")
    return ", ".join(found)


if __name__ == "__main__":
    from evals.data import data_folder

    done = evaluate(data_folder())
    print(render(done))
    if "--show" in sys.argv:
        for each in (one for figure in done.figures for one in figure.learned):
            print(
                f"{done.labels.get(each.id, 'unlabelled'):10} {each.id} {each.session or '-':8} "
                f"{each.content}"
            )
