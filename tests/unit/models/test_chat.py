"""A request says everything itself, and a call can be taken back."""

from __future__ import annotations

import pytest

from smara.core.deadline import Abort
from smara.errors import InvalidInputError
from smara.models.chat import ChatRequest, Usage


@pytest.mark.parametrize(
    "given", [{"max_output_tokens": 0}, {"deadline_seconds": 0}, {"deadline_seconds": -1.0}]
)
def test_numbers_that_cannot_be_are_refused(given):
    with pytest.raises(InvalidInputError, match=next(iter(given))):
        ChatRequest("hello", **given)


@pytest.mark.parametrize("place", ["settings", "provider_options"])
@pytest.mark.parametrize(
    "name", ["max_tokens", "max_completion_tokens", "n", "stream", "max_retries", "timeout"]
)
def test_what_the_budget_relies_on_cannot_be_changed_behind_its_back(place, name):
    with pytest.raises(InvalidInputError, match=name):
        ChatRequest("hello", **{place: {name: 100_000}})


def test_usage_adds_up():
    assert Usage(10, 5, cached_tokens=8).tokens == 15


def test_abort_calls_whoever_waits_for_it():
    abort, told = Abort(), []
    with abort.calling(lambda: told.append("first")):
        abort.set()
    assert told == ["first"]
    assert abort.is_set()


def test_abort_that_was_set_before_is_noticed_at_once():
    abort, told = Abort(), []
    abort.set()
    with abort.calling(lambda: told.append("late")):
        assert told == ["late"]


def test_who_has_left_is_not_called():
    abort, told = Abort(), []
    with abort.calling(lambda: told.append("gone")):
        pass
    abort.set()
    assert told == []
