"""Vectors of texts that were embedded before, for models that cost something to ask.

The offline embedder makes a vector faster than a table can be read, so nothing of it is kept.
Whatever is removed for good from a project empties the project's cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from smara.core import log
from smara.core.clock import Clock
from smara.errors import DatabaseError
from smara.meaning.models import Space
from smara.meaning.store import VectorStore
from smara.models.embedding import Kind

KEPT_DAYS = 7


class Cache:
    """The cache of one space, for one use of its model."""

    def __init__(self, store: VectorStore, space: Space, use: Kind, clock: Clock) -> None:
        self._store = store
        self._space = space
        self._use = use
        self._clock = clock
        self._is_used = space.embedder != "offline"

    def find(self, texts: Sequence[str]) -> dict[str, bytes]:
        """What is known of some texts."""
        if not self._is_used or not texts:
            return {}
        keys = {self._key(text): text for text in texts}
        with self._store.database.read() as session:
            found = self._store.cached(session, list(keys), self._clock.now_ms())
        return {keys[key]: vector for key, vector in found.items()}

    def put(self, vectors: Mapping[str, bytes]) -> None:
        """Keep vectors for a week; trouble with that is nobody's trouble."""
        if not self._is_used or not vectors:
            return
        now = self._clock.now_ms()
        rows = sorted((self._key(text), vector) for text, vector in vectors.items())
        try:
            with self._store.database.write(is_derived=True) as session:
                self._store.put_cached(
                    session,
                    self._space.no,
                    rows,
                    now_ms=now,
                    expires_at=now + KEPT_DAYS * 86_400_000,
                )
        except DatabaseError as error:
            log.event("embeddings.not_cached", error=error.code)

    def _key(self, text: str) -> bytes:
        whole = f"{self._use}\0{self._space.model_id}\0{self._space.dims}\0{text}"
        return hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=16).digest()
