"""Asking again: a few times, with growing waits, as the server asked, and never past the
deadline.
"""

from __future__ import annotations

import pytest

from smara.core.deadline import Abort
from smara.errors import (
    BadReplyError,
    BudgetSpentError,
    ModelAbortedError,
    ModelRefusedError,
    ModelUnavailableError,
)
from smara.models.failures import RetryRules, with_retries


def unavailable(**facts):
    return ModelUnavailableError("no answer", **facts)


class Script:
    """Raises its errors one by one, then answers; remembers when it was asked."""

    def __init__(self, clock, *errors, takes=0.0):
        self.clock, self.errors, self.takes, self.asked_at = clock, list(errors), takes, []

    def __call__(self):
        self.asked_at.append(self.clock.monotonic())
        self.clock.advance(self.takes)
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


def ask(script, seconds=60.0, drawn=1.0, abort=None, **rules):
    ends_at = script.clock.monotonic() + seconds
    return with_retries(
        script, ends_at, script.clock, abort=abort, rules=RetryRules(**rules), draw=lambda: drawn
    )


def test_the_first_answer_is_taken_without_a_wait(clock):
    script = Script(clock)
    assert ask(script) == "answer"
    assert script.asked_at == [0.0]


def test_waits_double_and_are_bounded(clock):
    script = Script(clock, *[unavailable()] * 6)
    assert ask(script, attempts=7, longest_wait_seconds=5.0) == "answer"
    assert script.asked_at == [0, 1, 3, 7, 12, 17, 22]


def test_half_of_a_wait_is_chance():
    rules = RetryRules()
    assert [rules.wait_seconds(1, None, drawn) for drawn in (0.0, 0.5, 1.0)] == [0.5, 0.75, 1.0]


def test_it_stops_after_the_last_attempt(clock):
    script = Script(clock, *[unavailable()] * 9)
    with pytest.raises(ModelUnavailableError):
        ask(script)
    assert len(script.asked_at) == 3


def test_the_server_says_how_long_to_wait(clock):
    script = Script(clock, unavailable(retry_after_seconds=9.0))
    assert ask(script) == "answer"
    assert script.asked_at == [0, 9]


def test_a_wait_past_the_deadline_is_not_begun(clock):
    script = Script(clock, unavailable(retry_after_seconds=90.0))
    with pytest.raises(ModelUnavailableError) as caught:
        ask(script, seconds=60)
    assert (script.asked_at, clock.monotonic(), caught.value.retry_after_seconds) == (
        [0],
        0.0,
        90.0,
    )


def test_the_deadline_covers_all_attempts_together(clock):
    script = Script(clock, *[unavailable()] * 9, takes=4.0)
    with pytest.raises(ModelUnavailableError):
        ask(script, seconds=10, attempts=9)
    assert script.asked_at == [0, 5]
    assert clock.monotonic() <= 10


@pytest.mark.parametrize(
    "error", [ModelRefusedError, BadReplyError, BudgetSpentError, ModelAbortedError, ValueError]
)
def test_what_asking_again_cannot_help_is_not_asked_again(clock, error):
    script = Script(clock, error("no"))
    with pytest.raises(error):
        ask(script)
    assert len(script.asked_at) == 1


def test_a_wait_can_be_taken_back(clock):
    abort = Abort()
    abort.set()
    script = Script(clock, unavailable())
    with pytest.raises(ModelAbortedError):
        ask(script, abort=abort)
    assert (len(script.asked_at), clock.monotonic()) == (1, 0.0)
