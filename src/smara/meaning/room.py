"""Wire the room: the query side and the embedding side.

Each side is built at first use, so that a search does not load what makes vectors.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from smara.core.clock import Clock
from smara.core.ids import IdMaker
from smara.core.scope import Scope
from smara.database.database import Database
from smara.meaning.embedders import Embedders, OpenEmbedder
from smara.meaning.query import Meaning
from smara.meaning.store import VectorStore

if TYPE_CHECKING:
    from smara.database.leases import Leases
    from smara.meaning.embeddings import Embeddings


@dataclass(frozen=True, slots=True)
class MeaningParts:
    """What a memory hands to this room."""

    database: Database
    scope: Scope
    leases: Callable[[], Leases]
    clock: Clock
    new_id: IdMaker
    setting: str
    open_embedder: OpenEmbedder
    query_seconds: float = 0.5
    is_given: bool = False
    when_asked: Callable[[], object] | None = None


class MeaningRoom:
    """Both sides over the same store and the same embedders."""

    def __init__(self, parts: MeaningParts) -> None:
        self._parts = parts
        self._store = VectorStore(parts.database, parts.scope)
        self._embedders = Embedders(parts.setting, parts.open_embedder, parts.is_given)

    @cached_property
    def meaning(self) -> Meaning:
        """What search asks."""
        parts = self._parts
        return Meaning(
            self._store,
            self._embedders,
            parts.clock,
            query_seconds=parts.query_seconds,
            when_asked=parts.when_asked,
        )

    @cached_property
    def embeddings(self) -> Embeddings:
        """What makes the vectors. It knows every room that has something to embed, which a search
        need not load.
        """
        from smara.meaning.embeddings import Embeddings
        from smara.meaning.worker import EmbeddingWorker

        parts, leases = self._parts, self._parts.leases()
        owner = f"{socket.gethostname()}:{os.getpid()}:{parts.new_id()[-8:]}"
        embedding = EmbeddingWorker(self._store, leases, parts.clock, owner=owner)
        return Embeddings(
            self._store,
            self._embedders,
            embedding,
            meaning=self.meaning,
            leases=leases,
            clock=parts.clock,
        )
