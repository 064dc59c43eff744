"""Rerank texts through Cohere, Ollama or a compatible server.

Cohere's format takes the query and all texts in one request; Jina, vLLM, llama.cpp and Infinity
speak it too. Ollama has no endpoint for reranking: Qwen3-Reranker is asked for each text if it
answers the query, and the probability of "yes" is the score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Literal

from smara.config import ollama_url
from smara.core import log
from smara.core.clock import Clock, SystemClock
from smara.core.escape import neutralize
from smara.core.prompts import load_prompt
from smara.core.startup.regex import re, regex
from smara.errors import BadReplyError
from smara.models import failures
from smara.models.embedders.servers import ollama_endpoint
from smara.models.http import bearer, parse_address, request_json
from smara.models.reranker import RERANKER_ADVICE, bad_scores, check_scores, finite, sigmoid

COHERE_URL = "https://api.cohere.com/v2"
COHERE_MODEL = "rerank-v3.5"
_COHERE_MOST_BYTES = 4_000_000
Vendor = Literal["cohere", "cohere-compatible"]


class CohereReranker:
    """A client of Cohere's format at ``<address>/rerank``, thread-safe."""

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
        # The address, which may hold a password, is not told.
        self.name = f"{vendor}:{model or 'default'}"
        self._url = rerank_url(address)
        self._headers = bearer(api_key)
        self._sends_logits = False
        self._advice = (
            {**RERANKER_ADVICE, "key": "Set CO_API_KEY or reranker_api_key."}
            if vendor == "cohere"
            else RERANKER_ADVICE
        )

    def rerank(self, query: str, texts: Sequence[str], *, deadline_seconds: float) -> list[float]:
        """The scores of all texts, from one request."""
        if not texts:
            return []
        body: dict[str, Any] = {"query": query, "documents": list(texts), "top_n": len(texts)}
        if self._model is not None:
            body["model"] = self._model
        reply = request_json(
            self._url,
            body,
            model=self.name,
            deadline_seconds=deadline_seconds,
            headers=self._headers,
            most_bytes=_COHERE_MOST_BYTES,
            advice=self._advice,
        )
        results = reply.get("results") if isinstance(reply, dict) else None
        if not isinstance(results, list):
            raise failures.unreadable(self.name, "no results in the reply")
        placed: dict[int, float] = {}
        for result in results:
            place = result.get("index") if isinstance(result, dict) else None
            if (
                not isinstance(place, int)
                or isinstance(place, bool)
                or not 0 <= place < len(texts)
                or place in placed
            ):
                raise bad_scores(
                    self.name, f"a result for the text {str(place)[:40]} of {len(texts)}"
                )
            placed[place] = finite(result.get("relevance_score"), self.name)
        if len(placed) != len(texts):
            raise bad_scores(self.name, f"{len(placed)} scores for {len(texts)} texts")
        scores = [placed[place] for place in range(len(texts))]
        # A server that once sent other numbers is known to do so, also where a reply has none.
        if self._vendor != "cohere" and any(not 0 <= score <= 1 for score in scores):
            self._sends_logits = True
        if self._sends_logits:
            scores = [sigmoid(score) for score in scores]
        return check_scores(scores, len(texts), self.name)


def rerank_url(address: str) -> str:
    """Return the URL to ask; a server without a path gets ``/v1/rerank``.

    >>> rerank_url("http://box:8000"), rerank_url("http://box/v2/"), rerank_url("http://box/api/rerank")
    ('http://box:8000/v1/rerank', 'http://box/v2/rerank', 'http://box/api/rerank')
    """
    parts = parse_address(address)
    path = parts.path.rstrip("/") or "/v1"
    return parts._replace(path=path if path.endswith("/rerank") else f"{path}/rerank").geturl()


OLLAMA_MODEL = "hf.co/Mungert/Qwen3-Reranker-0.6B-GGUF:Q8_0"
_PROMPTS = Path(__file__).parent / "prompts"
_AT_ONCE = 4
_OLLAMA_MOST_BYTES = 1_000_000

# Ollama reads prompts of up to about 1,000 tokens together; longer ones take many times as long.
_TEXT_CHARACTERS = 1_500
_QUERY_CHARACTERS = 500
_WINDOW_TOKENS = 2_560  # all of that, in a script with a token for each character

_TOP = 20
# Of all that the model might have said, at least so much must be yes or no; otherwise it was not
# answering.
_LEAST_CERTAINTY = 0.01
_WORDS = ("yes", "no")
_MARKS = regex(r"<(?=\s*/?\s*(?:think|instruct|query|document))", re.IGNORECASE)


