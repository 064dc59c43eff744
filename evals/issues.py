"""From an issue to the file that has to change: SWE-bench Lite, development part, and messages of
commits.

``SMARA_EVAL_REPOS`` names a folder with bare repositories, ``<owner>+<name>/repo``. A tree is taken
at the commit before the change; what is indexed, and may be found, are all of its Python files that
are no tests. Of SWE-bench Lite the whole text of the issue is asked. Of a repository's later
commits the message is asked: those that change one file beside tests, none of releases, documents
and style. Nothing of the answers is known to the index; no model is asked.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import apsw

import smara
from evals.baselines import STOP_WORDS
from evals.scoring import interval

NAME = "issues"
VARIABLE = "SMARA_EVAL_REPOS"
TARGETS = {1: 48.0, 5: 82.0, 10: 90.0}
_DEPTHS = (1, 3, 5, 10, 20)
_COMMITS = (
    ("django/django", 1_500, 150), ("pytest-dev/pytest", 1_500, 60), ("sphinx-doc/sphinx", 1_500,
    60),
    ("pylint-dev/pylint", 1_500, 60), ("pydata/xarray", 1_500, 60), ("psf/requests", 3_500, 60),
)  # fmt: skip
"""Repository, how many commits ago its tree is taken, how many of the later messages are asked."""
_NO_CHANGE_OF_CODE = re.compile(
    r"version|release|typo|changelog|authors|copyright|bump|pre-commit|\bstyle\b|isort|black"
    r"|flake8|mypy|docs?\b",
    re.I,
)
_TRAILER = re.compile(
    r"(?m)^(?:Co-authored-by|Signed-off-by|Refs|Regression in|Thanks|Backport).*$"
)

Files = dict[str, bytes]
Asked = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Issue:
    """A text, the tree it is about, and the files that had to change."""

    repository: str
    commit: str
    text: str
    gold: frozenset[str]


@dataclass(slots=True)
class Ranks:
    """The ranks at which one system found the files, question by question."""

    system: str
    ranks: list[int] = field(default_factory=list)
    repositories: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def hits(self, depth: int, repository: str | None = None) -> list[float]:
        pairs = zip(self.ranks, self.repositories, strict=True)
        return [float(rank <= depth) for rank, name in pairs if repository in (None, name)]

    def accuracy(self, depth: int, repository: str | None = None) -> float:
        return 100 * statistics.mean(self.hits(depth, repository))


@dataclass(frozen=True, slots=True)
class Part:
    """One set with every system on it."""

    name: str
    systems: Sequence[Ranks]
    mean_files: float
    has_target: bool


def is_test(path: str) -> bool:
    """Whether a file is a test, or what tests are made of."""
    *folders, name = path.lower().split("/")
    return any(each in ("test", "tests", "testing", "test_data") for each in folders) or bool(
        re.fullmatch(r"(test_.*|.*_tests?|conftest|tests?)\.py", name)
    )


def evaluate(folder: Path) -> list[Part] | str:
    """Every set whose repositories are there, or a sentence that says what is missing."""
    named = os.environ.get(VARIABLE)
    if not named or not Path(named).is_dir():
        return (
            f"{NAME}: skipped; set {VARIABLE} to a folder with bare repositories, "
            "<owner>+<name>/repo."
        )
    repositories = Path(named)
    issues = [each for each in read_issues(folder) if _has_commit(repositories, each)]
    found = (
        [_measured("SWE-bench Lite, development part", repositories, issues, has_target=True)]
        if issues
        else []
    )
    commits = [
        each
        for name, ago, most in _COMMITS
        for each in read_commits(repositories, name, ago, most=most)
    ]
    if commits:
        found.append(_measured("messages of commits", repositories, commits, has_target=False))
    return found or f"{NAME}: skipped; {named} holds none of the repositories."


def read_issues(folder: Path) -> list[Issue]:
    """The issues of SWE-bench Lite that are in the folder of the evaluation data."""
    path = folder / "swebench_lite" / "instances.jsonl.gz"
    if not path.exists():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        Issue(r["repo"], r["base_commit"], r["problem_statement"], gold=frozenset(r["gold_files"]))
        for r in rows
    ]


def read_commits(repositories: Path, repository: str, ago: int, most: int) -> list[Issue]:
    """Messages of the commits after a tree, each with the one file it changed; drawn with a fixed
    seed.
    """
    if not _git_folder(repositories, repository).is_dir():
        return []
    log = _git(
        repositories,
        repository,
        "log",
        "--no-merges",
        "-n",
        "6000",
        "--format=%x01%H%x02%B%x03",
        "--name-only",
        "HEAD",
    ).decode("utf-8", "replace")
    commits = [re.split("[\x02\x03]", record, maxsplit=2) for record in log.split("\x01")[1:]]
    ago = min(ago, len(commits) - 1)
    tree = commits[ago][0]
    there = python_files(repositories, repository, tree)
    found = []
    for _, message, names in reversed(commits[:ago]):
        changed = [name for name in names.split("\n") if name.endswith(".py") and not is_test(name)]
        subject = message.strip().split("\n", 1)[0]
        if (
            len(changed) == 1
            and changed[0] in there
            and len(subject) >= 25
            and not _NO_CHANGE_OF_CODE.search(subject)
        ):
            found.append(
                Issue(repository, tree, _TRAILER.sub("", message.strip()), gold=frozenset(changed))
            )
    random.Random(1).shuffle(found)
    return found[:most]


def python_files(repositories: Path, repository: str, commit: str) -> Files:
    """The Python files of a tree."""
    data = _git(repositories, repository, "archive", commit)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {
            member.name: opened.read()
            for member in archive
            if member.isfile()
            and member.name.endswith(".py")
            and (opened := archive.extractfile(member)) is not None
        }


def _git_folder(repositories: Path, repository: str) -> Path:
    return repositories / repository.replace("/", "+") / "repo"


def _git(repositories: Path, repository: str, *arguments: str) -> bytes:
    command = ["git", "--git-dir", str(_git_folder(repositories, repository)), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout  # noqa: S603  # a list, no shell


def _has_commit(repositories: Path, issue: Issue) -> bool:
    try:
        _git(repositories, issue.repository, "cat-file", "-e", f"{issue.commit}^{{commit}}")
    except (subprocess.CalledProcessError, OSError):
        return False
    return True


def _measured(name: str, repositories: Path, issues: Sequence[Issue], has_target: bool) -> Part:
    systems: dict[str, Ranks] = {}
    sizes: list[int] = []
    groups: dict[tuple[str, str], list[Issue]] = {}
    for issue in issues:
        groups.setdefault((issue.repository, issue.commit), []).append(issue)
    for (repository, commit), asked in groups.items():
        print(f"{NAME}: {repository} {commit[:10]} …", file=sys.stderr, flush=True)
        files = python_files(repositories, repository, commit)
        candidates = {path for path in files if not is_test(path)}
        sizes += [len(candidates)] * len(asked)
        for system, ask in _systems(files, candidates):
            ranks = systems.setdefault(system, Ranks(system))
            for issue in asked:
                begin = time.perf_counter()
                ranked = ask(issue.text)
                ranks.seconds.append(time.perf_counter() - begin)
                ranks.ranks.append(
                    next((n for n, path in enumerate(ranked, 1) if path in issue.gold), 1_000)
                )
                ranks.repositories.append(repository)
    return Part(name, list(systems.values()), statistics.mean(sizes), has_target=has_target)


def _systems(files: Files, candidates: set[str]) -> Iterator[tuple[str, Asked]]:
    """Plain full text over paths and bodies, and Smara with and without what its graph adds."""
    plain = _fts5({path: files[path] for path in sorted(candidates)})
    yield "FTS5 path+body, whole text", plain
    yield "FTS5 path+body, first line", lambda text: plain(text.strip().split("\n", 1)[0])
    with tempfile.TemporaryDirectory(prefix="smara-issues-") as folder:
        tree = Path(folder) / "tree"
        for path in candidates:
            target = tree / PurePosixPath(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(files[path])
        given: dict[str, Any] = {
            "durability": "normal",
            "search_deadline_seconds": 60.0,
            "embedder": "off",
        }
        with smara.open(Path(folder) / "eval.db", **given) as memory:
            memory.code.index(tree)

            def locate(text: str, graph: bool) -> list[str]:
                found = [each.path for each in memory.code.locate(text, 60, graph=graph)]
                return [path for path in found if path in candidates]

            yield "Smara, words alone", lambda text: locate(text, False)
            yield "Smara", lambda text: locate(text, True)


def _fts5(files: Files) -> Asked:
    """One row a file, its path counting five times; the words of the text joined by OR, stop words
    left out.
    """
    paths = list(files)
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE files USING fts5 (path, body)")
    with connection:
        connection.executemany(
            "INSERT INTO files (rowid, path, body) VALUES (?, ?, ?)",
            [(n, path, files[path].decode("utf-8", "replace")) for n, path in enumerate(paths)],
        )

    def ask(text: str) -> list[str]:
        words = [
            word
            for word in dict.fromkeys(re.findall(r"[^\W_]+", text.lower()))
            if word not in STOP_WORDS
        ][:400]
        if not words:
            return []
        rows = connection.execute(
            "SELECT rowid FROM files WHERE files MATCH ? ORDER BY bm25(files, 5.0, 1.0), rowid "
            "LIMIT 60",
            (" OR ".join(f'"{word}"' for word in words),),
        )
        return [paths[row[0]] for row in rows]

    return ask


def render(found: list[Part] | str) -> str:
    """A table for each set, the targets under it, and the best system by repository."""
    if isinstance(found, str):
        return found + "\n"
    sections = []
    for part in found:
        count = len(part.systems[0].ranks)
        head = (
            f"### Issue to file: {part.name} ({count} texts, {part.mean_files:.0f} files to "
            "choose from on average)"
        )
        lines = [
            head,
            "",
            "| system |" + "".join(f" acc@{k} |" for k in _DEPTHS) + " MRR | ms a text |",
        ]
        lines.append("|---" * (len(_DEPTHS) + 3) + "|")
        for each in part.systems:
            cells = " | ".join(f"{each.accuracy(k):.0f}" for k in _DEPTHS)
            mean_rank = statistics.mean(1 / rank for rank in each.ranks)
            lines.append(
                f"| {each.system} | {cells} | {mean_rank:.3f} | "
                f"{1000 * statistics.median(each.seconds):.0f} |"
            )
        sections.append("\n".join([*lines, "", *_told(part)]))
    return "\n\n".join(sections) + "\n"


def _told(part: Part) -> list[str]:
    ours = part.systems[-1]
    lines = []
    for depth, target in TARGETS.items() if part.has_target else ():
        low, high = interval(ours.hits(depth))
        value = ours.accuracy(depth)
        verdict = "met" if value >= target else "NOT met"
        drawn = f"95 % of redrawn sets: {low:.0f} to {high:.0f}"
        lines.append(f"Target acc@{depth} ≥ {target:g}: {verdict} with {value:.0f} ({drawn}).  ")
    lines += ["", "| Smara, repository | n | acc@1 | acc@5 | acc@10 |", "|---|---|---|---|---|"]
    for name in sorted(set(ours.repositories)):
        cells = " | ".join(f"{ours.accuracy(depth, name):.0f}" for depth in TARGETS)
        lines.append(f"| {name} | {len(ours.hits(1, name))} | {cells} |")
    return lines
