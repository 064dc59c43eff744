"""Define the embedder protocol: texts in, vectors of one space out.

``model_id`` names the space. Vectors may be compared only if their ids are equal; any change that
moves vectors is a new id. An implementation of :class:`Embedder` returns rows of length 1 without
NaN, or raises a ``ModelError``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from smara.core.startup.record import dataclass
from smara.errors import BadReplyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

Kind = Literal["document", "query"]
"""What a text is for: to be found, or to find. Some models want to be told."""

EMBEDDER_ADVICE = {
    "key": "Set OPENAI_API_KEY, or embedder_api_key for a server of your own.",
    "quota": "The account has no credit left: top it up, or choose another embedder.",
    "unknown_model": "Check the setting embedder.",
    "request": "Check the settings embedder and embedder_dims.",
    "too_long": "Choose a model with a larger window with the setting embedder.",
    "timeout": "Try again, allow more with model_deadline_seconds, or choose a faster embedder.",
    "connection": "Check that the server runs, and the address in the setting embedder.",
}
"""What to do about a failure, where that is not what one does about a chat model."""


class Embedder(Protocol):
    """A maker of vectors whose cosine measures similar meaning."""

    @property
    def model_id(self) -> str:
        """The name of the space, such as ``ollama/qwen3-embedding:4b@1024``."""

    @property
    def dims(self) -> int:
        """The number of dimensions."""

    @property
    def first_dims(self) -> int:
        """The leading numbers usable alone; ``dims`` if not promised."""

    def embed(
        self,
        texts: Sequence[str],
        kind: Kind = "document",
        *,
        deadline_seconds: float | None = None,
    ) -> Vectors:
        """Return one unit row per text; zeros for an unknown text.

        A ``ModelError`` when that cannot be had within the deadline; never a part of the rows.
        """


@dataclass(frozen=True, slots=True)
class EmbeddingReply:
    """A server's reply: unit rows, and the tokens read."""

    vectors: Vectors
    tokens: int | None


def unit_rows(vectors: Vectors) -> Vectors:
    """Return the rows, each divided by its length; zeros stay zeros."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return rows


def check_rows(
    vectors: object,
    count: int,
    dims: int,
    name: str,
    *,
    may_cut: bool = False,
    may_be_zero: bool = False,
) -> Vectors:
    """Return vectors of another maker, checked, or raise BadReplyError.

    As many rows as texts, ``dims`` finite numbers each, and not all of them zero, unless
    ``may_be_zero``. With ``may_cut`` longer rows are cut, which is right for Matryoshka models
    alone. The rows come back with length 1.
    """
    import numpy as np

    if not isinstance(vectors, list | tuple | np.ndarray):
        raise bad_vectors(name, f"no list of vectors for {count} texts")
    if len(vectors) != count:
        raise bad_vectors(name, f"{len(vectors)} vectors for {count} texts")
    try:
        rows = np.asarray(vectors)
    except ValueError:  # rows of several lengths
        raise bad_vectors(name, "vectors of different lengths") from None
    if rows.dtype.kind not in "fiu" or rows.ndim != 2:
        raise bad_vectors(name, "something that is no vector")
    if rows.shape[1] != dims and not (may_cut and rows.shape[1] > dims):
        raise bad_vectors(name, f"{rows.shape[1]} dimensions in the place of {dims}")
    rows = rows[:, :dims].astype(np.float64)
    largest = np.abs(rows).max(axis=1, keepdims=True)
    if not np.isfinite(largest).all():
        raise bad_vectors(name, "a number that is not finite")
    if (largest == 0).any() and not may_be_zero:
        raise bad_vectors(name, "a vector of zeros")
    # Numbers near the end of their range would overflow when squared.
    rows /= np.where(largest > 0, largest, 1)
    return unit_rows(rows).astype(np.float32)


def bad_vectors(name: str, what: str) -> BadReplyError:
    """Return the error of unusable vectors; ``what`` is in our words."""
    return BadReplyError(
        f"{name} gave vectors that cannot be used ({what}). Check that the setting embedder names "
        "a model that embeds, "
        "and embedder_dims its dimensions.",
        model=name,
        reason="unreadable",
        may_be_billed=True,
    )
