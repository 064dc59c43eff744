"""Code as a source of a search: chunks by words and by meaning, each with where it stands.

Code has a finder of its own: there is so much of it that the newest thousand rows of a term, which
do for tasks and memories, would be those of the files that happened to be read last.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from smara.codegraph.rows import ChunkRow
from smara.database.database import Session
from smara.search.code_trees import CodeTrees, FileStanding, MeantTree
from smara.search.code_words import CodeWords, Scored
from smara.search.found import Found, Wanted
from smara.search.models import Hit
from smara.search.understanding import Understanding

if TYPE_CHECKING:
    from smara.meaning.models import Vector
    from smara.meaning.reading import Meaning

SOURCES: tuple[str, ...] = ("code",)
CANDIDATES = 300
LOADED = 60
COMMON = 4_000
"""A word that more pieces hold is looked up only where there is no rarer one: it costs much and
tells little.
"""
NEAREST = 60
STALE = "its file has changed since it was read"
DEFINES = 0.5
"""What defines a name that is asked for, on the scale on which holding every word once is 1."""
_NAME = re.compile(r"[^\W\d]\w*")
_MOST_NAMES, _MOST_DEFINITIONS = 16, 50
_PART, _WEAK = 0.75, 0.3
_SHOWN_TERMS = 4


class CodeFinder:
    """Finds chunks of the tree that is meant."""

    def __init__(self, trees: CodeTrees, meaning: Meaning | None) -> None:
        self._trees = trees
        self._meaning = meaning

    def find(
        self,
        session: Session,
        asked: Understanding,
        vector: Vector | None,
        wall: int | None,
        wanted: Wanted,
    ) -> list[Found]:
        """The best of them, not yet in order."""
        tree = self._trees.current(session)
        if tree is None:
            return []
        words = self._words(session, tree, asked, wall=wall)
        scores, ideal = words.scored(max(CANDIDATES, wanted.limit)), words.ideal or 1.0
        close: dict[int, float] = {}
        if vector is not None and self._meaning is not None:
            close = dict(self._meaning.nearest(session, "code", vector, NEAREST))
            close |= self._meaning.scores(
                session, "code", [no for no in scores if no not in close], vector
            )
        shares = {no: scored.score / ideal for no, scored in scores.items()}
        best = sorted(
            {*shares, *close}, key=lambda no: (-(shares.get(no, 0.0) + close.get(no, 0.0)), -no)
        )
        defined = self._defined(session, tree, asked)
        found = []
        for no, hit in self._load(session, best[: max(LOADED, wanted.limit)], tree).items():
            if wanted.includes(hit):
                names = _names_in(hit, defined)
                why = (*(f"defines {name}" for name in names), *_reasons(scores.get(no), asked))
                hit = replace(hit, why=why, terms=asked.query.texts)
                share = shares.get(no, 0.0) + (DEFINES if names else 0.0)
                found.append(Found("code", no, hit, words=share, meaning=close.get(no)))
        return found

    def _defined(
        self, session: Session, tree: MeantTree, asked: Understanding
    ) -> Mapping[str, Sequence[tuple[str, int]]]:
        """Where the names of a query are defined: path → names with their lines."""
        names = list(dict.fromkeys(name for word in asked.names for name in _NAME.findall(word)))[
            :_MOST_NAMES
        ]
        rows = (
            self._trees.defined(session, tree.no, names, limit=_MOST_DEFINITIONS) if names else []
        )
        files = self._trees.standing(session, [row.file_no for row in rows])
        found: dict[str, list[tuple[str, int]]] = {}
        for row in rows:
            if row.file_no in files:
                found.setdefault(files[row.file_no].path, []).append((row.name, row.first_line))
        return found

    def _load(self, session: Session, numbers: Sequence[int], tree: MeantTree) -> Mapping[int, Hit]:
        """Chunks of a tree by number, as hits without rank and score; what is gone is left out."""
        chunks = self._trees.store.chunks_by_number(session, numbers)
        files = self._trees.standing(session, [chunk.file_no for chunk in chunks.values()])
        return {
            no: _hit(chunk, file, tree)
            for no in numbers
            if (chunk := chunks.get(no)) is not None
            and (file := files.get(chunk.file_no)) is not None
            and file.tree_no == tree.no
        }

    def _words(
        self, session: Session, tree: MeantTree, asked: Understanding, wall: int | None
    ) -> CodeWords:
        chunks = None if tree.is_only else self._trees.chunks(session, tree.no).file_of
        terms = {
            term.text: (_PART if term.kind == "part" else 1.0) * (_WEAK if term.is_weak else 1.0)
            for term in asked.query.wanted
        }
        total = self._trees.count(session, tree.no)
        records = self._trees.store.database.records
        found = CodeWords(
            session,
            records,
            wall,
            chunks=chunks,
            total=total,
            terms=terms,
            most_terms=len(terms),
            most_rows=COMMON,
        )
        return (
            found
            if found.weights
            else CodeWords(
                session,
                records,
                wall,
                chunks=chunks,
                total=total,
                terms=terms,
                most_terms=len(terms),
            )
        )


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
        rank=0,
        score=0.0,
        why=(),
        thread_id=None,
        resource_id=None,
        role=None,
        seq=None,
        created_at=file.indexed_at,
        metadata=metadata,
        type=chunk.kind,
        title=chunk.name or None,
        files=(file.path,),
    )


def _names_in(hit: Hit, defined: Mapping[str, Sequence[tuple[str, int]]]) -> list[str]:
    """The names that a piece defines, of those that were asked for."""
    first, last = hit.metadata["firstLine"], hit.metadata["lastLine"]
    return list(
        dict.fromkeys(name for name, line in defined.get(hit.files[0], ()) if first <= line <= last)
    )


def _reasons(scored: Scored | None, asked: Understanding) -> tuple[str, ...]:
    if scored is None:
        return ()
    words = {term.text: term.word for term in asked.query.wanted}
    best = sorted(scored.brought, key=lambda term: -scored.brought[term])[:_SHOWN_TERMS]
    return tuple(dict.fromkeys(f"{words.get(term, term)} in the code" for term in best))
