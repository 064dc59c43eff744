"""Look up nodes by number, name, or a user's expression.

`CodeLookup` holds the SQL. `Targets` resolves an expression such as ``auth.py``,
``src/auth.py:Session.login``, ``login``, ``auth.py:42`` or ``src/auth/`` to the nodes it names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from smara.codegraph.codec import edges_of
from smara.codegraph.models import Edge, Node
from smara.core.escape import from_storable, to_storable
from smara.core.scope import Scope
from smara.database.database import Database, Row, Session, marks, parts
from smara.database.project_store import ProjectStore
from smara.errors import InvalidInputError, NotFoundError

_NODES = (
    "SELECT n.no, n.kind, n.name, n.qualname, f.path, n.first_line, n.last_line, n.parent_no, "
    "n.signature, n.doc,"
    " n.body_hash, f.stale_at FROM code_nodes n JOIN code_files f ON f.no = n.file_no"
)
_NAMED = f"{_NODES} WHERE n.project_no = :project AND n.tree_no = ?"
# The plus keeps SQLite from reading a whole tree by an index that begins with it.
_NUMBERED = f"{_NODES} WHERE +n.project_no = :project AND +n.tree_no = ?"


class CodeLookup(ProjectStore):
    """One tree of a project, for reading."""

    def __init__(self, database: Database, scope: Scope, tree_no: int) -> None:
        super().__init__(database, scope)
        self.tree_no = tree_no

    def revision(self, session: Session) -> int:
        """Return how often the tree was written to."""
        row = session.one(
            self.sql("SELECT revision FROM code_trees WHERE project_no = :project AND no = ?"),
            (self.tree_no,),
        )
        return int(row[0]) if row else 0

    def is_building(self, session: Session) -> bool:
        """Return True if the tree's first index is not finished."""
        row = session.one(
            self.sql("SELECT state FROM code_trees WHERE project_no = :project AND no = ?"),
            (self.tree_no,),
        )
        return row is not None and row[0] != "ready"

    def files(self, session: Session) -> list[tuple[int, int]]:
        """Return the number and revision of each file."""
        rows = session.all(
            self.sql(
                "SELECT no, revision FROM code_files WHERE project_no = :project AND tree_no = ? "
                "AND skip IS NULL"
            ),
            (self.tree_no,),
        )
        return [(int(no), int(revision)) for no, revision in rows]

    def file_rows(self, session: Session, nos: Sequence[int] | None) -> Iterator[Row]:
        """Yield ``no, path, is_test, stale_at, edges`` of some files, or of all."""
        columns = "SELECT no, path, is_test, stale_at, edges FROM code_files"
        yield from self._some(session, columns, "no", nos=nos, condition=" AND skip IS NULL")

    def node_rows(self, session: Session, file_nos: Sequence[int] | None) -> Iterator[Row]:
        """Yield ``file_no, no, parent_no, kind, first_line, last_line`` of the nodes of
        some files, or of all.
        """
        columns = "SELECT file_no, no, parent_no, kind, first_line, last_line FROM code_nodes"
        yield from self._some(session, columns, "file_no", nos=file_nos)

    def _some(
        self,
        session: Session,
        columns: str,
        column: str,
        nos: Sequence[int] | None,
        condition: str = "",
    ) -> Iterator[Row]:
        where = self.sql("WHERE project_no = :project AND tree_no = ?")
        if nos is None:
            yield from session.all(f"{columns} {where}{condition}", (self.tree_no,))
            return
        for some in parts(nos):
            yield from session.all(
                f"{columns} {where}{condition} AND {column} IN ({marks(len(some))})",
                (self.tree_no, *some),
            )

    def names(self, session: Session) -> Iterator[tuple[int, str]]:
        """Return the number and name of every node."""
        rows = session.all(
            self.sql("SELECT no, name FROM code_nodes WHERE project_no = :project AND tree_no = ?"),
            (self.tree_no,),
        )
        return ((int(no), from_storable(name)) for no, name in rows)

    def nodes(self, session: Session, nos: Collection[int]) -> dict[int, Node]:
        """Return some nodes by their numbers.

        Those that are gone are left out.
        """
        wanted = sorted(set(nos))
        found: dict[int, Node] = {}
        for some in parts(wanted):
            rows = session.all(
                self.sql(f"{_NUMBERED} AND n.no IN ({marks(len(some))})"), (self.tree_no, *some)
            )
            found.update((int(row[0]), _node(row)) for row in rows)
        return found

    def named(self, session: Session, names: Iterable[str], limit: int = 1_000) -> list[Node]:
        """Return the nodes with one of some names, by path and line."""
        some = list(names)
        rows = session.all(
            self.sql(
                f"{_NAMED} AND n.name IN ({marks(len(some))}) ORDER BY f.path, n.first_line, n.no "
                "LIMIT ?"
            ),
            (self.tree_no, *some, limit),
        )
        return [_node(row) for row in rows]

    def members(self, session: Session, classes: Sequence[int], name: str) -> list[Node]:
        """Return what some classes have by this name."""
        found: list[Node] = []
        for some in parts(classes):
            rows = session.all(
                self.sql(f"{_NAMED} AND n.name = ? AND n.parent_no IN ({marks(len(some))})"),
                (self.tree_no, to_storable(name), *some),
            )
            found += [_node(row) for row in rows]
        return found

    def in_file(self, session: Session, path: str, name: str | None = None) -> list[Node]:
        """Return the nodes of a file, by line, the file's own first.

        With a name, only those called so.
        """
        condition, values = ("", ()) if name is None else (" AND n.name = ?", (to_storable(name),))
        rows = session.all(
            self.sql(
                f"{_NUMBERED} AND f.path = ? AND f.tree_no = ?{condition} ORDER BY n.first_line, "
                "n.no"
            ),
            (self.tree_no, to_storable(path), self.tree_no, *values),
        )
        found = [_node(row) for row in rows]
        return sorted(found, key=lambda node: node.kind != "file")

    def file_nodes(self, session: Session, paths: Sequence[str]) -> list[Node]:
        """Return the nodes of files themselves, by path."""
        found: list[Node] = []
        for some in parts([to_storable(path) for path in paths]):
            rows = session.all(
                self.sql(
                    f"{_NUMBERED} AND n.kind = 'file' AND f.tree_no = ? AND f.path IN "
                    f"({marks(len(some))})"
                ),
                (self.tree_no, self.tree_no, *some),
            )
            found += [_node(row) for row in rows]
        return sorted(found, key=lambda node: node.path)

    def edges_in(self, session: Session, path: str) -> list[Edge]:
        """Return the edges that start in a file."""
        row = session.one(
            self.sql(
                "SELECT edges FROM code_files WHERE project_no = :project AND tree_no = ? AND "
                "path = ?"
            ),
            (self.tree_no, path),
        )
        return edges_of(row[0]) if row else []

    def paths(self, session: Session) -> list[str]:
        """Return the path of every file, in order."""
        rows = session.all(
            self.sql(
                "SELECT path FROM code_files WHERE project_no = :project AND tree_no = ? AND skip "
                "IS NULL ORDER BY path"
            ),
            (self.tree_no,),
        )
        return [from_storable(row[0]) for row in rows]

    def file_facts(self, session: Session) -> dict[str, tuple[str | None, int]]:
        """Return each file's language and number of lines, by path."""
        rows = session.all(
            self.sql(
                "SELECT path, language, lines FROM code_files"
                " WHERE project_no = :project AND tree_no = ? AND skip IS NULL"
            ),
            (self.tree_no,),
        )
        return {from_storable(path): (language, int(lines)) for path, language, lines in rows}

    def distinct_names(self, session: Session) -> list[str]:
        """Return every name there is, once."""
        rows = session.all(
            self.sql(
                "SELECT DISTINCT name FROM code_nodes WHERE project_no = :project AND tree_no = ? "
                "AND kind <> 'file'"
            ),
            (self.tree_no,),
        )
        return [from_storable(row[0]) for row in rows]


