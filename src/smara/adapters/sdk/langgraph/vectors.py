"""Rank items for a query.

Either by the embedder that an application gives, or by our own words and meaning.

Vectors of a foreign embedder are stored apart from ours, under the name of its space, and are
compared only with each other. Without one, the items of a namespace are ranked by their words in
the index and by the cosine of the offline embedder, over at most `MOST_RANKED` items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from typing import Any, cast

import numpy as np
from langgraph.store.base import IndexConfig, ensure_embeddings, get_text_at_path, tokenize_path

from smara.database.database import Database
from smara.errors import InvalidInputError
from smara.frameworks.items import ItemBatch
from smara.frameworks.models import Item
from smara.models.embedders.offline import OfflineEmbedder
from smara.search.bm25 import IndexMatches, lookup_terms
from smara.search.query import analyze_query
from smara.search.weights import WEIGHTS

MOST_RANKED = 500
"""So many items of a namespace are ranked without a foreign embedder: by words, then newest."""
_LONGEST_TEXT = 2_000
_MOST_RECENT = 8_192  # at a kilobyte each
FieldText = tuple[str, int, str]
"""A path in a value, the position of a text found there, and the text."""


class ForeignIndex:
    """The embedder that an application gives, and its fields."""

    def __init__(self, config: IndexConfig) -> None:
        embed = config.get("embed")
        if embed is None or not config.get("dims"):
            raise InvalidInputError("An index config needs both embed and dims.")
        self.embeddings = ensure_embeddings(embed)
        self.dims = int(config["dims"])
        # SQLite's and PostgreSQL's stores of LangGraph know it under this name, too.
        fields = config.get("fields") or cast(Mapping[str, Any], config).get("text_fields")
        self._fields = tuple(fields or ("$",))
        self.space = f"{_name_of(embed)}@{self.dims}"

    def texts(self, value: Any, fields: Sequence[str] | None) -> list[FieldText]:
        """Return the texts of a value that are embedded."""
        return [
            (path, position, text)
            for path in (self._fields if fields is None else fields)
            for position, text in enumerate(
                get_text_at_path(value, path if path == "$" else tokenize_path(path))
            )
        ]

    def encode(self, vectors: Sequence[Sequence[float]]) -> list[bytes]:
        """Return vectors as they are stored, after a look at their size.

        Raises:
            InvalidInputError: If the embedder gave vectors of another size.
        """
        for vector in vectors:
            if len(vector) != self.dims:
                raise InvalidInputError(
                    f"The embedder gave {len(vector)} dimensions; dims says {self.dims}."
                )
        return [np.asarray(vector, dtype="<f4").tobytes() for vector in vectors]

    def rank(
        self, vectors: Sequence[tuple[int, bytes]], query: Sequence[float]
    ) -> list[tuple[int, float]]:
        """Return items' numbers with cosines of their nearest vectors, best first."""
        stored = [(no, vector) for no, vector in vectors if len(vector) == 4 * self.dims]
        if not stored:
            return []
        rows = np.frombuffer(b"".join(vector for _, vector in stored), dtype="<f4")
        matrix = rows.reshape(len(stored), self.dims).astype(np.float64)
        question = np.asarray(query, dtype=np.float64)
        lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(question)
        cosines = np.divide(
            matrix @ question, lengths, out=np.zeros(len(stored)), where=lengths > 0
        )
        best: dict[int, float] = {}
        for (no, _), cosine in zip(stored, cosines.tolist(), strict=True):
            best[no] = max(cosine, best.get(no, -1.0))
        return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))


def _name_of(embed: Any) -> str:
    if isinstance(embed, str):
        return embed
    kind = embed if hasattr(embed, "__qualname__") else type(embed)
    model = getattr(embed, "model", None) or getattr(embed, "model_name", None)
    return f"{kind.__module__}.{kind.__qualname__}" + (f":{model}" if model else "")


def rank_by_our_own(
    batch: ItemBatch,
    database: Database,
    numbers: Sequence[int],
    *,
    project_no: int,
    query: str,
    with_meaning: bool,
) -> list[tuple[Item, float]]:
    """Return items with scores from 0 to 1, best first.

    Args:
        batch: An open batch.
        database: The store, for its index.
        numbers: The items to choose from, newest first.
        project_no: The project they are of.
        query: What to look for.
        with_meaning: False to go by words alone.

    Returns:
        At most `MOST_RANKED` items.
    """
    matches = IndexMatches(
        batch.session,
        database.records,
        "item",
        project_no=project_no,
        total=len(numbers),
        terms=lookup_terms(analyze_query(query), WEIGHTS.record_words),
        weights=WEIGHTS.record_words,
        most_rows=20_000,
        within=frozenset(numbers),
    )
    words = matches.scored(MOST_RANKED, counts_head=False)
    chosen = [*words, *(no for no in numbers if no not in words)][:MOST_RANKED]
    items = batch.by_numbers(chosen)
    cosines = _cosines([*items.values()], query) if with_meaning else {}
    ideal = matches.ideal or 1.0
    scores = {
        no: 0.5 * (min(1.0, words[no].score / ideal) if no in words else 0.0)
        + 0.5 * max(0.0, cosines.get(no, 0.0))
        for no in chosen
        if no in items
    }
    # Equal ones stay in their order, the newest first.
    return [(items[no], score) for no, score in sorted(scores.items(), key=lambda each: -each[1])]


@cache
def _embedder() -> OfflineEmbedder:
    return OfflineEmbedder()  # it reads a table of vectors


_recent: dict[bytes, Any] = {}
"""The vectors of texts that were ranked lately: a namespace is asked again and again."""


def _cosines(items: Sequence[Item], query: str) -> dict[int, float]:
    if not items:
        return {}
    texts = [item.content[:_LONGEST_TEXT] or item.name for item in items]
    # By digests: what is erased from the store must not stay here as words.
    keys = [blake2b(text.encode("utf-8", "replace"), digest_size=16).digest() for text in texts]
    rows = {key: _recent[key] for key in keys if key in _recent}
    new = {key: text for key, text in zip(keys, texts, strict=True) if key not in rows}
    if new:
        rows |= dict(zip(new, _embedder().embed([*new.values()]), strict=True))
        if len(_recent) > _MOST_RECENT:
            _recent.clear()
        _recent.update((key, rows[key]) for key in new)
    (question,) = _embedder().embed([query[:_LONGEST_TEXT]], "query")
    cosines = np.stack([rows[key] for key in keys]) @ question
    return dict(zip((item.no for item in items), cosines.tolist(), strict=True))
