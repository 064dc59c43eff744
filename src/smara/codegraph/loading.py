"""Keeps a tree's graph in memory and up to date: only files with a newer revision are read
again.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from smara.codegraph.edges import unpack
from smara.codegraph.lookup import CodeLookup
from smara.codegraph.models import Node
from smara.codegraph.walking import NODE_DTYPE, NODE_KIND_NO, FilePart, Graph, build_graph
from smara.core.storable import from_storable
from smara.database.database import Session

MOST_NODES = 20_000
"""So many nodes are kept with their texts, about 20 MB; then it begins anew."""


class LoadedGraph:
    """The graph of one tree. Safe to use from several threads: a graph that was handed out never
    changes.
    """

    def __init__(self, lookup: CodeLookup) -> None:
        self._lookup = lookup
        self._lock = threading.Lock()
        self._parts: dict[int, tuple[int, FilePart]] = {}
        self._revision = -1
        self._graph = build_graph(())
        self._nodes: tuple[Graph, dict[int, Node]] = (self._graph, {})
        self._names: tuple[Graph, tuple[str, ...]] | None = None

    def current(self) -> Graph:
        """The graph as it is stored now."""
        database = self._lookup.database
        with self._lock:
            with database.read() as session:
                if self._lookup.revision(session) == self._revision:
                    return self._graph
            # One moment for all files: an edge into a file that is read a moment later might lead
            # nowhere.
            with database.snapshot() as session:
                self._refresh(session)
            return self._graph

    def nodes(self, nos: Collection[int]) -> dict[int, Node]:
        """Some nodes by their numbers, those met before from memory; what became stale since is not
        marked in these.
        """
        with self._lock:
            if self._nodes[0] is not self._graph or len(self._nodes[1]) > MOST_NODES:
                self._nodes = (self._graph, {})
            known = self._nodes[1]
            missing = [no for no in nos if no not in known]
        if missing:
            with self._lookup.database.read() as session:
                found = self._lookup.nodes(session, missing)
            with self._lock:
                known.update(found)
        return {no: known[no] for no in nos if no in known}

    def names(self, graph: Graph) -> tuple[str, ...]:
        """The names of a graph's nodes, by place."""
        with self._lock:
            if self._names is not None and self._names[0] is graph:
                return self._names[1]
        with self._lookup.database.read() as session:
            known = dict(self._lookup.names(session))
        names = tuple(known.get(no, "") for no in graph.nos.tolist())
        with self._lock:
            self._names = (graph, names)
        return names

    def _refresh(self, session: Session) -> None:
        revision = self._lookup.revision(session)
        known = dict(self._lookup.files(session))
        changed = [
            no for no, at in known.items() if no not in self._parts or self._parts[no][0] != at
        ]
        for no in self._parts.keys() - known.keys():
            del self._parts[no]
        if changed:
            # Reading all of a tree at once is quicker than naming most of its files.
            wanted = changed if len(changed) * 4 < len(known) else None
            for part in self._read(session, wanted):
                self._parts[part.no] = (known.get(part.no, -1), part)
        self._graph = build_graph([part for _, part in self._parts.values()])
        self._revision = revision

    def _read(self, session: Session, file_nos: Sequence[int] | None) -> list[FilePart]:
        nodes: dict[int, list[tuple[int, int, int, int, int]]] = defaultdict(list)
        kinds: Mapping[Any, int] = NODE_KIND_NO
        for file_no, no, parent, kind, first, last in self._lookup.node_rows(session, file_nos):
            nodes[file_no].append((no, parent or 0, kinds[kind], first, last))
        return [
            FilePart(
                int(no),
                from_storable(path),
                bool(is_test),
                is_stale=stale_at is not None,
                nodes=np.array(nodes.get(no, []), dtype=NODE_DTYPE),
                edges=unpack(edges),
            )
            for no, path, is_test, stale_at, edges in self._lookup.file_rows(session, file_nos)
        ]
