"""Questions to an index of code and changes of a file in it, at several sizes of a tree."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import smara
from bench.measure import Report, p50, p95
from smara.codegraph.memory_graph import Graph

QUESTIONS, UPDATES = 400, 60
_MOST_IMPACT_MS, _MOST_UPDATE_MS = 10.0, 100.0
_LARGE = 50_000


def _bytes_of(graph: Graph) -> int:
    """Return the memory that the arrays of a graph take."""
    own = [each for each in vars(graph).values() if isinstance(each, np.ndarray)]
    joined = {id(each): each for two in graph._pairs.values() for one in two for each in one}
    return sum(each.nbytes for each in (*own, *joined.values()))


def ask(memory: smara.Memory, root: Path, report: Report, name: str) -> None:
    """Impact at depth 3 of symbols drawn by how much depends on them, so that hubs are among
    them.
    """
    asking = memory.code.asking(root)
    started = time.process_time()
    graph = asking.graph()
    graph.pairs()
    loaded = time.process_time() - started
    each = f"{_bytes_of(graph) / graph.size:,.0f} bytes a node"
    report.add(f"{name}: graph loaded into memory", f"{loaded * 1000:,.0f} ms, {each}")
    rng = random.Random(1)
    targets = [int(place) for place in rng.choices(graph.to_places.tolist(), k=QUESTIONS // 2)]
    targets += [rng.randrange(graph.size) for _ in range(QUESTIONS // 2)]
    with memory._rooms.database.read() as session:
        nodes = asking.lookup.nodes(session, [int(graph.nos[place]) for place in targets])
    named = [
        f"{node.path}:{node.first_line}" if node.kind != "file" else node.path
        for node in nodes.values()
    ]
    clock, work = [], []
    for target in named:
        at, used = time.perf_counter(), time.process_time()
        asking.impact(target, depth=3)
        work.append(time.process_time() - used)
        clock.append(time.perf_counter() - at)
    at_most = _MOST_IMPACT_MS if graph.size >= _LARGE else None
    _told(
        report,
        f"{name}: impact, depth 3, {graph.size:,} nodes",
        work,
        clock=clock,
        at_most_ms=at_most,
        high="p99",
    )
    used = time.process_time()
    found = asking.map(1_024)
    first = time.process_time() - used
    used = time.process_time()
    asking.map(1_024, files=[nodes[next(iter(nodes))].path])
    again = time.process_time() - used
    told = f"{first * 1000:,.0f} ms, another {again * 1000:,.0f} ms"
    report.add(f"{name}: map of {found.tokens} of 1,024 tokens", told)
    used = time.process_time()
    count = len(asking.cycles())
    report.add(
        f"{name}: {count} cycles of imports", f"{(time.process_time() - used) * 1000:,.0f} ms"
    )


def update_files(
    memory: smara.Memory, root: Path, report: Report, name: str, paths: Sequence[tuple[str, str]]
) -> list[float]:
    """Change one file after another, as an editor does, and take each in by itself."""
    rng = random.Random(2)
    clock, work = [], []
    used = time.process_time()
    memory.code.get_ready(root)
    report.add(
        f"{name}: made ready for changes, once", f"{(time.process_time() - used) * 1000:,.0f} ms"
    )
    for number, (path, _) in enumerate(
        rng.choices([each for each in paths if each[1] == "python"], k=UPDATES)
    ):
        file = root / path
        file.write_bytes(
            file.read_bytes() + f"\n\ndef added_{number}():\n    return {number}\n".encode()
        )
        at, used = time.perf_counter(), time.process_time()
        memory.code.update([path], root)
        work.append(time.process_time() - used)
        clock.append(time.perf_counter() - at)
    nodes = memory.code.status(root).nodes
    at_most = _MOST_UPDATE_MS if nodes >= _LARGE else None
    _told(
        report, f"{name}: one file changed, {nodes:,} nodes", work, clock=clock, at_most_ms=at_most
    )
    return work


def grow(folder: Path, report: Report, sizes: Sequence[int]) -> None:
    """Made-up trees of many files: what one file costs, and what a question costs, as the tree
    grows.
    """
    for size in sizes:
        root = folder / f"grown-{size}"
        _write_tree(root, size)
        store = folder / f"grown-{size}.db"
        with smara.open(store, durability="normal", embed_in_background=False) as memory:
            used = time.process_time()
            found = memory.code.index(root, workers=0)
            spent = time.process_time() - used
            name = f"{size:,} files ({found.nodes:,} nodes)"
            memory.internals.database.shrink_log()
            stored = f"{store.stat().st_size / found.nodes:,.0f} bytes a node"
            report.add(f"{name}: indexed, a file", f"{spent / size * 1000:.2f} ms, {stored}")
            ask(memory, root, report, name=name)
            paths = [(f"pkg{number % 40}/m{number}.py", "python") for number in range(size)]
            update_files(memory, root, report, name=name, paths=paths)


def _write_tree(root: Path, size: int) -> None:
    """Modules of ten functions, each calling earlier ones, near it or anywhere."""
    rng = random.Random(size)
    for number in range(size):
        lines = []
        others = (
            sorted({rng.randrange(max(0, number - 60), number) for _ in range(3)}) if number else []
        )
        for other in others:
            lines.append(f"from pkg{other % 40}.m{other} import f{other}_0, f{other}_1")
        for each in range(10):
            lines.append(f"\n\ndef f{number}_{each}(value):\n    total = value + {each}")
            for other in others:
                lines.append(f"    total += f{other}_{each % 2}(total)")
            lines.append("    return total")
        folder = root / f"pkg{number % 40}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"m{number}.py").write_text("\n".join(lines) + "\n")
    for folder in root.glob("pkg*"):
        (folder / "__init__.py").write_text("")


def _told(
    report: Report,
    what: str,
    work: list[float],
    clock: list[float],
    at_most_ms: float | None,
    high: str = "p95",
) -> None:
    share = 0.99 if high == "p99" else 0.95
    worst = sorted(work)[min(len(work) - 1, int(len(work) * share))] * 1000
    report.figure(f"code {what}", worst)
    report.add(
        f"{what}, p50 / {high}",
        f"{p50(work) * 1000:.1f} / {worst:.1f} ms; by the clock p95 {p95(clock) * 1000:.0f}",
        "" if at_most_ms is None else f"{high} ≤ {at_most_ms:.0f} ms",
        None if at_most_ms is None else worst <= at_most_ms,
    )
