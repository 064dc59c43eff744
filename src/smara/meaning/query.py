"""Turn queries into vectors and find the records nearest to them.

:class:`Meaning` is what search uses of this room. A model that is slow to load is loaded in a
thread, and the caller waits only as long as it can. Messages can be limited to a thread, roles or a
time: a narrow filter is listed and compared row by row, a wide one is applied to the nearest rows.
"""

from __future__ import annotations

import math
import sys
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from operator import truediv
from typing import TYPE_CHECKING

from smara.core import log
from smara.core.clock import Clock
from smara.core.deadline import run_within
from smara.core.text import CHUNK_CHARACTERS
from smara.database.database import Session, marks, parts
from smara.database.fulltext import Within, join_terms, no_of, record_conditions, row_of
from smara.database.vectors import Shelf, VectorKind, as_floats, cosines
from smara.errors import DatabaseError, SmaraError
from smara.meaning.arithmetic import PlainNearest, plain_cosines
from smara.meaning.embedders import Embedders, VectorCache, choose_space
from smara.meaning.models import Space, Vector
from smara.meaning.store import VectorStore
from smara.secrets.redact import redact_brief

if TYPE_CHECKING:
    from smara.database.vectors import Codes, Floats, Numbers
    from smara.meaning.nearest import Nearest
    from smara.models.embedder import Embedder


class RowVectors:
    """Rows with their vectors, to be compared with more than one question.

    The vectors are an array, or in a process that has not loaded numpy the bytes of each.
    """

    def __init__(self, rows: Sequence[int], codes: Codes | list[bytes]) -> None:
        self._places = {row: place for place, row in enumerate(rows)}
        self._codes = codes

    def scores(self, vector: Vector) -> dict[int, float]:
        """Return the cosine of each row with a question."""
        if not self._places:
            return {}
        if isinstance(self._codes, list):
            scores = plain_cosines(self._codes, vector.values)
        else:
            scores = cosines(self._codes, as_floats(vector.values)).tolist()
        return dict(zip(self._places, scores, strict=True))

    def moved(self, vector: Vector, rows: Sequence[int], share: float) -> Vector | None:
        """Return the question moved towards rows; None if no row is here.

        With a share of 0.5 the middle counts half as much as what was asked.
        """
        places = [self._places[row] for row in rows if row in self._places]
        if not places:
            return None
        chosen = [memoryview(self._codes[place]).cast("b").tolist() for place in places]
        lengths = [math.sqrt(sum(number * number for number in each)) for each in chosen]
        moved = [
            float(value) + share * math.fsum(map(truediv, numbers, lengths)) / len(chosen)
            for value, numbers in zip(vector.values, zip(*chosen, strict=True), strict=True)
        ]
        length = math.sqrt(math.fsum(number * number for number in moved))
        if length < 1e-9:
            return None
        values = array("f", [number / length for number in moved])
        is_plain = isinstance(vector.values, array)
        return replace(vector, values=values if is_plain else as_floats(values))


NARROW = 4_000
"""A scope of so many messages is listed: comparing their rows one by one takes about 20 ms."""


