"""The public fake: a model with a script."""

from __future__ import annotations

import pytest

from smara.core.deadline import Abort
from smara.errors import ModelAbortedError, ModelUnavailableError
from smara.models.chat import ChatReply, ChatRequest, Usage
from smara.testing import ScriptedModel, Slow


def test_steps_are_taken_one_by_one_and_the_last_repeats():
    model = ScriptedModel(
        ["one", ChatReply("two", Usage(3, 4)), lambda request: request.prompt.upper()]
    )
    said = [model.complete(ChatRequest(prompt)).text for prompt in ("a", "b", "c", "d")]
    assert said == ["one", "two", "C", "D"]
    assert [request.prompt for request in model.requests] == ["a", "b", "c", "d"]


def test_a_text_is_counted_roughly():
    assert ScriptedModel("four" * 4).complete(ChatRequest("x" * 40)).usage == Usage(11, 5)


def test_an_error_is_raised():
    with pytest.raises(KeyError):
        ScriptedModel([KeyError("x")]).complete(ChatRequest("hello"))


def test_a_slow_step_passes_time_up_to_the_deadline(clock):
    model = ScriptedModel([Slow(5, "in time"), Slow(50, "late")], clock=clock)
    assert model.complete(ChatRequest("hello", deadline_seconds=30)).text == "in time"
    with pytest.raises(ModelUnavailableError) as caught:
        model.complete(ChatRequest("hello", deadline_seconds=30))
    assert (caught.value.reason, clock.monotonic()) == ("timeout", 35)


def test_a_slow_step_needs_a_clock():
    with pytest.raises(ValueError, match="clock"):
        ScriptedModel([Slow(5)]).complete(ChatRequest("hello"))


def test_an_aborted_call_is_not_answered():
    abort = Abort()
    abort.set()
    with pytest.raises(ModelAbortedError):
        ScriptedModel().complete(ChatRequest("hello"), abort)
