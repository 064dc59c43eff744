"""Cohere's reranker, and every server that speaks its format: Jina, vLLM, llama.cpp, Infinity,
gateways.

One request holds the query and all texts; the reply names each text by its place and gives its
relevance. Cohere's lies between 0 and 1. Some of the others send what comes out of the model before
it is squeezed into that range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from smara.models import failures
from smara.models.http import bearer, parse_address, post_json
from smara.models.rerank import ADVICE, bad_scores, checked, finite, sigmoid

COHERE_URL = "https://api.cohere.com/v2"
DEFAULT_MODEL = "rerank-v3.5"
_MOST_BYTES = 4_000_000
Vendor = Literal["cohere", "cohere-compatible"]


class CohereReranker:
    """Asks Cohere, or a compatible server, at ``<address>/rerank``. Safe to use from several
    threads.
    """

    is_local = False

    def __init__(
        self,
        model: str | None,
        address: str,
        api_key: str | None = None,
        vendor: Vendor = "cohere-compatible",
    ) -> None:
        self._model = model
        self._vendor = vendor
        self._url = rerank_url(address)
        self._headers = bearer(api_key)
        self._sends_logits = False
        self._advice = (
            {**ADVICE, "key": "Set CO_API_KEY or reranker_api_key."}
            if vendor == "cohere"
            else ADVICE
        )

    @property
    def name(self) -> str:
        """The model; the address, which may hold a password, is not told."""
        return f"{self._vendor}:{self._model or 'default'}"

    def rerank(self, query: str, texts: Sequence[str], *, deadline_seconds: float) -> list[float]:
        """The scores of all texts, from one request."""
        if not texts:
            return []
        body: dict[str, Any] = {"query": query, "documents": list(texts), "top_n": len(texts)}
        if self._model is not None:
            body["model"] = self._model
        reply = post_json(
            self._url,
            body,
            model=self.name,
            deadline_seconds=deadline_seconds,
            headers=self._headers,
            most_bytes=_MOST_BYTES,
            advice=self._advice,
        )
        return checked(self._squeezed(self._placed(reply, len(texts))), len(texts), self.name)

    def _placed(self, reply: Any, count: int) -> list[float]:
        """The scores at the places of their texts; each place once."""
        results = reply.get("results") if isinstance(reply, dict) else None
        if not isinstance(results, list):
            raise failures.unreadable(self.name, "no results in the reply")
        found: dict[int, float] = {}
        for result in results:
            place = result.get("index") if isinstance(result, dict) else None
            if (
                not isinstance(place, int)
                or isinstance(place, bool)
                or not 0 <= place < count
                or place in found
            ):
                raise bad_scores(self.name, f"a result for the text {str(place)[:40]} of {count}")
            found[place] = finite(result.get("relevance_score"), self.name)
        if len(found) != count:
            raise bad_scores(self.name, f"{len(found)} scores for {count} texts")
        return [found[place] for place in range(count)]

    def _squeezed(self, scores: list[float]) -> list[float]:
        """Scores from 0 to 1. A server that once sent others is known to do so, also where a reply
        has none.
        """
        if self._vendor != "cohere" and any(not 0 <= score <= 1 for score in scores):
            self._sends_logits = True
        return [sigmoid(score) for score in scores] if self._sends_logits else scores


def rerank_url(address: str) -> str:
    """Where to ask: a server alone has the path ``/v1/rerank``, a path of its own is completed.

    >>> rerank_url("http://box:8000"), rerank_url("http://box/v2/"), rerank_url("http://box/api/rerank")
    ('http://box:8000/v1/rerank', 'http://box/v2/rerank', 'http://box/api/rerank')
    """
    parts = parse_address(address)
    path = parts.path.rstrip("/") or "/v1"
    return parts._replace(path=path if path.endswith("/rerank") else f"{path}/rerank").geturl()
