"""What tests exercise: by what they import and call, and by what they are named after."""

from __future__ import annotations

from collections.abc import Collection

from smara.codegraph.models import NewEdge
from smara.codegraph.resolve.found import FoundEdges
from smara.codegraph.resolve.outline import Outline
from smara.codegraph.resolve.project import ProjectFiles, closest
from smara.codegraph.resolve.table import SymbolTable
from smara.codegraph.resolve.tested_stem import tested_stem
from smara.core.source_paths import is_test_path

NAMED_AFTER = 0.6
"""Of a file that a test is named after and does not import."""
_SUFFIXES = {
    "python": ("py",), "typescript": ("ts", "tsx", "js", "jsx"), "tsx": ("tsx", "ts", "jsx", "js"),
    "javascript": ("js", "jsx", "mjs", "cjs", "ts"), "rust": ("rs",), "go": ("go",),
    "java": ("java",),
    "c": ("c", "h"), "cpp": ("cc", "cpp", "cxx", "h", "hh", "hpp", "c"),
}  # fmt: skip


def add_test_edges(
    table: SymbolTable,
    project: ProjectFiles,
    outline: Outline,
    found: FoundEdges,
    tested: Collection[int] = (),
) -> None:
    """Add an edge of the kind ``tests`` beside every import and call that leads from a test to what
    is none.
    """
    is_test_file = is_test_path(outline.path)
    in_test = _inside_tests(outline)
    if not is_test_file and True not in in_test:
        return
    own_tests = {no for place, no in enumerate(outline.nos) if in_test[place]}
    tests = {no for no, path in found.path_of.items() if is_test_path(path)}
    added: list[NewEdge] = []
    for edge in found.edges.values():
        if edge.kind not in ("calls", "imports") or edge.source == "guess":
            continue
        if edge.kind == "imports" or edge.scope < 0:
            is_tested = is_test_file and found.path_of[edge.to_no] != outline.path
        else:
            # Tests that stand beside the code they test (Rust) call into their own file.
            is_tested = in_test[edge.scope] and edge.to_no not in own_tests
        if is_tested and edge.to_no not in tests:
            added.append(edge._replace(kind="tests"))
    named_after = _named_after(table, project, outline) if is_test_file else None
    if named_after is not None and named_after.file_no not in {
        *tested,
        *(edge.to_no for edge in added),
    }:
        added.append(
            NewEdge(
                -1, named_after.file_no, "tests", line=1, confidence=NAMED_AFTER, source="guess"
            )
        )
        found.path_of[named_after.file_no] = named_after.path
    for edge in added:
        found.put(edge, found.path_of[edge.to_no])


def _inside_tests(outline: Outline) -> list[bool]:
    """For each definition, whether it is a test or stands in one."""
    inside: list[bool] = []
    for place, parent in enumerate(outline.parents):
        inside.append(outline.kinds[place] == "test" or (0 <= parent < place and inside[parent]))
    return inside


def _named_after(table: SymbolTable, project: ProjectFiles, outline: Outline) -> Outline | None:
    stem = tested_stem(outline.path)
    if stem is None:
        return None
    for suffix in _SUFFIXES[outline.language]:
        paths = [
            path for path in project.by_name.get(f"{stem}.{suffix}", ()) if not is_test_path(path)
        ]
        path = closest(paths, outline.path)
        if path is not None:
            return table.outline(path)
    return None
