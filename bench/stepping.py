"""What memory adds to a step of an agent, on threads of 10, 1,000 and 100,000 messages.

Between two steps of an agent lie seconds in which its model thinks; the background has done
its work by then. So it is waited for here, outside of what is measured.
"""

from __future__ import annotations

from pathlib import Path

import smara
from bench.corpus import Corpus
from bench.measure import Report, p50, p95, take_turns

SIZES = (10, 1_000, 100_000)
ROUNDS = 200
_LIMIT_MS = 10.0
_BATCH = 500


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
