"""Match the modules of the code with the memories of their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from posixpath import commonpath
from typing import TYPE_CHECKING, Any

from smara.browse.facets import Facets
from smara.browse.models import ModuleCoverage, ModuleGroup, WholeGraph
from smara.core.escape import from_storable
from smara.database.project_store import ProjectStore
from smara.errors import NotFoundError
from smara.knowledge.kinds import KINDS

if TYPE_CHECKING:
    from smara.codegraph.queries import CodeQueries
    from smara.knowledge.store import KnowledgeStore

TRAPS = frozenset(kind.type for kind in KINDS.values() if kind.is_trap)
_MOST_FILES = 200_000


class Coverage:
    """The modules of one project with the memories of each."""

    def __init__(
        self,
        store: ProjectStore,
        knowledge: KnowledgeStore,
        facets: Facets,
        asking: Callable[[], CodeQueries],
    ) -> None:
        self._store, self._knowledge, self._facets = store, knowledge, facets
        self._asking = asking
        self._modules: tuple[tuple[Any, Any], list[ModuleCoverage]] = ((None, None), [])
        self._whole: tuple[tuple[Any, int], WholeGraph] = ((None, 0), WholeGraph())

    def modules(self) -> list[ModuleCoverage]:
        """Return the modules, the most central first."""
        try:
            queries = self._asking()
        except NotFoundError:
            return []
        knowledge = self._knowledge
        statement = (
            "SELECT k.memory_no, k.kind, k.value, m.type, m.stale_at FROM memory_keys k"
            " JOIN memories m ON m.no = k.memory_no AND +m.project_no = k.project_no"
            " WHERE k.project_no = :project AND k.kind IN ('file', 'module')"
            " AND m.deprecated_at IS NULL"
            f"{knowledge.WALL if knowledge.viewer else ''} LIMIT ?"
        )
        with self._store.database.read() as session:
            rows = self._facets.remembered(
                session,
                "coverage",
                lambda: self._store.rows(session, statement, *knowledge.viewer, _MOST_FILES),
            )
        graph = queries.graph()  # another one as soon as the code is indexed again
        (drawn, of), modules = self._modules
        if drawn is not graph or of is not rows:
            modules = _covered(queries.modules(), rows)
            self._modules = ((graph, rows), modules)
        return modules

    def graph(self, limit: int) -> WholeGraph:
        """Return the graph of the code, with a most of nodes."""
        try:
            queries = self._asking()
        except NotFoundError:
            return WholeGraph()
        key = (queries.graph(), limit)
        if self._whole[0] != key:
            self._whole = (key, _whole(queries, *key))
        return self._whole[1]


def _whole(queries: CodeQueries, graph: Any, limit: int) -> WholeGraph:
    """Return a graph with the names of its most linked nodes."""
    import numpy as np  # loaded with the graph

    pairs = graph.pairs()[0]
    uses = np.bincount(pairs.near, minlength=graph.size)
    uses += np.bincount(pairs.far, minlength=graph.size)
    chosen = np.sort(np.argsort(-uses, kind="stable")[:limit])
    place = np.full(graph.size, -1)
    place[chosen] = np.arange(len(chosen))
    start, end = place[pairs.near], place[pairs.far]
    is_there = (start >= 0) & (end >= 0)
    with queries.lookup.database.read() as session:
        rows = queries.lookup.node_rows(session, "no, qualname, kind")
    names = {no: "" if kind == "file" else from_storable(name) for no, name, kind in rows}
    return WholeGraph(
        graph.paths,
        tuple(names.get(no, "") for no in graph.nos[chosen].tolist()),
        tuple(graph.files[chosen].tolist()),
        links=tuple(zip(start[is_there].tolist(), end[is_there].tolist(), strict=True)),
        left_out=graph.size - len(chosen),
    )


def group_of(path: str, under: str) -> str:
    """Return the folder right below ``under`` in which a module is.

    >>> group_of("src/app/web/forms", "src/app"), group_of("src/app", "src/app")
    ('src/app/web', 'src/app')
    """
    start = len(under) + 1 if under else 0
    end = path.find("/", start)
    return path if end < 0 or path == under else path[:end]


def grouped(modules: Iterable[ModuleCoverage], under: str = "") -> list[ModuleGroup]:
    """Return modules by the folders below a folder, in their order.

    A folder that has nothing but one folder is shown as that one: ``src`` becomes ``src/app``, and
    if there is nothing else, the folders in it.
    """
    below = [each for each in modules if not under or f"{each.path}/".startswith(f"{under}/")]
    members: dict[str, list[ModuleCoverage]] = {}
    for each in below:
        members.setdefault(group_of(each.path, under), []).append(each)
    if len(members) == 1 and under not in members and len(below) > 1:
        return grouped(below, next(iter(members)))
    members = {commonpath([each.path for each in every]): every for every in members.values()}
    uses: dict[str, Counter[str]] = {name: Counter() for name in members}
    names = {each.path: name for name, every in members.items() for each in every}
    for each in below:
        for used, count in each.uses:
            if names.get(used, names[each.path]) != names[each.path]:
                uses[names[each.path]][names[used]] += count
    return [
        ModuleGroup(name, tuple(every), tuple(uses[name].most_common()))
        for name, every in members.items()
    ]


def _covered(modules: Any, rows: Any) -> list[ModuleCoverage]:
    """Return each module with the memories of its files."""
    folders = {module.path for module in modules}
    files: dict[str, set[str]] = {path: set() for path in folders}
    memories: dict[str, dict[int, tuple[str, bool]]] = {path: {} for path in folders}
    for no, kind, value, type_, stale_at in rows:
        path = from_storable(value)
        place = path if kind == "module" else path.rpartition("/")[0] or "."
        while place not in folders and place not in ("", "."):
            place = place.rpartition("/")[0] or "."
        if place in folders:
            memories[place][no] = (str(type_), stale_at is not None)
            if kind == "file":
                files[place].add(path)
    return [
        ModuleCoverage(
            each.path,
            each.purpose,
            each.files,
            covered=min(each.files, len(files[each.path])),
            memories=len(memories[each.path]),
            traps=sum(type_ in TRAPS for type_, _ in memories[each.path].values()),
            decisions=sum(type_ == "decision" for type_, _ in memories[each.path].values()),
            stale=sum(is_stale for _, is_stale in memories[each.path].values()),
            uses=each.uses,
        )
        for each in modules
    ]
