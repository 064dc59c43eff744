"""The index of code against a bare parse of the same files, and against tools that do a part of the
same job.

The standard library is always there. Other repositories are looked for in SMARA_BENCH_REPOS, as
bare git directories ``owner+name/repo`` or ``name``; without it they are left out, which the report
says. Machines are shared, so ratios are of processor time; "on two cores" is what two free cores
would need: half of all work, and no less than what one process has to do alone. Two processes that
run side by side slow each other down (two cores are often one with two threads), and the index has
two: the bare parse is therefore measured beside a second one of its kind, and alone as well. How
fast a machine is changes from minute to minute: the graph, the bare parse, the whole index and the
bare parse again take turns, twice.
"""

from __future__ import annotations

import io
import json
import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import smara
from bench.code_questions import ask, grow, update_files
from bench.measure import Report

SIZES = (100, 1_000, 10_000)
_MOST_WHOLE = 8.0
_TIMES = 2
_OPENED: dict[str, Any] = {"durability": "normal", "embed_in_background": False}
_REPOSITORIES = ("django+django",)
_LEFT_OUT = shutil.ignore_patterns(
    "site-packages", "__pycache__", "*.pyc", "*.so", "lib-dynload", "config-*"
)


class Cost(NamedTuple):
    """Processor seconds of this process and of those it started, and seconds by the clock."""

    own: float
    children: float
    elapsed: float

    def and_also(self, other: Cost, times: int) -> Cost:
        """This and a share of another one, of so many that are measured."""
        return Cost(*(mine + its / times for mine, its in zip(self, other, strict=True)))

    @property
    def all(self) -> float:
        return self.own + self.children

    @property
    def on_two_cores(self) -> float:
        return max(self.own, self.all / 2)


@contextmanager
def measured() -> Iterator[list[Cost]]:
    """What a block costs; the cost is in the list when it ends."""
    found: list[Cost] = []
    children, own, clock = _children(), time.process_time(), time.perf_counter()
    yield found
    found.append(
        Cost(time.process_time() - own, _children() - children, time.perf_counter() - clock)
    )


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(folder: Path, report: Report, sizes: tuple[int, ...] = SIZES) -> None:
    """Index each repository bare, as a graph and whole; then ask, change a file, and let a tree
    grow.
    """
    for name, make in repositories().items():
        root = folder / "trees" / name
        make(root)
        _one(folder, report, name, root=root)
    if not os.environ.get("SMARA_BENCH_REPOS"):
        report.add("code: other repositories", "left out: SMARA_BENCH_REPOS is not set")
    grow(folder, report, sizes)


def repositories() -> dict[str, Callable[[Path], object]]:
    """What can be indexed here, and how each is laid out in a folder of its own."""
    library = Path(sysconfig.get_path("stdlib"))
    found: dict[str, Callable[[Path], object]] = {
        "standard library": lambda root: shutil.copytree(
            library, root, ignore=_LEFT_OUT, symlinks=True
        )
    }
    given = os.environ.get("SMARA_BENCH_REPOS")
    for name in _REPOSITORIES if given else ():
        for place in (
            Path(given or "") / name / "repo",
            Path(given or "") / name.partition("+")[2],
        ):
            if place.is_dir():
                found[name.partition("+")[2]] = lambda root, place=place: _extracted(place, root)  # type: ignore[misc]
                break
    return found


