"""A reranker under Ollama, which has no endpoint for it: the model is asked whether a text answers
the query.

Qwen3-Reranker was trained to say yes or no to exactly this question, so its prompt is the one it
was trained on. How sure it is stands in the probabilities of the two words, which Ollama tells
since 0.12.11; from an older server the word itself is taken, which sorts the texts into two heaps
only. There is one request for each text, a few at a time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from smara.core import log
from smara.core.clock import Clock, SystemClock
from smara.core.delimiters import neutralized
from smara.core.prompts import load_prompt
from smara.errors import BadReplyError
from smara.models import failures
from smara.models.http import parse_address, post_json
from smara.models.rerank import ADVICE, checked, finite

DEFAULT_MODEL = "hf.co/Mungert/Qwen3-Reranker-0.6B-GGUF:Q8_0"
DEFAULT_URL = "http://127.0.0.1:11434"
_PROMPTS = Path(__file__).parent / "prompts"
_AT_ONCE = 4
_MOST_BYTES = 1_000_000

# Ollama reads prompts of up to about 1,000 tokens together; longer ones take many times as long.
_TEXT_CHARACTERS = 1_500
_QUERY_CHARACTERS = 500
_WINDOW_TOKENS = 2_560  # all of that, in a script with a token for each character

_TOP = 20
# Of all that the model might have said, at least so much must be yes or no; otherwise it was not
# answering.
_LEAST_CERTAINTY = 0.01
_WORDS = ("yes", "no")
_MARKS = re.compile(r"<(?=\s*/?\s*(?:think|instruct|query|document))", re.IGNORECASE)


class OllamaReranker:
    """Asks Ollama about each text. Safe to use from several threads."""

    is_local = False

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        address: str = DEFAULT_URL,
        clock: Clock | None = None,
        at_once: int = _AT_ONCE,
    ) -> None:
        parts = parse_address(address)
        self._model = model
        self._url = parts._replace(
            path=parts.path.rstrip("/").removesuffix("/v1") + "/api/generate"
        ).geturl()
        self._clock = clock or SystemClock()
        self._at_once = at_once
        self._advice = {
            **ADVICE,
            "unknown_model": f"Fetch it with `ollama pull {model}`, or set reranker.",
        }

    @property
    def name(self) -> str:
        return f"ollama:{self._model}"

    def rerank(self, query: str, texts: Sequence[str], *, deadline_seconds: float) -> list[float]:
        """The scores of all texts; the first failure ends it, and texts that were not asked about
        yet are left.
        """
        if not texts:
            return []
        ends_at = self._clock.monotonic() + deadline_seconds
        pool = ThreadPoolExecutor(min(self._at_once, len(texts)), thread_name_prefix="smara-rerank")
        try:
            asked = [pool.submit(self._score, query, text, ends_at) for text in texts]
            done = wait(
                asked, return_when=FIRST_EXCEPTION
            ).done  # each of them ends at the deadline
            for each in asked:
                if each in done and (error := each.exception()) is not None:
                    raise error
            return checked([each.result() for each in asked], len(texts), self.name)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _score(self, query: str, text: str, ends_at: float) -> float:
        seconds = ends_at - self._clock.monotonic()
        if seconds <= 0:
            raise failures.timed_out(self.name, 0, may_be_billed=False, advice=self._advice)
        reply = post_json(
            self._url,
            self._body(query, text),
            model=self.name,
            deadline_seconds=seconds,
            most_bytes=_MOST_BYTES,
            advice=self._advice,
        )
        if not isinstance(reply, dict):
            raise failures.unreadable(self.name, "the reply is no object")
        told = reply.get("logprobs")
        return self._from_probabilities(told) if told else self._from_word(reply.get("response"))

    def _body(self, query: str, text: str) -> dict[str, Any]:
        system = load_prompt(_PROMPTS, "judge_system").text
        prompt = load_prompt(_PROMPTS, "judge").render(
            {"query": _shown(query, _QUERY_CHARACTERS), "document": _shown(text, _TEXT_CHARACTERS)}
        )
        spoken: dict[str, Any] = {"system": system, "prompt": prompt, "think": False}
        if "qwen" in self._model.lower():
            # Builds of this model come with the template of a chat, which makes it think before it
            # answers, or with none at all. Its own is put around the prompt here, and the thinking
            # is over before it begins.
            spoken = {
                "raw": True,
                "prompt": _turn("system", system) + _turn("user", prompt) + _TURN_OF_THE_MODEL,
            }
        options = {"temperature": 0, "num_predict": 1, "num_ctx": _WINDOW_TOKENS}
        return {
            "model": self._model,
            **spoken,
            "stream": False,
            "logprobs": True,
            "top_logprobs": _TOP,
            "options": options,
        }

    def _from_probabilities(self, told: Any) -> float:
        """How likely yes is, of yes and no, as the first word."""
        first = told[0] if isinstance(told, list) else None
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

    def _from_word(self, said: Any) -> float:
        word = str(said).strip().strip(".!\"'*").lower()
        if word not in _WORDS:
            raise self._no_answer(f"it said {str(said)[:40]!r}")
        return 1.0 if word == "yes" else 0.0

    def _no_answer(self, what: str) -> BadReplyError:
        return BadReplyError(
            f"{self.name} does not answer with yes or no ({log.redacted(what)}). Some builds of "
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
    return _MARKS.sub("&lt;", neutralized(text[:most]))


def _turn(role: str, text: str) -> str:
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


_TURN_OF_THE_MODEL = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
