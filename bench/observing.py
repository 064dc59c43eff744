"""Observing without a model: messages per second, and the memory it takes.

Messages like those of a coding agent: a request now and then, a file read, an edit, a
test run that fails and one that passes, some words between. Observed in batches as the
worker does, each with the last observations as what is known.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from bench.corpus import Corpus
from bench.measure import Report
from smara.messages.models import Message, Part, Role
from smara.observations.models import ObservationDraft, ObserveRequest
from smara.observations.offline import OfflineObserver

SIZES = (10_000, 100_000)
BATCH = 60
LEAST_PER_SECOND = 1_000


def run(folder: Path, report: Report, sizes: tuple[int, ...] = SIZES) -> None:
    """How fast messages become notes, and whether it stays as fast."""
    for size in sizes:
        seconds, notes = observe(size)
        rate = size / seconds
        is_met = rate >= LEAST_PER_SECOND if size == sizes[-1] else None
        target = f"≥ {LEAST_PER_SECOND:,} a second" if is_met is not None else ""
        report.add(
            f"observe {size:,} messages offline",
            f"{rate:,.0f} a second, {notes:,} notes",
            target,
            is_met,
        )
        report.figure(f"observe_offline_{size}_per_second", rate)
    tracemalloc.start()
    observe(2_000)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    report.add("observe 2,000 messages offline, peak memory", f"{peak:.1f} MB")
    report.figure("observe_offline_peak_mb", peak)


def observe(size: int) -> tuple[float, int]:
    """The seconds that observing takes, without those of making the messages, and how many notes
    came of it.
    """
    observer = OfflineObserver()
    stream = messages(size)
    spent, notes, known = 0.0, 0, ""
    while batch := list(islice(stream, BATCH)):
        request = ObserveRequest(batch, known=known)
        started = time.perf_counter()
        draft = observer.observe(request)
        spent += time.perf_counter() - started
        notes += len(draft.notes)
        known = _rendered(draft)
    return spent, notes


def _rendered(draft: ObservationDraft) -> str:
    return "\n".join(f"* {note.text}" for note in draft.notes[-40:])


def messages(count: int, seed: int = 7) -> Iterator[Message]:
    """So many messages of one thread, three seconds apart."""
    corpus = Corpus(seed)
    for number in range(count):
        role, part = _part(corpus, number)
        content = part.render()
        yield Message(
            f"m{number}",
            "t",
            "r",
            seq=number + 1,
            role=role,
            raw_content=content,
            parts=(part,),
            token_count=len(content) // 4,
            token_method="estimate",  # noqa: S106
            created_at=1_770_000_000_000 + 3_000 * number,
        )


def _part(corpus: Corpus, number: int) -> tuple[Role, Part]:
    """The parts of one round of work, over and over: ten messages."""
    words = corpus.text(number)
    name = words.split()[0]
    path = f"/home/dev/shop/src/{name}/views.py"
    call = f"c{number - number % 2}"
    body = "\n".join(f"{line:6}→    {corpus.words[line % 900]} = {line}" for line in range(1, 120))
    code = (
        f"class {name.capitalize()}View:\n    def render(self, request: Request) -> str:\n     "
        f"   return {words[:80]!r}"
    )
    rounds: tuple[tuple[Role, Part], ...] = (
        ("user", Part("text", f"Please change {path}: {words}")),
        (
            "assistant",
            Part("text", f"Let me look at the file first. The problem is that {words[:160]}"),
        ),
        ("assistant", Part("tool_call", name="Read", call_id=call, arguments={"file_path": path})),
        ("tool", Part("tool_result", body, name="Read", call_id=f"c{number - 1}")),
        (
            "assistant",
            Part(
                "tool_call",
                name="Write",
                call_id=call,
                arguments={"file_path": path, "content": code},
            ),
        ),
        (
            "tool",
            Part(
                "tool_result",
                f"File created successfully at: {path}",
                name="Write",
                call_id=f"c{number - 1}",
            ),
        ),
        (
            "assistant",
            Part(
                "tool_call",
                name="Bash",
                call_id=call,
                arguments={"command": "pytest -q 2>&1 | tail -20"},
            ),
        ),
        ("tool", Part("tool_result", _report(name, number), name="Bash", call_id=f"c{number - 1}")),
        ("assistant", Part("text", f"All tests pass. {words}")),
        ("user", Part("text", "thanks")),
    )
    return rounds[number % 10]


def _report(name: str, number: int) -> str:
    if number % 20 < 10:
        failed = f"FAILED tests/test_{name}.py::test_render - AssertionError: 1 != 2"
        return f"....F\n{failed}\n1 failed, {number % 90} passed in 2.1s"
    return f".....\n{number % 90} passed in 1.9s"
