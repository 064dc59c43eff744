"""A reply that is empty, cut off, a loop or an echo is refused; an honest one is not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smara.errors import BadReplyError
from smara.observations.models import ObserveRequest, ReflectRequest
from smara.observations.reply.check import MOST_CHARACTERS, check_reply, without_echo
from smara.observations.request import TranscriptLimits, observer_request, reflector_request
from tests.unit.observations.replies import GOOD, conversation


def refusal(check, *arguments):
    """The error with which something is refused, if it is."""
    try:
        check(*arguments)
    except BadReplyError as error:
        return error
    return None


def reason(text, finish="stop", messages=5):
    error = refusal(check_reply, text, finish, messages)
    return error.reason if error else None


def test_every_refusal_has_a_sentence_for_the_next_attempt():
    error = refusal(check_reply, "", "stop", 5)
    assert error.hint == "it was empty."


def test_good_reply_is_accepted_with_and_without_thinking():
    assert check_reply(GOOD, "stop", 5) == GOOD
    assert "<think>" not in check_reply(f"<think>\nhm\n</think>\n{GOOD}", "stop", 5)


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b" * 0])
def test_nothing_is_empty(text):
    assert reason(text) == "empty"


def test_thoughts_alone_are_empty():
    assert reason("<think>\nI should note the bug.\n</think>") == "empty"


def test_refusal_of_the_model_is_told_apart():
    assert reason("", "refusal") == "refused"


# cut off


@pytest.mark.parametrize("at", range(40, len(GOOD) - 60, 17))
def test_reply_that_the_model_says_was_cut_off_is_truncated_wherever_it_was_cut(at):
    assert reason(GOOD[:at], "length") == "truncated"


def test_reply_that_stops_in_the_middle_of_a_line_is_truncated_whatever_the_model_says():
    cut = GOOD[: GOOD.index("null check") + 4]
    assert reason(cut) == "truncated"
    assert reason(cut, "other") == "truncated"


def test_forgotten_closing_tag_is_forgiven_when_the_reply_is_whole():
    assert reason("<observations>\n* 🔴 (09:15) User said hello.\n") is None
    assert reason("<observations>\n* 🔴 (09:15) User said hello.\n", "other") == "truncated"
    assert reason(GOOD.replace("</observations>\n", "")) is None
    assert reason(GOOD.replace("</thread-title>", ""), "other") is None


# loops


def test_block_of_lines_said_again_and_again_is_repeated():
    block = "\n".join(
        f"* 🟡 (09:{minute:02d}) Agent looked at file number {minute} of the login"
        for minute in range(21)
    )
    assert reason(f"<observations>\n{(block + chr(10)) * 62}</observations>") == "repeated"


def test_one_line_for_ever_is_repeated_even_when_it_was_cut_off():
    assert (
        reason("<observations>\n" + "* 🟡 (09:15) Agent ran npm test\n" * 10_000, "length")
        == "repeated"
    )


def test_phrase_that_goes_round_within_one_line_is_repeated():
    assert (
        reason(
            "<observations>\n* 🟡 (09:15) Agent ran the tests "
            + "and the tests " * 300
            + "\n</observations>"
        )
        == "repeated"
    )
    assert (
        reason("<observations>\n* 🟡 (09:15) " + "重跑测试" * 400 + "\n</observations>")
        == "repeated"
    )
    assert reason("<observations>\n* 🟡 (09:15) " + "a" * 5_000 + "\n</observations>") == "repeated"


def test_line_that_only_counts_on_is_repeated():
    lines = "\n".join(
        f"* 🟡 ({at // 60 % 24:02d}:{at % 60:02d}) Agent ran step {at}" for at in range(600)
    )
    assert reason(f"<observations>\n{lines}\n</observations>") == "repeated"


def test_loop_of_three_hundred_thousand_tokens_is_refused_without_being_read_to_its_end():
    assert (
        reason("<observations>\n" + "* 🟡 (09:15) Agent ran npm test\n" * 60_000, "stop")
        == "repeated"
    )
    different = "<observations>\n" + "\n".join(
        f"* 🟡 (09:15) {hash(str(at)):x} {hash((at, 1)):x} {hash((at, 2)):x}"
        for at in range(20_000)
    )
    assert len(different) > MOST_CHARACTERS
    assert reason(different, "stop", messages=9_000) == "truncated"


COMPONENTS = """Button Card Dialog Drawer Footer Form Grid Header Icon Input Label Link List Menu Modal Nav Page Panel
    Popover Select Slider Spinner Switch Table Tabs Text Toast Toggle Tooltip Tree Upload Video"""  # noqa: E501
HONEST = {
    "one command thirty times": "\n".join(
        f"* 🟡 (09:{at:02d}) Agent ran pytest -q: {30 - at} failed" for at in range(30)
    ),
    "details that repeat": "\n".join(
        f"* 🟡 (09:{at:02d}) Agent tried variant {at} of the parser\n  * -> ran pytest"
        for at in range(20)
    ),
    "long list of paths": "* 🟡 (09:15) Agent changed "
    + ", ".join(f"src/components/{name}/index.tsx" for name in re.findall(r"\w+", COMPONENTS)),
    "few short lines": "* 🟢 (09:15) a b\n" * 5,
    "the same in ten files": "\n".join(
        f"* 🟡 (09:15) Agent added 'use strict' to src/{name}.js" for name in "abcdefghijklmnopqrst"
    ),
}


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_honest_repetition_is_accepted(text):
    assert reason(f"<observations>\n{text}\n</observations>", messages=20) is None


# echo


OWN = observer_request(ObserveRequest(conversation()), TranscriptLimits()).own_words
REFLECTOR = reflector_request(ReflectRequest([]), 0, 100).own_words


@pytest.mark.parametrize("own", [OWN, REFLECTOR], ids=["observer", "reflector"])
@pytest.mark.parametrize("share", [1.0, 0.5, 0.3])
def test_reply_that_repeats_the_instructions_is_an_echo(own, share):
    with pytest.raises(BadReplyError) as caught:
        without_echo(own[: int(len(own) * share)], own)
    assert caught.value.reason == "echo"


def test_instructions_dressed_up_as_observations_are_an_echo():
    dressed = "\n".join(
        f"* 🔴 (09:15) {line.strip('- ')}" for line in OWN.splitlines() if len(line) > 60
    )
    with pytest.raises(BadReplyError) as caught:
        without_echo(f"<observations>\n{dressed}\n</observations>", OWN)
    assert caught.value.reason == "echo"


def test_example_of_the_prompt_that_slipped_into_a_good_reply_is_taken_out():
    example = next(
        line
        for line in OWN.splitlines()
        if "switching from Express" in line and line.startswith("*")
    )
    slot = "* 🔴 (HH:MM #N) fact. (meaning YYYY-MM-DD)"
    text = without_echo(
        GOOD.replace("Date: 2025-12-05", f"Date: 2025-12-05\n{example}\n{slot}"), OWN
    )
    assert example not in text
    assert slot not in text
    assert text.splitlines() == GOOD.splitlines()


def test_good_reply_is_no_echo():
    assert without_echo(GOOD, OWN).splitlines() == GOOD.splitlines()


def test_line_about_the_same_subject_as_the_prompt_is_no_echo():
    line = (
        "* 🔴 (09:15) User asked to keep exact names, paths and line numbers in the summary of "
        "src/memory.py"
    )
    assert line in without_echo(f"{GOOD}{line}", OWN)


@settings(max_examples=200)
@given(
    st.text(st.characters(exclude_categories=()), max_size=400),
    st.sampled_from(["stop", "length", "refusal", "other"]),
    st.integers(0, 50),
)
def test_any_text_is_accepted_or_refused_with_a_reason(text, finish, messages):
    assert reason(text, finish, messages) in {None, "empty", "refused", "truncated", "repeated"}
    error = refusal(without_echo, text, OWN)
    assert error is None or error.reason == "echo"
