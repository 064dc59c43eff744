"""How well it is known what became of code: functions anchored before a commit and judged after it.

The tree of a public repository is brought from commit to commit, and the index with it, as a
save would. Before each commit every function of the files it touches is anchored by a memory
that rests on its lines; after it, and again some commits later, the verdicts on these are held
against the truth. The truth comes from the two trees and the standard ``ast`` module alone.
"""

from __future__ import annotations

import ast
import copy
import os
import subprocess
import tarfile
import tempfile
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import smara

NAME = "freshness"
VERDICTS = ("fresh", "moved", "drifted", "orphaned")
REPOSITORIES = {"psf+requests": 400, "pytest-dev+pytest": 100}
"""Which histories are walked, and how many of their newest commits that touch Python."""
LATER = 10
"""After so many commits more, the anchors are judged once again."""
_AT_ONCE = 12

Place = tuple[str, str]


@dataclass(slots=True)
class Outcome:
    """How often each truth met each verdict, right after the commit and later."""

    repository: str
    commits: int = 0
    anchored: int = 0
    missed: int = 0
    """Functions that got no anchor of their own."""
    seconds: float = 0.0
    judging_seconds: float = 0.0
    at_once: Counter[tuple[str, str]] = field(default_factory=Counter)
    later: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Code:
    """A tree as ``ast`` sees it: what stands at each place, and where each body stands."""

    def __init__(self) -> None:
        self.files: dict[str, list[tuple[str, str, int, int]]] = {}
        self.at: dict[Place, list[str]] = defaultdict(list)
        self.of: dict[str, set[Place]] = defaultdict(set)

    def put(self, path: str, text: bytes | None) -> None:
        """Replace what is known of a file; ``None`` takes it away."""
        for name, body, _, _ in self.files.pop(path, ()):
            self.at.pop((path, name), None)
            self.of[body].discard((path, name))
        found = functions(text) if text is not None else None
        if found is None:
            return
        self.files[path] = found
        for name, body, _, _ in found:
            self.at[path, name].append(body)
            self.of[body].add((path, name))

    def places(self) -> set[Place]:
        return {place for place, bodies in self.at.items() if bodies}


def functions(text: bytes) -> list[tuple[str, str, int, int]] | None:
    """(qualified name, body without its own name, first line, last line); ``None`` for what does
    not parse.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return list(_functions(tree, ""))


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, str, int, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}{child.name}"
            first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
            nameless = copy.copy(child)
            nameless.name = ""
            yield name, ast.dump(nameless), first, child.end_lineno or first
            yield from _functions(child, f"{name}.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        else:
            yield from _functions(child, prefix)


def truth(
    place: Place, body: str, before: dict[str, set[Place]], named_before: set[Place], now: Code
) -> str:
    """What became of a function, by the two trees.

    The same body at its place is fresh, another one drifted. Of what has gone from its place, the
    same body at a place that had it not before is moved, and its qualified name in a file that had
    it not before is drifted: carried elsewhere and changed. The rest is orphaned.
    """
    here = now.at.get(place)
    if here:
        return "fresh" if body in here else "drifted"
    if now.of.get(body, set()) - before.get(body, set()):
        return "moved"
    carried = [
        other for other in now.at if other[1] == place[1] and other[0] != place[0] and now.at[other]
    ]
    return "drifted" if any(other not in named_before for other in carried) else "orphaned"


@dataclass(frozen=True, slots=True)
class Anchored:
    """One memory's functions, and the tree as it was when they were anchored."""

    memory: Any
    functions: list[tuple[Place, str]]
    """Each place with its body; overloads share a place."""
    bodies: dict[str, set[Place]]
    places: set[Place]


