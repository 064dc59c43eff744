"""The reflector with a model: presses harder until it is small enough, stops when nothing gets
smaller, never grows.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smara.core.tokens import counter_for
from smara.errors import BadReplyError, ModelUnavailableError
from smara.models.chat import ChatReply
from smara.observations.models import Note, ReflectRequest
from smara.observations.observer import ModelReflector
from smara.observations.render import render
from smara.testing import FakeClock, ScriptedModel, Slow
from tests.unit.observations.replies import at


def handler_note(number: int) -> Note:
    """One of forty notes: ten a day, from 09:00 on, every hour one."""
    return Note(
        "high" if number % 4 == 0 else "medium",
        "code",
        f"Agent wrote handler_{number}(event: Event) -> None in "
        f"src/handlers/part_{number}.py:{number}1 for billing",
        said_at=at(f"2025-12-0{number // 10 + 1} {9 + number % 10:02d}:00"),
        first_seq=number * 3 + 1,
        last_seq=number * 3 + 3,
    )


NOTES = tuple(handler_note(number) for number in range(40))
COUNTER = counter_for()
BEFORE = COUNTER.count(render(NOTES, "UTC")).tokens


def filler(seed: int, words: int) -> str:
    """Words that say nothing, but not the same thing again and again."""
    syllables = ("ba", "ko", "li", "mu", "ne", "ra", "so", "ti", "va", "zu")
    made = [
        syllables[(seed + at) % 10] + syllables[at * 7 % 10] + syllables[at // 10 % 10]
        for at in range(4 * words)
    ]
    return "".join(f" {word}" for word in made)


def reply(count: int, words: int = 0) -> str:
    """A reflection of so many lines, each for some of the notes; ``words`` make it longer."""
    per_line = -(-len(NOTES) // count)
    lines = []
    for first in range(0, len(NOTES), per_line):
        merged = NOTES[first : first + per_line]
        names = ", ".join(
            f"handler_{first + at}() in src/handlers/part_{first + at}.py"
            for at in range(len(merged))
        )
        lines.append(f"* 🔴 (09:00-16:00) Agent wrote for billing: {names}" + filler(first, words))
    return (
        "<observations>\nDate: 2025-12-01\n"
        + "\n".join(lines)
        + "\n</observations>\n<current-task>\nPrimary: billing\n</current-task>"
    )


def short(keep: int) -> str:
    names = ", ".join(f"handler_{number}" for number in range(0, len(NOTES), keep))
    return (
        "<observations>\n* 🔴 (2025-12-01 09:00) Agent wrote for billing in src/handlers/: "
        f"{names}\n</observations>"
    )


def reflect(*steps, target=750, level=0, clock=None, **settings):
    model = ScriptedModel(list(steps), name="anthropic:test", clock=clock)
    reflector = ModelReflector(model, clock=clock, **settings)
    try:
        return reflector.reflect(ReflectRequest(NOTES, level=level, target_tokens=target)), model
    except BadReplyError as error:
        return error, model


def size(draft):
    return COUNTER.count(render(draft.notes, "UTC")).tokens


def levels(model):
    words = ("eight", "six", "four", "two")
    return [
        next((at for at, word in enumerate(words, 1) if f"{word} tenths" in request.prompt), 0)
        for request in model.requests
    ]


def test_result_that_is_small_enough_is_taken_at_once():
    draft, model = reflect(reply(10))
    assert size(draft) <= 750
    assert levels(model) == [0]
    assert draft.current_task == "Primary: billing"


def test_method_names_the_model_and_the_version_of_the_prompt():
    assert (
        ModelReflector(ScriptedModel("x", name="ollama:qwen3")).method
        == "model:ollama:qwen3 reflector@2"
    )


def test_levels_go_up_while_the_result_is_too_large():
    draft, model = reflect(reply(10, words=40), reply(10, words=20), reply(10, words=10), reply(10))
    assert levels(model) == [0, 1, 2, 3]
    assert size(draft) <= 750


def test_it_stops_when_a_level_makes_nothing_smaller_and_keeps_the_smallest():
    draft, model = reflect(reply(10, words=5), reply(10, words=5), reply(10), target=100)
    assert levels(model) == [0, 1]
    assert size(draft) < BEFORE


def test_worse_result_of_a_later_level_does_not_replace_a_better_one():
    draft, model = reflect(reply(10), reply(10, words=5), target=100)
    assert size(draft) == size(reflect(reply(10))[0])
    assert len(model.requests) == 2


def test_it_never_goes_beyond_the_last_level():
    steps = [reply(10, words) for words in (40, 30, 20, 10, 3, 1)]
    draft, model = reflect(*steps, target=10)
    assert levels(model) == [0, 1, 2, 3, 4]
    assert size(draft) < BEFORE


def test_level_of_the_request_is_where_it_begins():
    assert levels(reflect(reply(10), level=2)[1]) == [2]
    assert levels(reflect(reply(10), level=9)[1]) == [4]


def test_result_that_is_no_smaller_than_the_notes_is_never_returned():
    error, model = reflect(reply(40, words=40))
    assert isinstance(error, BadReplyError)
    assert error.reason == "not_smaller"
    assert levels(model) == [0, 1]


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "<observations></observations>",
        "<observations>\n* 🔴 (09:00) Agent worked\n</observations>",
    ],
)
def test_empty_or_shrunken_reply_is_asked_again_and_then_refused(bad):
    error, model = reflect(bad)
    assert error.reason in ("empty", "shrunken")
    # One that lacked nothing but room is given it once more.
    assert len(model.requests) == (3 if error.reason == "empty" else 2)
    assert "could not be used" in model.requests[1].prompt


def test_truncated_reply_changes_nothing():
    error, _ = reflect(ChatReply(reply(10)[:400], finish="length"))
    assert error.reason == "truncated"


def test_reflection_that_lost_the_names_of_high_lines_is_refused():
    assert reflect(short(39))[0].reason == "shrunken"


def test_bad_reply_at_a_later_level_keeps_what_was_reached():
    draft, model = reflect(reply(10, words=5), "", "", target=100)
    assert draft.notes
    assert levels(model) == [0, 1, 1, 1]


def test_model_that_goes_away_at_a_later_level_keeps_what_was_reached():
    draft, _ = reflect(reply(10, words=5), ModelUnavailableError("down"), target=100)
    assert draft.notes
    with pytest.raises(ModelUnavailableError):
        reflect(ModelUnavailableError("down"))


def test_levels_share_one_deadline():
    clock = FakeClock()
    draft, model = reflect(
        Slow(59.5, reply(10, words=5)), reply(10), target=100, clock=clock, deadline_seconds=60
    )
    assert len(model.requests) == 1
    assert draft.notes


def test_times_and_messages_come_from_the_notes_that_were_merged():
    draft, _ = reflect(reply(10))
    first = draft.notes[0]
    assert first.said_at == NOTES[0].said_at
    assert (first.first_seq, first.last_seq) == (1, 24)


def test_message_numbers_in_a_reflection_are_not_believed():
    draft, _ = reflect(reply(10).replace("(09:00-16:00)", "(09:00 #100)"))
    assert draft.notes[0].first_seq == 1


@settings(max_examples=60)
@given(
    st.lists(
        st.integers(1, 40).map(reply)
        | st.integers(0, 60).map(lambda words: reply(10, words))
        | st.text(max_size=80),
        min_size=1,
        max_size=5,
    )
)
def test_result_is_valid_and_smaller_or_there_is_none(steps):
    result, model = reflect(*steps, target=300)
    assert len(model.requests) <= 10
    assert isinstance(result, BadReplyError) or 0 < size(result) < BEFORE
