"""Search the chunks of indexed code by words and by meaning.

A search reads one tree: the worktree that holds the current folder, or the one indexed last. BM25
ranks chunks, not whole files: a long file holds every word somewhere. Path and name count more than
the body.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from smara.codegraph.store import ChunkRow, CodeStore
from smara.core.escape import from_storable
from smara.core.scope import Scope
from smara.core.startup.record import dataclass, replace
from smara.core.startup.regex import regex
from smara.database.database import Database, Session, marks, parts
from smara.search.bm25 import IndexMatches, lookup_terms
from smara.search.models import Hit, SearchCandidate, SearchFilter, SourceMatches
from smara.search.query import QueryIntent, letters_of, verified_term
from smara.search.weights import WEIGHTS, Weights

if TYPE_CHECKING:
    from smara.meaning.models import Vector
    from smara.meaning.query import Meaning


NOT_INDEXED = "The code is not indexed yet; `smara code index` does it."
INCOMPLETE = "The code is being indexed: answers may be incomplete."


class CodeFileRow(NamedTuple):
    """The facts of a file that ranking needs."""

    no: int
    path: str
    kind: str
    is_test: bool


class DefinedRow(NamedTuple):
    """The place and the kind of a definition."""

    name: str
    kind: str
    file_no: int
    first_line: int


class MeantTree(NamedTuple):
    """The tree that is searched."""

    no: int
    is_only: bool
    is_ready: bool
    root: str


class FileStanding(NamedTuple):
    """The state of the file of a hit."""

    tree_no: int
    path: str
    language: str | None
    is_test: bool
    is_stale: bool
    indexed_at: int
    size: int
    mtime_ns: int
    """0 where it was saved so shortly before it was read that its time tells nothing."""

    def is_as_read(self, root: str) -> bool:
        """Return True if the file looks as it was read.

        So does one whose tree is not here.
        """
        try:
            found = os.lstat(os.path.join(root, *self.path.split("/")))
        except (OSError, ValueError):
            return not os.path.isdir(root)
        return found.st_size == self.size and self.mtime_ns in (0, found.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class TreeChunks:
    """The chunks of a tree and their files, as of one revision."""

    revision: int
    files: Mapping[int, CodeFileRow]
    file_of: Mapping[int, int]
    """The number of a chunk → that of its file."""


class CodeTrees:
    """The reader of the tables of code.

    It caches which chunk stands where.
    """

    def __init__(
        self, database: Database, scope: Scope, root: Callable[[], str | None] = lambda: None
    ) -> None:
        self.store = CodeStore(database, scope)
        self._root = root
        self._lock = threading.Lock()
        self._cache: dict[int, TreeChunks] = {}

    def current(self, session: Session) -> MeantTree | None:
        """The tree that is meant, or ``None`` when no code is indexed."""
        rows = session.all(
            self.store.sql(
                "SELECT no, root, state FROM code_trees WHERE project_no = :project"
                " ORDER BY coalesce(finished_at, 0) DESC, no"
            )
        )
        if not rows:
            return None
        here = self._root() if len(rows) > 1 else None
        no, root, state = next((row for row in rows if row[1] == here), rows[0])
        return MeantTree(int(no), len(rows) == 1, state == "ready", root=from_storable(root))

    def note(self, session: Session, is_asked_for: bool) -> str | None:
        """Return a note on hits in code.

        On a missing index only if code was asked for.
        """
        tree = self.current(session)
        if tree is None:
            return NOT_INDEXED if is_asked_for else None
        return None if tree.is_ready else INCOMPLETE

    def chunks(self, session: Session, tree_no: int) -> TreeChunks:
        """Return the chunks of a tree.

        They are read again only after a change.
        """
        row = session.one(
            self.store.sql(
                "SELECT revision FROM code_trees WHERE project_no = :project AND no = ?"
            ),
            (tree_no,),
        )
        revision = int(row[0]) if row else -1
        cached = self._cache.get(tree_no)
        if cached is not None and cached.revision == revision:
            return cached
        files = {
            int(no): CodeFileRow(int(no), from_storable(path), kind, is_test=bool(is_test))
            for no, path, kind, is_test in session.all(
                self.store.sql(
                    "SELECT no, path, kind, is_test FROM code_files"
                    " WHERE project_no = :project AND tree_no = ? AND skip IS NULL"
                ),
                (tree_no,),
            )
        }
        rows = session.all(
            self.store.sql(
                "SELECT c.no, c.file_no FROM code_files f JOIN code_chunks c ON c.file_no = f.no"
                " AND c.project_no = f.project_no WHERE f.project_no = :project AND f.tree_no = ?"
                " AND f.skip IS NULL"
            ),
            (tree_no,),
        )
        chunks = TreeChunks(
            revision, files, file_of={int(no): int(file_no) for no, file_no in rows}
        )
        with self._lock:
            self._cache[tree_no] = chunks
        return chunks

    def standing(self, session: Session, file_nos: Sequence[int]) -> dict[int, FileStanding]:
        """Return the state of files by number.

        It may change without a new revision.
        """
        rows = self.store.rows(
            session,
            "SELECT no, tree_no, path, language, is_test, stale_at, indexed_at, size, mtime_ns"
            " FROM code_files WHERE project_no = :project AND no IN (:some)",
            some=sorted(set(file_nos)),
        )
        return {
            int(no): FileStanding(
                int(tree_no),
                from_storable(path),
                language,
                is_test=bool(is_test),
                is_stale=stale_at is not None,
                indexed_at=int(indexed_at),
                size=int(size),
                mtime_ns=int(mtime_ns),
            )
            for no, tree_no, path, language, is_test, stale_at, indexed_at, size, mtime_ns in rows
        }

    def count(self, session: Session, tree_no: int) -> int:
        """Return how many chunks a tree has, cached until the tree changes."""
        cached = self._cache.get(tree_no)
        if cached is not None:
            return len(cached.file_of)  # what is behind by a revision is as good for weighing words
        return self.store.number(
            session,
            "SELECT count(*) FROM code_files f JOIN code_chunks c ON c.file_no = f.no"
            " AND c.project_no = f.project_no WHERE f.project_no = :project AND f.tree_no = ?",
            tree_no,
        )

    def defined(
        self, session: Session, tree_no: int, names: Sequence[str], limit: int
    ) -> list[DefinedRow]:
        """Return the definitions of names, about ``limit`` for each."""
        found: list[DefinedRow] = []
        for part in parts(names):
            rows = session.all(
                self.store.sql(
                    "SELECT name, kind, file_no, first_line FROM code_nodes"
                    f" WHERE project_no = :project AND tree_no = ? AND name IN ({marks(len(part))})"
                    f" AND kind <> 'file' ORDER BY name, file_no, no LIMIT {int(limit * len(part))}"
                ),
                (tree_no, *part),
            )
            found += [
                DefinedRow(from_storable(row[0]), row[1], int(row[2]), first_line=int(row[3]))
                for row in rows
            ]
        return found


# A term that more rows hold tells nothing.
MOST_ROWS = 20_000
SOURCES: tuple[str, ...] = ("code",)
CANDIDATES = 300
LOADED = 60
# A word that more pieces hold is looked up only where there is no rarer one: it costs much and
# tells little.
COMMON = 4_000
NEAREST = 60
STALE = "its file has changed since it was read"
_NAME = regex(r"[^\W\d]\w*")
_MOST_NAMES, _MOST_DEFINITIONS = 16, 50
_SHOWN_TERMS = 4


def code_reasons(
    words: Mapping[str, str], by_term: Mapping[str, float], text: str, path: str
) -> dict[str, str]:
    """Return the words found in a chunk, each with its place.

    Args:
        words: A term → the word of the query it comes from.
        by_term: What each found term brings; those that bring most are named.
        text: The lines of the chunk.
        path: Its file.
    """
    places = (("code", letters_of(text)), ("path", letters_of(path)))
    found: dict[str, str] = {}
    for term in sorted(by_term, key=lambda term: -by_term[term]):
        for place, letters in places:
            if len(found) < _SHOWN_TERMS and (word := verified_term(words[term], term, letters)):
                found.setdefault(word, place)
                break
    return found


@dataclass(frozen=True, eq=False)
class CodeFinder:
    """Finds chunks of the tree that is meant."""

    trees: CodeTrees
    meaning: Meaning | None
    weights: Weights = WEIGHTS

    def find(
        self,
        session: Session,
        intent: QueryIntent,
        vector: Vector | None,
        wall: int | None,
        filters: SearchFilter,
    ) -> SourceMatches:
        """The best of them, not yet in order."""
        tree = self.trees.current(session)
        if tree is None:
            return SourceMatches([], {}, 0)
        matches = self._matches(session, tree, intent, wall=wall)
        scores = matches.scored(max(CANDIDATES, filters.limit), counts_head=False)
        ideal = matches.ideal or 1.0
        close: dict[int, float] = {}
        if vector is not None and self.meaning is not None:
            close = dict(self.meaning.nearest(session, "code", vector, NEAREST))
            close |= self.meaning.scores(
                session, "code", [no for no in scores if no not in close], vector
            )
        shares = {no: scored.score / ideal for no, scored in scores.items()}
        best = sorted(
            {*shares, *close}, key=lambda no: (-(shares.get(no, 0.0) + close.get(no, 0.0)), -no)
        )
        defined = self._defined(session, tree, intent)
        words = {term.text: term.shown for term in intent.query.telling}
        found = []
        for no, hit in self._load(session, best[: max(LOADED, filters.limit)], tree).items():
            if filters.includes(hit):
                first, last = hit.metadata["firstLine"], hit.metadata["lastLine"]
                there = defined.get(hit.files[0], ())
                names = list(dict.fromkeys(name for name, line in there if first <= line <= last))
                by_term = scores[no].by_term if no in scores else {}
                reasons = code_reasons(words, by_term, hit.content, path=hit.files[0])
                why = (
                    *(f"defines {name}" for name in names),
                    *(f"{word} in the {where}" for word, where in reasons.items()),
                )
                hit = replace(hit, why=why, terms=intent.query.texts)
                share = shares.get(no, 0.0) + (self.weights.fusion.defines if names else 0.0)
                found.append(
                    SearchCandidate(
                        "code",
                        no,
                        hit,
                        words=share,
                        meaning=close.get(no),
                        cosine=close.get(no),
                        terms=frozenset(by_term),
                    )
                )
        return SourceMatches(found, matches.frequencies, self.trees.count(session, tree.no))

    def _defined(
        self, session: Session, tree: MeantTree, intent: QueryIntent
    ) -> Mapping[str, Sequence[tuple[str, int]]]:
        names = list(dict.fromkeys(name for word in intent.names for name in _NAME.findall(word)))[
            :_MOST_NAMES
        ]
        rows = self.trees.defined(session, tree.no, names, limit=_MOST_DEFINITIONS) if names else []
        files = self.trees.standing(session, [row.file_no for row in rows])
        found: dict[str, list[tuple[str, int]]] = {}
        for row in rows:
            if row.file_no in files:
                found.setdefault(files[row.file_no].path, []).append((row.name, row.first_line))
        return found

    def _load(self, session: Session, numbers: Sequence[int], tree: MeantTree) -> Mapping[int, Hit]:
        """Chunks of a tree by number, as hits without rank and score; what is gone is left out."""
        chunks = self.trees.store.chunks_by_number(session, numbers)
        files = self.trees.standing(session, [chunk.file_no for chunk in chunks.values()])
        return {
            no: _hit(chunk, file, tree)
            for no in numbers
            if (chunk := chunks.get(no)) is not None
            and (file := files.get(chunk.file_no)) is not None
            and file.tree_no == tree.no
        }

    def _matches(
        self, session: Session, tree: MeantTree, intent: QueryIntent, wall: int | None
    ) -> IndexMatches:
        chunks = None if tree.is_only else self.trees.chunks(session, tree.no).file_of
        total = self.trees.count(session, tree.no)
        for most_rows in (COMMON, MOST_ROWS):
            found = IndexMatches(
                session,
                self.trees.store.database.records,
                "code",
                project_no=wall,
                total=total,
                terms=lookup_terms(intent.query, self.weights.code_words),
                weights=self.weights.code_words,
                most_rows=most_rows,
                within=chunks,
                skips_common=True,
            )
            if found.worths:
                break
        return found


def _hit(chunk: ChunkRow, file: FileStanding, tree: MeantTree) -> Hit:
    # While the first index is made, a file that is marked has been read just now and only waits to
    # be joined.
    is_stale = tree.is_ready and (file.is_stale or not file.is_as_read(tree.root))
    place = f"{file.path}:{chunk.first_line}-{chunk.last_line}"
    metadata: dict[str, Any] = {
        "path": file.path,
        "firstLine": chunk.first_line,
        "lastLine": chunk.last_line,
        "symbol": chunk.name or None,
        "language": file.language,
        "isTest": file.is_test,
        "isStale": is_stale,
        "citation": place,
    }
    if is_stale:
        metadata["hedge"] = STALE
    return Hit(
        place,
        "code",
        chunk.text,
        created_at=file.indexed_at,
        metadata=metadata,
        type=chunk.kind,
        title=chunk.name or None,
        files=(file.path,),
    )