def allowed_rows(
    session: Session,
    store: VectorStore,
    nearest: Nearest | PlainNearest,
    shelf: Shelf,
    query: Numbers,
    limit: int,
    within: Within,
) -> list[tuple[int, float]]:
    """Return the nearest rows of messages inside a scope, best first."""
    conditions, values = record_conditions(
        within,
        ("m.thread_no = ?", within.thread_no),
        ("t.resource_id = ?", within.resource_id),
        # Threads have an index by time, messages have none.
        ("t.updated_at >= ?", within.since_ms),
        ("t.created_at < ?", within.until_ms),
    )
    if within.roles:
        conditions.append(f"m.role IN ({marks(len(within.roles))})")
        values += within.roles
    rest = (
        "FROM messages m JOIN threads t ON t.no = m.thread_no"
        f" WHERE m.project_no = :project{join_terms(conditions)}"
    )
    inside = session.all(
        store.sql(f"SELECT m.no, length(m.raw_content) {rest} LIMIT ?"), (*values, NARROW + 1)
    )
    if len(inside) <= NARROW:
        # Two pieces that follow each other are longer than one may be, or the first would have
        # gone on.
        rows = [
            row
            for no, length in inside
            for row in range(row_of(no), row_of(no, 2 + 2 * length // CHUNK_CHARACTERS))
        ]
        return nearest.find(session, shelf, query, limit, among=rows)
    answer: list[tuple[int, float]] = []
    for count in (limit * 4, limit * 32, limit * 256):
        found = nearest.find(session, shelf, query, count)
        allowed = {
            no
            for part in parts(sorted({no_of(row) for row, _ in found}))
            for (no,) in session.all(
                store.sql(f"SELECT m.no {rest} AND m.no IN ({marks(len(part))})"), (*values, *part)
            )
        }
        answer = [each for each in found if no_of(each[0]) in allowed]
        if len(answer) >= limit or len(found) < count:
            break
    return answer[:limit]


REMEMBERED = 256
"""So many questions keep their vectors in a process."""
DEEP_SECONDS = 30.0
"""How long a question waits that was asked to be answered by its meaning, whatever it takes."""
LONGEST_QUERY = 8_192
_OFF = "not used: the embedder is off"
_LOADING = "not used: the embedder is still being loaded"


class Meaning:
    """The read side of the room. Safe to use from several threads."""

    def __init__(
        self,
        store: VectorStore,
        embedders: Embedders,
        clock: Clock,
        query_seconds: float,
        when_asked: Callable[[], object] | None = None,
    ) -> None:
        self._store = store
        self._embedders = embedders
        self._clock = clock
        self._query_seconds = query_seconds
        self._when_asked = when_asked
        self._remembered: OrderedDict[tuple[str, str], Numbers] = OrderedDict()
        self._lock = threading.Lock()
        self._warm: set[str] = set()

    @cached_property
    def _nearest(self) -> Nearest:
        from smara.meaning.nearest import Nearest  # it loads numpy

        return Nearest(self._store.database)

    def query_vector(
        self, text: str, *, deep: bool = False, deadline_seconds: float | None = None
    ) -> tuple[Vector | None, str]:
        """Return the question's vector, or None, and a note.

        Never raises for trouble with an embedder, and never waits longer than the deadline: without
        ``deep`` that of the settings, half a second.
        """
        if self._embedders.is_off:
            return None, _OFF
        if self._when_asked is not None:
            self._when_asked()
        budget = (
            deadline_seconds
            if deadline_seconds is not None
            else DEEP_SECONDS
            if deep
            else self._query_seconds
        )
        text = redact_brief(text[:LONGEST_QUERY])
        stop_at = self._clock.monotonic() + budget
        try:
            if self._embedders.setting in self._warm:
                return self._embed(text, stop_at)
            # It is not known how long the model takes to load.
            return run_within(
                lambda _: self._embed(text, None),
                budget,
                self._clock,
                thread_name="smara-embedder",
                is_safe_to_leave=False,
            )
        except SmaraError as error:
            return None, f"not used: {error}"
        except TimeoutError:
            return None, _LOADING

    def nearest(
        self,
        session: Session,
        kind: VectorKind,
        vector: Vector,
        limit: int,
        within: Within | None = None,
    ) -> list[tuple[int, float]]:
        """Return (row, cosine) of the rows nearest to a question, best first.

        If vectors cannot be read in time, there are no rows: words answer alone.
        """
        try:
            shelf = self._store.shelf(session, vector.space_no, kind)
            if within is None or not within.is_filtered or kind != "message":
                return self._finder(session, shelf, vector).find(
                    session, shelf, vector.values, limit
                )
            return allowed_rows(
                session,
                self._store,
                self._finder(session, shelf, vector),
                shelf=shelf,
                query=vector.values,
                limit=limit,
                within=within,
            )
        except DatabaseError as error:
            log.warning("vectors.unreadable", kind=kind, error=error.code)
            return []

    def scores(
        self, session: Session, kind: VectorKind, rows: Sequence[int], vector: Vector
    ) -> dict[int, float]:
        """Return the cosines of the given rows that have a vector.

        See ``nearest``.
        """
        return self.load(session, kind, rows, vector).scores(vector)

    def load(
        self, session: Session, kind: VectorKind, rows: Sequence[int], vector: Vector
    ) -> RowVectors:
        """Return the vectors of given rows, to compare them more than once."""
        try:
            shelf = self._store.shelf(session, vector.space_no, kind)
            finder = self._finder(session, shelf, vector)
            return RowVectors(*finder.vectors(session, shelf, rows, dims=vector.dims))
        except DatabaseError as error:
            log.warning("vectors.unreadable", kind=kind, error=error.code)
            return RowVectors([], [])

    def _finder(self, session: Session, shelf: Shelf, vector: Vector) -> Nearest | PlainNearest:
        """The finder for a question: without numpy if the question is, and the shelf is small."""
        if isinstance(vector.values, array):
            plain = PlainNearest(self._store.database)
            if plain.can_compare(session, shelf, vector.dims):
                return plain
        return self._nearest

    def answering(self) -> tuple[Space | None, str]:
        """Return the space that answers now, and why; raises what opening raises."""
        spaces = self._store.ask(self._store.spaces)
        own = self._embedders.own(spaces)
        return (
            (None, _OFF)
            if own is None
            else choose_space(spaces, own.model_id, self._embedders.can_open)
        )

    def forget(self, space_no: int | None = None) -> None:
        """Drop the cached vectors of one space or of all."""
        if "_nearest" in vars(self):
            self._nearest.forget(space_no)

    def _embed(self, text: str, stop_at: float | None) -> tuple[Vector | None, str]:
        space, note = self.answering()
        if space is None:
            return None, note
        key = (space.model_id, text)
        with self._lock:
            values = self._remembered.get(key)
            if values is not None:
                self._remembered.move_to_end(key)
        if values is None:
            embedder = self._embedders.of(space)
            if embedder is None or embedder.model_id != space.model_id:
                return (
                    None,
                    f"not used: the embedder {space.embedder} makes other vectors now than "
                    f"{space.model_id}",
                )
            embed_question = getattr(embedder, "embed_question", None)
            values = (
                self._embed_cached(embedder, space, text, stop_at)
                if embed_question is None
                else embed_question(text)
            )
            with self._lock:
                self._remembered[key] = values
                while len(self._remembered) > REMEMBERED:
                    self._remembered.popitem(last=False)
        # A process that asks again lives on, and will be faster with numpy.
        if isinstance(values, array) and (self._warm or "numpy" in sys.modules):
            values = as_floats(values)
        self._warm.add(self._embedders.setting)
        if not any(values):
            return None, "not used: the model knows no word of the question"
        return Vector(values, space.no, space.model_id), note

    def _embed_cached(
        self, embedder: Embedder, space: Space, text: str, stop_at: float | None
    ) -> Floats:
        import numpy as np

        cache = VectorCache(self._store, space, "query", clock=self._clock)
        stored = cache.find([text]).get(text)
        if stored is not None and len(stored) == 4 * space.dims:
            return np.frombuffer(stored, dtype=np.float32)
        left = None if stop_at is None else max(0.001, stop_at - self._clock.monotonic())
        values: Floats = embedder.embed([text], "query", deadline_seconds=left)[0]
        cache.put({text: values.astype(np.float32).tobytes()})
        return values
