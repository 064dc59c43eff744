"""What only whole processes show: start-up, memory, the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from bench.corpus import Corpus
from bench.measure import Report, p50, seconds

IMPORTED = 100_000
_RUNS = 15


def run(folder: Path, report: Report) -> None:
    """Import 100,000 messages, search them from the command line, and start Python."""
    path, store = folder / "import.jsonl", folder / "import.db"
    corpus = Corpus(3)
    with path.open("w", encoding="utf-8") as lines:
        for number, message in enumerate(corpus.messages(IMPORTED)):
            lines.write(json.dumps({"thread": f"t{number // 1000}", **message}) + "\n")
    code = (
        "import resource, sys; from smara.memory import open_memory; from "
        "smara.adapters.importer import Importer\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"with open_memory({str(store)!r}, durability='normal') as memory:\n"
        f"    report = Importer(memory).import_file({str(path)!r})\n"
        "print(report.stored, before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    elapsed: list[float] = []
    answer = ""

    def imports() -> None:
        nonlocal answer
        answer = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout

    elapsed.append(seconds(imports))
    stored, before, peak = map(int, answer.split())
    if stored != IMPORTED:
        sys.exit(f"the import stored {stored} of {IMPORTED}")
    report.add(f"import of {IMPORTED:,} messages (JSONL)", f"{IMPORTED / elapsed[0]:,.0f}/s")
    report.add(
        f"peak memory while importing {IMPORTED:,}",
        f"{peak // 1024} MiB ({(peak - before) // 1024} over the start)",
    )
    _start_up(report, store, f"{corpus.words[300]} {corpus.words[5_000]}")


def _start_up(report: Report, store: Path, query: str) -> None:
    commands = {
        "bare": [sys.executable, "-c", "pass"],
        "import": [sys.executable, "-c", "import smara"],
        "open": [sys.executable, "-c", "import smara; smara.open"],
        "search": [sys.executable, "-m", "smara", "search", query, "--db", str(store)],
    }
    # As installed by pip, with compiled files; some machines forbid writing them.
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    times: dict[str, list[float]] = {key: [] for key in commands}
    for number in range(_RUNS + 1):
        for key, command in commands.items():
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=environment)
            if number:  # the first run compiles
                times[key].append(time.perf_counter() - started)
    bare = p50(times["bare"]) * 1000
    over = {key: p50(times[key]) * 1000 - bare for key in commands}
    report.add(
        "import smara, over bare Python",
        f"{over['import']:.0f} ms (bare {bare:.0f})",
        "<= 60 ms",
        over["import"] <= 60,
    )
    report.add("import smara; smara.open, over bare Python", f"{over['open']:.0f} ms")
    report.add(
        f"`smara search` on {IMPORTED:,}, over bare Python",
        f"{over['search']:.0f} ms",
        "<= 150 ms",
        over["search"] <= 150,
    )
