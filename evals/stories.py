"""Thirty generated stories: is what was said still found after observing, reflecting and
compacting?

A story is several sessions over days, half of them of a coding agent, half of a person's chat,
with 6 to 10 planted facts among filler. Every thread is observed offline, reflected by force and
compacted, as the commands do; then each fact is asked for in words that do not hold its answer.
A fact is found when one of the first ten hits, or one note of the context, holds the answer to
the letter, beside what it is about. The stories are
drawn from a fixed seed; their sentences are in ``story_words.py``.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import smara
from evals import story_words as words

NAME = "stories"
STORIES = 30
HITS = 10
TARGET = 100.0
START = 1_767_600_000_000  # 5 January 2026, 8:00 UTC
MINUTE, DAY = 60_000, 86_400_000

Where = Literal["messages", "observations", "context"]
WHERE: tuple[Where, ...] = ("messages", "observations", "context")


@dataclass(frozen=True, slots=True)
class Fact:
    """Something planted: how it is asked for, and the words that answer."""

    kind: str
    query: str
    answer: str
    about: str
    thread: str

    def is_told_in(self, text: str) -> bool:
        """Whether a text holds the answer, as whole words, beside what it is about."""
        answer = rf"(?<!\w){re.escape(self.answer)}(?!\w)"
        return (
            self.about.casefold() in text.casefold()
            and re.search(answer, text, re.IGNORECASE) is not None
        )


@dataclass(slots=True)
class Story:
    """Sessions of messages, by the id of their thread, and what was planted in them."""

    name: str
    flavor: str
    sessions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """Where each fact was found, and how much there was."""

    found: list[tuple[str, Fact, frozenset[Where]]] = field(default_factory=list)
    stories: int = 0
    threads: int = 0
    messages: int = 0
    message_tokens: int = 0
    context_tokens: int = 0
    reflected: int = 0
    whole: int = 0
    """Messages that no summary stands for after compacting."""

    def share(self, where: Where, flavor: str | None = None, kind: str | None = None) -> float:
        chosen = [
            places
            for own, fact, places in self.found
            if flavor in (None, own) and kind in (None, fact.kind)
        ]
        return 100 * sum(where in places for places in chosen) / max(1, len(chosen))


# making a story


def make_story(number: int) -> Story:
    """The story of that number, always the same."""
    rng = random.Random(f"smara-story-{number}")
    flavor = "coding" if number % 2 == 0 else "general"
    story = Story(f"story-{number:02}", flavor)
    plants = rng.sample(words.PLANTS[flavor], rng.randint(6, min(10, len(words.PLANTS[flavor]))))
    count = rng.randint(3, 5)
    parts: list[list[list[words.Line]]] = [[] for _ in range(count)]
    for plant in plants:
        planted = plant(rng)
        places = sorted(rng.sample(range(count), len(planted.parts)))
        for place, part in zip(places, planted.parts, strict=True):
            parts[place].append(part)
        thread = f"{story.name}/session-{places[-1] + 1}"
        story.facts.append(
            Fact(planted.kind, planted.query, planted.answer, about=planted.about, thread=thread)
        )
    begin = START + number * 3 * DAY
    for session, planted_parts in enumerate(parts):
        exchanges = [words.filler(flavor, rng) for _ in range(rng.randint(8, 14))] + planted_parts
        rng.shuffle(exchanges)
        started = begin + session * rng.randint(1, 4) * DAY + session * DAY
        story.sessions[f"{story.name}/session-{session + 1}"] = list(
            _dated(exchanges, started, rng)
        )
    return story


def _dated(
    exchanges: Iterable[Sequence[words.Line]], started: int, rng: random.Random
) -> Iterable[dict[str, Any]]:
    now, calls = started, 0
    for exchange in exchanges:
        now += rng.randint(2, 9) * MINUTE
        for line in exchange:
            now += rng.randint(4, 40) * 1_000
            content: Any = line.text
            if line.tool is not None:
                calls += 1
                content = [
                    smara.Part(
                        "tool_call", name=line.tool, call_id=f"c{calls}", arguments=line.arguments
                    )
                ]
            elif line.role == "tool":
                content = [
                    smara.Part(
                        "tool_result", line.text, call_id=f"c{calls}", is_error=line.is_error
                    )
                ]
            yield {"role": line.role, "content": content, "created_at": now}


# telling it, and asking


def evaluate(count: int = STORIES) -> Report:
    """Every story in a store of its own."""
    report = Report()
    for number in range(count):
        print(f"\r{NAME}: {number + 1} of {count}", end="", file=sys.stderr, flush=True)
        story = make_story(number)
        with tempfile.TemporaryDirectory(prefix="smara-eval-") as folder:
            store = Path(folder) / "eval.db"
            with smara.open(
                store,
                project="eval",
                durability="normal",
                observe_flavor=story.flavor,
                observe_timezone="UTC",
                search_deadline_seconds=60.0,
            ) as memory:
                _tell(memory, story, report)
                _ask(memory, story, report)
        report.stories += 1
    print(file=sys.stderr)
    return report


def _tell(memory: smara.Memory, story: Story, report: Report) -> None:
    for thread, messages in story.sessions.items():
        added = memory.messages.add_many(thread_id=thread, messages=messages)
        report.messages += len(added)
        report.message_tokens += sum(message.token_count for message in added)
    for thread in story.sessions:
        outcome = memory.observations.observe(thread)
        if not outcome.success or memory.observations.pending(thread).tokens:
            raise RuntimeError(f"{thread} was not observed to its end: {outcome.error}")
        outcome = memory.observations.reflect(thread, is_forced=True)
        if not outcome.success and outcome.code != "no_progress":
            raise RuntimeError(f"{thread} was not reflected: {outcome.error}")
        report.reflected += outcome.success
        report.whole += memory.compactions.compact(thread, 0).messages_whole
        report.threads += 1


def _ask(memory: smara.Memory, story: Story, report: Report) -> None:
    contexts = {thread: memory.context.process_input(thread) for thread in story.sessions}
    report.context_tokens += sum(context.tokens for context in contexts.values())
    for fact in story.facts:
        notes = [hit.observation for hit in memory.search_observations(fact.query, HITS)]
        told: dict[Where, list[str]] = {
            "messages": [hit.content for hit in memory.search(fact.query, HITS)],
            "observations": ["\n".join((note.text, *note.details, *note.files)) for note in notes],
            "context": contexts[fact.thread].system.split("\n* "),  # note by note
        }
        places = [where for where in WHERE if any(map(fact.is_told_in, told[where]))]
        report.found.append((story.flavor, fact, frozenset(places)))


# the table


def render(report: Report) -> str:
    """The shares as Markdown, and what was not found."""
    lines = [
        f"### Generated stories ({report.stories} stories, {len(report.found)} planted facts)",
        "",
    ]
    lines += ["| facts | of | messages found | observations found | in the context of its thread |"]
    lines += ["|---|---|---|---|---|"]
    for flavor in (None, "coding", "general"):
        lines.append(_row(report, flavor or "all", flavor, kind=None))
    for flavor in ("coding", "general"):
        kinds = sorted({fact.kind for own, fact, _ in report.found if own == flavor})
        lines += [_row(report, f"{flavor}: {kind}", flavor, kind=kind) for kind in kinds]
    verdict = "met" if report.share("messages") >= TARGET else "NOT met"
    lines += [
        "",
        f"Target messages found = {TARGET:g} %: {verdict} with {report.share('messages'):.1f} %.",
        f"{report.threads} threads, {report.messages:,} messages of {report.message_tokens:,} "
        "tokens, "
        f"{report.whole:,} left whole by compacting, {report.reflected} threads reflected; "
        f"their contexts together have {report.context_tokens:,} tokens.",
    ]
    return "\n".join(lines) + "\n"


def _row(report: Report, name: str, flavor: str | None, kind: str | None) -> str:
    count = sum(
        flavor in (None, own) and kind in (None, fact.kind) for own, fact, _ in report.found
    )
    return (
        f"| {name} | {count} | "
        + " | ".join(f"{report.share(where, flavor, kind):.1f}" for where in WHERE)
        + " |"
    )


if __name__ == "__main__":
    done = evaluate()
    print(render(done))
    for _, lost, places in done.found:
        if len(places) < len(WHERE):
            missing = ", ".join(where for where in WHERE if where not in places)
            print(
                f"{lost.thread} [{lost.kind}] {lost.query!r} → {lost.answer!r}: not in {missing}",
                file=sys.stderr,
            )
