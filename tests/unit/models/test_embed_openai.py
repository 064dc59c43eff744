"""Embeddings in OpenAI's format, over loopback: what is asked, what is accepted, and what never
is.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from smara.config import Settings
from smara.errors import BadReplyError, ConfigError, ModelRefusedError, ModelUnavailableError
from smara.models.embedders.servers import OpenAIEmbedder
from tests.models_server import (
    Step,
    computed,
    cut,
    drip,
    garbage,
    hang,
    quota,
    reset,
    scripted_server,
    status,
)

LONG = 60.0


def vector(text, dims):
    drawn = random.Random(text)
    return [drawn.uniform(-1, 1) for _ in range(dims)]


def told(vectors, usage=True, order=None):
    data = [
        {"object": "embedding", "index": place, "embedding": each}
        for place, each in enumerate(vectors)
    ]
    found = {
        "object": "list",
        "model": "m",
        "data": data if order is None else [data[place] for place in order],
    }
    return {**found, "usage": {"prompt_tokens": 12, "total_tokens": 12}} if usage else found


def honest(asked):
    dims = asked.body.get("dimensions", 8)
    return told([vector(text, dims) for text in asked.body["input"]])


def ask(
    step, texts=("one", "two"), kind="document", seconds=LONG, model="mine", key=None, **settings
):
    settings = {"embedder_dims": 8, **settings}
    with scripted_server(step) as server:
        embedder = OpenAIEmbedder(model, f"{server.url}/v1", key, settings=Settings(**settings))
        return embedder.ask(list(texts), kind, seconds), server.requests[-1]


def fails(step, kind, **more):
    with pytest.raises(kind) as caught:
        ask(step, **more)
    return caught.value


def test_each_text_gets_its_vector_and_the_tokens_are_told():
    found, asked = ask(computed(honest))
    expected = np.array([vector("one", 8), vector("two", 8)])
    assert np.allclose(
        found.vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6
    )
    assert (found.tokens, asked.path) == (12, "/v1/embeddings")
    assert asked.body == {"model": "mine", "input": ["one", "two"], "encoding_format": "float"}


def test_vectors_in_another_order_find_their_texts():
    texts = [f"text {place}" for place in range(5)]
    straight, _ = ask(computed(honest), texts)
    mixed, _ = ask(
        computed(lambda asked: told([vector(t, 8) for t in texts], order=[3, 1, 4, 0, 2])), texts
    )
    assert mixed.vectors.tolist() == straight.vectors.tolist()


def test_openai_is_asked_for_1024_dimensions():
    found, asked = ask(computed(honest), model="text-embedding-3-small", embedder_dims=0)
    assert asked.body["dimensions"] == 1024
    assert found.vectors.shape == (2, 1024)


def test_the_address_the_name_and_the_space():
    here = OpenAIEmbedder("text-embedding-3-small", None, "k", settings=Settings())
    there = OpenAIEmbedder("bge-m3", "http://127.0.0.1:1/v1", None, settings=Settings())
    assert (here.name, here.model_id) == (
        "openai:text-embedding-3-small",
        "openai/text-embedding-3-small@1024",
    )
    assert (there.name, there.model_id) == (
        "openai-compatible:bge-m3",
        "openai-compatible/bge-m3@1024",
    )
    assert (here.first_dims, there.first_dims) == (256, 1024)


def test_a_key_is_shown_where_one_is_given_and_nowhere_else():
    assert ask(computed(honest), key="the-key")[1].headers["authorization"] == "Bearer the-key"
    assert "authorization" not in ask(computed(honest))[1].headers


def test_a_server_that_counts_nothing_is_believed_in_the_rest():
    found, _ = ask(
        computed(lambda asked: told([vector(t, 8) for t in asked.body["input"]], usage=False))
    )
    assert found.tokens is None


def test_a_query_for_qwen3_carries_its_task():
    _, asked = ask(
        computed(lambda asked: told([vector("x", asked.body["dimensions"])])),
        ["why"],
        "query",
        model="Qwen/Qwen3-Embedding-4B",
        embedder_dims=0,
    )
    assert asked.body["input"][0].endswith("\nQuery:why")


@pytest.mark.parametrize(
    "reply",
    [
        {}, {"data": None}, {"data": "none"}, [], None, 7, "text", {"error": "busy"},
        told([]), told([vector("one", 8)]), told([vector(t, 8) for t in "abc"]),
        told([vector("one", 8), vector("two", 7)]), told([vector("one", 16), vector("two", 16)]),
        told([vector("one", 4), vector("two", 4)]), told([vector("one", 8), [0.0] * 8]),
        told([vector("one", 8), [None] * 8]), told([vector("one", 8), ["0.1"] * 8]),
        told([vector("one", 8), []]),
        told([vector("one", 8), {"0": 1}]), told([vector("one", 8), "AAAA"]), told([vector("one",
        8), None]),
        {"data": [{"index": 0, "embedding": vector("one", 8)}, {"index": 0,
            "embedding": vector("two", 8)}]},
        {"data": [{"index": 1, "embedding": vector("one", 8)}, {"index": 2,
            "embedding": vector("two", 8)}]},
        {"data": [{"index": "0", "embedding": vector("one", 8)}, {"index": "1",
            "embedding": vector("two", 8)}]},
        {"data": [{"index": 0}, {"index": 1}]}, {"data": [vector("one", 8), vector("two", 8)]},
    ],
)  # fmt: skip
def test_a_wrong_vector_is_never_accepted(reply):
    assert fails(computed(lambda asked: reply), BadReplyError).reason == "unreadable"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e400"])
def test_a_number_that_is_none_is_never_accepted(number):
    body = (
        f'{{"data": [{{"index": 0, "embedding": [{number}, {", ".join(["0.1"] * 7)}]}}]}}'.encode()
    )
    assert fails(garbage(body), BadReplyError, texts=["one"]).reason == "unreadable"


@pytest.mark.parametrize(
    ("step", "kind", "reason"),
    [
        (status(429, retry_after=7), ModelUnavailableError, "rate_limit"), (quota(),
        ModelRefusedError, "quota"),
        (status(401), ModelRefusedError, "key"), (status(404), ModelRefusedError, "unknown_model"),
        (status(500), ModelUnavailableError, "server"), (status(503), ModelUnavailableError,
        "overloaded"),
        (Step(status=302, body=b"{}", headers={"Location": "/elsewhere"}), ModelRefusedError,
        "request"),
        (garbage(b"<html>"), BadReplyError, "unreadable"),
        (garbage(b""), BadReplyError, "unreadable"), (reset(), ModelUnavailableError, "connection"),
        (cut(), ModelUnavailableError, "connection"),
    ],
)  # fmt: skip
def test_a_failure_says_whether_asking_again_can_help(step, kind, reason):
    assert fails(step, kind).reason == reason


def test_a_rate_limit_says_when_to_come_back_and_a_wrong_key_what_to_set():
    assert fails(status(429, retry_after=7), ModelUnavailableError).retry_after_seconds == 7
    assert "OPENAI_API_KEY" in fails(status(401), ModelRefusedError).message


@pytest.mark.parametrize("step", [hang(), drip()])
def test_a_server_that_never_ends_is_left_at_the_deadline(step):
    assert fails(step, ModelUnavailableError, seconds=0.2).reason == "timeout"


def test_far_too_much_is_not_read():
    huge = told([[0.1] * 200_000, [0.1] * 200_000])
    assert fails(computed(lambda asked: huge), BadReplyError).reason == "too_long"


def test_an_address_that_is_none_is_refused_at_once():
    with pytest.raises(ConfigError, match="no address"):
        OpenAIEmbedder("m", "ftp://box", None, settings=Settings(embedder_dims=8))
