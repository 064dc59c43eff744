"""Which embedder the settings name, and what stands around one on a server: switch, redaction,
budget, retries.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

from smara.config import Settings, ollama_url
from smara.errors import (
    BadReplyError,
    BudgetSpentError,
    ConfigError,
    DatabaseError,
    MissingSettingError,
    ModelRefusedError,
    ModelUnavailableError,
)
from smara.models.choice import choose
from smara.models.embedders.offline import OfflineEmbedder
from smara.testing import HashEmbedder, open_temporary
from tests.models_server import Step, computed, hang, scripted_server, status
from tests.unit.models.test_embed_openai import honest, vector

SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
LONG = 60.0


def asking(server, clock, **settings):
    return open_temporary(
        **{
            "embedder": f"openai:mine@{server.url}/v1",
            "embedder_dims": 8,
            "clock": clock,
            **settings,
        }
    )


def calls(memory):
    return [
        (call.model, call.purpose, call.outcome, call.reason) for call in memory.models.calls()
    ][::-1]


def sent(server):
    return [text for asked in server.requests for text in asked.body["input"]]


@pytest.fixture
def no_ollama(monkeypatch):
    """Nobody listens where Ollama would."""
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


# which one


@pytest.mark.parametrize("setting", ["offline", "", " offline "])
def test_the_default_is_offline_whatever_keys_are_there(setting, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    assert isinstance(choose(Settings(embedder=setting)).embedder, OfflineEmbedder)
    assert Settings().embedder == "offline"


def test_off_is_none():
    with open_temporary(embedder="off") as memory:
        assert memory.models.embedder is None
        assert memory.models.embedder_status()["modelId"] is None


def test_auto_takes_what_ollama_has(no_ollama, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    with scripted_server(
        computed(lambda asked: {"models": [{"name": "qwen3-embedding:0.6b"}]})
    ) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        found = choose(Settings(embedder="auto"), memory_bytes=1 << 36)
    assert found.embedder.model_id == "ollama/qwen3-embedding:0.6b@1024"
    assert found.why.startswith(
        "auto: Ollama has qwen3-embedding:0.6b; qwen3-embedding:8b would fit"
    )


def test_auto_goes_on_to_openai_when_there_is_a_key_and_else_stays_offline(no_ollama, monkeypatch):
    assert isinstance(choose(Settings(embedder="auto")).embedder, OfflineEmbedder)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    found = choose(Settings(embedder="auto"))
    assert found.embedder.model_id == "openai/text-embedding-3-small@1024"
    assert "Ollama: connection" in found.why


def test_ollama_by_name_asks_nobody_before_it_is_used(no_ollama):
    assert choose(Settings(embedder="ollama:qwen3-embedding:4b")).embedder.dims == 1024
    there = choose(Settings(embedder="ollama:bge-m3@http://box:11434"))
    assert there.why.endswith("at http://box:11434")


def test_ollama_without_a_name_must_be_there(no_ollama):
    with pytest.raises(ModelUnavailableError, match="Check that the server runs"):
        choose(Settings(embedder="ollama"))


def test_openai_needs_a_key_and_says_which(no_ollama):
    with pytest.raises(MissingSettingError, match="OPENAI_API_KEY"):
        choose(Settings(embedder="openai"))
    assert choose(Settings(embedder="openai", embedder_api_key="k")).embedder.dims == 1024


def test_the_key_of_openai_is_sent_to_no_other_address(monkeypatch, clock):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    with scripted_server(computed(honest)) as server, asking(server, clock) as memory:
        memory.models.embedder.embed(["hello"])
        assert "authorization" not in server.requests[0].headers
    with (
        scripted_server(computed(honest)) as server,
        asking(server, clock, embedder_api_key="mine") as memory,
    ):
        memory.models.embedder.embed(["hello"])
        assert server.requests[0].headers["authorization"] == "Bearer mine"


@pytest.mark.parametrize(
    "setting", ["x", "ollama:", "openai:m@box", "onnx", "openai:m @http://box", "Offline"]
)
def test_a_setting_that_cannot_be_read_names_the_forms(setting):
    with pytest.raises(ConfigError, match="onnx:/FOLDER"):
        choose(Settings(embedder=setting))


def test_a_login_in_an_address_is_never_shown():
    assert "secret" not in choose(Settings(embedder="ollama:bge-m3@http://me:secret@box:11434")).why


def test_the_status_tells_a_failure_and_does_not_raise_it(no_ollama):
    with open_temporary(embedder="ollama") as memory:
        told = memory.models.embedder_status()
    assert (told["modelId"], told["error"]) == (None, "model_unavailable")


# around a server


def test_every_text_gets_its_row_in_as_many_requests_as_it_takes(clock):
    texts = [f"text {number}" for number in range(150)]
    with scripted_server(computed(honest)) as server, asking(server, clock) as memory:
        rows = memory.models.embedder.embed(texts)
        assert [len(asked.body["input"]) for asked in server.requests] == [64, 64, 22]
        assert calls(memory) == [("openai-compatible:mine", "embed", "done", None)] * 3
    expected = np.array([vector(text, 8) for text in texts])
    assert np.allclose(rows, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)


def test_a_blank_text_is_zeros_and_is_not_sent(clock):
    with scripted_server(computed(honest)) as server, asking(server, clock) as memory:
        rows = memory.models.embedder.embed(["", "one", " \n\t", "two"])
        assert (sent(server), rows.any(axis=1).tolist()) == (
            ["one", "two"],
            [False, True, False, True],
        )
        assert memory.models.embedder.embed([]).shape == (0, 8)
        assert memory.models.embedder.embed(["", " "]).shape == (2, 8)
        assert len(server.requests) == 1


def test_no_secret_leaves_the_machine(clock):
    with scripted_server(computed(honest)) as server, asking(server, clock) as memory:
        memory.models.embedder.embed([f"the token is {SECRET}"], "query")
        memory.models.embedder.embed([f"the token is {SECRET}", "\ud800 lone"])
        assert all(SECRET not in text and text for text in sent(server))


def test_a_long_text_is_sent_no_further_than_the_model_reads(clock):
    with scripted_server(computed(honest)) as server, asking(server, clock) as memory:
        memory.models.embedder.embed(["word " * 50_000, "重跑" * 20_000, "short"])
        lengths = [len(text) for text in sent(server)]
    assert 5_000 < lengths[0] < 11_000
    assert 500 < lengths[1] < 5_000
    assert lengths[2] == 5


def test_a_window_smaller_than_we_know_is_found_by_halving(clock):
    def narrow(asked):
        return honest(asked)

    refusing = Step(status=400, body=b'{"error": "the input length exceeds the context length"}')
    with (
        scripted_server([refusing, refusing, computed(narrow)]) as server,
        asking(server, clock) as memory,
    ):
        assert memory.models.embedder.embed(["word " * 1_000, "short"]).any(axis=1).all()
        lengths = [[len(text) for text in asked.body["input"]] for asked in server.requests]
    assert lengths[0][0] > 1.9 * lengths[1][0] > 3.5 * lengths[2][0]
    assert [each[1] for each in lengths] == [5, 5, 5]


def test_a_request_that_is_refused_for_another_reason_is_not_made_again(clock):
    with scripted_server(status(400, "no such field")) as server, asking(server, clock) as memory:
        with pytest.raises(ModelRefusedError):
            memory.models.embedder.embed(["word " * 1_000])
        assert len(server.requests) == 1


def test_what_can_pass_is_asked_again_after_the_wait_the_server_wants(clock):
    steps = [status(429, retry_after=3), status(503), computed(honest)]
    with scripted_server(steps) as server, asking(server, clock) as memory:
        began = clock.monotonic()
        assert memory.models.embedder.embed(["one"]).any()
        assert clock.monotonic() - began >= 3
        assert [outcome for _, _, outcome, _ in calls(memory)] == [
            "model_unavailable",
            "model_unavailable",
            "done",
        ]


def test_a_wait_past_the_deadline_is_not_begun(clock):
    with scripted_server(status(429, retry_after=90)) as server, asking(server, clock) as memory:
        with pytest.raises(ModelUnavailableError) as caught:
            memory.models.embedder.embed(["one"], deadline_seconds=LONG)
        assert (caught.value.reason, len(server.requests)) == ("rate_limit", 1)


@pytest.mark.parametrize(
    "reply",
    [
        {"data": []},
        {"data": [{"index": 0, "embedding": [0.5] * 7}]},
        {"data": [{"embedding": [0] * 8}]},
    ],
)
def test_a_wrong_vector_is_an_error_and_not_asked_for_again(reply, clock):
    with scripted_server(computed(lambda asked: reply)) as server, asking(server, clock) as memory:
        with pytest.raises(BadReplyError):
            memory.models.embedder.embed(["one"])
        assert len(server.requests) == 1
        assert calls(memory) == [("openai-compatible:mine", "embed", "bad_reply", "unreadable")]


def test_a_failure_in_the_middle_gives_no_part_of_the_rows(clock):
    with (
        scripted_server([computed(honest), status(401)]) as server,
        asking(server, clock) as memory,
        pytest.raises(ModelRefusedError),
    ):
        memory.models.embedder.embed([f"text {number}" for number in range(100)])


def test_the_budget_of_embedding_holds_and_nothing_is_sent_past_it(clock):
    with (
        scripted_server(computed(honest)) as server,
        asking(server, clock, embedding_tokens_per_hour=500) as memory,
    ):
        memory.models.embedder.embed(["one"])
        with pytest.raises(BudgetSpentError, match="embedding_tokens_per_hour"):
            memory.models.embedder.embed(["word " * 600])
        assert len(server.requests) == 1
        assert memory.models.spent().embedding_tokens == 12


def test_the_switch_and_a_pause_stop_it(clock):
    with scripted_server(computed(honest)) as server:
        with (
            asking(server, clock, models_enabled=False) as memory,
            pytest.raises(ModelRefusedError, match="turned off"),
        ):
            memory.models.embedder.embed(["one"])
        with asking(server, clock) as memory:
            memory.models.pause("enough")
            with pytest.raises(ModelRefusedError, match="enough"):
                memory.models.embedder.embed(["one"])
        assert server.requests == []


def test_a_server_that_hangs_is_left_at_the_deadline():
    with scripted_server(hang()) as server, asking(server, None) as memory:
        with pytest.raises(ModelUnavailableError) as caught:
            memory.models.embedder.embed(["one"], deadline_seconds=0.2)
        assert caught.value.reason == "timeout"
        assert server.wait_until_left()


def test_a_store_that_is_busy_does_not_hold_up_a_query(clock):
    with scripted_server(computed(honest)) as server, asking(server, clock) as memory:
        embedder = memory.models.embedder
        errors = []

        def query():
            try:
                embedder.embed(["one"], "query", deadline_seconds=1.0)
            except ModelUnavailableError as error:
                errors.append(error)

        with memory._rooms.database.write():  # nobody else can note a call now
            asking_thread = threading.Thread(target=query)
            asking_thread.start()
            clock.awaited()
            clock.advance(2.0)
            asking_thread.join(600)
        assert [error.reason for error in errors] == ["timeout"]
        assert server.requests == []


def test_a_call_that_cannot_be_noted_is_not_made(clock):
    with scripted_server(computed(honest)) as server, asking(server, clock) as memory:
        embedder = memory.models.embedder

        def broken(*given, **named):
            raise DatabaseError("The disk is gone.")

        memory.models.budget.reserve = broken
        with pytest.raises(ModelUnavailableError, match="could not be noted"):
            embedder.embed(["one"])
        assert server.requests == []


# of the caller's own


def test_an_embedder_of_ones_own_takes_the_place_of_the_setting(clock):
    mine = HashEmbedder()
    with open_temporary(embedding_model=mine, clock=clock) as memory:
        rows = memory.models.embedder.embed([f"my {SECRET}", ""], "query")
        assert memory.models.embedder.model_id == "hash-64"
        assert memory.models.embedder_status()["why"] == "it was given by the program"
        assert memory.models.open_embedder("offline").model_id == "hash-64"
        assert memory.models.open_embedder("ollama:bge-m3").model_id == "ollama/bge-m3@1024"
    assert rows.any(axis=1).tolist() == [True, False]
    assert SECRET not in mine.asked[0][1]


@pytest.mark.parametrize("shape", [(1, 64), (3, 64), (2, 63), (2,), (2, 64, 1)])
def test_an_embedder_of_ones_own_is_checked_like_any_other(shape):
    class Wrong(HashEmbedder):
        def embed(self, texts, kind="document", *, deadline_seconds=None):
            return np.ones(shape, dtype=np.float32)

    with open_temporary(embedding_model=Wrong()) as memory, pytest.raises(BadReplyError):
        memory.models.embedder.embed(["one", "two"])


def test_a_number_that_is_none_is_refused_from_anybody():
    class Wrong(HashEmbedder):
        def embed(self, texts, kind="document", *, deadline_seconds=None):
            rows = super().embed(texts, kind)
            rows[0, 3] = np.nan
            return rows

    with (
        open_temporary(embedding_model=Wrong()) as memory,
        pytest.raises(BadReplyError, match="a number that is not finite"),
    ):
        memory.models.embedder.embed(["one", "two", ""])


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("box", "http://box:11434"),
        ("box:8000", "http://box:8000"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":8000", "http://127.0.0.1:8000"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("https://box.example/ollama/", "https://box.example:443/ollama"),
    ],
)
def test_ollama_is_asked_where_its_own_variable_says(monkeypatch, host, url):
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert ollama_url() == url