class Walk:
    """Brings one tree through a history, with an index beside it."""

    def __init__(
        self, git_dir: Path, commits: Sequence[str], root: Path, memory: smara.Memory
    ) -> None:
        self._git_dir = git_dir
        self._commits = commits
        self._root = root
        self._memory = memory
        self._code = Code()
        self._serial = 0
        self.outcome = Outcome(git_dir.parent.name)

    def run(self) -> Outcome:
        begin = time.perf_counter()
        self._check_out(self._commits[0])
        self._memory.code.index(self._root)
        waiting: deque[list[Anchored]] = deque()
        for old, new in zip(self._commits, self._commits[1:], strict=False):
            changes = self._changes(old, new)
            anchored = self._anchor([path for path in changes if path in self._code.files])
            self._apply(changes)
            self._judge(anchored, self.outcome.at_once, new)
            waiting.append(anchored)
            if len(waiting) > LATER:
                late = waiting.popleft()
                self._judge(late, self.outcome.later, new)
                for each in late:
                    self._memory.memories.forget(each.memory.id, by="person")
            self.outcome.commits += 1
        self.outcome.seconds = time.perf_counter() - begin
        return self.outcome

    def _anchor(self, paths: Sequence[str]) -> list[Anchored]:
        """Memories that rest on the lines of every function of some files, twelve on each."""
        named = [(path, *each) for path in paths for each in self._code.files[path]]
        bodies = {body: set(self._code.of[body]) for _, _, body, _, _ in named}
        places = {place for place in self._code.at if self._code.at[place]}
        made = []
        for start in range(0, len(named), _AT_ONCE):
            part = named[start : start + _AT_ONCE]
            self._serial += 1
            added = self._memory.memories.add(
                f"Group {self._serial} of functions was looked at and found to be in order",
                type="module_insight",
                source="user_taught",
                by="person",
                evidence=[f"{path}:{first}-{last}" for path, _, _, first, last in part],
            )
            if added.memory is None:
                raise RuntimeError(f"a memory was refused: {added.why}")
            made.append(
                Anchored(
                    added.memory,
                    [((path, name), body) for path, name, body, _, _ in part],
                    bodies,
                    places=places,
                )
            )
            self.outcome.anchored += len(part)
        return made

    def _judge(
        self, anchored: Sequence[Anchored], counts: Counter[tuple[str, str]], commit: str
    ) -> None:
        begin = time.perf_counter()
        found = self._memory.memories.freshness([each.memory for each in anchored])
        self.outcome.judging_seconds += time.perf_counter() - begin
        for each in anchored:
            said: dict[Place, deque[Any]] = defaultdict(deque)
            for verdict in found[each.memory.id].anchors if each.memory.id in found else ():
                said[verdict.path, verdict.symbol].append(verdict)
            for place, body in each.functions:
                if not said[place]:
                    self.outcome.missed += 1
                    continue
                # Overloads that say the same share an anchor, so the last of a place stands for the
                # rest.
                verdict = said[place].popleft() if len(said[place]) > 1 else said[place][0]
                is_true = truth(place, body, each.bodies, named_before=each.places, now=self._code)
                counts[is_true, verdict.verdict] += 1
                if is_true != verdict.verdict and len(self.outcome.wrong) < 400:
                    self.outcome.wrong.append(
                        f"{commit[:10]} {':'.join(place)}: {is_true}, said {verdict.summary}"
                    )

    # the tree

    def _check_out(self, commit: str) -> None:
        archive = Path(self._root).with_suffix(".tar")
        archive.write_bytes(self._git("archive", commit))
        with tarfile.open(archive) as held:
            held.extractall(self._root, filter="data")
        archive.unlink()
        for path in sorted(self._root.rglob("*.py")):
            self._code.put(path.relative_to(self._root).as_posix(), path.read_bytes())

    def _changes(self, old: str, new: str) -> dict[str, bytes | None]:
        """The Python files that differ, with what they hold afterwards."""
        told = self._git("diff-tree", "-r", "-z", "--no-renames", "--name-status", old, new)
        pieces = told.decode("utf-8", "surrogateescape").split("\0")
        pairs = [(pieces[at], pieces[at + 1]) for at in range(0, len(pieces) - 1, 2)]
        return {
            path: None if status == "D" else self._git("cat-file", "blob", f"{new}:{path}")
            for status, path in pairs
            if path.endswith(".py")
        }

    def _apply(self, changes: dict[str, bytes | None]) -> None:
        for path, text in changes.items():
            self._code.put(path, text)
            file = self._root / path
            if text is None:
                file.unlink(missing_ok=True)
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text)
        self._memory.code.update([self._root / path for path in changes], self._root)

    def _git(self, *arguments: str) -> bytes:
        return git(self._git_dir, *arguments)


