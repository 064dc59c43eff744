"""Cohere's reranker and what speaks its format, over loopback against a scripted server; faults
included.
"""

from __future__ import annotations

import json

import pytest

from smara.errors import BadReplyError, ConfigError, ModelRefusedError, ModelUnavailableError
from smara.models.rerankers.servers import COHERE_URL, CohereReranker, rerank_url
from tests.models_server import (
    Step,
    computed,
    cut,
    drip,
    garbage,
    hang,
    reset,
    scripted_server,
    status,
)

LONG = 60.0
QUERY, TEXTS = "what is a panda?", ["hi", "it is a bear", "the giant panda is a bear of China"]


def results(*pairs, **more):
    """A reply as Cohere sends it, best first: ``results((2, 0.99), (0, 0.1))``."""
    found = [{"index": index, "relevance_score": score} for index, score in pairs]
    return garbage(json.dumps({"id": "07734bd2", "results": found, **more}).encode())


def by_length(asked):
    """The longer a text, the more relevant; best first, with the texts said back as Jina and vLLM
    do.
    """
    texts = asked.body["documents"]
    scored = [
        {"index": index, "relevance_score": len(text) / 1_000, "document": {"text": text}}
        for index, text in enumerate(texts)
    ]
    return {
        "results": sorted(scored, key=lambda each: -each["relevance_score"]),
        "usage": {"total_tokens": 41},
    }


def rerank(step, texts=TEXTS, seconds=LONG, model="m", key=None):
    with scripted_server(step) as server:
        try:
            return CohereReranker(model, server.url, key).rerank(
                QUERY, texts, deadline_seconds=seconds
            )
        finally:
            assert server.wait_until_left()


def test_scores_come_back_in_the_order_of_the_texts():
    assert rerank(results((2, 0.98), (1, 0.25), (0, 0.0))) == [0.0, 0.25, 0.98]
    assert rerank(computed(by_length)) == [0.002, 0.012, 0.034]


def test_the_request_is_cohere_s_and_holds_nothing_else():
    with scripted_server(computed(by_length)) as server:
        CohereReranker("rerank-v3.5", server.url + "/v2", "my-key").rerank(
            QUERY, TEXTS, deadline_seconds=LONG
        )
    asked = server.requests[0]
    assert (asked.path, asked.headers["authorization"]) == ("/v2/rerank", "Bearer my-key")
    assert asked.body == {"model": "rerank-v3.5", "query": QUERY, "documents": TEXTS, "top_n": 3}


def test_a_server_with_one_model_needs_no_name_and_no_key():
    with scripted_server(computed(by_length)) as server:
        reranker = CohereReranker(None, server.url)
        reranker.rerank(QUERY, TEXTS, deadline_seconds=LONG)
    assert ("model" in server.requests[0].body, "authorization" in server.requests[0].headers) == (
        False,
        False,
    )
    assert (server.requests[0].path, reranker.name) == ("/v1/rerank", "cohere-compatible:default")


def test_nothing_is_asked_about_nothing():
    with scripted_server(computed(by_length)) as server:
        assert CohereReranker("m", server.url).rerank(QUERY, [], deadline_seconds=LONG) == []
    assert server.requests == []


def test_the_name_tells_the_model_and_never_the_address():
    assert (
        CohereReranker("rerank-v3.5", COHERE_URL, "k", vendor="cohere").name == "cohere:rerank-v3.5"
    )
    assert CohereReranker("bge", "http://ann:secret@box/v1").name == "cohere-compatible:bge"


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("https://api.example/v1", "https://api.example/v1/rerank"), ("http://box:8000",
        "http://box:8000/v1/rerank"),
        ("http://box:8000/", "http://box:8000/v1/rerank"), ("http://box/api/rerank",
        "http://box/api/rerank"),
        ("http://box/v1/?key=1", "http://box/v1/rerank?key=1"),
    ],
)  # fmt: skip
def test_an_address_is_completed(address, url):
    assert rerank_url(address) == url


def test_an_address_that_is_none_is_refused():
    with pytest.raises(ConfigError):
        CohereReranker("m", "box:8000")


# scores of other sizes


def test_raw_logits_of_a_compatible_server_are_squeezed_and_keep_their_order():
    scores = rerank(results((2, 5.9), (1, -2.0), (0, -11.1)))
    assert scores == pytest.approx([0.0000151, 0.1192, 0.99727], rel=1e-3)


