"""What memory adds to a step of an agent, on threads of 10, 1,000 and 100,000 messages.

Between two steps of an agent lie seconds in which its model thinks; the background has done
its work by then. So it is waited for here, outside of what is measured.
"""

from __future__ import annotations

import json
from itertools import takewhile
from pathlib import Path

import smara
from bench.corpus import Corpus
from bench.measure import Report, p50, p95, take_turns
from smara.testing import FakeClock

SIZES = (10, 1_000, 100_000)
ROUNDS = 200
_LIMIT_MS = 10.0
_BATCH = 500
_TURNS = 170
_LEAST_EQUAL = 0.95


def run(folder: Path, report: Report, sizes: tuple[int, ...] = SIZES) -> None:
    """Fill a thread of each size, observe it, and take steps in it."""
    found: list[float] = []
    for size in sizes:
        corpus = Corpus()
        settings = {"durability": "normal", "compact_every_messages": 0, "observe_timezone": "UTC"}
        with smara.open(folder / f"steps-{size}.db", **settings) as memory:
            for start in range(0, size, _BATCH):
                memory.messages.add_many(
                    thread_id="t", messages=corpus.messages(min(_BATCH, size - start), start)
                )
            outcome = memory.observations.observe("t", retain_tokens=6_000)
            if not outcome.success:
                raise SystemExit(f"the benchmark is wrong: {outcome}")
            while (
                memory.observations.is_reflection_due("t")
                and memory.observations.reflect("t").notes
            ):
                pass
            found.append(_steps(memory, corpus, size, report=report))
    _prefixes(folder, report)
    growth = found[-1] / found[0]
    report.figure("process_input growth", growth)
    report.add(f"process_input, p50 from {sizes[0]:,} to {sizes[-1]:,} messages", f"× {growth:.1f}")


def _steps(memory: smara.Memory, corpus: Corpus, size: int, report: Report) -> float:
    incoming = [{"role": "user", "content": "and now?"}]
    times = take_turns(
        ROUNDS,
        step=lambda n: memory.context.process_input("t", incoming, step=n),
        say=lambda n: memory.context.process_output(
            "t", [{"role": "user", "content": corpus.text(size + n)}]
        ),
        rest=lambda n: memory.observations.settled(60),
    )
    step = times["step"]
    report.figure(f"process_input {size}", p95(step) * 1000)
    report.add(
        f"{size:,} messages: process_input, p50 / p95",
        f"{p50(step) * 1000:.2f} / {p95(step) * 1000:.2f} ms",
        f"p95 <= {_LIMIT_MS:.0f} ms",
        p95(step) * 1000 <= _LIMIT_MS,
    )
    return p50(step)


def _prefixes(folder: Path, report: Report) -> None:
    """Compare each turn's prompt with the one before, from the first observation on.

    What both begin with is what a vendor's cache can keep, at most.
    """
    clock, before, equal, total = FakeClock(1_800_000_000_000), "", 0, 0
    body = "\n".join(f"    value_{n} = compute_{n}(left, right)" for n in range(30))
    with smara.open(folder / "prefixes.db", clock=clock, observe_timezone="UTC") as memory:
        for turn in range(_TURNS):
            clock.advance(60 * (2 + turn % 7))
            text = f"Please change handler_{turn}() in src/api_{turn % 4}.py: validate user_{turn}."
            message = {"role": "user", "content": text}
            context = memory.context.process_input("t", [message])
            prompt = json.dumps(context.as_messages(), ensure_ascii=False)
            if context.receipt.observation_ids:
                pairs = zip(before, prompt, strict=False)
                shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
                equal += len(prompt[:shared].encode())
                total += len(prompt.encode())
            before = prompt
            answer = f"I changed handler_{turn}():\n{body}\npytest: {turn + 5} passed."
            memory.context.process_output("t", [message, {"role": "assistant", "content": answer}])
            memory.observations.settled(60)
    report.figure("prompt equal to the turn before", equal / total)
    report.add(
        f"bytes of the prompt equal to the turn before, {_TURNS} turns",
        f"{equal / total:.1%}",
        f">= {_LEAST_EQUAL:.0%}",
        equal / total >= _LEAST_EQUAL,
    )
