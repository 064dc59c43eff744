"""Do the code graph's edges lead where they should? Labelled calls and imports of public
repositories, per language.

A label is a place (path, line, name) and what is meant there: a definition of the same tree, or
nothing of it. Precision is the part of the edges at labelled places that are right, recall the part
of the places with a meaning in the tree that have the right edge. Guesses, which the graph marks as
such, are counted in a column of their own.

The repositories are bare git folders ``owner+name/repo`` below the folder that ``SMARA_EVAL_REPOS``
names.
"""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import smara

NAME = "resolution"
LABELS = Path(__file__).parent / "resolution_labels.json"


@dataclass(slots=True)
class Counts:
    """Right edges, wrong edges, and places whose edge is missing."""

    right: int = 0
    wrong: int = 0
    missing: int = 0

    @property
    def precision(self) -> float:
        return 100 * self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return 100 * self.right / max(1, self.right + self.missing)

    def add(self, *, is_right: bool, is_wrong: bool, is_wanted: bool) -> None:
        self.right += is_right
        self.wrong += is_wrong
        self.missing += is_wanted and not is_right


@dataclass(slots=True)
class Figures:
    """What one repository showed; ``absent`` when it was not at hand."""

    language: str
    repository: str
    labelled: str
    absent: bool = False
    places: int = 0
    calls: Counts = field(default_factory=Counts)
    with_guesses: Counts = field(default_factory=Counts)
    imports: Counts = field(default_factory=Counts)


def repositories() -> Path | None:
    """The folder with the repositories, if there is one."""
    named = os.environ.get("SMARA_EVAL_REPOS")
    return Path(named) if named and Path(named).is_dir() else None


def evaluate() -> list[Figures]:
    """Index each labelled repository at its commit and judge the edges at its labels."""
    folder = repositories()
    figures = []
    for label in json.loads(LABELS.read_text(encoding="utf-8")):
        found = Figures(label["language"], label["repository"], label["labelled"])
        bare = (
            folder / label["repository"].replace("/", "+") / "repo" if folder is not None else None
        )
        if bare is None or not bare.is_dir():
            found.absent = True
        else:
            with _checked_out(bare, label["commit"]) as root, _indexed(root) as code:
                _judge(code, label, found)
        figures.append(found)
    return figures


@contextmanager
def _checked_out(bare: Path, commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        archive = ["git", "--git-dir", str(bare), "archive", commit]
        with (
            subprocess.Popen(archive, stdout=subprocess.PIPE) as git,  # noqa: S603 - fixed arguments, no shell
            tarfile.open(fileobj=git.stdout, mode="r|") as tar,
        ):
            tar.extractall(folder, filter="data")
        yield Path(folder)


@contextmanager
def _indexed(root: Path) -> Iterator[Any]:
    with (
        tempfile.TemporaryDirectory() as folder,
        smara.open(Path(folder) / "eval.db", embedder="off") as memory,
    ):
        memory.code.index(root)
        yield memory.code.asking(root)


def _judge(code: Any, label: dict[str, Any], found: Figures) -> None:
    edges: dict[str, list[Any]] = {}
    for path, line, name, target in label["calls"]:
        joined = _edges(code, path, edges)
        found.places += 1
        for counts, with_guesses in ((found.calls, False), (found.with_guesses, True)):
            is_right, is_wrong = _judged_call(
                joined, line, name, target=target, with_guesses=with_guesses
            )
            counts.add(is_right=is_right, is_wrong=is_wrong, is_wanted=target is not None)
    for path, line, targets in label["imports"]:
        joined = _edges(code, path, edges)
        ends = {
            to.path
            for _, edge, to in joined
            if edge.kind == "imports" and edge.line == line and to.kind == "file"
        }
        found.places += 1
        for target in targets:
            met = {
                end
                for end in ends
                if end == target or (target.endswith("/") and _folder(end) == target)
            }
            ends -= met
            found.imports.add(is_right=bool(met), is_wrong=False, is_wanted=True)
        found.imports.wrong += len(ends)


def _edges(code: Any, path: str, known: dict[str, list[Any]]) -> list[Any]:
    if path not in known:
        known[path] = code.edges(path)
    return known[path]


def _folder(path: str) -> str:
    return path.rpartition("/")[0] + "/"


def _judged_call(
    joined: Sequence[Any], line: int, name: str, target: Sequence[Any] | None, with_guesses: bool
) -> tuple[bool, bool]:
    """Whether the labelled call has the right edge, and whether it has a wrong one.

    A call that stands twice in a function is one edge, at its first line. The edges of a call are
    those of the definitions around it whose ends are named like the call, or are what the label
    means (under another name).
    """
    is_right = is_wrong = False
    # Overloads of one name are told apart by types alone: an edge to another of them beside the
    # right one is not wrong.
    meant = {end.qualname for _, _, end in joined if target is not None and _is(end, target)}
    for start, edge, end in joined:
        around = start.kind == "file" or start.first_line <= line <= start.last_line
        if (
            edge.kind != "calls"
            or edge.line > line
            or not around
            or (edge.source == "guess" and not with_guesses)
        ):
            continue
        if target is not None and _is(end, target):
            is_right = True
        elif (
            end.name == name
            and end.qualname not in meant
            and (edge.line == line or start.kind != "file")
        ):
            is_wrong = True
    return is_right, is_wrong


def _is(node: Any, target: Sequence[Any]) -> bool:
    path, line, name = target
    return bool(
        node.path == path and node.name == name and node.first_line <= line <= node.last_line
    )


def render(figures: Sequence[Figures]) -> str:
    """The figures as a table, and how each repository was labelled."""
    lines = [
        "### Resolution of names in code",
        "",
        "| language | repository | places | calls: precision | recall | with guesses: precision | "
        "recall |"
        " imports: precision | recall |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for each in figures:
        if each.absent:
            lines.append(
                f"| {each.language} | {each.repository} | not at hand (SMARA_EVAL_REPOS) | | | | "
                "| | |"
            )
            continue
        cells = [
            f"{counts.precision:.1f} | {counts.recall:.1f}"
            for counts in (each.calls, each.with_guesses, each.imports)
        ]
        lines.append(
            f"| {each.language} | {each.repository} | {each.places} | {' | '.join(cells)} |"
        )
    lines += ["", *(f"- {each.repository}: labelled {each.labelled}" for each in figures)]
    return "\n".join(lines) + "\n"
