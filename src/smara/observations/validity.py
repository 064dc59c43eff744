"""Whether a reply is one: whole, not a loop, not our own words. What fails here changes nothing.

Models answer nothing, half, the same line for ever, or their own instructions. Each check
looks for one of these, in linear time, and refuses with a ``reason``; the ``hint`` of a
refusal is one line for the model's next attempt. Whether a reply tells the truth is the
question of ``faithfulness``.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from smara.errors import BadReplyError
from smara.models.chat import Finish
from smara.observations.reply.sections import OBSERVATIONS, split_reply, without_thinking

Reason = Literal[
    "empty",
    "refused",
    "truncated",
    "repeated",
    "echo",
    "wrong_language",
    "unfounded",
    "shrunken",
    "not_smaller",
]

MOST_CHARACTERS = 400_000
"""A longer reply is not looked at beyond this: no observation of any batch is that long."""

_LEAST_LINES = 12
_VERBATIM_SHARE = 0.5
_COUNTING_SHARE = 0.67
_LINES_PER_MESSAGE = 5
_STUCK_CHARACTERS = 600
_STUCK_RATIO = 8
_ECHO_WORDS = 8
_ECHO_SHARE = 0.25
_ECHO_LEAST = 4

_DIGITS = re.compile(r"\d+")
_WORDS = re.compile(r"\w+")
_COMPLETE_END = tuple(".!?)]}\"'`”’。！？✅✔☑>|…")


def refuse(reason: Reason, message: str, hint: str) -> BadReplyError:
    """A refusal: what was wrong, and what the model is told before it tries again."""
    return BadReplyError(
        f"{message} Nothing was changed; it is tried again, within limits.",
        reason=reason,
        hint=hint,
    )


def check_reply(text: str, finish: Finish, messages: int) -> str:
    """A reply that has an end, says something, and does not turn in circles; without what was
    thought aloud.
    """
    if finish == "refusal":
        raise refuse(
            "refused", "The model refused to answer.", "it was a refusal. This is only note-taking."
        )
    if not text.strip():
        raise refuse("empty", "The model answered nothing.", "it was empty.")
    said = without_thinking(text[:MOST_CHARACTERS])
    _check_repetition(said, messages)
    if finish == "length" or len(text) > MOST_CHARACTERS:
        raise _cut_off()
    if not said.strip():
        raise refuse(
            "empty", "The model only thought aloud.", "it held no observation, only thoughts."
        )
    if _is_cut_off(said, finish):
        raise _cut_off()
    return said


def _cut_off() -> BadReplyError:
    return refuse(
        "truncated",
        "The model's reply was cut off.",
        "it was cut off before its end. Use fewer and shorter lines.",
    )


def _is_cut_off(text: str, finish: Finish) -> bool:
    """Whether a reply stops in the middle: its last section was never closed, and nothing shows
    that it is complete.

    Models also forget the last tag of a complete reply. Then the model says that it stopped
    by itself, and its last line ends like a line.
    """
    sections = split_reply(text)
    if sections.unclosed is None:
        return False
    if sections.unclosed != OBSERVATIONS and OBSERVATIONS in sections.lines:
        return False  # the observations are whole; what is lost is less than another call costs
    return finish != "stop" or not text.rstrip().rstrip("`").rstrip().endswith(_COMPLETE_END)


# repetition


def _check_repetition(text: str, messages: int) -> None:
    lines = [
        line for written in text.splitlines() if any(map(str.isalnum, line := written.strip()))
    ]
    if _is_verbatim_loop(lines) or _is_counting_loop(lines, messages) or any(map(_is_stuck, lines)):
        raise refuse(
            "repeated",
            "The model repeated itself without end.",
            "it said the same again and again. Note each thing once.",
        )


def _is_verbatim_loop(lines: Sequence[str]) -> bool:
    """Whether most of the reply was said before, word for word and with the same times."""
    if len(lines) < _LEAST_LINES:
        return False
    whole = sum(map(len, lines))
    return sum(len(line) for line in dict.fromkeys(lines)) < whole * (1 - _VERBATIM_SHARE)


def _is_counting_loop(lines: Sequence[str], messages: int) -> bool:
    """Whether the same line comes with other numbers, far more often than there is anything to
    tell.

    An agent may honestly run one command thirty times; so many lines for few messages are no
    honesty.
    """
    if len(lines) < 40 + _LINES_PER_MESSAGE * messages:
        return False
    forms = Counter(_DIGITS.sub("#", line) for line in lines)
    return len(lines) - len(forms) > len(lines) * _COUNTING_SHARE


def _is_stuck(line: str) -> bool:
    """Whether one line goes round in itself: it shrinks as no sentence does.

    Prose shrinks to a half, a list of paths of one folder to a quarter; a phrase that is
    repeated to fill 600 characters to less than an eighth.
    """
    written = line[:MOST_CHARACTERS].encode("utf-8", "replace")
    return len(line) >= _STUCK_CHARACTERS and len(zlib.compress(written, 1)) * _STUCK_RATIO < len(
        written
    )


# echo


def without_echo(text: str, own_words: str) -> str:
    """A reply without the lines that only repeat our own words; refused when a good part of it
    does.
    """
    own = _shingles(own_words)
    lines, echoed, said = [], 0, 0
    for line in text.splitlines():
        words = _words(line)
        said += len(words)
        if _is_echo(words, own):
            echoed += len(words)
        else:
            lines.append(line)
    if echoed > max(_ECHO_SHARE * said, 2 * _ECHO_WORDS):
        raise refuse(
            "echo",
            "The model repeated its instructions.",
            "it repeated these instructions. Note the history only.",
        )
    return "\n".join(lines)


def _is_echo(words: tuple[str, ...], own: frozenset[tuple[str, ...]]) -> bool:
    """Whether a line is one of ours: every run of eight words, or all of a line that has fewer."""
    if len(words) < _ECHO_LEAST:
        return False
    if len(words) < _ECHO_WORDS:
        return words in own
    runs = [words[at : at + _ECHO_WORDS] for at in range(len(words) - _ECHO_WORDS + 1)]
    return sum(run in own for run in runs) > len(runs) / 2


@lru_cache(maxsize=64)
def _shingles(own_words: str) -> frozenset[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    every = _words(own_words)
    found.update(every[at : at + _ECHO_WORDS] for at in range(len(every) - _ECHO_WORDS + 1))
    found.update(
        words for line in own_words.splitlines() if len(words := _words(line)) >= _ECHO_LEAST
    )
    return frozenset(found)


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORDS.findall(text.lower()))
