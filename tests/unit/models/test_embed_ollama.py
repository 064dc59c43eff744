"""Embeddings under Ollama, over loopback: the vectors, their cut, which size of Qwen3 is taken,
faults.
"""

from __future__ import annotations

import numpy as np
import pytest

from smara.config import Settings
from smara.errors import BadReplyError, ModelRefusedError, ModelUnavailableError
from smara.models.embedders.servers import OllamaEmbedder, choose_model, machine_memory_bytes
from tests.models_server import computed, cut, drip, garbage, hang, reset, scripted_server, status
from tests.unit.models.test_embed_openai import vector

LONG = 60.0
GIB = 1 << 30
SMALL, MIDDLE, LARGE = (f"qwen3-embedding:{size}" for size in ("0.6b", "4b", "8b"))


def told(vectors, **more):
    return {
        "model": "m",
        "embeddings": vectors,
        "total_duration": 1,
        "load_duration": 1,
        "prompt_eval_count": 9,
        **more,
    }


def honest(dims):
    return computed(lambda asked: told([vector(text, dims) for text in asked.body["input"]]))


def ask(step, texts=("one", "two"), kind="document", seconds=LONG, model="mine", **settings):
    settings = {"embedder_dims": 8, **settings}
    with scripted_server(step) as server:
        found = OllamaEmbedder(model, server.url, Settings(**settings)).ask(
            list(texts), kind, seconds
        )
        return found, server.requests[-1]


def fails(step, kind, **more):
    with pytest.raises(kind) as caught:
        ask(step, **more)
    return caught.value


def test_each_text_gets_its_vector_and_the_tokens_are_told():
    found, asked = ask(honest(8))
    expected = np.array([vector("one", 8), vector("two", 8)])
    assert np.allclose(
        found.vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6
    )
    assert (found.tokens, asked.path, asked.body["model"]) == (9, "/api/embed", "mine")


def test_the_whole_vector_of_qwen3_is_taken_and_its_first_1024_dimensions_kept():
    found, asked = ask(honest(2560), model=MIDDLE, embedder_dims=0)
    expected = np.array([vector("one", 2560), vector("two", 2560)])[:, :1024]
    assert np.allclose(
        found.vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6
    )
    assert "dimensions" not in asked.body


@pytest.mark.parametrize("dims", [1024, 2048, 4096])
def test_another_model_under_the_name_of_qwen3_is_noticed_by_its_dimensions(dims):
    error = fails(honest(dims), BadReplyError, model=MIDDLE, embedder_dims=0)
    assert f"{dims} dimensions in the place of 2560" in error.message


def test_a_query_carries_its_task_and_a_document_does_not():
    assert (
        ask(honest(1024), ["why"], "query", model=SMALL, embedder_dims=0)[1]
        .body["input"][0]
        .endswith("\nQuery:why")
    )
    assert ask(honest(1024), ["why"], model=SMALL, embedder_dims=0)[1].body["input"] == ["why"]


def test_an_address_may_end_as_for_a_chat_model():
    embedder = OllamaEmbedder(MIDDLE, "http://127.0.0.1:1/v1", Settings())
    assert (embedder.name, embedder.model_id) == (
        "ollama:qwen3-embedding:4b",
        "ollama/qwen3-embedding:4b@1024",
    )
    with scripted_server(honest(8)) as server:
        OllamaEmbedder("mine", f"{server.url}/v1/", Settings(embedder_dims=8)).ask(
            ["x"], "document", LONG
        )
        assert server.requests[0].path == "/api/embed"


@pytest.mark.parametrize(
    "reply",
    [
        {}, [], None, "text", told(None), told([]), told([vector("one", 8)]), told([vector("one",
            8)] * 3),
        told(vector("one", 8)), told([vector("one", 8), vector("two", 9)]), told([vector("one", 8),
        [0] * 8]),
        told([vector("one", 8), [None] * 8]), told([vector("one", 16), vector("two", 16)]),
        {"embedding": [1.0] * 8},
    ],
)  # fmt: skip
def test_a_wrong_vector_is_never_accepted(reply):
    assert fails(computed(lambda asked: reply), BadReplyError).reason == "unreadable"


@pytest.mark.parametrize(
    ("step", "kind", "reason"),
    [
        (status(404, "not_found"), ModelRefusedError, "unknown_model"), (status(500),
        ModelUnavailableError, "server"),
        (garbage(), BadReplyError, "unreadable"), (garbage(b'{"embeddings": [[NaN]]}'),
        BadReplyError, "unreadable"),
        (reset(), ModelUnavailableError, "connection"), (cut(), ModelUnavailableError,
        "connection"),
    ],
)  # fmt: skip
def test_a_failure_says_whether_asking_again_can_help(step, kind, reason):
    assert fails(step, kind).reason == reason


def test_a_model_that_is_not_there_is_to_be_fetched():
    assert "`ollama pull mine`" in fails(status(404), ModelRefusedError).message


@pytest.mark.parametrize("step", [hang(), drip()])
def test_a_server_that_never_ends_is_left_at_the_deadline(step):
    assert fails(step, ModelUnavailableError, seconds=0.2).reason == "timeout"


# which size


def choose(names, memory=16 * GIB, step=None):
    with scripted_server(
        step or computed(lambda asked: {"models": [{"name": name} for name in names]})
    ) as server:
        found = choose_model(server.url, LONG, memory)
        assert server.requests[0].path == "/api/tags"
        return found


@pytest.mark.parametrize(
    ("memory", "chosen"),
    [
        (64 * GIB, LARGE),
        (32 * GIB, MIDDLE),
        (16 * GIB, MIDDLE),
        (8 * GIB, SMALL),
        (2 * GIB, SMALL),
        (None, LARGE),
    ],
)
def test_the_largest_that_the_machine_can_hold_is_taken(memory, chosen):
    assert choose([SMALL, LARGE, "llama3:8b", MIDDLE], memory)[0] == chosen


def test_what_is_there_is_taken_and_what_would_be_better_is_told():
    chosen, why = choose([SMALL, "nomic-embed-text:latest"], 64 * GIB)
    assert chosen == SMALL
    assert "`ollama pull qwen3-embedding:8b`" in why


def test_a_larger_one_that_somebody_fetched_is_taken_when_nothing_else_is_there():
    assert choose([LARGE], 8 * GIB)[0] == LARGE


def test_a_quantization_is_of_its_size_and_the_plain_name_is_the_largest():
    assert choose(["qwen3-embedding:4b-q8_0"])[0] == "qwen3-embedding:4b-q8_0"
    assert choose(["qwen3-embedding:latest"], 64 * GIB)[0] == "qwen3-embedding:latest"


@pytest.mark.parametrize(
    "reply", [{}, {"models": []}, {"models": [{"name": 7}, {}, None]}, [], {"models": "x"}]
)
def test_none_of_them_says_what_to_fetch(reply):
    with pytest.raises(ModelRefusedError, match="ollama pull qwen3-embedding:4b"):
        choose([], step=computed(lambda asked: reply))


def test_this_machine_says_how_much_memory_it_has():
    found = machine_memory_bytes()
    assert found is None or found > 1 << 28
