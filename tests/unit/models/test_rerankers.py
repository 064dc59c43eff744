"""Which reranker the settings name, and what stands around every one: switch, redaction, budget,
deadline, checks.
"""

from __future__ import annotations

import threading

import pytest

import smara
from smara.config import Settings
from smara.errors import (
    BadReplyError,
    BudgetSpentError,
    ConfigError,
    DatabaseError,
    InvalidInputError,
    MissingSettingError,
    ModelRefusedError,
    ModelUnavailableError,
)
from smara.models.choice import open_reranker
from smara.models.failures import failure
from smara.models.reranker import check_scores, sigmoid
from smara.models.rerankers.servers import OLLAMA_MODEL
from smara.testing import WordReranker, open_temporary
from tests.models_server import computed, hang, scripted_server, status
from tests.onnx_models import cross_encoder

SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
LONG = 60.0
BUSY = failure("words", "overloaded", may_be_billed=False)


class Remote(WordReranker):
    """A reranker that somebody else runs."""

    name = "remote"
    is_local = False


def halves(asked):
    return {
        "results": [
            {"index": place, "relevance_score": 0.5}
            for place in range(len(asked.body["documents"]))
        ]
    }


def calls(memory):
    return [
        (call.model, call.purpose, call.outcome, call.reason) for call in memory.models.calls()
    ][::-1]


def asking(server, clock):
    return open_temporary(reranker=f"cohere:m@{server.url}", clock=clock)


def rerank(memory, query="token refresh", texts=("the token", "a bear"), seconds=LONG):
    return memory.models.reranker.rerank(query, list(texts), deadline_seconds=seconds)


# which one


@pytest.mark.parametrize("setting", ["features", "off", "", "  features "])
def test_no_model_reranks_unless_one_is_named(setting, monkeypatch):
    monkeypatch.setenv("CO_API_KEY", "a-key")
    monkeypatch.setenv("COHERE_API_KEY", "a-key")
    assert open_reranker(Settings(reranker=setting)) is None


def test_a_key_in_the_environment_alone_sends_nothing_anywhere(monkeypatch):
    monkeypatch.setenv("CO_API_KEY", "a-key")
    with open_temporary() as memory:
        assert memory.models.reranker is None
        assert memory.models.calls() == []


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("ollama", f"ollama:{OLLAMA_MODEL}"), ("ollama:qwen3-reranker:4b",
        "ollama:qwen3-reranker:4b"),
        ("ollama:m@http://box:11434", "ollama:m"), ("ollama@https://box/x",
        f"ollama:{OLLAMA_MODEL}"),
        ("cohere", "cohere:rerank-v3.5"), ("cohere:rerank-v4.0-fast", "cohere:rerank-v4.0-fast"),
        ("cohere:jina-reranker-v2@https://api.example/v1", "cohere-compatible:jina-reranker-v2"),
        ("cohere:m@http://ann:pw@box:8000", "cohere-compatible:m"), ("http://box:8080",
        "cohere-compatible:default"),
        ("https://box/v1", "cohere-compatible:default"),
    ],
)  # fmt: skip
def test_the_setting_names_the_reranker(setting, name, monkeypatch):
    monkeypatch.setenv("CO_API_KEY", "a-key")
    found = open_reranker(Settings(reranker=setting))
    assert (found.name, found.is_local) == (name, False)


def test_a_folder_is_a_reranker_too(tmp_path):
    found = open_reranker(Settings(reranker=f"onnx:{cross_encoder(tmp_path / 'tiny')}"))
    assert (found.name, found.is_local) == ("onnx:tiny", True)


@pytest.mark.parametrize(
    "setting",
    [
        "colbert",
        "ollama:",
        "ollama:two words",
        "cohere:m@box:8000",
        "cohere:m@ftp://box",
        "http://",
        "onnx:/nowhere",
    ],
)
def test_a_setting_that_cannot_be_read_says_how_to_write_it(setting, monkeypatch):
    monkeypatch.setenv("CO_API_KEY", "a-key")
    with pytest.raises(ConfigError):
        open_reranker(Settings(reranker=setting))


def test_cohere_without_a_key_says_what_to_set(monkeypatch):
    monkeypatch.delenv("CO_API_KEY", raising=False)
    monkeypatch.delenv("COHERE_API_KEY", raising=False)
    with pytest.raises(MissingSettingError, match="CO_API_KEY"):
        open_reranker(Settings(reranker="cohere"))


@pytest.mark.parametrize(("given", "sent"), [(None, None), ("my-own-key", "Bearer my-own-key")])
def test_a_compatible_server_never_gets_the_key_of_cohere(monkeypatch, given, sent):
    monkeypatch.setenv("CO_API_KEY", "key-of-cohere")
    with scripted_server(computed(halves)) as server:
        settings = Settings(reranker=f"cohere:m@{server.url}", reranker_api_key=given)
        open_reranker(settings).rerank("a", ["b"], deadline_seconds=LONG)
    assert server.requests[0].headers.get("authorization") == sent


