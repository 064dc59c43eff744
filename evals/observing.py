"""Observing real sessions without a model: how small it gets, what survives, and whether it is
true.

*Compression* is the tokens of a thread's messages over the tokens of its observations.
*Survival* is the share of hand-labelled paths, names, commands with outcome, requests and
findings that the observations still tell; a label names a record and where in it the words
stand, so that no text of the data is in the project. *Faithfulness* is extractive: every
name, path, number and quoted word of an observation occurs in the messages it comes from.
All three are measured once more after every thread was reflected by force.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import smara

NAME = "observing"
TRANSCRIPTS = Path("transcripts") / "claude_code"
LABELS = Path(__file__).parent / "observing_labels.json"
COMPRESSION, SURVIVAL = 8.0, 90.0
BATCH_TOKENS = 6_000

_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_FACT = re.compile(
    r"`[^`\n]+`|[\w@~./:+-]*[\d_/.][\w@~./:+-]*|[A-Za-z]+[A-Z]\w*|\"\w[^\"\n]{0,40}\w\""
)
_PIECE = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Label:
    """Words of a record that somebody would look for later; ``outcome`` where they were the call of
    a result.
    """

    record: str
    kind: str
    start: int
    length: int
    outcome: tuple[str, int, int] | None = None


@dataclass(slots=True)
class Observed:
    """One thread and what was noted of it."""

    name: str
    kind: str
    messages: list[smara.Message]
    notes: list[Any]
    tokens: int
    unfounded: list[str] = field(default_factory=list)
    facts: int = 0

    @property
    def message_tokens(self) -> int:
        return sum(message.token_count for message in self.messages)


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of one run."""

    threads: tuple[Observed, ...]
    survived: dict[str, tuple[int, int]]
    lost: tuple[Label, ...]
    reflected: Report | None = None
    """The same after every thread was reflected by force."""

    @property
    def tokens(self) -> int:
        return sum(each.tokens for each in self.threads)

    @property
    def compression(self) -> float:
        return sum(each.message_tokens for each in self.threads) / max(1, self.tokens)

    @property
    def survival(self) -> float:
        kept = sum(kept for kept, _ in self.survived.values())
        return 100 * kept / max(1, sum(labelled for _, labelled in self.survived.values()))

    @property
    def unfounded(self) -> int:
        return sum(len(each.unfounded) for each in self.threads)


def evaluate(data: Path) -> Report:
    """Observe every transcript in a fresh store, and judge what was noted."""
    with tempfile.TemporaryDirectory(prefix="smara-eval-") as folder:
        store = Path(folder) / "eval.db"
        files = sorted(map(str, (data / TRANSCRIPTS).glob("*.gz")))
        command = [
            sys.executable,
            "-m",
            "smara",
            "import",
            "--db",
            str(store),
            "--project",
            "eval",
            *files,
        ]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603  # our own program
        with smara.open(
            store, project="eval", durability="normal", observe_after_tokens=BATCH_TOKENS
        ) as memory:
            threads = tuple(_observe(memory, thread) for thread in memory.threads.list(limit=1_000))
            condensed = tuple(_reflect(memory, thread) for thread in threads)
    return Report(threads, *_survival(threads), Report(condensed, *_survival(condensed)))


def _observe(memory: smara.Memory, thread: smara.Thread) -> Observed:
    outcome = memory.observations.observe(thread.id)
    if not outcome.success:
        raise RuntimeError(f"{thread.id} was not observed: {outcome.error}")
    messages = list(memory.messages.stream(thread_id=thread.id))
    return _judged(thread.id, thread.kind, messages, notes=memory.observations.active(thread.id))


def _reflect(memory: smara.Memory, thread: Observed) -> Observed:
    outcome = memory.observations.reflect(thread.name, is_forced=True)
    if not outcome.success and outcome.code != "no_progress":
        raise RuntimeError(f"{thread.name} was not reflected: {outcome.error}")
    return _judged(
        thread.name, thread.kind, thread.messages, notes=memory.observations.active(thread.name)
    )


def _judged(name: str, kind: str, messages: list[smara.Message], notes: list[Any]) -> Observed:
    found = Observed(name, kind, messages, notes=notes, tokens=sum(note.tokens for note in notes))
    for note in notes:
        facts = list(facts_of(note))
        found.facts += len(facts)
        found.unfounded += [fact for fact in facts if fact not in _source(note, messages)]
    return found


