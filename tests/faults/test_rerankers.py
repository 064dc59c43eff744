"""Whatever a server sends, a reranker gives one number from 0 to 1 for each text, or says that it
cannot.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from smara.errors import BadReplyError
from smara.models.http import request_json
from smara.models.rerankers.servers import CohereReranker, OllamaReranker
from tests.faults.sizes import SEED, count
from tests.models_server import computed, scripted_server

LONG = 60.0
TEXTS = ["one", "two", "three"]
ODD = [
    None,
    True,
    False,
    "",
    "0.5",
    "yes",
    [],
    {},
    -1,
    0,
    1,
    2,
    3,
    0.25,
    -0.0,
    1e-320,
    1.0000001,
    1e308,
    -1e308,
    10**400,
]


def cohere_reply(draw):
    """A reply that is mostly right, and wrong in a few random places."""
    results = [{"index": place, "relevance_score": draw.random()} for place in range(len(TEXTS))]
    draw.shuffle(results)
    return spoiled(
        {"id": "x", "results": results, "meta": {"billed_units": {"search_units": 1}}}, draw
    )


def ollama_reply(draw):
    top = [{"token": word, "logprob": -draw.random() * 9} for word in ("yes", "no", "Yes", "maybe")]
    return spoiled(
        {"response": "yes", "done": True, "logprobs": [{**top[0], "top_logprobs": top}]}, draw
    )


def spoiled(value, draw, chance=0.06):
    """The same JSON, with some of its values replaced, left out or doubled."""
    if draw.random() < chance:
        return draw.choice(ODD)
    if isinstance(value, dict):
        return {
            name: spoiled(each, draw, chance)
            for name, each in value.items()
            if draw.random() > chance / 2
        }
    if isinstance(value, list):
        kept = [spoiled(each, draw, chance) for each in value if draw.random() > chance / 2]
        return kept + kept[:1] if draw.random() < chance / 2 else kept
    return value


def outcomes(reply, rerank):
    """What becomes of many spoiled replies, each by its name, and how often."""
    draw, seen = random.Random(SEED), Counter()
    with scripted_server(computed(lambda asked: reply(draw))) as server:
        for _ in range(count(60, 3_000)):
            try:
                seen[named(rerank(server.url))] += 1
            except BadReplyError:
                seen["refused"] += 1
            except Exception as error:
                seen[type(error).__name__] += 1
    return seen


def named(scores):
    if len(scores) != len(TEXTS):
        return "wrong number"
    return (
        "good"
        if all(isinstance(score, float) and 0 <= score <= 1 for score in scores)
        else "no score"
    )


def cohere(url):
    return CohereReranker("m", url).rerank("query", TEXTS, deadline_seconds=LONG)


def ollama(url):
    return OllamaReranker("qwen", url).rerank("query", TEXTS, deadline_seconds=LONG)


def careless(url):
    """The mutant: it believes what it is told."""
    body = {"query": "query", "documents": TEXTS}
    reply = request_json(url, body, model="m", deadline_seconds=LONG)
    return [result["relevance_score"] for result in reply["results"]]


@pytest.mark.parametrize(("reply", "rerank"), [(cohere_reply, cohere), (ollama_reply, ollama)])
def test_spoiled_replies_give_good_scores_or_are_refused(reply, rerank):
    assert set(outcomes(reply, rerank)) == {"good", "refused"}, f"SMARA_SEED={SEED}"


def test_a_reranker_that_believes_everything_is_caught():
    assert set(outcomes(cohere_reply, careless)) - {"good", "refused"}, f"SMARA_SEED={SEED}"
