"""Smara beside other local stores: the same messages, questions and vectors, one after the other.

Each peer has an environment of its own under ``~/.cache/smara-bench`` (or SMARA_BENCH_CACHE), made
by uv on first use. Around each system one bare FTS5 table is measured, and its figures are given as
multiples of that: the machine may be busy. What cannot be installed is named and left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.comparing import Text, real, synthetic
from bench.measure import Report, p50, p95
from bench.peer_systems import SYSTEMS

SIZES = (10_000,)
_SMALL = 1_000
_BATCH = 500
_QUESTIONS = 30
_LEFT_OUT = {
    "basic-memory": "writes notes through its server, a file each",
    "MemPalace": "stores through its own miner, with a model",
}


def run(folder: Path, report: Report, is_small: bool = False) -> None:
    """Measure every peer that can be installed."""
    size = _SMALL if is_small else SIZES[0]
    text = real(size) or synthetic(size)
    job = folder / "job.json"
    job.write_text(json.dumps(_job(text)), encoding="utf-8")
    for name, kind in SYSTEMS.items():
        python = sys.executable
        if name not in ("bare FTS5", "Smara"):
            try:
                python = environment(name, kind.packages)
            except subprocess.CalledProcessError as error:
                report.add(f"{size:,} {text.name}: {name}", "left out: cannot be installed")
                print((error.stderr or b"").decode()[-300:])
                continue
        before = _measured("bare FTS5", sys.executable, job, folder)
        try:
            found = _measured(name, python, job, folder)
        except subprocess.CalledProcessError as error:
            reason = (error.stderr or b"").decode().strip().splitlines()[-1:]
            report.add(f"{size:,} {text.name}: {name}", f"left out, it failed: {' '.join(reason)}")
            continue
        _tell(report, f"{size:,} {text.name}: {name}", before, found, size)
    for name, reason in _LEFT_OUT.items():
        report.add(f"{size:,} {text.name}: {name}", f"left out: {reason}")


def _job(text: Text) -> dict[str, Any]:
    from smara.models.embedders.offline import OfflineEmbedder

    texts = list(dict.fromkeys(message["content"] for message in text.messages))
    questions = text.questions[:_QUESTIONS]
    rows = OfflineEmbedder().embed([*texts, *questions]).round(5).tolist()
    return {
        "texts": texts, "questions": questions, "batch": _BATCH, "singles": len(texts) // 10,
        "vectors": dict(zip([*texts, *questions], rows, strict=True)),
    }  # fmt: skip


def environment(name: str, packages: tuple[str, ...]) -> str:
    """Return the Python of a peer's own environment, made on first use."""
    cache = Path(os.environ.get("SMARA_BENCH_CACHE") or Path.home() / ".cache" / "smara-bench")
    folder = cache / packages[0]
    python, done = folder / "bin" / "python", folder / "installed"
    if not done.exists():
        print(f"installing {name}", flush=True)
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", "uv"],
            [str(python), "-m", "uv", "pip", "install", "--quiet", "--python", str(python),
             *packages],
        ):  # fmt: skip
            subprocess.run(command, check=True, capture_output=True)
        done.touch()
    return str(python)


def _measured(name: str, python: str, job: Path, folder: Path) -> dict[str, Any]:
    """Run one system as a process; a place of its own for its files."""
    number = len(list(folder.iterdir()))
    out = folder / f"{number}.json"
    script = Path(__file__).with_name("peer_systems.py")
    store = folder / f"{number}-store"
    command = [python, str(script), str(job), name, str(store), str(out)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(_OURS) if _is_ours(name) else ""}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    found["bytes"] = sum(each.stat().st_size for each in store.rglob("*") if each.is_file())
    return found


_OURS = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]


def _is_ours(name: str) -> bool:
    return name in ("bare FTS5", "Smara")


def _tell(
    report: Report, label: str, bare: dict[str, Any], found: dict[str, Any], size: int
) -> None:
    """Report a system: rates by the clock and by processor time, of bare; search; bytes; memory."""
    print(f"{label}: {found['versions']}; {found['durability']}", flush=True)
    for what in ("single", "batch"):
        ours, theirs = found["times"][what], bare["times"][what]
        ratios = [sum(t[n] for t in theirs) / sum(t[n] for t in ours) for n in (0, 1)]
        count = size // 10 if what == "single" else size - size // 10
        rate = count / sum(each[0] for each in ours)
        report.figure(f"{label} {what}", ratios[0])
        report.add(f"{label}: append {what}",
                   f"{rate:,.0f}/s = {ratios[0]:.2f}; processor {ratios[1]:.2f}")  # fmt: skip
    if "vectors" in found["times"]:
        seconds = found["times"]["vectors"][0][0]
        report.add(f"{label}: vectors made", f"{size / seconds:,.0f}/s")
    ours, theirs = found["times"]["search"], bare["times"]["search"]
    clock, plain = [each[0] for each in ours], [each[0] for each in theirs]
    work = p50([each[1] for each in ours]) / max(p50([each[1] for each in theirs]), 1e-6)
    report.figure(f"{label} search", p50(clock) / p50(plain))
    report.add(f"{label}: search p50 / p95",
               f"{p50(clock) * 1000:.1f} / {p95(clock) * 1000:.1f} ms ="
               f" {p50(clock) / p50(plain):.1f}; processor {work:.1f}")  # fmt: skip
    report.add(f"{label}: bytes each; peak memory",
               f"{found['bytes'] / size:,.0f} = {found['bytes'] / bare['bytes']:.2f};"
               f" {found['peak_mib']} MiB")  # fmt: skip