def _node(row: Row) -> Node:
    no, kind, name, qualname, path, first, last, parent, signature, doc, body_hash, stale_at = row
    return Node(
        int(no),
        kind,
        from_storable(name),
        qualname=from_storable(qualname),
        path=from_storable(path),
        first_line=int(first),
        last_line=int(last),
        parent_no=None if parent is None else int(parent),
        signature=from_storable(signature),
        doc=from_storable(doc),
        body_hash=bytes(body_hash),
        is_stale=stale_at is not None,
    )


MOST_NAMED = 8
_LONGEST = 1_000
_LINE = re.compile(r"[Ll]?(\d{1,9})(?:[-:][Ll]?\d*)?")
_SPLIT = re.compile(r"::|[:#]")
_CLOSE = 0.6


@dataclass(frozen=True, slots=True)
class QueryTarget:
    """The nodes that are meant; several only for a folder."""

    nodes: tuple[Node, ...]
    is_folder: bool = False


class TreePaths:
    """The paths of a tree, to be found by their ends."""

    def __init__(self, paths: Iterable[str]) -> None:
        listed = tuple(paths)
        self.places = {path: place for place, path in enumerate(listed)}
        self.all = tuple(sorted(listed))
        self._by_name: dict[str, list[str]] = {}
        for path in self.all:
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)

    def called(self, wanted: str) -> list[str]:
        """Return the file of a path, or of paths ending so."""
        alike = self._by_name.get(wanted.rpartition("/")[2], [])
        if wanted in alike:
            return [wanted]
        return [path for path in alike if path.endswith(f"/{wanted}")]

    def inside(self, wanted: str) -> list[str]:
        """Return the files of a folder; ``.`` is the root."""
        start = f"{wanted.rstrip('/')}/"
        return [path for path in self.all if path.startswith(start) or wanted in (".", "/")]


