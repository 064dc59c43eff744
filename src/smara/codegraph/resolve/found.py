"""The edges of one file while they are being found."""

from __future__ import annotations

from smara.codegraph.models import EdgeKind, NewEdge


class FoundEdges:
    """Edges distinct by start, end, kind and line, with the path of the file that each ends in."""

    __slots__ = ("edges", "path_of")

    def __init__(self) -> None:
        self.edges: dict[tuple[int, int, EdgeKind, int], NewEdge] = {}
        self.path_of: dict[int, str] = {}

    def put(self, edge: NewEdge, path: str) -> None:
        """Add an edge that ends in the file at ``path``; the first one of its kind and line
        holds.
        """
        self.edges.setdefault((edge.scope, edge.to_no, edge.kind, edge.line), edge)
        self.path_of[edge.to_no] = path
