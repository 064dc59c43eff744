"""Archives: real data that comes back equal, and peak memory by the number of messages.

Each export and import runs in a process of its own, whose peak resident memory is that of the
whole: interpreter, store and archive.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import smara
from bench.corpus import Corpus
from bench.measure import Report

SIZES = (10_000, 100_000)
LARGE = (*SIZES, 1_000_000)
MOST_MIB = 64
"""The peak memory of an export of any size."""
_MESSAGES_A_THREAD = 1_000
_WORK = """
import json, sys, time
import smara

def peak():
    # That of the process since it began; what the system tells of its usage has its parent in it.
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024

store, path, act = sys.argv[1:]
with smara.open(store, embedder="off", project="bench") as memory:
    memory.threads.totals()
    before, started = peak(), time.perf_counter()
    if act == "export":
        memory.privacy.export(path)
    else:
        memory.privacy.import_archive(path)
    took = time.perf_counter() - started
print(json.dumps([before, peak(), took]))
"""


def run(folder: Path, report: Report, sizes: Sequence[int] = SIZES) -> None:
    """Measure archives."""
    place = os.environ.get("SMARA_EVAL_DATA")
    if place:
        _round_trips(Path(place), folder, report)
    store, stored = folder / "export.db", 0
    corpus = Corpus()
    for size in sizes:
        with smara.open(store, embedder="off", project="bench", durability="normal") as memory:
            while stored < size:
                thread = f"t{stored // _MESSAGES_A_THREAD}"
                batch = list(corpus.messages(_MESSAGES_A_THREAD, start=stored))
                memory.messages.append_batch(smara.NewThread(thread), batch, compact=False)
                stored += len(batch)
        archive = folder / f"{size}.zip"
        before, peak, took = measure(store, archive, "export")
        report.figure(f"export.{size}.peak_mib", peak)
        mib = archive.stat().st_size / 2**20
        report.add(
            f"export of {size:,} messages ({mib:,.0f} MiB)",
            f"{size / took:,.0f}/s, {took:.1f} s",
        )
        report.add(
            "  peak memory (before it began)",
            f"{peak:.0f} MiB ({before:.0f} MiB)",
            f"≤ {MOST_MIB} MiB",
            peak <= MOST_MIB,
        )
    if len(sizes) > 1:
        _, peak, took = measure(folder / "import.db", folder / f"{sizes[1]}.zip", "import")
        report.add(f"import of {sizes[1]:,} messages", f"{sizes[1] / took:,.0f}/s, {took:.1f} s")
        report.add("  peak memory", f"{peak:.0f} MiB")


def measure(store: Path | str, archive: Path, act: str) -> tuple[float, float, float]:
    """Return memory before and at the peak in MiB, and seconds."""
    done = subprocess.run(
        [sys.executable, "-c", _WORK, str(store), str(archive), act],
        capture_output=True,
        check=True,
        text=True,
    )
    before, peak, took = json.loads(done.stdout)
    return before, peak, took


def _round_trips(data: Path, folder: Path, report: Report) -> None:
    """Export real trackers, transcripts and what was learned, and import them elsewhere."""
    from contextlib import nullcontext

    from smara.adapters.beads import import_beads
    from smara.adapters.git_history import import_history
    from smara.adapters.importer import BulkImport
    from smara.adapters.instructions import import_instructions

    stores = {path.stem: path for path in sorted((data / "beads").glob("*.jsonl.gz"))}
    transcripts = sorted(map(str, (data / "transcripts" / "claude_code").glob("*.jsonl.gz")))
    here = Path(__file__).parents[1]
    for name in (*stores, "transcripts", "memories of this repository"):
        first, second = folder / f"{name}.zip", folder / f"{name}-again.zip"
        with smara.open(folder / f"{name}.db", embedder="off", project="real") as memory:
            if name in stores:
                import_beads(memory, stores[name])
            elif name == "transcripts":
                BulkImport(memory).run_files(transcripts, lambda label: nullcontext())
            else:
                import_history(memory, here)
                import_instructions(memory, here)
            exported = memory.privacy.export(first)
        with smara.open(folder / f"{name}-again.db", embedder="off", project="real") as memory:
            memory.privacy.import_archive(first)
            memory.privacy.export(second)
        counts = exported.counts
        words = ", ".join(
            f"{counts[each]:,} {each}"
            for each in ("messages", "memories", "tasks")
            if each in counts
        )
        is_equal = _checksums(first) == _checksums(second)
        report.add(
            f"round trip of {name}: {words}",
            f"{sum(counts.values()):,} rows of {len(counts)} tables",
            "equal export",
            is_equal,
        )


def _checksums(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        files = json.loads(archive.read("manifest.json"))["files"]
    return {each["path"]: each["sha256"] for each in files}