class Targets:
    """Finds nodes by what people and agents call them."""

    def __init__(
        self,
        lookup: CodeLookup,
        root: str,
        find_paths: Callable[[], TreePaths],
        at_line: Callable[[str, int], int | None],
    ) -> None:
        self._lookup = lookup
        self._root = root.rstrip("/\\")
        self._find_paths = find_paths
        self._at_line = at_line

    def find(self, session: Session, text: str) -> list[Node]:
        """Return every node that may be meant, the likeliest first.

        None when nothing is.
        """
        wanted = self._plain(text)
        paths = self._find_paths()
        files = paths.called(wanted)
        if files:
            # A word may name a file without a suffix (``run``) and a function: then both may be
            # meant.
            named = self._symbols(session, wanted) if wanted.isidentifier() else []
            return [*named, *self._lookup.file_nodes(session, files)]
        path, rest = _split(wanted)
        if path and (files := paths.called(path)):
            return [node for each in files for node in self._in_file(session, each, rest)]
        return self._symbols(session, wanted)

    def only(self, session: Session, text: str) -> QueryTarget:
        """Return the one node meant, or a folder's files.

        ``NotFoundError`` names what is close, ``InvalidInputError`` what else it may mean.
        """
        found = self.find(session, text)
        if not found:
            paths = self._find_paths().inside(self._plain(text))
            inside = self._lookup.file_nodes(session, paths)
            if inside:
                return QueryTarget(tuple(inside), is_folder=True)
            raise self._unknown(session, text)
        best = _likeliest(found, self._plain(text))
        if len(best) == 1:
            return QueryTarget((best[0],))
        named = ", ".join(f"{node.label} (line {node.first_line})" for node in best[:MOST_NAMED])
        more = f" and {len(best) - MOST_NAMED} more" if len(best) > MOST_NAMED else ""
        raise InvalidInputError(
            f"{text!r} may mean {len(best)} things: {named}{more}. Name one as PATH:NAME or "
            "PATH:LINE.",
            candidates=[node.label for node in best],
        )

    def files(self, session: Session, given: Iterable[str]) -> tuple[list[str], list[str]]:
        """Resolve names to paths; also return the names without any."""
        paths = self._find_paths()
        known, unknown = [], []
        for each in given:
            wanted = self._plain(each)
            found = paths.called(wanted) or paths.inside(wanted)
            known += found
            unknown += [] if found else [each]
        return known, unknown

    def _plain(self, text: str) -> str:
        wanted = text.strip()
        if not wanted or len(wanted) > _LONGEST:
            raise InvalidInputError(
                "Name a file, a folder or a symbol: src/auth.py, Session.login, src/auth.py:42."
            )
        if "\\" in wanted and "/" not in wanted:
            wanted = wanted.replace("\\", "/")
        if wanted.startswith("../"):
            wanted = os.path.normpath(os.path.join(os.getcwd(), wanted)).replace(os.sep, "/")
        if self._root and wanted.startswith(f"{self._root}/"):
            wanted = wanted[len(self._root) + 1 :]
        return wanted.removeprefix("./").removesuffix("()")

    def _in_file(self, session: Session, path: str, rest: str) -> list[Node]:
        if line := _LINE.fullmatch(rest):
            no = self._at_line(path, int(line[1]))
            return list(self._lookup.nodes(session, [no]).values()) if no is not None else []
        wanted = _dotted(rest)
        named = self._lookup.in_file(session, path, wanted.rpartition(".")[2])
        return [node for node in named if _is_called(node, wanted)]

    def _symbols(self, session: Session, wanted: str) -> list[Node]:
        dotted = _dotted(wanted)
        name = dotted.rpartition(".")[2]
        if not name:
            return []
        found = [node for node in self._lookup.named(session, [name]) if node.kind != "file"]
        exact = [node for node in found if _is_called(node, dotted)]
        if exact or "." not in dotted:
            return exact
        # ``smara.codegraph.models.Node``: the path without its ending, then the qualified name.
        ending = re.compile(r"(/__init__|/mod|/index)?\.\w+$")
        modules = (ending.sub("", node.path).replace("/", ".") for node in found)
        return [
            node
            for node, module in zip(found, modules, strict=True)
            if f".{module}.{node.qualname}".endswith(f".{dotted}")
        ]

    def _unknown(self, session: Session, text: str) -> NotFoundError:
        path, rest = _split(self._plain(text))
        # What looks like it, the likest first.
        wanted = rest or path
        names = self._lookup.distinct_names(session)
        paths = self._find_paths().all
        last = wanted.rpartition("." if "/" not in wanted else "/")[2].casefold()
        by_end: dict[str, str] = {}
        for each in (*names, *paths):
            end = each.rpartition("/")[2].casefold()
            if (
                end
                and abs(len(end) - len(last)) <= max(3, len(last) // 2)
                and (end[0] == last[:1] or last in end)
            ):
                by_end.setdefault(end, each)
        near = [by_end[end] for end in get_close_matches(last, list(by_end)[:20_000], 3, _CLOSE)]
        hint = (
            f" Did you mean {', '.join(near)}?"
            if near
            else " `smara graph map` shows what there is."
        )
        if self._lookup.is_building(session):
            hint += " The code is being indexed: it may not have been read yet."
        return NotFoundError(f"There is no file or symbol {text!r} in the index.{hint}", near=near)


def _split(wanted: str) -> tuple[str, str]:
    path, *rest = _SPLIT.split(wanted, maxsplit=1)
    return path, rest[0] if rest else ""


def _dotted(name: str) -> str:
    """Return a qualified name as it is stored, whatever its language writes between the parts."""
    return re.sub(r"::|#|->|/", ".", name).strip(".").removesuffix("()")


def _is_called(node: Node, dotted: str) -> bool:
    return node.kind != "file" and (node.qualname == dotted or node.qualname.endswith(f".{dotted}"))


def _likeliest(found: Sequence[Node], wanted: str) -> list[Node]:
    """Of several, those whose whole name was given.

    Of these the ones outside of tests, where there are any.
    """
    dotted = _dotted(wanted)
    whole = [node for node in found if node.qualname == dotted] or list(found)
    plain = [
        node
        for node in whole
        if node.kind != "test" and not re.search(r"(^|/)tests?/|(^|/)test_", node.path)
    ]
    return plain or whole