def test_the_key_is_not_shown_with_the_settings():
    assert "hidden-key" not in repr(Settings(reranker_api_key="hidden-key"))


def test_an_object_of_one_s_own_reranks_unless_that_is_off():
    mine = WordReranker()
    with open_temporary(rerank_model=mine) as memory:
        assert rerank(memory) == [0.5, 0.0]
        assert memory.with_settings(reranker="off").models.reranker is None
    assert mine.asked == [("token refresh", ["the token", "a bear"])]


# what leaves the machine


def test_secrets_stay_at_home():
    remote = Remote()
    with open_temporary(rerank_model=remote) as memory:
        rerank(memory, f"what is {SECRET}?", [f"it is {SECRET}", "café \ud800"])
    asked = str(remote.asked)
    assert (SECRET in asked, asked.count("REDACTED"), "\\ud800" in asked) == (False, 2, False)


def test_what_stays_in_the_process_is_not_changed_counted_or_switched_off():
    local = WordReranker()
    with open_temporary(
        rerank_model=local, models_enabled=False, embedding_tokens_per_hour=0
    ) as memory:
        memory.models.pause("Quiet.")
        rerank(memory, SECRET, ["a"])
        assert memory.models.calls() == []
    assert local.asked == [(SECRET, ["a"])]


def test_long_texts_are_cut_and_too_many_are_refused():
    remote = Remote()
    with open_temporary(rerank_model=remote) as memory:
        rerank(memory, "q " * 9_000, ["word " * 90_000])
        assert [len(remote.asked[0][0]), len(remote.asked[0][1][0])] == [2_000, 8_000]
        with pytest.raises(InvalidInputError, match="100"):
            rerank(memory, texts=["a"] * 101)
        assert len(rerank(memory, texts=["a"] * 100)) == 100


def test_nothing_is_asked_about_nothing():
    remote = Remote()
    with open_temporary(rerank_model=remote) as memory:
        assert rerank(memory, texts=[]) == []
        assert (remote.asked, calls(memory)) == ([], [])


# switch and budget


def test_a_call_is_noted_and_counted():
    with (
        scripted_server(computed(halves)) as server,
        open_temporary(reranker=f"cohere:m@{server.url}") as memory,
    ):
        assert rerank(memory) == [0.5, 0.5]
        call = memory.models.calls()[0]
        assert (call.model, call.purpose, call.outcome) == ("cohere-compatible:m", "rerank", "done")
        assert (call.is_measured, call.cost_dollars) == (False, None)
        assert 200 < memory.models.spent().embedding_tokens < 250


def test_cohere_is_paid_for_by_the_search(clock):
    class Cohere(Remote):
        name = "cohere:rerank-v3.5"

    with open_temporary(rerank_model=Cohere(), clock=clock, model_dollars_per_hour=0.006) as memory:
        for _ in range(3):
            rerank(memory)
        assert memory.models.spent().dollars == pytest.approx(0.006)
        with pytest.raises(BudgetSpentError):
            rerank(memory)


def test_settings_and_a_pause_turn_it_off():
    remote = Remote()
    with open_temporary(rerank_model=remote) as memory:
        with pytest.raises(ModelRefusedError, match="SMARA_MODELS_ENABLED"):
            rerank(memory.with_settings(models_enabled=False))
        memory.models.pause("Too dear.")
        with pytest.raises(ModelRefusedError, match=r"Too dear\."):
            rerank(memory)
        memory.models.resume()
        assert rerank(memory) == [0.5, 0.0]
    assert len(remote.asked) == 1


def test_a_spent_budget_sends_nothing():
    remote = Remote()
    with (
        open_temporary(rerank_model=remote, embedding_tokens_per_hour=50) as memory,
        pytest.raises(BudgetSpentError, match="embedding_tokens_per_hour"),
    ):
        rerank(memory)
    assert remote.asked == []


def test_what_is_read_does_not_eat_the_tokens_of_models_that_write():
    with open_temporary(rerank_model=Remote(), model_tokens_per_hour=50) as memory:
        assert rerank(memory) == [0.5, 0.0]
        assert memory.models.spent().tokens == 0


def test_a_failure_that_cost_nothing_counts_nothing_and_one_that_may_have_counts_what_was_reserved(
    clock,
):
    remote = Remote()
    with open_temporary(rerank_model=remote, clock=clock) as memory:
        remote.error = failure("remote", "key", may_be_billed=False)
        with pytest.raises(ModelRefusedError):
            rerank(memory)
        assert memory.models.spent().embedding_tokens == 0
        remote.error = failure("remote", "timeout", may_be_billed=True)
        with pytest.raises(ModelUnavailableError):
            rerank(memory, seconds=0.1)
        assert memory.models.spent().embedding_tokens > 300
        assert calls(memory) == [
            ("remote", "rerank", "model_refused", "key"),
            ("remote", "rerank", "model_unavailable", "timeout"),
        ]


