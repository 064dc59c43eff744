"""Questions as vectors, and the rows nearest to them: what search asks of this room."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from smara.core import log
from smara.core.clock import Clock
from smara.database.database import Session
from smara.database.fulltext import Within
from smara.database.vectors import VectorKind, decode
from smara.errors import DatabaseError, SmaraError
from smara.meaning.cache import Cache
from smara.meaning.loaded import Loaded
from smara.meaning.loading import in_time
from smara.meaning.models import Space, Vector
from smara.meaning.nearest import Nearest
from smara.meaning.opening import Embedders
from smara.meaning.scoping import allowed_rows
from smara.meaning.spaces import answering
from smara.meaning.store import VectorStore
from smara.models.embedding import Embedder
from smara.secrets import redact

if TYPE_CHECKING:
    from smara.database.vectors import Floats

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
        nearest: Nearest | None = None,
        when_asked: Callable[[], object] | None = None,
    ) -> None:
        self._store = store
        self._embedders = embedders
        self._clock = clock
        self._query_seconds = query_seconds
        self._nearest = nearest or Nearest(store.database)
        self._when_asked = when_asked
        self._known: OrderedDict[tuple[str, str], Floats] = OrderedDict()
        self._lock = threading.Lock()
        self._warm: set[str] = set()

    def query_vector(
        self, text: str, *, deep: bool = False, deadline_seconds: float | None = None
    ) -> tuple[Vector | None, str]:
        """The question as a vector of the space that answers, and a note that says which, or why
        there is none.

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
        text = redact(text[:LONGEST_QUERY]).text
        stop_at = self._clock.monotonic() + budget
        try:
            if self._embedders.setting in self._warm:
                return self._asked(text, stop_at)
            return self._asked_in_time(text, stop_at)
        except SmaraError as error:
            return None, f"not used: {error}"

    def nearest(
        self,
        session: Session,
        kind: VectorKind,
        vector: Vector,
        limit: int,
        within: Within | None = None,
    ) -> list[tuple[int, float]]:
        """(row, cosine) of the rows nearest to a question, best first; a row is that of the text
        index for messages.

        Vectors that cannot be read, or not in time, are as none: words answer alone.
        """
        try:
            shelf = self._store.shelf(session, vector.space_no, kind)
            if within is None or not within.is_filtered or kind != "message":
                return self._nearest.find(session, shelf, vector.values, limit)
            return allowed_rows(
                session,
                self._store,
                self._nearest,
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
        """The cosines of given rows with a question, of those that have a vector; see
        ``nearest``.
        """
        try:
            shelf = self._store.shelf(session, vector.space_no, kind)
            return self._nearest.scores(session, shelf, rows, vector.values)
        except DatabaseError as error:
            log.warning("vectors.unreadable", kind=kind, error=error.code)
            return {}

    def load(
        self, session: Session, kind: VectorKind, rows: Sequence[int], vector: Vector
    ) -> Loaded:
        """The vectors of given rows in the space of a question, for comparing them more than once;
        see ``nearest``.
        """
        try:
            shelf = self._store.shelf(session, vector.space_no, kind)
            return Loaded(*self._nearest.vectors(session, shelf, rows, dims=vector.dims))
        except DatabaseError as error:
            log.warning("vectors.unreadable", kind=kind, error=error.code)
            return Loaded([], decode([], vector.dims))

    def answering(self) -> tuple[Space | None, str]:
        """The space that answers at this moment, and why. Raises what opening an embedder
        raises.
        """
        with self._store.database.read() as session:
            spaces = self._store.spaces(session)
        own = self._embedders.own(spaces)
        return (
            (None, _OFF)
            if own is None
            else answering(spaces, own.model_id, self._embedders.can_open)
        )

    def forget(self, space_no: int | None = None) -> None:
        """Drop what is kept in memory, of one space or of all."""
        self._nearest.forget(space_no)

    def _asked_in_time(self, text: str, stop_at: float) -> tuple[Vector | None, str]:
        """Ask in a thread of its own while nobody knows how long the model takes to load."""
        answers: list[tuple[Vector | None, str]] = []

        def ask() -> None:
            try:
                answers.append(self._asked(text, None))
            except SmaraError as error:
                answers.append((None, f"not used: {error}"))

        in_time(ask, self._clock, stop_at - self._clock.monotonic())
        return answers[0] if answers else (None, _LOADING)

    def _asked(self, text: str, stop_at: float | None) -> tuple[Vector | None, str]:
        space, note = self.answering()
        if space is None:
            return None, note
        known = self._remembered(space.model_id, text)
        if known is None:
            embedder = self._embedders.of(space)
            if embedder is None or embedder.model_id != space.model_id:
                return (
                    None,
                    f"not used: the embedder {space.embedder} makes other vectors now than "
                    f"{space.model_id}",
                )
            known = self._embedded(space, embedder, text, stop_at)
            self._remember(space.model_id, text, known)
        self._warm.add(self._embedders.setting)
        if not known.any():
            return None, "not used: the model knows no word of the question"
        return Vector(known, space.no, space.model_id), note

    def _embedded(
        self, space: Space, embedder: Embedder, text: str, stop_at: float | None
    ) -> Floats:
        import numpy as np

        cache = Cache(self._store, space, "query", clock=self._clock)
        stored = cache.find([text]).get(text)
        if stored is not None and len(stored) == 4 * space.dims:
            return np.frombuffer(stored, dtype=np.float32)
        left = None if stop_at is None else max(0.001, stop_at - self._clock.monotonic())
        values: Floats = embedder.embed([text], "query", deadline_seconds=left)[0]
        cache.put({text: values.astype(np.float32).tobytes()})
        return values

    def _remembered(self, model_id: str, text: str) -> Floats | None:
        with self._lock:
            known = self._known.get((model_id, text))
            if known is not None:
                self._known.move_to_end((model_id, text))
            return known

    def _remember(self, model_id: str, text: str, values: Floats) -> None:
        with self._lock:
            self._known[model_id, text] = values
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
