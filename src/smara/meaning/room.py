"""Wire the room: the query side, the embedding side and its thread.

Each side is built at first use, so that a search does not load what makes vectors.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from smara.core.background import Background
from smara.database.projects import ProjectContext
from smara.meaning.embedders import Embedders
from smara.meaning.query import Meaning
from smara.meaning.store import VectorStore

if TYPE_CHECKING:
    from smara.meaning.embeddings import Embeddings
    from smara.meaning.models import EmbeddingProgress
    from smara.messages.store import MessageStore
    from smara.models.caller import Models
    from smara.models.embedder import Embedder


QUIET_SECONDS = 1.0
_AGAIN_SECONDS = {"busy": 5.0, "unavailable": 60.0, "lease_lost": 5.0}
_FAILED_SECONDS = 60.0


class BackgroundEmbedding(Background):
    """The thread that makes vectors whenever something was written.

    It waits until writing has paused for a moment, so a short-lived process never starts it.
    """

    def __init__(
        self,
        work: Callable[[threading.Event], EmbeddingProgress],
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        super().__init__("smara-vectors", is_interruptible=True)
        self._work = work
        self._quiet_seconds = quiet_seconds

    def wake(self) -> None:
        """Note that something was written; never waits or raises."""
        if threading.current_thread() is not self._thread:
            self.submit("embeddings", self._embed, self._quiet_seconds)

    def _embed(self) -> None:
        """Make what vectors are missing; what did not end by itself is left for a while."""
        rest = _FAILED_SECONDS
        try:
            rest = _AGAIN_SECONDS.get(self._work(self.stop).stopped, 0.0)
        finally:
            if rest:
                self.submit("embeddings", self._embed, rest)


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
        messages: Callable[[], MessageStore],
    ) -> None:
        self._project = project
        self._messages = messages
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
        import socket

        from smara.meaning.embeddings import Embeddings
        from smara.meaning.worker import EmbeddingWorker

        project, leases = self._project, self._project.leases
        owner = f"{socket.gethostname()}:{os.getpid()}:{project.new_id()[-8:]}"
        return Embeddings(
            self._store,
            self._embedders,
            EmbeddingWorker(
                self._store, leases, project.clock, owner=owner, messages=self._messages()
            ),
            meaning=self.meaning,
            leases=leases,
            clock=project.clock,
        )

    @cached_property
    def background(self) -> BackgroundEmbedding:
        """Return the thread that embeds what was written."""
        background = BackgroundEmbedding(lambda stop: self.embeddings.embed_pending(stop=stop))
        self._backgrounds.append(background)
        return background

    def _open_embedder(self, setting: str) -> Embedder | None:
        # Most stores use the one that needs no server: they should not load what talks to models.
        if setting == "offline" and not self._is_given:
            from smara.models.embedders.offline import OfflineEmbedder

            return OfflineEmbedder()
        return self._models().open_embedder(setting)
