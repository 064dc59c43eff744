"""The fixture of each language: one text of files, with what has to be read from them.

A line ``==> PATH`` begins a file. ``==> facts of PATH`` begins the facts expected of that file,
which is then read by itself; all others are one small project, and ``==> expected`` begins its
edges.
"""

from __future__ import annotations

from pathlib import Path

from smara.codegraph.language import language_of
from smara.codegraph.models import FileFacts, NewEdge
from smara.codegraph.parse.extract import extract
from smara.codegraph.resolve.resolver import Resolver
from smara.codegraph.resolve.symbols import FileOutline, MemoryTable, ProjectFiles, outline_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "languages"


class Tree:
    """The files of a project, numbered and resolved as an index does it."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files
        self.facts: dict[str, FileFacts] = {}
        self.outlines: dict[str, FileOutline] = {}
        self.labels: dict[int, str] = {}
        for path, text in files.items():
            language = language_of(path, text.encode())
            if language is not None:
                self.add(extract(path, text.encode(), language))
        self.table = MemoryTable(self.outlines.values())
        self.project = ProjectFiles(files, lambda path: files[path].encode())
        self.resolver = Resolver(self.table, self.project)

    def add(self, facts: FileFacts) -> None:
        file_no = len(self.labels) + 1
        self.labels[file_no] = facts.path
        nos = [file_no + 1 + place for place in range(len(facts.definitions))]
        self.labels.update(
            zip(nos, (f"{facts.path}:{each.qualname}" for each in facts.definitions), strict=True)
        )
        self.facts[facts.path] = facts
        self.outlines[facts.path] = outline_of(facts, file_no, nos)

    def edges(self) -> set[str]:
        return {
            self.told(path, edge)
            for path, facts in self.facts.items()
            for edge in self.resolver.resolve(facts)
        }

    def told(self, path: str, edge: NewEdge) -> str:
        definitions = self.facts[path].definitions
        start = f"{path}:{definitions[edge.scope].qualname}" if edge.scope >= 0 else path
        guess = " (guess)" if edge.source == "guess" else ""
        return f"{edge.kind} {start} -> {self.labels[edge.to_no]}{guess}"


def sections(name: str) -> dict[str, str]:
    """Return the parts of a language's fixture by their headings."""
    parts: dict[str, str] = {}
    heading = ""
    for line in (FIXTURES / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("==> "):
            heading = line.removeprefix("==> ")
            parts[heading] = ""
        else:
            parts[heading] += line + "\n"
    return parts


def read_project(name: str) -> tuple[dict[str, str], set[str]]:
    """Return the files of a project by path, and its expected edges."""
    parts = sections(name)
    for heading in list(parts):
        if heading.startswith(FACTS):
            del parts[heading], parts[heading.removeprefix(FACTS)]
    return parts, {line for line in parts.pop("expected").splitlines() if line}


FACTS = "facts of "
NAMES = sorted(path.stem for path in FIXTURES.glob("*.txt"))
PROJECTS = [name for name in NAMES if "expected" in sections(name)]
SOURCES = {
    f"{name}/{heading.removeprefix(FACTS)}": (parts[heading.removeprefix(FACTS)], facts)
    for name in NAMES
    for parts in [sections(name)]
    for heading, facts in parts.items()
    if heading.startswith(FACTS)
}
"""The text of each file that is read by itself, and the facts expected of it, by path."""
