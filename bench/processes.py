"""What only whole processes show: start-up, memory, the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from bench.corpus import Corpus, rare_name
from bench.measure import Report, p50, seconds

IMPORTED = 10_000
_RUNS = 7
GIT = shutil.which("git") or "git"


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
        f"with open_memory({str(store)!r}, durability='normal', project='bench') as memory:\n"
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
    _start_up(report, folder, store, corpus=corpus)


_EVERYDAY = {
    "--version": (["--version"], 4),
    "--help": (["--help"], 4),
    "tasks ready": (["tasks", "ready"], 12),
    "tasks add": (["tasks", "add", "Look at the retries of the uploader"], 12),
    "remember": (["remember", "The uploader retries three times"], 12),
    "search of a name": (["search", "{name}"], 12),
    "search of a question": (["search", "{question}"], 12),
    "memories list": (["memories", "list"], None),
    "context preview": (["context", "preview"], 12),
    "status": (["status"], None),
    "doctor": (["doctor"], 60),
}
"""Commands, and how many times what ``python -c pass`` takes each may take."""


def _start_up(report: Report, folder: Path, store: Path, corpus: Corpus) -> None:
    """Time whole processes in a repository with files that memories are about."""
    place = repository(folder / "repository", corpus)
    here = {"name": rare_name(500, corpus.words), "question": corpus.questions(1)[0]}
    # As installed by pip, with compiled files; some machines forbid writing them.
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    environment |= {
        "SMARA_DB": str(store),
        "SMARA_HOME": str(folder / "home"),
        "SMARA_PROJECT": "bench",
    }
    environment.setdefault("PYTHONPATH", os.getcwd())
    python = [sys.executable, "-m", "smara"]
    for number in range(30):
        words = ["remember", f"{corpus.text(number)[:80]}", "--type", "gotcha"]
        files = ["--file", f"module_{number}.py"]
        subprocess.run([*python, *words, *files], check=True, capture_output=True, cwd=place,
                       env=environment)  # fmt: skip
    commands = {
        "bare": [sys.executable, "-c", "pass"],
        "import": [sys.executable, "-c", "import smara"],
        "open": [sys.executable, "-c", "import smara; smara.open"],
    } | {
        what: [*python, *(part.format(**here) for part in parts)]
        for what, (parts, _) in _EVERYDAY.items()
    }
    times: dict[str, list[float]] = {key: [] for key in commands}
    used: dict[str, list[float]] = {key: [] for key in commands}
    for number in range(_RUNS + 1):
        for key, command in commands.items():
            before, started = getrusage(RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, cwd=place, env=environment)
            wall, after = time.perf_counter() - started, getrusage(RUSAGE_CHILDREN)
            if number:  # the first run compiles
                times[key].append(wall)
                used[key].append(
                    after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                )
    limits = {"import": None, "open": None} | {key: most for key, (_, most) in _EVERYDAY.items()}
    bare = p50(times["bare"])
    report.add("python -c pass", f"{bare * 1000:.0f} ms, processor {min(used['bare']) * 1000:.0f}")
    for what, limit in limits.items():
        # The least processor time: a busy machine adds to it, and nothing takes away from it.
        ratio = min(used[what]) / min(used["bare"])
        report.figure(f"process {what}", ratio)
        report.add(
            f"process: {what}, on {IMPORTED:,} messages",
            f"{p50(times[what]) * 1000:.0f} ms = {p50(times[what]) / bare:.1f}; processor"
            f" {min(used[what]) * 1000:.0f} = {ratio:.1f}",
            f"<= {limit} x bare Python" if limit else "",
            ratio <= limit if limit else None,
        )


def repository(place: Path, corpus: Corpus) -> Path:
    """Make a git repository of Python files with about 2,000 lines each."""
    place.mkdir()
    for number in range(30):
        lines = [f"{corpus.text(line)[:60]!r}\n" for line in range(2_000)]
        (place / f"module_{number}.py").write_text("".join(lines), encoding="utf-8")
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Begin"]):
        subprocess.run(
            [GIT, "-c", "user.name=b", "-c", "user.email=b@example.org", *command],
            check=True, cwd=place,
        )  # fmt: skip
    return place
