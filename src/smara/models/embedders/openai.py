"""OpenAI's embeddings, and those of any server that speaks its format: vLLM, LM Studio, llama.cpp,
TEI, a gateway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smara.config import Settings
from smara.models.embedders.known import Served, space_of
from smara.models.embedding import ADVICE, Embedded, Kind, bad_vectors, checked_rows
from smara.models.http import bearer, parse_address, post_json

DEFAULT_MODEL = "text-embedding-3-small"
_URL = "https://api.openai.com/v1"
_MOST_TEXTS = 64
_BYTES_PER_NUMBER = 32


class OpenAIEmbedder(Served):
    """Asks for vectors at ``/embeddings``. Safe to use from several threads."""

    most_texts = _MOST_TEXTS

    def __init__(
        self, model: str, address: str | None, api_key: str | None, settings: Settings
    ) -> None:
        parts = parse_address(address or _URL)
        super().__init__(
            "openai" if address is None else "openai-compatible", model, space_of(model, settings)
        )
        self._url = parts._replace(path=parts.path.rstrip("/") + "/embeddings").geturl()
        self._headers = bearer(api_key)
        # A server that is only compatible may not know the field, so it is sent where it has
        # something to say.
        self._sends_dims = self._space.is_cut

    def ask(self, texts: Sequence[str], kind: Kind, deadline_seconds: float) -> Embedded:
        body: dict[str, Any] = {
            "model": self._model,
            "input": [self._space.worded(text, kind) for text in texts],
            "encoding_format": "float",
        }
        if self._sends_dims:
            body["dimensions"] = self.dims
        reply = post_json(
            self._url,
            body,
            model=self.name,
            deadline_seconds=deadline_seconds,
            headers=self._headers,
            advice=ADVICE,
            most_bytes=1_000_000
            + len(texts) * max(self._space.facts.dims, self.dims) * _BYTES_PER_NUMBER,
        )
        rows = checked_rows(
            self._in_order(reply, len(texts)), len(texts), self.dims, name=self.name
        )
        return Embedded(rows, _tokens(reply))

    def _in_order(self, reply: Any, count: int) -> list[Any]:
        """The vectors in the order of the texts: each says which text it is of."""
        data = reply.get("data") if isinstance(reply, dict) else None
        if not isinstance(data, list) or not all(isinstance(each, dict) for each in data):
            raise bad_vectors(self.name, "no list of vectors")
        places = [each.get("index", place) for place, each in enumerate(data)]
        if places != list(range(count)) and (
            len(data) != count or set(places) != set(range(count))
        ):
            raise bad_vectors(self.name, f"{len(data)} vectors for {count} texts, or some twice")
        ordered = dict(zip(places, data, strict=True))
        return [ordered[place].get("embedding") for place in range(count)]


def _tokens(reply: dict[str, Any]) -> int | None:
    usage = reply.get("usage")
    tokens = (
        usage.get("total_tokens", usage.get("prompt_tokens")) if isinstance(usage, dict) else None
    )
    return tokens if isinstance(tokens, int) and tokens > 0 else None
