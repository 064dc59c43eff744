"""Match the modules of the code with the memories of their files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from smara.browse.facets import Facets
from smara.browse.models import ModuleCoverage
from smara.core.escape import from_storable
from smara.database.project_store import ProjectStore
from smara.errors import NotFoundError

if TYPE_CHECKING:
    from smara.codegraph.queries import CodeQueries
    from smara.knowledge.store import KnowledgeStore

TRAPS = ("gotcha", "dead_end", "error_pattern")
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

    def modules(self) -> list[ModuleCoverage]:
        """Return the modules, the most central first."""
        try:
            queries = self._asking()
        except NotFoundError:
            return []
        knowledge = self._knowledge
        statement = (
            "SELECT k.memory_no, k.kind, k.value, m.type, m.stale_at FROM memory_keys k"
            " JOIN memories m ON m.no = k.memory_no WHERE k.project_no = :project"
            " AND k.kind IN ('file', 'module') AND m.deprecated_at IS NULL"
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