def test_a_call_that_cannot_be_noted_is_not_made(tmp_path):
    remote = Remote()
    with (
        smara.open(tmp_path / "s.db") as other,
        smara.open(tmp_path / "s.db", rerank_model=remote, busy_timeout_seconds=0.05) as memory,
        other._rooms.database.write(),
        pytest.raises(ModelUnavailableError) as caught,
    ):
        rerank(memory)
    assert (caught.value.reason, remote.asked) == ("store", [])
    assert isinstance(caught.value.__cause__, DatabaseError)


# asking again, and the deadline


def test_it_asks_once_more_where_that_can_help(clock):
    with (
        scripted_server([status(503), computed(halves)]) as server,
        asking(server, clock) as memory,
    ):
        assert rerank(memory) == [0.5, 0.5]
        assert [call[2] for call in calls(memory)] == ["model_unavailable", "done"]


def test_it_does_not_ask_for_ever(clock):
    with scripted_server(status(503)) as server, asking(server, clock) as memory:
        with pytest.raises(ModelUnavailableError):
            rerank(memory)
        assert len(server.requests) == 2


def test_it_does_not_wait_past_the_deadline_to_ask_again(clock):
    with (
        scripted_server(status(429, retry_after=30)) as server,
        asking(server, clock) as memory,
        pytest.raises(ModelUnavailableError) as caught,
    ):
        rerank(memory, seconds=2)
    assert (len(server.requests), caught.value.retry_after_seconds, clock.monotonic()) == (
        1,
        30,
        0.0,
    )


def test_a_server_that_hangs_ends_at_the_deadline_and_stays_reserved():
    with (
        scripted_server(hang()) as server,
        open_temporary(reranker=f"cohere:m@{server.url}") as memory,
    ):
        with pytest.raises(ModelUnavailableError) as caught:
            rerank(memory, seconds=0.3)
        assert (caught.value.reason, calls(memory)) == (
            "timeout",
            [("cohere-compatible:m", "rerank", "model_unavailable", "timeout")],
        )
        assert memory.models.spent().embedding_tokens > 300


def test_what_does_not_come_back_at_all_is_left_behind(clock):
    """A model inside of the process cannot be stopped; who asked goes on at the deadline, on a fake
    clock.
    """
    let_go, ended = threading.Event(), []

    class Stuck(WordReranker):
        def rerank(self, query, texts, *, deadline_seconds):
            let_go.wait(LONG)
            ended.append(True)
            return super().rerank(query, texts, deadline_seconds=deadline_seconds)

    with open_temporary(rerank_model=Stuck(), clock=clock) as memory:
        caught = []

        def ask():
            try:
                rerank(memory, seconds=2)
            except ModelUnavailableError as error:
                caught.append(error.reason)

        asking = threading.Thread(target=ask)
        asking.start()
        assert clock.awaited()
        clock.advance(2.4)
        assert asking.is_alive()  # half a second is for closing connections
        clock.advance(0.2)
        asking.join(LONG)
        assert (caught, ended) == (["timeout"], [])
        let_go.set()


# what comes back


@pytest.mark.parametrize(
    "scores",
    [[0.5], [0.5] * 3, [], [0.5, float("nan")], [0.5, 1.1], [-0.1, 0.5], [0.5, None], [True, 0]],
)
@pytest.mark.parametrize("kind", [WordReranker, Remote])
def test_scores_of_any_reranker_are_looked_at(kind, scores):
    with open_temporary(rerank_model=kind(scores)) as memory, pytest.raises(BadReplyError):
        rerank(memory)


def test_a_setting_that_shows_to_be_wrong_only_when_asked_is_an_error_of_the_model(tmp_path):
    (cross_encoder(tmp_path / "broken") / "model.onnx").write_bytes(b"nothing")
    with (
        open_temporary(reranker=f"onnx:{tmp_path / 'broken'}") as memory,
        pytest.raises(ModelRefusedError, match=r"model\.onnx") as caught,
    ):
        rerank(memory)
    assert caught.value.reason == "config"


def test_a_bug_of_somebody_s_reranker_is_passed_on():
    remote = Remote()
    remote.error = ZeroDivisionError("a bug")
    with open_temporary(rerank_model=remote) as memory, pytest.raises(ZeroDivisionError):
        rerank(memory)


def test_whole_numbers_are_scores_too():
    assert check_scores([0, 1, 0.25], 3, "m") == [0.0, 1.0, 0.25]


@pytest.mark.parametrize("value", [-1e9, -30.0, -0.5, 0.0, 0.5, 30.0, 1e9])
def test_a_squeezed_number_lies_between_0_and_1_and_keeps_its_side(value):
    assert 0 <= sigmoid(value) <= 1
    assert (sigmoid(value) > 0.5) == (value > 0)
    assert sigmoid(value) + sigmoid(-value) == pytest.approx(1)
