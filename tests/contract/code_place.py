"""What the tests of the code's index share: trees written in a line, and an index as a value that
can be compared.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from smara.codegraph.codec import edges_of
from smara.database.fulltext import record_no


def write(root: Path, files: Mapping[str, str | None]) -> None:
    """Write files; ``None`` removes one."""
    for path, text in files.items():
        file = root / path
        if text is None:
            file.unlink()
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e@x", *words],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def picture(memory: Any, root: Path) -> dict[str, Any]:
    """All that the index says of a tree, without the numbers of its rows."""
    store = memory.code.store
    with store.database.read() as session:
        tree = store.tree_of(session, str(root))
        rows = store.files(session, tree.no)
        numbers = [row.no for row in rows.values()]
        path_of = {row.no: path for path, row in rows.items()}
        nodes = [node for found in store.nodes(session, numbers).values() for node in found]
        label = {
            node.no: (path_of[node.file_no], node.kind, node.qualname, node.ordinal)
            for node in nodes
        }
        edges = [
            edge for packed in store.edges(session, numbers).values() for edge in edges_of(packed)
        ]
        chunks = [chunk for found in store.chunks(session, numbers).values() for chunk in found]
        indexed = words_indexed(memory, session, [chunk.no for chunk in chunks])
    return {
        "files": sorted(
            (path, row.hash, row.size, row.is_stale, row.skip) for path, row in rows.items()
        ),
        "nodes": sorted(
            (*label[node.no], str(label.get(node.parent_no)), *node[7:]) for node in nodes
        ),
        "edges": sorted(
            (
                *label.get(e.from_no, ("?", str(e.from_no))),
                *label.get(e.to_no, ("?", str(e.to_no))),
                *map(str, e[2:]),
            )
            for e in map(_tuple, edges)
        ),
        "chunks": sorted((path_of[c.file_no], str(label.get(c.node_no)), *c[3:]) for c in chunks),
        "words": indexed,
    }


class _Edge(tuple[Any, ...]):
    from_no = property(lambda self: self[0])
    to_no = property(lambda self: self[1])


def _tuple(edge: Any) -> _Edge:
    return _Edge((edge.from_no, edge.to_no, edge.kind, edge.line, edge.confidence, edge.source))


def words_indexed(memory: Any, session: Any, chunk_nos: list[int]) -> bool:
    """Whether the text index holds exactly the chunks there are."""
    project = memory._rooms.scope.project_no
    if memory._rooms.database.kind == "sqlite":
        rows = session.all(
            "SELECT rowid FROM code_index WHERE code_index MATCH ?", (f'"^p{project}"',)
        )
        held = {record_no(row[0]) for row in rows}
    else:
        rows = session.all(
            "SELECT no FROM code_index WHERE kind = 'code' AND project_no = ?", (project,)
        )
        held = {row[0] for row in rows}
    return held == set(chunk_nos)


def labels(nodes: Any) -> list[str]:
    return sorted(node.label for node in nodes)


def remove(root: Path) -> None:
    shutil.rmtree(root)