# faithfulness


def facts_of(note: Any) -> Iterator[str]:
    """The names, paths, numbers and quoted words of an observation, in pieces without
    punctuation.
    """
    for text in (note.text, *note.details, *note.files):
        for fact in _FACT.findall(text):
            yield from _PIECE.findall(fact)


def _source(note: Any, messages: Sequence[smara.Message]) -> str:
    told = [each.raw_content for each in messages if note.first_seq <= each.seq <= note.last_seq]
    return _COLOUR.sub("", "\n".join(told))


# survival


def read_labels(path: Path = LABELS) -> list[Label]:
    """The hand-made sample."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [
        Label(
            row[0], row[1], row[2], length=row[3], outcome=tuple(row[4]) if len(row) > 4 else None
        )
        for row in rows
    ]


def _survival(threads: Sequence[Observed]) -> tuple[dict[str, tuple[int, int]], tuple[Label, ...]]:
    records = {each.client_id: (thread, each) for thread in threads for each in thread.messages}
    counts: dict[str, tuple[int, int]] = {}
    lost: list[Label] = []
    for label in read_labels():
        thread, _ = records[label.record]
        words = _words(records, label.record, label.start, length=label.length)
        outcome = _words(records, *label.outcome) if label.outcome else ""
        is_kept = any(_tells(note, label.kind, words, outcome=outcome) for note in thread.notes)
        kept, labelled = counts.get(label.kind, (0, 0))
        counts[label.kind] = (kept + is_kept, labelled + 1)
        lost += [] if is_kept else [label]
    return counts, tuple(lost)


def _words(records: dict[Any, Any], record: str, start: int, length: int) -> str:
    return str(records[record][1].raw_content[start : start + length])


def _tells(note: Any, kind: str, words: str, outcome: str) -> bool:
    text = "\n".join([note.text, *note.details])
    if kind == "path":
        return any(words.endswith(file) for file in note.files) or words in text
    if kind == "request":
        wanted = words.split()
        return sum(word in text for word in wanted) >= 0.8 * len(wanted)
    if kind == "command":
        is_named = all(word in text for word in words.split()[:2]) or note.category == "completion"
        return is_named and outcome in text
    return words in text


# the table


def render(report: Report) -> str:
    """The figures as Markdown, each with its target."""
    lines = [
        "### Observing real sessions offline",
        "",
        "| thread | messages | tokens | notes | tokens | smaller | unfounded |",
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    for each in sorted(report.threads, key=lambda each: -each.message_tokens):
        ratio = each.message_tokens / max(1, each.tokens)
        cells = (
            f"{each.name[:8]} {each.kind}",
            len(each.messages),
            each.message_tokens,
            len(each.notes),
            each.tokens,
        )
        lines.append(
            f"| {' | '.join(map(str, cells))} | {ratio:.1f}× | {len(each.unfounded)} of "
            f"{each.facts} |"
        )
    lines += ["", "| survives | of the labelled |", "|---|---|"]
    lines += [
        f"| {kind} | {kept} of {labelled} |"
        for kind, (kept, labelled) in sorted(report.survived.items())
    ]
    lines += ["", _verdict("compression", report.compression, COMPRESSION, unit="×")]
    lines += [_verdict("survival", report.survival, SURVIVAL, unit=" %")]
    lines += [f"Unfounded names, paths, numbers and quoted words: {report.unfounded} (target 0)."]
    if report.reflected is not None:
        lines += ["", _after_reflection(report, report.reflected)]
    return "\n".join(lines) + "\n"


def _after_reflection(before: Report, after: Report) -> str:
    kinds = ", ".join(
        f"{kind} {kept} of {labelled}" for kind, (kept, labelled) in sorted(after.survived.items())
    )
    return (
        f"After a forced reflection {before.tokens:,} tokens of notes are {after.tokens:,} "
        f"({before.tokens / max(1, after.tokens):.2f}× smaller), {after.survival:.1f} % of the "
        "labelled "
        f"survive ({kinds}), and {after.unfounded} are unfounded."
    )


def _verdict(name: str, value: float, target: float, unit: str) -> str:
    return (
        f"Target {name} ≥ {target:g}{unit}: {'met' if value >= target else 'NOT met'} with "
        f"{value:.1f}{unit}."
    )


if __name__ == "__main__":
    from evals.data import data_folder

    print(render(evaluate(data_folder())))
