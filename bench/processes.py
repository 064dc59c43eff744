"""What only whole processes show: start-up, memory, the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import smara
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
        "import resource, sys; from smara.memory import open_memory; from smara.adapters.importing import Importer\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"with open_memory({str(store)!r}, durability='normal') as memory:\n"
        f"    report = Importer(memory).import_file({str(path)!r})\n"
        "print(report.stored, before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    elapsed: list[float] = []
    answer = ""

    def imports() -> None:
        nonlocal answer
        answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout

    elapsed.append(seconds(imports))
    stored, before, peak = map(int, answer.split())
    if stored != IMPORTED:
        sys.exit(f"the import stored {stored} of {IMPORTED}")
    report.add(f"import of {IMPORTED:,} messages (JSONL)", f"{IMPORTED / elapsed[0]:,.0f}/s")
    report.add(
        f"peak memory while importing {IMPORTED:,}", f"{peak // 1024} MiB ({(peak - before) // 1024} over the start)"
    )
    _start_up(report, store)


def _start_up(report: Report, store: Path) -> None:
    name = "the"
    with smara.open(store) as memory:
        words = memory.search("server request", limit=1)
        name = words[0].content.split()[0] if words else name
    commands = {
        "bare": [sys.executable, "-c", "pass"],
        "import": [sys.executable, "-c", "import smara; smara.open"],
        "search": [sys.executable, "-m", "smara", "search", f"{name} schema", "--db", str(store)],
    }
    times: dict[str, list[float]] = {key: [] for key in commands}
    for _ in range(_RUNS):
        for key, command in commands.items():
            times[key].append(
                seconds(lambda command=command: subprocess.run(command, check=False, capture_output=True))
            )  # type: ignore[misc]
    bare = p50(times["bare"]) * 1000
    imported, searched = p50(times["import"]) * 1000 - bare, p50(times["search"]) * 1000 - bare
    report.add(
        "import smara (and smara.open), over bare Python",
        f"{imported:.0f} ms (bare {bare:.0f})",
        "<= 60 ms",
        imported <= 60,
    )
    report.add(f"`smara search` on {IMPORTED:,}, over bare Python", f"{searched:.0f} ms", "<= 150 ms", searched <= 150)
