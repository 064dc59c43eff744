"""Answer every query on a tree's graph from the stored index."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cache, partial

import numpy as np

from smara.codegraph import modules as structure
from smara.codegraph.history import CodeHistory, HistoryReport
from smara.codegraph.index.files import NotRead, TreeReader
from smara.codegraph.lookup import CodeLookup, QueryTarget, Targets, TreePaths
from smara.codegraph.models import (
    DEPTH,
    LIMIT,
    CoChange,
    CodeMap,
    CodeModule,
    Edge,
    EntryPoint,
    HotSpot,
    ImpactWalk,
    ImportCycle,
    Node,
    SymbolCard,
)
from smara.codegraph.modules import AT_ONCE, Descriptions, describe, with_words
from smara.codegraph.parse.chunks import MOST_OPENING_BYTES, first_words
from smara.codegraph.query.impact import MOST_DEPTH, PICTURES, bases_and_heirs, draw, dress, walk
from smara.codegraph.query.memory_graph import NODE_KIND_NO, Graph, LoadedGraph
from smara.codegraph.query.structure import (
    MANIFESTS,
    cycles,
    entry_candidates,
    hot_spots,
    make_map,
    rank_entries,
)
from smara.core.clock import Clock, SystemClock
from smara.core.tokens import TokenCounter
from smara.errors import InvalidInputError
from smara.models.caller import Models
from smara.secrets.redact import redact

MOST_LIMIT = 10_000
MOST_BUDGET = 200_000
_MANIFEST_BYTES = 200_000
_MOST_MANIFESTS = 200
_SHOWN_OF_A_CARD = 20


class CodeQueries:
    """The questions to one tree. Safe to use from several threads."""

    def __init__(
        self, lookup: CodeLookup, root: str, counter: TokenCounter, clock: Clock | None = None
    ) -> None:
        self.lookup = lookup
        self.root = root
        self.history = CodeHistory(lookup, root)
        self._counter = counter
        self._loaded = LoadedGraph(lookup)
        self._targets = Targets(lookup, root, self._paths, at_line=self._at_line)
        self._known_paths: tuple[Graph, TreePaths] | None = None
        self._reader = TreeReader(root)
        self._descriptions = Descriptions(lookup, clock or SystemClock())

    def graph(self) -> Graph:
        """Return the graph as it is stored now."""
        return self._loaded.current()

    def find(self, target: str) -> list[Node]:
        """Find every node a path, name, ``path:name`` or ``path:line`` may mean."""
        with self.lookup.database.read() as session:
            return self._targets.find(session, target)

    def resolve(self, target: str) -> QueryTarget:
        """Return the one thing that is meant.

        A folder means all of its files.

        ``NotFoundError`` names what is close, ``InvalidInputError`` what else it may mean.
        """
        with self.lookup.database.read() as session:
            return self._targets.only(session, target)

    def impact(self, target: str, depth: int = DEPTH, limit: int = LIMIT) -> ImpactWalk:
        """Return what depends on this, directly or not, with paths."""
        found = self._walk(target, depth, limit, is_backward=True)
        if len(found.targets) != 1:
            return found
        with self.lookup.database.read() as session:
            bases, heirs = bases_and_heirs(
                self.graph(), found.targets[0], partial(self.lookup.members, session)
            )
        return replace(found, overrides=bases, overridden_by=heirs)

    def deps(self, target: str, depth: int = 1, limit: int = LIMIT) -> ImpactWalk:
        """Return what this depends on."""
        return self._walk(target, depth, limit, is_backward=False)

    def callers(self, target: str, depth: int = 1, limit: int = LIMIT) -> ImpactWalk:
        """Return who calls this."""
        return self._walk(target, depth, limit, is_backward=True, kinds=("calls",))

    def tests_for(self, target: str, depth: int = DEPTH, limit: int = LIMIT) -> ImpactWalk:
        """Return the tests that come to this, the nearest first."""
        return self._walk(target, depth, limit, is_backward=True, only_tests=True)

    def _walk(
        self,
        target: str | QueryTarget,
        depth: int,
        limit: int,
        *,
        is_backward: bool,
        kinds: tuple[str, ...] = (),
        only_tests: bool = False,
    ) -> ImpactWalk:
        _require("depth", depth, MOST_DEPTH)
        _require("limit", limit, MOST_LIMIT)
        nodes = (self.resolve(target) if isinstance(target, str) else target).nodes
        graph = self.graph()
        places = graph.places_of(node.no for node in nodes)
        steps = walk(
            graph,
            places,
            depth=depth,
            limit=limit,
            is_backward=is_backward,
            kinds=kinds,
            only_tests=only_tests,
        )
        return dress(graph, places, depth, steps=steps, fetch=self._loaded.nodes)

    def symbol(self, target: str) -> SymbolCard:
        """Return all there is to say of one file or symbol."""
        found = self.resolve(target)
        node, few = found.nodes[0], _SHOWN_OF_A_CARD
        with self.lookup.database.read() as session:
            inside = self.lookup.in_file(session, node.path)
            changes = self.history.together(session, node.path, 5)
            churn = self.history.churn_of(session, node.path)
        return SymbolCard(
            node,
            tuple(each for each in inside if each.parent_no == node.no),
            self._walk(
                found,
                1,
                few,
                is_backward=True,
                kinds=("calls", "inherits", "imports", "references"),
            ).reached,
            calls=self._walk(found, 1, few, is_backward=False).reached,
            tests=self._walk(found, DEPTH, few, is_backward=True, only_tests=True).reached,
            dependents=self._walk(found, DEPTH, 1, is_backward=True).total,
            changes_with=tuple(changes),
            commits=churn.commits if churn else 0,
        )

    def edges(self, path: str) -> list[tuple[Node, Edge, Node]]:
        """Return the edges that start in a file, without containment."""
        with self.lookup.database.read() as session:
            found = [
                edge for edge in self.lookup.edges_in(session, path) if edge.kind != "contains"
            ]
            nodes = self.lookup.nodes(
                session, {no for edge in found for no in (edge.from_no, edge.to_no)}
            )
        return [
            (nodes[edge.from_no], edge, nodes[edge.to_no])
            for edge in found
            if edge.from_no in nodes and edge.to_no in nodes
        ]

    def map(
        self, budget: int = 1_024, files: Collection[str] = (), names: Collection[str] = ()
    ) -> CodeMap:
        """Render the most important names within a token budget.

        They are ranked for the files and names in play.
        """
        _require("budget", budget, MOST_BUDGET)
        graph = self.graph()
        with self.lookup.database.read() as session:
            known, _ = self._targets.files(session, files)
        last = {name.strip().rpartition(".")[2] for name in names}
        return make_map(
            graph,
            self._loaded.names(graph),
            self._loaded.nodes,
            count=lambda text: self._counter.count(text).tokens,
            budget=budget,
            files=known,
            named=last,
        )

    def cycles(self, limit: int = 50, *, with_lazy: bool = False) -> list[ImportCycle]:
        """Return files that import each other, smallest circles first."""
        return cycles(self.graph(), with_lazy=with_lazy)[:limit]

    def entry_points(self, limit: int = 50) -> list[EntryPoint]:
        """Return where the program is entered."""
        graph, candidates = self._entries()
        nodes = self._loaded.nodes([int(graph.nos[place]) for place in candidates])
        return rank_entries(graph, candidates, nodes)[:limit]

    def hotspots(self, limit: int = 20) -> list[HotSpot]:
        """Return files that much depends on and that change often."""
        graph = self.graph()
        with self.lookup.database.read() as session:
            churn = self.history.churn(session)
            lines = {path: facts[1] for path, facts in self.lookup.file_facts(session).items()}
        return hot_spots(graph, {path: each.commits for path, each in churn.items()}, lines)[:limit]

    def modules(self, only: Collection[str] = ()) -> list[CodeModule]:
        """Return the parts of the program, the most central first.

        As a model told of them, or as the structure does.
        """
        found = self._structure(only)
        said = self._descriptions.all()
        return with_words(found, said, {path: self.fingerprint(path) for path in said})

    def describe(self, models: Models, limit: int = 40) -> list[CodeModule]:
        """Have a model describe the most central modules if needed.

        Raises ``ModelError`` when it cannot; what was said before stays, and so does what was said
        until then.
        """
        found, said = self._structure()[:limit], self._descriptions.all()
        prints = {module.path: self.fingerprint(module.path) for module in found}
        due = [
            each
            for each in found
            if each.path not in said or said[each.path].fingerprint != prints[each.path]
        ]
        for start in range(0, len(due), AT_ONCE):
            self._descriptions.put(describe(models, due[start : start + AT_ONCE], prints))
        return with_words(found, self._descriptions.all(), prints)

    def _structure(self, only: Collection[str] = ()) -> list[CodeModule]:
        graph, entries = self._entries()

        @cache
        def opening(path: str) -> str:
            text = self._text(path, MOST_OPENING_BYTES * 50)[:MOST_OPENING_BYTES]
            return redact(first_words(path, text)).text

        parts = structure.ModuleSources(
            graph,
            self._loaded.names(graph),
            self._loaded.nodes,
            first_words=opening,
            paths=self._paths().all,
            entries=entries,
        )
        return structure.make_modules(parts, only)

    def draw(self, walk: ImpactWalk, picture: str) -> str:
        """Return a walk of :meth:`impact` as text for Graphviz (``dot``) or Mermaid."""
        if picture not in PICTURES:
            raise InvalidInputError(
                f"picture must be one of {', '.join(PICTURES)}; got {picture!r}."
            )
        return draw(walk, picture)

    def fingerprint(self, folder: str) -> str:
        """Changes when the names in a folder do."""
        graph = self.graph()
        return structure.fingerprint(graph, self._loaded.names(graph), folder)

    def read_history(self) -> HistoryReport:
        """Take in the commits since the last time.

        Cheap when there are none.
        """
        return self.history.read()

    def cochange(self, path: str, limit: int = 20) -> list[CoChange]:
        """Return the files that change together with one."""
        with self.lookup.database.read() as session:
            files, _ = self._targets.files(session, [path])
            return self.history.together(session, files[0] if files else path, limit)

    def _paths(self) -> TreePaths:
        graph, known = self.graph(), self._known_paths
        if known is None or known[0] is not graph:
            self._known_paths = known = (graph, TreePaths(graph.paths))
        return known[1]

    def _at_line(self, path: str, line: int) -> int | None:
        """Return the number of the innermost node at a line of a file."""
        graph = self.graph()
        number = self._paths().places.get(path)
        if number is None:
            return None
        inside = np.flatnonzero(graph.files == number)
        around = inside[(graph.first_lines[inside] <= line) & (graph.last_lines[inside] >= line)]
        is_file = graph.kinds[around] == NODE_KIND_NO["file"]
        # The innermost begins last; the file itself is around everything, and stands for lines
        # outside of all.
        order = np.lexsort((graph.first_lines[around], ~is_file))
        if len(order):
            return int(graph.nos[around[order[-1]]])
        files = inside[graph.kinds[inside] == NODE_KIND_NO["file"]]
        return int(graph.nos[files[0]]) if len(files) else None

    def _entries(self) -> tuple[Graph, dict[int, str]]:
        graph = self.graph()
        paths = [path for path in self._paths().all if path.rpartition("/")[2] in MANIFESTS]
        return graph, entry_candidates(
            graph,
            self._loaded.names(graph),
            (
                (path, text)
                for path in paths[:_MOST_MANIFESTS]
                if (text := self._text(path, _MANIFEST_BYTES))
            ),
        )

    def _text(self, path: str, most_bytes: int) -> str:
        try:
            return self._reader.read(path, most_bytes).data.decode("utf-8", "replace")
        except NotRead:
            return ""


def _require(name: str, value: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InvalidInputError(f"{name} must be a number from 1 to {most:,}; got {value!r}.")
