"""Answer every query on a tree's graph from the stored index.

A target is an expression such as ``auth.py``, ``src/auth.py:Session.login``, ``login``,
``auth.py:42`` or ``src/auth/``; it is resolved to the nodes it names.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import replace
from difflib import get_close_matches
from functools import cache, partial

import numpy as np

from smara.codegraph import modules as structure
from smara.codegraph.codec import NODE_KIND_NO
from smara.codegraph.history import CodeHistory
from smara.codegraph.impact import MOST_DEPTH, PICTURES, bases_and_heirs, draw, dress, walk
from smara.codegraph.index.files import TreeReader
from smara.codegraph.lookup import CodeLookup
from smara.codegraph.memory_graph import Graph, LoadedGraph
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
from smara.codegraph.structure import (
    MANIFESTS,
    cycles,
    entry_candidates,
    hot_spots,
    make_map,
    rank_entries,
)
from smara.core.clock import Clock, SystemClock
from smara.core.escape import from_storable
from smara.core.items import grouped
from smara.core.startup.regex import re, regex
from smara.core.tokens import TokenCounter
from smara.database.database import Session
from smara.errors import InvalidInputError, NotFoundError
from smara.models.caller import Models
from smara.secrets.redact import redact

MOST_LIMIT = 10_000
MOST_BUDGET = 200_000
_MANIFEST_BYTES = 200_000
_MOST_MANIFESTS = 200
_SHOWN_OF_A_CARD = 20
MOST_NAMED = 8
_LONGEST = 1_000
_LINE = regex(r"[Ll]?(\d{1,9})(?:[-:][Ll]?\d*)?")
_SPLIT = regex(r"::|[:#]")
_CLOSE = 0.75


class TreePaths:
    """The paths of a tree, to be found by their ends."""

    def __init__(self, paths: Iterable[str]) -> None:
        listed = tuple(paths)
        self.places = {path: place for place, path in enumerate(listed)}
        self.all = tuple(sorted(listed))
        self._by_name = grouped((path.rpartition("/")[2], path) for path in self.all)

    def called(self, name: str) -> list[str]:
        """Return the file of a path, or of paths ending so."""
        alike = self._by_name.get(name.rpartition("/")[2], [])
        return [name] if name in alike else [path for path in alike if path.endswith(f"/{name}")]

    def inside(self, folder: str) -> list[str]:
        """Return the files of a folder; ``.`` is the root."""
        start = f"{folder.rstrip('/')}/"
        return [path for path in self.all if path.startswith(start) or folder in (".", "/")]


class CodeQueries:
    """The questions to one tree. Safe to use from several threads."""

    is_room = True
    """An async program awaits its methods."""

    def __init__(
        self, lookup: CodeLookup, root: str, counter: TokenCounter, clock: Clock | None = None
    ) -> None:
        self.lookup = lookup
        self.root = root
        self.history = CodeHistory(lookup, root)
        self._counter = counter
        self._loaded = LoadedGraph(lookup)
        self._last_paths: tuple[Graph, TreePaths] | None = None
        self._reader = TreeReader(root)
        self._descriptions = Descriptions(lookup, clock or SystemClock())

    def graph(self) -> Graph:
        """Return the graph as it is stored now."""
        return self._loaded.current()

    def find(self, target: str) -> list[Node]:
        """Find every node a path, name, ``path:name`` or ``path:line`` may mean.

        The likeliest first; none when nothing is called so.
        """
        return self.lookup.ask(self._find, self._plain(target))

    def _find(self, session: Session, text: str) -> list[Node]:
        paths = self._paths()
        if files := paths.called(text):
            # A word may name a file without a suffix (``run``) and a function: then both may be
            # meant.
            named = self._symbols(session, text) if text.isidentifier() else []
            return [*named, *self.lookup.file_nodes(session, files)]
        path, rest = _split(text)
        files = paths.called(path) if path else []
        if not files:
            return self._symbols(session, text)
        if line := _LINE.fullmatch(rest):
            numbers = [self._at_line(file, int(line[1])) for file in files]
            nodes = self.lookup.nodes(session, [no for no in numbers if no is not None])
            return [nodes[no] for no in numbers if no in nodes]
        dotted = _dotted(rest)
        name = dotted.rpartition(".")[2]
        inside = [node for file in files for node in self.lookup.in_file(session, file, name)]
        return [node for node in inside if _is_called(node, dotted)]

    def resolve(self, target: str) -> tuple[Node, ...]:
        """Return the one thing that is meant; of a folder, its files.

        ``NotFoundError`` names what is close, ``InvalidInputError`` what else it may mean.
        """
        text = self._plain(target)
        with self.lookup.database.read() as session:
            if not (nodes := self._find(session, text)):
                if inside := self.lookup.file_nodes(session, self._paths().inside(text)):
                    return tuple(inside)
                raise self._not_found(session, target)
        # Of several those whose whole name was given, of these the ones outside of tests.
        whole = [node for node in nodes if node.qualname == _dotted(text)] or nodes
        best = [
            node
            for node in whole
            if node.kind != "test" and not re.search(r"(^|/)tests?/|(^|/)test_", node.path)
        ] or whole
        if len(best) == 1:
            return (best[0],)
        named = ", ".join(f"{node.label} (line {node.first_line})" for node in best[:MOST_NAMED])
        more = f" and {len(best) - MOST_NAMED} more" if len(best) > MOST_NAMED else ""
        raise InvalidInputError(
            f"{target!r} may mean {len(best)} things: {named}{more}. Name one as PATH:NAME or "
            "PATH:LINE.",
            candidates=[node.label for node in best],
        )

    def _plain(self, target: str) -> str:
        """Return a target relative to the root, with slashes."""
        if not (text := target.strip()) or len(text) > _LONGEST:
            raise InvalidInputError(
                "Name a file, a folder or a symbol: src/auth.py, Session.login, src/auth.py:42."
            )
        if "\\" in text and "/" not in text:
            text = text.replace("\\", "/")
        if text.startswith("../"):
            text = os.path.normpath(os.path.join(os.getcwd(), text)).replace(os.sep, "/")
        if root := self.root.rstrip("/\\"):
            text = text.removeprefix(f"{root}/")
        return text.removeprefix("./").removesuffix("()")

    def _symbols(self, session: Session, text: str) -> list[Node]:
        dotted = _dotted(text)
        if not (name := dotted.rpartition(".")[2]):
            return []
        nodes = [node for node in self.lookup.named(session, name) if node.kind != "file"]
        if (exact := [node for node in nodes if _is_called(node, dotted)]) or "." not in dotted:
            return exact
        # ``smara.codegraph.models.Node``: the path without its ending, then the qualified name.
        ending = re.compile(r"(/__init__|/mod|/index)?\.\w+$")
        modules = (ending.sub("", node.path).replace("/", ".") for node in nodes)
        return [
            node
            for node, module in zip(nodes, modules, strict=True)
            if f".{module}.{node.qualname}".endswith(f".{dotted}")
        ]

    def _not_found(self, session: Session, target: str) -> NotFoundError:
        path, rest = _split(self._plain(target))
        # What looks like it, the likest first.
        text = rest or path
        last = text.rpartition("." if "/" not in text else "/")[2].casefold()
        by_end: dict[str, str] = {}
        for each in (*self.lookup.distinct_names(session), *self._paths().all):
            end = each.rpartition("/")[2].casefold()
            if (
                end
                and abs(len(end) - len(last)) <= max(3, len(last) // 2)
                and (end[0] == last[:1] or last in end)
            ):
                by_end.setdefault(end, each)
        # A name that holds it is meant rather than one that is spelled like it.
        holding = sorted([end for end in by_end if last in end], key=len)
        alike = get_close_matches(last, list(by_end)[:20_000], 3, _CLOSE)
        near = [by_end[end] for end in dict.fromkeys([*holding, *alike])][:3]
        hint = (
            f" Did you mean {', '.join(near)}?"
            if near
            else " `smara code map` shows what there is."
        )
        if not self.lookup.tree_state(session)[1]:
            hint += " The code is being indexed: it may not have been read yet."
        return NotFoundError(
            f"There is no file or symbol {target!r} in the index.{hint}", near=near
        )

    def _files(self, names: Iterable[str]) -> list[str]:
        """Return the paths of files and folders in play; what is not there is left out."""
        paths = self._paths()
        texts = map(self._plain, names)
        return [path for text in texts for path in paths.called(text) or paths.inside(text)]

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
        target: str | tuple[Node, ...],
        depth: int,
        limit: int,
        *,
        is_backward: bool,
        kinds: tuple[str, ...] = (),
        only_tests: bool = False,
    ) -> ImpactWalk:
        _require("depth", depth, MOST_DEPTH)
        _require("limit", limit, MOST_LIMIT)
        nodes = self.resolve(target) if isinstance(target, str) else target
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
        """Return all there is to say of one file or symbol.

        ``InvalidInputError`` for a folder names its files that changed most.
        """
        found = self.resolve(target)
        node, few = found[0], _SHOWN_OF_A_CARD
        with self.lookup.database.read() as session:
            if not self._find(session, self._plain(target)):
                changed = self.history.churn(session)
                paths = sorted(
                    (each.path for each in found),
                    key=lambda path: (-changed[path].commits if path in changed else 0, path),
                )
                raise InvalidInputError(
                    f"{target!r} is a folder of {len(paths):,} indexed files. Name a file, such as "
                    f"{', '.join(paths[:3])}. `smara code impact {target}` lists what depends on "
                    "the folder.",
                    candidates=paths[:MOST_NAMED],
                )
            inside = self.lookup.in_file(session, node.path)
            changes = self.history.together(session, node.path, 5)
            churn = self.history.churn(session, [node.path]).get(node.path)
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
        return make_map(
            graph,
            self._loaded.names(graph),
            self._loaded.nodes,
            count=lambda text: self._counter.count(text).tokens,
            budget=budget,
            files=self._files(files),
            named={name.strip().rpartition(".")[2] for name in names},
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
            rows = self.lookup.files(session, "path, lines")
        lines = {from_storable(path): int(count) for path, count in rows}
        return hot_spots(graph, {path: each.commits for path, each in churn.items()}, lines)[:limit]

    def modules(self, only: Collection[str] = ()) -> list[CodeModule]:
        """Return the parts of the program, the most central first.

        As a model described them, or as the structure does.
        """
        stored = self._descriptions.all()
        prints = {path: self.fingerprint(path) for path in stored}
        return with_words(self._structure(only), stored, prints)

    def describe(self, models: Models, limit: int = 40) -> list[CodeModule]:
        """Have a model describe the most central modules if needed.

        Raises ``ModelError`` when it cannot; earlier descriptions stay, and so do those made until
        then.
        """
        modules, stored = self._structure()[:limit], self._descriptions.all()
        prints = {module.path: self.fingerprint(module.path) for module in modules}
        due = [
            module
            for module in modules
            if module.path not in stored or stored[module.path].fingerprint != prints[module.path]
        ]
        for start in range(0, len(due), AT_ONCE):
            self._descriptions.put(describe(models, due[start : start + AT_ONCE], prints))
        return with_words(modules, self._descriptions.all(), prints)

    def _structure(self, only: Collection[str] = ()) -> list[CodeModule]:
        graph, entries = self._entries()

        @cache
        def opening(path: str) -> str:
            text = self._text(path, MOST_OPENING_BYTES * 50)[:MOST_OPENING_BYTES]
            return redact(first_words(path, text)).text

        sources = structure.ModuleSources(
            graph,
            self._loaded.names(graph),
            self._loaded.nodes,
            first_words=opening,
            paths=self._paths().all,
            entries=entries,
        )
        return structure.make_modules(sources, only)

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

    def cochange(self, path: str, limit: int = 20) -> list[CoChange]:
        """Return the files that change together with one."""
        files = self._files([path])
        return self.lookup.ask(self.history.together, files[0] if files else path, limit)

    def _paths(self) -> TreePaths:
        graph, last = self.graph(), self._last_paths
        if last is None or last[0] is not graph:
            last = self._last_paths = (graph, TreePaths(graph.paths))
        return last[1]

    def _at_line(self, path: str, line: int) -> int | None:
        """Return the number of the innermost node at a line of a file."""
        graph = self.graph()
        if (number := self._paths().places.get(path)) is None:
            return None
        inside = np.flatnonzero(graph.files == number)
        is_file = graph.kinds[inside] == NODE_KIND_NO["file"]
        begin, end = graph.first_lines[inside], graph.last_lines[inside]
        around = inside[~is_file & (begin <= line) & (end >= line)]
        # The innermost begins last; the file itself stands for lines outside of all.
        order = np.argsort(graph.first_lines[around], kind="stable")
        places = [*inside[is_file], *around[order]]
        return int(graph.nos[places[-1]]) if places else None

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
        return (self._reader.find(path, most_bytes) or b"").decode("utf-8", "replace")


def _require(name: str, value: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InvalidInputError(f"{name} must be a number from 1 to {most:,}; got {value!r}.")


def _split(text: str) -> tuple[str, str]:
    path, *rest = _SPLIT.split(text, maxsplit=1)
    return path, rest[0] if rest else ""


def _dotted(name: str) -> str:
    """Return a qualified name as it is stored, whatever its language writes between the parts."""
    return re.sub(r"::|#|->|/", ".", name).strip(".").removesuffix("()")


def _is_called(node: Node, dotted: str) -> bool:
    return node.kind != "file" and (node.qualname == dotted or node.qualname.endswith(f".{dotted}"))