def test_a_server_that_once_sent_logits_is_known_to_send_them():
    """A reply whose logits happen to lie between 0 and 1 must not be taken for certainties."""
    with scripted_server([results((0, 4.0)), results((0, 1.0))]) as server:
        reranker = CohereReranker("m", server.url)
        reranker.rerank(QUERY, ["a"], deadline_seconds=LONG)
        assert reranker.rerank(QUERY, ["a"], deadline_seconds=LONG) == [
            pytest.approx(0.731, abs=0.001)
        ]


def test_cohere_itself_is_not_excused():
    with scripted_server(results((0, 1.7))) as server, pytest.raises(BadReplyError):
        CohereReranker("m", server.url, "k", vendor="cohere").rerank(
            QUERY, ["a"], deadline_seconds=LONG
        )


# faults


@pytest.mark.parametrize(
    "step",
    [
        results((0, 0.1), (1, 0.2)), results((0, 0.1), (1, 0.2), (2, 0.3), (2, 0.3)),
        results((0, 0.1), (0, 0.1), (1, 0.2)), results((0, 0.1), (1, 0.2), (3, 0.3)),
        results((0, 0.1), (1, 0.2), (-1, 0.3)), results((0, 0.1), (1, 0.2), (True, 0.3)),
        results((0, 0.1), (1, 0.2), ("2", 0.3)), results((0, 0.1), (1, 0.2), (2.0, 0.3)), results(),
        results((0, 0.1), (1, 0.2), (2, None)), results((0, 0.1), (1, 0.2), (2, "0.3")),
        results((0, 0.1), (1, 0.2), (2, True)),
        results((0, 0.1), (1, 0.2), (2, float("nan"))), results((0, 0.1), (1, 0.2), (2,
        float("inf"))),
        garbage(b'{"results": [{"index": 0, "relevance_score": 1e999}]}'),
        garbage(b'{"results": [1, 2, 3]}'), garbage(b'{"results": {"0": 0.1}}'),
        garbage(b'{"data": []}'),
        garbage(b"[]"),
        garbage(b"null"), garbage(b"{"), garbage(b""), garbage(b"<html>Bad gateway</html>"),
    ],
)  # fmt: skip
def test_scores_that_are_not_one_number_for_each_text_are_refused(step):
    with pytest.raises(BadReplyError) as caught:
        rerank(step)
    assert caught.value.reason == "unreadable"


@pytest.mark.parametrize(
    ("step", "kind", "reason"),
    [
        (Step(status=401, body=b'{"message": "invalid api token"}'), ModelRefusedError, "key"),
        (Step(status=404, body=b'{"message": "model not found"}'), ModelRefusedError,
        "unknown_model"),
        (Step(status=400, body=b'{"message": "too many documents"}'), ModelRefusedError, "request"),
        (status(402), ModelRefusedError, "quota"), (status(429, retry_after=2),
        ModelUnavailableError, "rate_limit"),
        (status(500), ModelUnavailableError, "server"), (status(503), ModelUnavailableError,
        "overloaded"),
        (reset(), ModelUnavailableError, "connection"), (cut(), ModelUnavailableError,
        "connection"),
    ],
)  # fmt: skip
def test_trouble_of_the_server_is_told_in_our_words(step, kind, reason):
    with pytest.raises(kind) as caught:
        rerank(step)
    assert caught.value.reason == reason


@pytest.mark.parametrize("step", [hang(), drip()])
def test_a_server_that_does_not_answer_is_left_at_the_deadline(step):
    with pytest.raises(ModelUnavailableError, match="search_deadline_seconds") as caught:
        rerank(step, seconds=0.2)
    assert caught.value.reason == "timeout"


def test_a_wrong_key_says_where_it_belongs():
    with scripted_server(status(401)) as server:
        with pytest.raises(ModelRefusedError, match="reranker_api_key"):
            CohereReranker("m", server.url).rerank(QUERY, TEXTS, deadline_seconds=LONG)
        with pytest.raises(ModelRefusedError, match="CO_API_KEY"):
            CohereReranker("m", server.url, "k", vendor="cohere").rerank(
                QUERY, TEXTS, deadline_seconds=LONG
            )