def _extracted(place: Path, root: Path) -> None:
    root.mkdir(parents=True)
    git_dir = place / ".git" if (place / ".git").exists() else place
    git = shutil.which("git") or "git"
    packed = subprocess.run(
        [git, f"--git-dir={git_dir}", "archive", "HEAD"], capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(root, filter="data")


def _one(folder: Path, report: Report, name: str, root: Path) -> None:
    whole = bare = Cost(0.0, 0.0, 0.0)
    for number in range(_TIMES):
        with smara.open(store := folder / f"{name}-{number}.db", **_OPENED) as memory:
            whole = whole.and_also(_index(memory, root), _TIMES)
            paths = _code_files(memory, root)
        bare = bare.and_also(_bare_parse(root, paths, is_beside=True), _TIMES)
    alone = _bare_parse(root, paths)
    with smara.open(store, **_OPENED) as memory:
        status = memory.code.status(root)
        memory.internals.database.shrink_log()
        label = f"{name} ({status.files:,} files, {status.nodes:,} nodes, {status.edges:,} edges)"
        told = f"{bare.own:.1f} s of processor time beside another, {alone.own:.1f} alone"
        report.add(f"{label}: bare parse of {len(paths):,} files", told)
        _ratio(report, f"{name}: whole index", whole, bare=bare, most=_MOST_WHOLE)
        each = store.stat().st_size / max(1, status.nodes)
        report.add(
            f"{name}: bytes of the store for each node",
            f"{each:,.0f}, with {status.chunks:,} chunks",
        )
        ask(memory, root, report, name=name)
        update_files(memory, root, report, name=name, paths=paths)
    _others(folder, report, name, root=root, bare=bare)


def _index(memory: smara.Memory, root: Path) -> Cost:
    from smara.codegraph.index.indexer import index

    with measured() as cost:
        index(memory.code.tree(root))
    return cost[0]


def _code_files(memory: smara.Memory, root: Path) -> list[tuple[str, Any]]:
    lookup = memory.code.asking(root).lookup
    with memory.internals.database.read() as session:
        return [
            (path, language)
            for path, language in lookup.files(session, "path, language")
            if language
        ]


def _bare_parse(root: Path, paths: list[tuple[str, Any]], is_beside: bool = False) -> Cost:
    """Read and parse the same files by the same grammars, and look at nothing; ``is_beside`` a
    process that does so.
    """
    from smara.codegraph.parse.extract import parser

    parsers = {language: parser(language) for _, language in paths}
    with _another(root, paths) if is_beside else nullcontext(), measured() as cost:
        for path, language in paths:
            parsers[language].parse((root / path).read_bytes())
    return cost[0]


@contextmanager
def _another(root: Path, paths: list[tuple[str, Any]]) -> Iterator[None]:
    """A second process that parses the same files again and again."""
    code = (
        "import json, sys\nfrom smara.codegraph.parse.extract import parser\npaths = "
        "json.load(sys.stdin)\n"
        "print(flush=True)\nwhile True:\n  for path, language in paths:\n"
        "    parser(language).parse(open(path, 'rb').read())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write(json.dumps([(str(root / path), language) for path, language in paths]))
        process.stdin.close()
        process.stdout.readline()
        yield
        process.kill()


def _ratio(report: Report, what: str, cost: Cost, bare: Cost, most: float) -> None:
    ratio = cost.on_two_cores / bare.own
    report.figure(f"code {what}", ratio)
    value = (
        f"{ratio:.2f} × bare ({cost.all / bare.own:.2f} in all), {cost.elapsed:.0f} s by the clock"
    )
    report.add(f"{what}, on two cores", value, f"≤ {most:.0f} × bare", ratio <= most)


def _others(folder: Path, report: Report, name: str, root: Path, bare: Cost) -> None:
    """Universal Ctags and aider's repository map, where they are installed."""
    ctags = shutil.which("ctags")
    version = (
        subprocess.run([ctags, "--version"], capture_output=True, text=True).stdout if ctags else ""
    )
    if ctags and "Universal Ctags" in version:
        with measured() as cost:
            subprocess.run(
                [ctags, "-R", "-f", str(folder / "tags"), str(root)],
                capture_output=True,
                check=False,
            )
        _beside(report, f"{name}: {version.split(',')[0]}, definitions alone", cost[0], bare=bare)
    else:
        report.add(f"{name}: Universal Ctags", "not installed")
    python = os.environ.get("SMARA_BENCH_AIDER", "")
    if not python:
        report.add(
            f"{name}: aider's repository map",
            "left out: SMARA_BENCH_AIDER names no Python that has it",
        )
        return
    with measured() as cost:
        done = subprocess.run(
            [python, "-c", _AIDER, str(root)], capture_output=True, text=True, check=False
        )
    told = (done.stdout or done.stderr).strip().splitlines()[-1:] or ["no answer"]
    _beside(report, f"{name}: aider's repository map ({told[0][:60]})", cost[0], bare=bare)


def _beside(report: Report, what: str, cost: Cost, bare: Cost) -> None:
    report.add(what, f"{cost.all:.1f} s = {cost.all / bare.own:.2f} × bare")


_AIDER = """
import sys, os, time
from aider.repomap import RepoMap
class Io:
    def read_text(self, path):
        try: return open(path, encoding="utf-8").read()
        except (OSError, UnicodeDecodeError): return None
    def tool_output(self, *a, **k): pass
    tool_warning = tool_error = tool_output
class Model:
    def token_count(self, text): return len(text) // 4
root = sys.argv[1]
files = [os.path.join(f, n) for f, _, ns in os.walk(root) for n in ns if n.endswith((".py", ".js"))]
started = time.process_time()
text = RepoMap(map_tokens=1024, root=root, main_model=Model(), io=Io(), refresh="always").get_repo_map([], files)
first = time.process_time() - started
print(f"first map {first:.1f} s, {len(text or '') // 4} tokens asked for 8,192 at most")
"""  # noqa: E501
