"""Wire the room: the query side and the embedding side.

Each side is built at first use, so that a search does not load what makes vectors.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from smara.database.projects import ProjectContext
from smara.meaning.embedders import Embedders
from smara.meaning.query import Meaning
from smara.meaning.store import VectorStore

if TYPE_CHECKING:
    from smara.meaning.background import BackgroundEmbedding
    from smara.meaning.embeddings import Embeddings
    from smara.models.caller import Models
    from smara.models.embedder import Embedder


class MeaningRoom:
    """Both sides over the same store and the same embedders.

    `backgrounds` collects what works in the background, for the owner to close.
    """

    def __init__(
        self,
        project: ProjectContext,
        models: Callable[[], Models],
        embedder: Embedder | None,
        backgrounds: list[BackgroundEmbedding],
    ) -> None:
        self._project = project
        self._models = models
        self._is_given = embedder is not None
        self._backgrounds = backgrounds
        self._store = VectorStore(project.database, project.scope)
        self._embedders = Embedders(project.settings.embedder, self._open_embedder, self._is_given)

    @cached_property
    def meaning(self) -> Meaning:
        """Return what search asks."""
        settings = self._project.settings
        is_self_embedding = settings.embed_in_background and settings.embedder != "off"
        return Meaning(
            self._store,
            self._embedders,
            self._project.clock,
            query_seconds=settings.embed_query_seconds,
            when_asked=(lambda: self.background.wake()) if is_self_embedding else None,
        )

    @cached_property
    def embeddings(self) -> Embeddings:
        """Return what makes the vectors.

        It loads every room that has something to embed.
        """
        from smara.meaning.embeddings import Embeddings
        from smara.meaning.worker import EmbeddingWorker

        project, leases = self._project, self._project.leases
        owner = f"{socket.gethostname()}:{os.getpid()}:{project.new_id()[-8:]}"
        return Embeddings(
            self._store,
            self._embedders,
            EmbeddingWorker(self._store, leases, project.clock, owner=owner),
            meaning=self.meaning,
            leases=leases,
            clock=project.clock,
        )

    @cached_property
    def background(self) -> BackgroundEmbedding:
        """Return the thread that embeds what was written."""
        from smara.meaning.background import BackgroundEmbedding

        background = BackgroundEmbedding(lambda stop: self.embeddings.embed_pending(stop=stop))
        self._backgrounds.append(background)
        return background

    def _open_embedder(self, setting: str) -> Embedder | None:
        # Most stores use the one that needs no server: they should not load what talks to models.
        if setting == "offline" and not self._is_given:
            from smara.models.embedders.offline import OfflineEmbedder

            return OfflineEmbedder()
        return self._models().open_embedder(setting)
