"""``python -m evals [--sets NAME ...] [--output FILE]``: every system on every set, in one run."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from evals import (
    decisions,
    freshness,
    issues,
    languages,
    nothing_found,
    observed_recall,
    observing,
    packs,
    promoted,
    replay,
    resolution,
    signals,
    sources,
    stories,
)
from evals.data import DataMissing, Dataset, data_folder, load_all, load_longmemeval
from evals.report import Result, render
from evals.scoring import score
from evals.systems import System, systems_for

RANKED = 10


def measure(dataset: Dataset, system: System) -> Result:
    """One system on one set: each haystack is built once and asked all its questions."""
    figures: list[dict[str, float]] = []
    kinds: list[str] = []
    seconds: list[float] = []
    for haystack, questions in dataset.by_haystack():
        with system.open(dataset.haystack(haystack)) as rank:
            for question in questions:
                begin = time.perf_counter()
                ranked = rank(question, RANKED)
                seconds.append(time.perf_counter() - begin)
                figures.append(score(ranked, question.gold))
                kinds.append(question.kind)
    return Result(
        dataset.name,
        dataset.part,
        system.name,
        questions=figures,
        kinds=kinds,
        median_ms=1000 * statistics.median(seconds),
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m evals", description=__doc__)
    parser.add_argument(
        "--sets", nargs="*", default=[], help="only the sets whose name begins with one of these"
    )
    parser.add_argument(
        "--output", type=Path, default=None, help="write the table to this file, too"
    )
    parser.add_argument(
        "--postgres",
        metavar="URL",
        default=os.environ.get("SMARA_EVAL_POSTGRES"),
        help="measure on PostgreSQL as well",
    )
    parser.add_argument(
        "--questions", type=int, default=None, help=f"only so many of {observed_recall.NAME}"
    )
    options = parser.parse_args()
    try:
        datasets = [
            *load_all(),
            packs.scenarios_with_gold(),
            packs.chats_with_gold(data_folder()),
            sources.paraphrases(),
        ]
    except DataMissing as missing:
        print(missing, file=sys.stderr)
        return 2
    wanted = tuple(name.lower() for name in options.sets) or ("",)
    results: list[Result] = []
    for dataset in datasets:
        if not dataset.name.lower().startswith(wanted) or (dataset.is_large and not options.sets):
            continue
        for system in systems_for(dataset.level, options.postgres):
            print(f"{dataset.name}: {system.name} …", file=sys.stderr, flush=True)
            results.append(measure(dataset, system))
    table = render(results) if results else ""
    others: dict[str, Callable[[], str]] = {
        observing.NAME: lambda: observing.render(observing.evaluate(data_folder())),
        stories.NAME: lambda: stories.render(stories.evaluate()),
        signals.NAME: lambda: signals.render(signals.evaluate()),
        promoted.NAME: lambda: promoted.render(promoted.evaluate(data_folder())),
        replay.NAME: lambda: replay.render(replay.evaluate(data_folder())),
        issues.NAME: lambda: issues.render(issues.evaluate(data_folder())),
        resolution.NAME: lambda: resolution.render(resolution.evaluate()),
        nothing_found.NAME: lambda: nothing_found.render(nothing_found.evaluate(data_folder())),
        packs.NAME: lambda: packs.render(packs.evaluate(data_folder())),
        decisions.NAME: lambda: decisions.render(decisions.evaluate(data_folder())),
        sources.NAME: lambda: sources.render(sources.evaluate()),
        languages.NAME: lambda: languages.render(languages.evaluate()),
        freshness.NAME: lambda: freshness.render(freshness.evaluate()),
        observed_recall.NAME: lambda: observed_recall.render(
            observed_recall.evaluate(load_longmemeval(data_folder()), options.questions)
        ),
    }
    for name, tell in others.items():
        if name.startswith(wanted):
            print(f"{name} …", file=sys.stderr, flush=True)
            table = "\n".join(filter(None, [table, tell()]))
    print(table)
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(table, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
