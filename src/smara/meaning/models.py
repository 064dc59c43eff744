"""Define vector spaces, query vectors and the progress of embedding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from smara.core.startup.record import dataclass
from smara.database.vectors import VectorKind

if TYPE_CHECKING:
    from smara.database.vectors import Numbers


SpaceState = Literal["filling", "ready", "retired"]
StopReason = Literal[
    "done", "limit", "deadline", "busy", "off", "unavailable", "lease_lost", "closed"
]


@dataclass(frozen=True, slots=True)
class Space:
    """The vectors of one model, as they stand in one project.

    ``filling``: what was there before the space does not have its vectors yet. ``ready``: it has
    them, and only what was written a moment ago may lack its own. ``retired``: kept as it was, and
    renewed no more.
    """

    no: int
    model_id: str
    dims: int
    embedder: str
    """The setting by which the model is opened, such as ``offline`` or
    ``ollama:qwen3-embedding:4b``.
    """
    state: SpaceState
    created_at: int
    ready_at: int | None = None
    chosen_at: int | None = None
    """When a person switched to it by name; ``None`` when it came by a setting."""
    used_at: int = 0
    """When vectors of it were last made."""


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """A question as a vector of one space; its length is 1.

    The first question of a process may be plain numbers, for which numpy need not be loaded.
    """

    values: Numbers
    space_no: int
    model_id: str

    @property
    def dims(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class EmbeddingFailure:
    """A record that the model refused."""

    kind: VectorKind
    no: int
    code: str
    message: str
    failed_at: int


@dataclass(frozen=True, slots=True)
class SpaceStatus:
    """A space's status in this project."""

    space: Space
    vectors: Mapping[VectorKind, int]
    """How many vectors there are of each kind."""
    waiting: int
    """How many records wait for their vectors."""
    failures: tuple[EmbeddingFailure, ...] = ()
    holder: str | None = None
    """Who embeds at this moment."""

    @property
    def total(self) -> int:
        return sum(self.vectors.values())


@dataclass(frozen=True, slots=True)
class Status:
    """The status of this project's embeddings."""

    embedder: str
    """The setting."""
    model_id: str | None
    """The model it opens; ``None`` when it is off or cannot be opened."""
    answering: str | None
    """The model whose vectors answer questions; ``None`` when words alone do."""
    note: str
    """Why, in a sentence."""
    spaces: tuple[SpaceStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class EmbeddingProgress:
    """The result of one ``embed_pending``, and why it stopped."""

    model_id: str | None = None
    embedded: int = 0
    """Records that have their vectors now."""
    removed: int = 0
    """Records that are gone, whose vectors were taken away."""
    failed: int = 0
    waiting: int = 0
    """Records that still wait; at least so many."""
    stopped: StopReason = "done"
    note: str = ""
    cached: int = 0
    """Vectors that were at hand because the same text had been embedded before."""

    @property
    def is_done(self) -> bool:
        return self.stopped == "done"
