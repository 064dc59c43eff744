"""Check that a reply is complete, original and faithful to its messages.

Models return nothing, half a reply, one line in a loop, or their own instructions; they
change the language or invent names. Each check looks for one of these in linear time.
A refusal carries a reason, and a hint for the model's next attempt.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from smara.core.startup.regex import regex
from smara.core.tokens import estimate_o200k
from smara.errors import BadReplyError
from smara.models.chat import Finish
from smara.observations.models import Note, ObservationDraft
from smara.observations.reply.mentions import SourceText, mentions_in
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
_VERBATIM_SHARE, _COUNTING_SHARE = 0.5, 0.67
_LINES_PER_MESSAGE = 5
_STUCK_CHARACTERS, _STUCK_RATIO = 600, 8
_ECHO_WORDS, _ECHO_SHARE, _ECHO_LEAST = 8, 0.25, 4

_DIGITS = regex(r"\d+")
_WORDS = regex(r"\w+")
_COMPLETE_END = tuple(".!?)]}\"'`”’。！？✅✔☑>|…")


def refuse(reason: Reason, message: str, hint: str) -> BadReplyError:
    """Make a refusal: what was wrong, and a hint for the model."""
    return BadReplyError(
        f"{message} Nothing was changed; it is tried again, within limits.",
        reason=reason,
        hint=hint,
    )


def check_reply(text: str, finish: Finish, messages: int) -> str:
    """Return a complete reply without thoughts, or refuse it."""
    if finish == "refusal":
        raise refuse(
            "refused", "The model refused to answer.", "it was a refusal. This is only note-taking."
        )
    if not text.strip():
        raise refuse("empty", "The model answered nothing.", "it was empty.")
    answer = without_thinking(text[:MOST_CHARACTERS])
    _check_repetition(answer, messages)
    if finish == "length" or len(text) > MOST_CHARACTERS:
        raise _cut_off()
    if not answer.strip():
        raise refuse(
            "empty", "The model only thought aloud.", "it held no observation, only thoughts."
        )
    sections = split_reply(answer)
    # Models also forget the last tag of a complete reply: then the model says that it stopped by
    # itself, and its last line ends like a line. If only a later section was cut off, what is lost
    # is less than another call costs.
    is_open = sections.unclosed == OBSERVATIONS or (
        sections.unclosed is not None and OBSERVATIONS not in sections.lines
    )
    has_end = answer.rstrip().rstrip("`").rstrip().endswith(_COMPLETE_END)
    if is_open and not (finish == "stop" and has_end):
        raise _cut_off()
    return answer


def _cut_off() -> BadReplyError:
    return refuse(
        "truncated",
        "The model's reply was cut off.",
        "it was cut off before its end. Use fewer and shorter lines.",
    )


# repetition


def _check_repetition(text: str, messages: int) -> None:
    lines = [
        line for written in text.splitlines() if any(map(str.isalnum, line := written.strip()))
    ]
    # Most of the reply was said before, word for word and with the same times.
    distinct = sum(map(len, dict.fromkeys(lines)))
    is_verbatim = len(lines) >= _LEAST_LINES and distinct < sum(map(len, lines)) * (
        1 - _VERBATIM_SHARE
    )
    # The same line comes with other numbers, far more often than there is anything to tell. An
    # agent may honestly run one command thirty times; so many lines for few messages are no
    # honesty.
    forms = {_DIGITS.sub("#", line) for line in lines}
    is_counting = (
        len(lines) >= 40 + _LINES_PER_MESSAGE * messages
        and len(lines) - len(forms) > len(lines) * _COUNTING_SHARE
    )
    # One line goes round in itself, and shrinks as no sentence does: prose to a half, a list of
    # paths of one folder to a quarter; a repeated phrase to less than an eighth.
    long = [line[:MOST_CHARACTERS] for line in lines if len(line) >= _STUCK_CHARACTERS]
    written = [line.encode("utf-8", "replace") for line in long]
    is_stuck = any(len(zlib.compress(line, 1)) * _STUCK_RATIO < len(line) for line in written)
    if is_verbatim or is_counting or is_stuck:
        raise refuse(
            "repeated",
            "The model repeated itself without end.",
            "it said the same again and again. Note each thing once.",
        )


# echo


def without_echo(text: str, own_words: str) -> str:
    """Drop lines that repeat our own words; refuse many of them."""
    own = _shingles(own_words)
    lines, echoed, total = [], 0, 0
    for line in text.splitlines():
        words = _words(line)
        total += len(words)
        # Every run of eight words, or all of a line that has fewer.
        size = min(len(words), _ECHO_WORDS)
        runs = [words[at : at + size] for at in range(len(words) - size + 1)]
        if len(words) >= _ECHO_LEAST and sum(run in own for run in runs) > len(runs) / 2:
            echoed += len(words)
        else:
            lines.append(line)
    if echoed > max(_ECHO_SHARE * total, 2 * _ECHO_WORDS):
        raise refuse(
            "echo",
            "The model repeated its instructions.",
            "it repeated these instructions. Note the history only.",
        )
    return "\n".join(lines)


@lru_cache(maxsize=64)
def _shingles(own_words: str) -> frozenset[tuple[str, ...]]:
    every = _words(own_words)
    runs = {every[at : at + _ECHO_WORDS] for at in range(len(every) - _ECHO_WORDS + 1)}
    lines = set(map(_words, own_words.splitlines()))
    return frozenset(runs | {words for words in lines if len(words) >= _ECHO_LEAST})


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORDS.findall(text.lower()))


_FOREIGN_SHARE, _NATIVE_SHARE = 0.3, 0.01
_LANGUAGE_LETTERS = 40
_CHECKED_LEAST = 6
_UNFOUNDED_SHARE = 0.34
_INVENTED_LEAST = 3
_MOST_CHECKED = 600
_SHRUNKEN_ABOVE = 2_000
_SHRUNKEN_TO = 250
_CONDENSED_TO = 50
_KEPT_SHARE = 0.4


def check_language(notes: Iterable[Note], source: str) -> None:
    """Refuse notes in a script that the conversation hardly uses.

    Models drift into the language they were trained on most. Another script is a sure
    sign of it. English notes of a conversation in another language are accepted: their
    first words are asked to be English, the facts in them are the same, and a model that
    cannot do otherwise would never get through.
    """
    used = _scripts(" ".join(note.text for note in notes))
    letters = sum(used.values())
    if letters < _LANGUAGE_LETTERS:
        return
    native = _scripts(source)
    spoken = max(1, sum(native.values()))
    for script, count in used.items():
        if (
            script != "LATIN"
            and count > _FOREIGN_SHARE * letters
            and native[script] < _NATIVE_SHARE * spoken
        ):
            raise refuse(
                "wrong_language",
                f"The model answered in {script.title()} letters, which the messages do not use.",
                "it was in another language than the history.",
            )


def _scripts(text: str) -> Counter[str]:
    counted: Counter[str] = Counter()
    for character, count in Counter(text).items():
        if character.isalpha():
            counted[_script(character)] += count
    return counted


@lru_cache(maxsize=8192)
def _script(character: str) -> str:
    if character.isascii():
        return "LATIN"
    name = unicodedata.name(character, "OTHER").split()[0].split("-")[0]
    # Kana and Han are written together.
    return {
        "HIRAGANA": "CJK",
        "KATAKANA": "CJK",
        "FULLWIDTH": "LATIN",
        "MATHEMATICAL": "LATIN",
    }.get(name, name)


# facts


def check_facts(draft: ObservationDraft, source: SourceText) -> ObservationDraft:
    """Check that names and numbers of a draft are in its source.

    A line with three or more of them and none that is there is invented, and left out. A
    reply in which more than a third is not there is refused as a whole. One-digit numbers are not
    looked at: a model counts.
    """
    notes: list[Note] = []
    missing: list[str] = []
    checked = 0
    invented = 0
    for note in draft.notes:
        found, absent = _checked("\n".join([note.text, *note.details]), source)
        checked += found
        missing += absent
        if len(absent) >= _INVENTED_LEAST and len(absent) == found:
            invented += 1
        else:
            notes.append(note)
        if checked > _MOST_CHECKED:
            notes += draft.notes[len(notes) + invented :]
            break
    if not notes or (checked >= _CHECKED_LEAST and len(missing) > _UNFOUNDED_SHARE * checked):
        raise refuse(
            "unfounded",
            f"{len(missing)} of {checked} names and numbers of the reply are not in the messages.",
            f"it named what is not in the history: {', '.join(name[:40] for name in missing[:5])}.",
        )
    warnings = list(draft.warnings)
    if invented:
        warnings.append(f"{invented} lines were left out: nothing they name is in the messages")
    task = draft.current_task
    count, absent = _checked(task or "", source)
    # An invented task would lead the agent astray first of all.
    if len(absent) >= _INVENTED_LEAST and 2 * len(absent) > count:
        task = None
        warnings.append(
            "the current task was left out: most of what it names is not in the messages"
        )
    if len(warnings) == len(draft.warnings):
        return draft
    return replace(draft, notes=tuple(notes), current_task=task, warnings=tuple(warnings))


def _checked(text: str, source: SourceText) -> tuple[int, list[str]]:
    """How many names and numbers of a text can be looked up, and those that are not there."""
    names, numbers = mentions_in(text)
    absent = [name for name in names if not source.has_name(name)]
    absent += [number for number in numbers if not source.has_number(number)]
    return len(names) + len(numbers), absent


# size


def check_observed_size(draft: ObservationDraft, material_tokens: int) -> None:
    """Refuse a reply that tells next to nothing of a long history."""
    tokens = sum(map(_tokens, draft.notes))
    if material_tokens > _SHRUNKEN_ABOVE and tokens * _SHRUNKEN_TO < material_tokens:
        raise refuse(
            "shrunken",
            f"The model noted {tokens:.0f} tokens of {material_tokens:,}.",
            "it left out nearly everything. Go through the history message by message.",
        )


def check_condensed_size(draft: ObservationDraft, notes: Sequence[Note]) -> None:
    """Refuse a reflection that lost nearly all, or most important names."""
    before, after = sum(map(_tokens, notes)), sum(map(_tokens, draft.notes))
    whole = SourceText("\n".join([note.text, *note.details]) for note in draft.notes)
    names = list(
        dict.fromkeys(
            name
            for note in notes
            if note.priority == "high"
            for name in mentions_in(note.text).names
        )
    )
    survivors = sum(whole.has_name(name) for name in names[:_MOST_CHECKED])
    is_lost = len(names) >= _CHECKED_LEAST and survivors < _KEPT_SHARE * min(
        len(names), _MOST_CHECKED
    )
    if (before > _SHRUNKEN_ABOVE and after * _CONDENSED_TO < before) or is_lost:
        raise refuse(
            "shrunken",
            f"The model left {after:.0f} of {before:.0f} tokens, and {survivors} of {len(names)} "
            "important names.",
            "it lost too much. Keep every 🔴 fact with its names.",
        )


def _tokens(note: Note) -> float:
    return estimate_o200k(note.text) + sum(map(estimate_o200k, note.details))
