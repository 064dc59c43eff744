"""``smara models``: what thinks, what it used, and the switch, from the command line."""

from __future__ import annotations

import sys

import pytest

import smara as library
from smara.core.clock import SystemClock
from smara.errors import BadReplyError
from smara.models.chat import ChatReply, ChatRequest, Usage
from smara.testing import FakeClock, ScriptedModel
from tests.surfaces.shell import on_terminal, plain, smara


@pytest.fixture
def called(db: str) -> str:
    """A store in which a model was called an hour and a half ago, and just now with and without
    success.
    """
    replies = [
        ChatReply("one", Usage(9_000, 500)),
        ChatReply("two", Usage(1_000, 100)),
        ChatReply("", Usage(50, 0)),
    ]
    clock = FakeClock(SystemClock().now_ms() - 5_400_000)
    model = ScriptedModel(replies, name="ollama:qwen3")
    with library.open(db, clock=clock, chat_model=model) as memory:
        memory.models.complete(ChatRequest("hello"), purpose="observe")
        clock.advance(5_390)
        memory.models.complete(ChatRequest("hello"), purpose="reflect")
        with pytest.raises(BadReplyError):
            memory.models.complete(ChatRequest("hello"), purpose="reflect")
    return db


def test_status_says_offline_when_there_is_no_model(store):
    assert "models\toffline\n" in smara("status").out


def test_status_tells_the_models_and_what_they_used(called, monkeypatch):
    monkeypatch.setenv("SMARA_MODEL", "<100: ollama:qwen3; else: anthropic:claude-haiku-4-5")
    line = next(line for line in smara("status").out.splitlines() if line.startswith("models"))
    assert line == (
        "models\tollama:qwen3, anthropic:claude-haiku-4-5; 1,150 of 1,000,000 tokens and $0.00 of "
        "$2.00 this hour,"
        " 10,650 of 5,000,000 tokens and $0.00 of $5.00 today"
    )


def test_status_does_not_need_the_packages_of_the_vendors(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.setenv("SMARA_MODEL", "anthropic:claude-haiku-4-5")
    assert smara("status").code == 0


def test_show_tells_what_is_left(called):
    said = smara("models", "show")
    assert "left this hour\t998,850 tokens, $2.00" in said.out
    assert "left this day\t4,989,350 tokens, $5.00" in said.out


def test_show_tells_the_embedder_and_why_it_is_this_one(store, monkeypatch):
    assert (
        "embedder\twordllama-l2-256, 256 dimensions, on this machine: it is the"
        in smara("models", "show").out
    )
    monkeypatch.setenv("SMARA_EMBEDDER", "ollama:qwen3-embedding:4b@http://box:11434")
    said = smara("models", "show").out
    assert (
        "embedder\tollama/qwen3-embedding:4b@1024, 1,024 dimensions, on a server: the setting"
        in said
    )
    assert "20,000,000 embedding tokens" in said
    monkeypatch.setenv("SMARA_EMBEDDER", "off")
    assert "embedder\toff: the setting embedder is off" in smara("models", "show").out


def test_show_tells_an_embedder_that_cannot_be_used(store, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("SMARA_EMBEDDER", "openai")
    said = smara("models", "show")
    assert said.code == 0
    assert "embedder\tnone: OpenAI needs a key. Set OPENAI_API_KEY" in said.out


def test_calls_are_listed_newest_first(called):
    rows = smara("models", "calls").rows
    assert [row[1:] for row in rows] == [
        ["reflect", "ollama:qwen3", "empty", "50", "0", "0.0000"],
        ["reflect", "ollama:qwen3", "done", "1000", "100", "0.0000"],
        ["observe", "ollama:qwen3", "done", "9000", "500", "0.0000"],
    ]
    assert len(smara("models", "calls", "--limit", "1").rows) == 1


def test_a_call_in_json_has_its_documented_keys(called):
    call = smara("models", "calls", "--json").data[0]
    assert set(call) == {
        "id",
        "model",
        "purpose",
        "outcome",
        "reason",
        "inputTokens",
        "outputTokens",
        "cachedTokens",
        "costDollars",
        "isMeasured",
        "startedAt",
        "endedAt",
    }
    assert (call["outcome"], call["reason"], call["costDollars"]) == ("bad_reply", "empty", 0.0)


def test_a_pause_is_told_by_status_and_ended_by_resume(store, monkeypatch):
    monkeypatch.setenv("SMARA_ACTOR", "ann")
    smara("models", "pause", "--reason", "It repeats itself.")
    assert "models\toffline; paused by ann: It repeats itself." in smara("status").out
    assert smara("models", "show", "--json").data["paused"]["reason"] == "It repeats itself."
    assert smara("models", "resume").out == "Resumed model calls.\n"
    assert smara("models", "resume").out == "Models were not paused.\n"


def test_a_pause_without_words_is_refused(store):
    said = smara("models", "pause", "--reason", " ")
    assert (said.code, "must not be empty" in said.err) == (2, True)


def test_turned_off_is_told(store, monkeypatch):
    monkeypatch.setenv("SMARA_MODELS_ENABLED", "0")
    assert "models\toffline; disabled by models_enabled" in smara("status").out


def test_a_setting_that_cannot_be_read_is_told_with_its_forms(store, monkeypatch):
    monkeypatch.setenv("SMARA_MODEL", "claude")
    said = smara("models", "show")
    assert (said.code, "VENDOR:MODEL" in said.err) == (5, True)


def test_a_hostile_reason_is_not_obeyed(store):
    smara("models", "pause", "--reason", "\x1b[31mred\x1b[0m")
    assert "\x1b" not in plain(on_terminal("models", "show").out)