class OllamaReranker:
    """Asks Ollama about each text. Safe to use from several threads."""

    is_local = False

    def __init__(
        self,
        model: str = OLLAMA_MODEL,
        address: str | None = None,
        clock: Clock | None = None,
        at_once: int = _AT_ONCE,
    ) -> None:
        self._model = model
        self.name = f"ollama:{model}"
        self._url = ollama_endpoint(address or ollama_url(), "/api/generate")
        self._clock = clock or SystemClock()
        self._at_once = at_once
        self._advice = {
            **RERANKER_ADVICE,
            "unknown_model": f"Fetch it with `ollama pull {model}`, or set reranker.",
        }

    def rerank(self, query: str, texts: Sequence[str], *, deadline_seconds: float) -> list[float]:
        """Return all scores; the first failure ends it.

        Texts that were not asked about yet are left.
        """
        if not texts:
            return []
        ends_at = self._clock.monotonic() + deadline_seconds
        pool = ThreadPoolExecutor(min(self._at_once, len(texts)), thread_name_prefix="smara-rerank")
        try:
            futures = [pool.submit(self._score, query, text, ends_at) for text in texts]
            # Each of them ends at the deadline.
            done = wait(futures, return_when=FIRST_EXCEPTION).done
            for future in futures:
                if future in done and (error := future.exception()) is not None:
                    raise error
            return check_scores([future.result() for future in futures], len(texts), self.name)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _score(self, query: str, text: str, ends_at: float) -> float:
        seconds = ends_at - self._clock.monotonic()
        if seconds <= 0:
            raise failures.timed_out(self.name, 0, may_be_billed=False, advice=self._advice)
        system = load_prompt(_PROMPTS, "judge_system").text
        prompt = load_prompt(_PROMPTS, "judge").render(
            {"query": _shown(query, _QUERY_CHARACTERS), "document": _shown(text, _TEXT_CHARACTERS)}
        )
        body: dict[str, Any] = {
            "model": self._model,
            "stream": False,
            "logprobs": True,
            "top_logprobs": _TOP,
            "options": {"temperature": 0, "num_predict": 1, "num_ctx": _WINDOW_TOKENS},
        }
        if "qwen" in self._model.lower():
            # Builds of this model come with the template of a chat, which makes it think before it
            # answers, or with none at all. Its own is put around the prompt here, and the thinking
            # is over before it begins.
            body |= {"raw": True, "prompt": _QWEN_TEMPLATE.format(system=system, prompt=prompt)}
        else:
            body |= {"system": system, "prompt": prompt, "think": False}
        reply = request_json(
            self._url,
            body,
            model=self.name,
            deadline_seconds=seconds,
            most_bytes=_OLLAMA_MOST_BYTES,
            advice=self._advice,
        )
        if not isinstance(reply, dict):
            raise failures.unreadable(self.name, "the reply is no object")
        if probabilities := reply.get("logprobs"):
            return self._from_probabilities(probabilities)
        word = str(reply.get("response")).strip().strip(".!\"'*").lower()
        if word not in _WORDS:
            raise self._no_answer(f"it said {str(reply.get('response'))[:40]!r}")
        return 1.0 if word == "yes" else 0.0

    def _from_probabilities(self, probabilities: Any) -> float:
        """How likely yes is, of yes and no, as the first word."""
        first = probabilities[0] if isinstance(probabilities, list) else None
        top = first.get("top_logprobs") or [first] if isinstance(first, dict) else None
        if not isinstance(top, list) or not all(isinstance(each, dict) for each in top):
            raise failures.unreadable(self.name, "probabilities in no known form")
        sums = dict.fromkeys(_WORDS, 0.0)
        for each in top:
            word = str(each.get("token", "")).strip().lower()
            if word in sums:
                sums[word] += math.exp(min(0.0, finite(each.get("logprob"), self.name)))
        total = sum(sums.values())
        if total < _LEAST_CERTAINTY:
            raise self._no_answer("neither yes nor no is likely")
        return sums["yes"] / total

    def _no_answer(self, what: str) -> BadReplyError:
        return BadReplyError(
            f"{self.name} does not answer with yes or no ({log.redact_text(what)}). Some builds of "
            "rerankers are broken: "
            "set reranker to another one.",
            model=self.name,
            reason="unreadable",
            may_be_billed=True,
        )


def _shown(text: str, most: int) -> str:
    """The beginning of a text, in which no turn of the conversation and no part of the question
    begins or ends.
    """
    return _MARKS.sub("&lt;", neutralize(text[:most]))


_QWEN_TEMPLATE = (
    "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{prompt}<|im_end|>\n"
    "<|im_start|>assistant\n<think>\n\n</think>\n\n"
)
