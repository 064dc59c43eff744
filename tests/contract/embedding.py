"""What the tests of embeddings share: embedders that do as they are told, and looks at what is
really stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from smara.database.vectors import LAST_ROW, Shelf, VectorKind, vector_code
from smara.errors import ModelRefusedError, ModelUnavailableError
from smara.meaning.store import VectorStore
from smara.testing import FakeClock, HashEmbedder

OTHER = {"embedder": "onnx:/nowhere"}
"""A setting under which the given embedder stands, and not the default one."""


class Restless(HashEmbedder):
    """An embedder that does something while it thinks, once, and takes its time by the clock it was
    given.
    """

    def __init__(
        self,
        meanwhile: Callable[[], object] | None = None,
        clock: FakeClock | None = None,
        seconds: float = 0.0,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self.meanwhile = meanwhile
        self._clock = clock
        self._seconds = seconds

    def embed(
        self, texts: Sequence[str], kind: Any = "document", *, deadline_seconds: float | None = None
    ) -> Any:
        if self._clock is not None:
            self._clock.advance(self._seconds)
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            act()
        return super().embed(texts, kind, deadline_seconds=deadline_seconds)


class Choosy(HashEmbedder):
    """An embedder that refuses every batch in which a text holds a word, or gives no number for
    it.
    """

    def __init__(self, word: str = "poison", is_silent: bool = False, **given: Any) -> None:
        super().__init__(**given)
        self._word = word
        self._is_silent = is_silent

    def embed(
        self, texts: Sequence[str], kind: Any = "document", *, deadline_seconds: float | None = None
    ) -> Any:
        bad = [self._word in text for text in texts]
        if any(bad) and not self._is_silent:
            raise ModelRefusedError("I will not read that.", reason="content")
        vectors = super().embed(texts, kind)
        vectors[np.array(bad)] = np.nan
        return vectors


def unavailable() -> ModelUnavailableError:
    return ModelUnavailableError("Nobody answers. Start the server.", reason="connection")


def texts(embedder: HashEmbedder) -> list[str]:
    """The texts of records that an embedder was asked for, in order."""
    return [text for kind, text in embedder.asked if kind == "document"]


def vectors(memory: Any, kind: VectorKind = "message", model_id: str = "hash-64") -> dict[int, int]:
    """The rows of this project that have a vector, and how many bytes each takes."""
    with memory._rooms.database.read() as session:
        found = session.all(
            "SELECT v.no, length(v.vector) FROM vectors v JOIN vector_shelves h ON h.no = v.no >> "
            "47"
            " JOIN vector_spaces s ON s.no = h.space_no"
            " WHERE s.model_id = ? AND h.project_no = ? AND h.kind = ? ORDER BY v.no",
            (model_id, memory._rooms.scope.project_no, vector_code(kind)),
        )
    return {int(row[0]) & LAST_ROW: int(row[1]) for row in found}


def waiting(memory: Any) -> list[tuple[int, int, int]]:
    """(space, kind, number) of what waits in this project."""
    with memory._rooms.database.read() as session:
        rows = session.all(
            "SELECT space_no, kind, no FROM embedding_queue WHERE project_no = ? ORDER BY 1, 2, 3",
            (memory._rooms.scope.project_no,),
        )
    return [(int(row[0]), int(row[1]), int(row[2])) for row in rows]


def near(
    memory: Any, text: str, limit: int = 5, kind: VectorKind = "message", within: Any = None
) -> list[int]:
    """The rows nearest to a text, best first."""
    vector, note = memory._rooms.meaning.query_vector(text, deep=True)
    assert vector is not None, note
    with memory._rooms.database.read() as session:
        return [
            row for row, _ in memory._rooms.meaning.nearest(session, kind, vector, limit, within)
        ]


def contents(memory: Any, rows: Sequence[int]) -> list[str]:
    """The messages of rows."""
    numbers = [row >> 16 for row in rows]
    with memory._rooms.database.read() as session:
        found = memory._rooms.store.by_numbers(session, numbers)
    return [found[no].raw_content for no in numbers]


def blocks_hold(memory: Any, shelf: Shelf) -> list[int]:
    """The rows that the blocks of signs know of."""
    found: list[int] = []
    with memory._rooms.database.read() as session:
        for block in memory._rooms.database.vectors.blocks(session, shelf, -1):
            first = shelf.rows_of_block(block.block)[0]
            found += [
                first + int(offset) for offset in np.frombuffer(block.offsets, dtype=np.uint32)
            ]
    return sorted(found)


def shelf_of(memory: Any, kind: VectorKind = "message", model_id: str = "hash-64") -> Shelf:
    """Where the vectors of a kind stand."""
    store = VectorStore(memory._rooms.database, memory._rooms.scope)
    with memory._rooms.database.read() as session:
        space = store.find_space(session, model_id)
        return store.shelf(session, space.no if space else 0, kind)