def git(git_dir: Path, *arguments: str) -> bytes:
    """What git says of a bare repository."""
    return subprocess.run(  # noqa: S603 - fixed commands on a folder that whoever evaluates has named
        ["git", f"--git-dir={git_dir}", *arguments],  # noqa: S607 - git is where the user has it
        check=True,
        capture_output=True,
    ).stdout


def evaluate(folder: str | None = None, scale: float = 1.0) -> list[Outcome]:
    """Every history there is below ``SMARA_EVAL_REPOS``; ``scale`` takes fewer commits of each."""
    base = Path(folder or os.environ.get("SMARA_EVAL_REPOS", ""))
    outcomes = []
    for name, count in REPOSITORIES.items():
        git_dir = base / name / "repo"
        if not base.name or not git_dir.is_dir():
            continue
        wanted = f"-n{int(count * scale) + 1}"
        commits = (
            git(git_dir, "log", "--first-parent", "--format=%H", wanted, "HEAD", "--", "*.py")
            .decode()
            .split()
        )
        with (
            tempfile.TemporaryDirectory() as root,
            tempfile.TemporaryDirectory() as store,
            smara.open(Path(store) / "memory.db", embedder="off") as memory,
        ):
            outcomes.append(Walk(git_dir, commits[::-1], Path(root), memory=memory).run())
    return outcomes


def render(outcomes: Sequence[Outcome]) -> str:
    """The figures as Markdown."""
    if not outcomes:
        return f"## {NAME}\n\nSkipped: SMARA_EVAL_REPOS names no folder with the histories.\n"
    lines = [f"## {NAME}", ""]
    for name in ("at_once", "later"):
        counts: Counter[tuple[str, str]] = sum(
            (getattr(each, name) for each in outcomes), Counter()
        )
        when = "right after the commit" if name == "at_once" else f"{LATER} commits later"
        lines += [
            f"Judged {when}: {counts.total():,} functions.",
            "",
            "| verdict | truth | precision | recall |",
        ]
        lines += ["|---|---|---|---|", *(_row(counts, verdict) for verdict in VERDICTS)]
        right = sum(counts[each, each] for each in VERDICTS)
        lines += [f"| all | {counts.total():,} | {right / max(1, counts.total()):.2%} | |", ""]
    commits, anchored = (
        sum(each.commits for each in outcomes),
        sum(each.anchored for each in outcomes),
    )
    missed, seconds = sum(each.missed for each in outcomes), sum(each.seconds for each in outcomes)
    judged = sum(each.at_once.total() + each.later.total() for each in outcomes)
    each_ms = 1000 * sum(each.judging_seconds for each in outcomes) / max(1, judged)
    lines.append(
        f"{commits} commits of {', '.join(each.repository for each in outcomes)}; {anchored:,} "
        "functions anchored,"
        f" {missed:,} verdicts missing; {seconds:.0f} s in all, {each_ms:.2f} ms a verdict."
    )
    return "\n".join(lines) + "\n"


def _row(counts: Counter[tuple[str, str]], verdict: str) -> str:
    right = counts[verdict, verdict]
    said = sum(count for (_, told), count in counts.items() if told == verdict)
    true = sum(count for (is_true, _), count in counts.items() if is_true == verdict)
    return (
        f"| {verdict} | {true:,} | {right / said if said else 1:.2%} | "
        f"{right / true if true else 1:.2%} |"
    )
