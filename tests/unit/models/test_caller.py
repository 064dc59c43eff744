"""Every call of a model: the switch, redaction, the choice by size, the budget, retries, and one
row for each.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack

import pytest

import smara
from smara.core.deadline import Abort
from smara.errors import (
    BadReplyError,
    BudgetSpentError,
    ConfigError,
    InvalidInputError,
    MissingSettingError,
    ModelAbortedError,
    ModelRefusedError,
    ModelUnavailableError,
)
from smara.models.chat import ChatReply, ChatRequest, Usage
from smara.models.failures import failure
from smara.testing import ScriptedModel, Slow, open_temporary
from tests.models_server import ok, scripted_server

SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
BUSY = failure("scripted", "overloaded", may_be_billed=False)


@pytest.fixture
def thinking(clock):
    """Opens memories whose model follows a script: ``memory, model = thinking(["one"])``."""
    opened = []

    def open_with(steps="Fine.", **settings):
        model = ScriptedModel(steps, clock=clock)
        context = open_temporary(clock=clock, chat_model=model, **settings)
        opened.append(context)
        return context.__enter__(), model

    yield open_with
    for context in opened:
        context.__exit__(None, None, None)


def rows(memory):
    return [
        (call.outcome, call.reason, call.input_tokens, call.output_tokens)
        for call in memory.models.calls()
    ][::-1]


# one call


def test_a_call_gives_the_answer_and_leaves_a_row(thinking, clock):
    memory, _ = thinking(
        [ChatReply("Noted.", Usage(100, 20, cached_tokens=60), "stop", model="scripted-1")]
    )
    reply = memory.models.complete(ChatRequest("hello"), purpose="reflect")
    call = memory.models.calls()[0]
    assert reply.text == "Noted."
    assert (call.model, call.purpose, call.outcome, call.reason) == (
        "scripted",
        "reflect",
        "done",
        None,
    )
    assert (call.input_tokens, call.output_tokens, call.cached_tokens, call.is_measured) == (
        100,
        20,
        60,
        True,
    )
    assert (call.started_at, call.ended_at, call.cost_dollars) == (
        clock.now_ms(),
        clock.now_ms(),
        None,
    )


def test_the_model_gets_the_request_with_what_is_left_of_the_deadline(thinking):
    memory, model = thinking(model_deadline_seconds=45)
    memory.models.complete(ChatRequest("hello", "be brief", max_output_tokens=77, temperature=0.5))
    asked = model.requests[0]
    assert (asked.prompt, asked.system, asked.max_output_tokens, asked.temperature) == (
        "hello",
        "be brief",
        77,
        0.5,
    )
    assert asked.deadline_seconds == 45


def test_secrets_do_not_leave_the_house(thinking):
    memory, model = thinking()
    memory.models.complete(ChatRequest(f"my token is {SECRET}", f"never say {SECRET}"))
    assert SECRET not in model.requests[0].prompt + model.requests[0].system
    assert "[REDACTED:" in model.requests[0].prompt


def test_letters_that_cannot_be_sent_are_replaced(thinking):
    memory, model = thinking()
    memory.models.complete(ChatRequest("a\ud800b"))
    assert model.requests[0].prompt == "a?b"


def test_the_log_tells_of_the_call_and_nothing_that_was_said(thinking, caplog):
    memory, _ = thinking("the walrus")
    with caplog.at_level(logging.INFO, "smara"):
        memory.models.complete(ChatRequest("the zebra"), purpose="observe")
    line = next(
        record.getMessage() for record in caplog.records if "model.called" in record.getMessage()
    )
    assert "purpose=observe" in line
    assert "outcome=done" in line
    assert "walrus" not in caplog.text
    assert "zebra" not in caplog.text


# replies that cannot be used


@pytest.mark.parametrize(
    ("reply", "error", "reason"),
    [
        (ChatReply("", Usage(10, 0)), BadReplyError, "empty"),
        (ChatReply(" \n\t", Usage(10, 3)), BadReplyError, "empty"),
        (ChatReply("The user", Usage(10, 50), "length"), BadReplyError, "truncated"),
        (ChatReply("no " * 900, Usage(10, 900)), BadReplyError, "too_long"),
        (ChatReply("no " * 9_000, Usage(10, 5)), BadReplyError, "too_long"),
        (ChatReply("I cannot.", Usage(10, 4), "refusal"), ModelRefusedError, "content"),
        (ChatReply("", Usage(10, 4), "refusal"), ModelRefusedError, "content"),
    ],
    ids=[
        "empty",
        "white",
        "truncated",
        "long",
        "longer than it says",
        "refusal",
        "refusal without words",
    ],
)
def test_a_reply_that_cannot_be_used_is_an_error_is_paid_and_not_asked_for_again(
    thinking, reply, error, reason
):
    memory, model = thinking([reply])
    with pytest.raises(error) as caught:
        memory.models.complete(ChatRequest("hello", max_output_tokens=50))
    assert (caught.value.reason, caught.value.is_retryable, len(model.requests)) == (
        reason,
        False,
        1,
    )
    assert rows(memory) == [(caught.value.code, reason, 10, reply.usage.output_tokens)]


# asking again


def test_it_asks_again_when_that_can_help_and_each_attempt_is_a_call(thinking, clock):
    memory, model = thinking([BUSY, BUSY, "At last."])
    assert memory.models.complete(ChatRequest("hello")).text == "At last."
    assert len(model.requests) == 3
    assert [row[:2] for row in rows(memory)] == [("model_unavailable", "overloaded")] * 2 + [
        ("done", None)
    ]
    assert clock.monotonic() > 0


def test_the_deadline_holds_for_all_attempts_together(thinking, clock):
    memory, model = thinking([Slow(8, BUSY), Slow(90, "late")])
    with pytest.raises(ModelUnavailableError) as caught:
        memory.models.complete(ChatRequest("hello", deadline_seconds=20))
    assert (caught.value.reason, clock.monotonic(), len(model.requests)) == ("timeout", 20.0, 2)
    assert model.requests[1].deadline_seconds < 12


def test_a_slow_answer_within_the_deadline_is_taken(thinking, clock):
    memory, _ = thinking([Slow(19, "just in time")])
    assert memory.models.complete(ChatRequest("hello", deadline_seconds=20)).text == "just in time"
    assert clock.monotonic() == 19


def test_a_call_that_was_taken_back_says_so(thinking):
    memory, _ = thinking()
    abort = Abort()
    abort.set()
    with pytest.raises(ModelAbortedError):
        memory.models.complete(ChatRequest("hello"), abort=abort)
    assert rows(memory) == [("model_aborted", None, 0, 0)]


def test_each_attempt_has_to_fit_the_budget(thinking):
    """1. The first attempt fails in a way that may be charged. 2. A second would pass the limit: it
    is not made.
    """
    memory, model = thinking(
        [failure("scripted", "connection", may_be_billed=True)], model_tokens_per_hour=300
    )
    with pytest.raises(BudgetSpentError):
        memory.models.complete(ChatRequest("hello", max_output_tokens=150))
    assert len(model.requests) == 1


def test_an_error_of_the_model_itself_is_noted_and_passed_on(thinking):
    memory, _ = thinking([ZeroDivisionError("a bug")])
    with pytest.raises(ZeroDivisionError):
        memory.models.complete(ChatRequest("hello", max_output_tokens=100))
    assert [row[0] for row in rows(memory)] == ["failed"]
    assert memory.models.spent().tokens > 100


def test_a_store_that_is_busy_when_a_call_ends_does_not_lose_the_answer(tmp_path, caplog):
    """The reservation goes on counting in its place."""
    with smara.open(tmp_path / "s.db") as other, ExitStack() as held:

        def answer_while_the_store_is_busy(request):
            held.enter_context(other._rooms.database.write())
            return "paid for"

        model = ScriptedModel([answer_while_the_store_is_busy])
        with smara.open(tmp_path / "s.db", chat_model=model, busy_timeout_seconds=0.05) as memory:
            assert (
                memory.models.complete(ChatRequest("hello", max_output_tokens=100)).text
                == "paid for"
            )
            held.close()
            assert memory.models.spent().tokens > 100
            assert rows(memory)[0][0] == "running"
    assert "model.unsettled" in caplog.text


# which model


def test_offline_is_the_default_and_a_call_says_what_to_set(clock):
    with open_temporary() as memory:
        assert (memory.models.is_offline, memory.models.names) == (True, [])
        with pytest.raises(MissingSettingError, match="SMARA_MODEL"):
            memory.models.complete(ChatRequest("hello"))
        assert memory.models.calls() == []


def test_a_setting_that_cannot_be_read_is_told_when_models_are_used():
    with open_temporary(model="claude") as memory, pytest.raises(ConfigError, match="VENDOR:MODEL"):
        memory.models.complete(ChatRequest("hello"))


@pytest.mark.usefixtures("vendor_keys")
def test_tiers_choose_by_the_size_of_the_input():
    with scripted_server(ok()) as server:
        small, large = (
            server.model("openai-compatible", "small"),
            server.model("anthropic", "large"),
        )
        with open_temporary(model=f"<100: {small}; else: {large}") as memory:
            memory.models.complete(ChatRequest("hello"))
            memory.models.complete(ChatRequest("hello there " * 200))
            assert memory.models.names == ["openai-compatible:small", "anthropic:large"]
    assert [asked.body["model"] for asked in server.requests] == ["small", "large"]


@pytest.mark.usefixtures("vendor_keys")
def test_the_list_price_of_a_vendor_s_model_is_noted():
    with (
        scripted_server(ok("Fine.", 10_000, 1_000)) as server,
        open_temporary(model=server.model("anthropic", "claude-haiku-4-5")) as memory,
    ):
        memory.models.complete(ChatRequest("hello"))
        assert memory.models.calls()[0].cost_dollars == pytest.approx(0.015)
        assert memory.models.spent().dollars == pytest.approx(0.015)


# the switch


def test_the_setting_turns_every_model_off(thinking):
    memory, model = thinking(models_enabled=False)
    with pytest.raises(ModelRefusedError, match="SMARA_MODELS_ENABLED") as caught:
        memory.models.complete(ChatRequest("hello"))
    assert (caught.value.reason, model.requests, memory.models.calls()) == ("disabled", [], [])


def test_a_pause_holds_between_two_attempts(thinking):
    def pause_and_fail(request):
        memory.models.pause("Too dear.")
        raise BUSY

    memory, model = thinking([pause_and_fail, "never"])
    with pytest.raises(ModelRefusedError, match=r"Too dear\."):
        memory.models.complete(ChatRequest("hello"))
    assert len(model.requests) == 1


def test_the_reason_of_a_pause_is_needed_and_keeps_no_secret(thinking):
    memory, _ = thinking()
    with pytest.raises(InvalidInputError):
        memory.models.pause("  ")
    assert SECRET not in memory.models.pause(f"it leaked {SECRET}").reason
    assert memory.models.find_pause().reason.startswith("it leaked [REDACTED")


def test_status_tells_what_thinks_and_what_it_used(thinking):
    memory, _ = thinking(
        [ChatReply("Noted.", Usage(100, 20))], model_prices="scripted=10/100", actor="ann"
    )
    memory.models.complete(ChatRequest("hello"))
    memory.models.pause("Lunch.")
    status = memory.status()["models"]
    window = {"calls": 1, "tokens": 120, "embeddingTokens": 0, "dollars": 0.003, "unpricedCalls": 0}
    limits = {"tokensLimit": 1_000_000, "embeddingTokensLimit": 20_000_000, "dollarsLimit": 2.0}
    assert status["hour"] == {**window, **limits}
    limits = {"tokensLimit": 5_000_000, "embeddingTokensLimit": 100_000_000, "dollarsLimit": 5.0}
    assert status["day"] == {**window, **limits}
    assert (status["models"], status["enabled"], status["paused"]["actor"]) == (
        ["scripted"],
        True,
        "ann",
    )


def test_the_async_face_has_models_too(clock):
    import asyncio

    async def ask():
        memory = await smara.open_async(":memory:", chat_model=ScriptedModel("Hi."), clock=clock)
        async with memory:
            return await memory.models.complete(ChatRequest("hello"))

    assert asyncio.run(ask()).text == "Hi."
