"""Whether a reply tells what happened: in the conversation's language, with its names and numbers,
and enough of it.

A model may choose its words, but not its facts. What it names must be in what it was
given; a reply that invents, or leaves out nearly everything, is refused as a whole.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from smara.core.tokens import estimate_o200k
from smara.observations.models import Draft, Note
from smara.observations.reply.mentions import Source, mentions_in
from smara.observations.validity import refuse

_FOREIGN_SHARE = 0.3
_NATIVE_SHARE = 0.01
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
    said = _scripts(" ".join(note.text for note in notes))
    letters = sum(said.values())
    if letters < _LANGUAGE_LETTERS:
        return
    native = _scripts(source)
    spoken = max(1, sum(native.values()))
    for script, count in said.items():
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


def check_facts(draft: Draft, source: Source) -> Draft:
    """A draft whose names and numbers are in what the model was given.

    A line with three or more of them and none that is there is invented, and left out. A
    reply in which more than a third is not there is refused as a whole. One-digit numbers are not
    looked at: a model counts.
    """
    kept: list[Note] = []
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
            kept.append(note)
        if checked > _MOST_CHECKED:
            kept += draft.notes[len(kept) + invented :]
            break
    if not kept or (checked >= _CHECKED_LEAST and len(missing) > _UNFOUNDED_SHARE * checked):
        raise refuse(
            "unfounded",
            f"{len(missing)} of {checked} names and numbers of the reply are not in the messages.",
            f"it named what is not in the history: {', '.join(name[:40] for name in missing[:5])}.",
        )
    return _with_true_task(_only(draft, kept, invented), source)


def _only(draft: Draft, kept: Sequence[Note], invented: int) -> Draft:
    if not invented:
        return draft
    warning = f"{invented} lines were left out: nothing they name is in the messages"
    return replace(draft, notes=tuple(kept), warnings=(*draft.warnings, warning))


def _with_true_task(draft: Draft, source: Source) -> Draft:
    """The draft without its current task when that is invented: it would lead the agent astray
    first of all.
    """
    found, absent = _checked(draft.current_task or "", source)
    if len(absent) < _INVENTED_LEAST or 2 * len(absent) <= found:
        return draft
    warning = "the current task was left out: most of what it names is not in the messages"
    return replace(draft, current_task=None, warnings=(*draft.warnings, warning))


def _checked(text: str, source: Source) -> tuple[int, list[str]]:
    """How many names and numbers of a text can be looked up, and those that are not there."""
    names, numbers = mentions_in(text)
    absent = [name for name in names if not source.has_name(name)]
    absent += [number for number in numbers if not source.has_number(number)]
    return len(names) + len(numbers), absent


# size


def check_observed_size(draft: Draft, material_tokens: int) -> None:
    """Refuse a reply that tells next to nothing of a long history: a line for 30,000 tokens is no
    memory of them.
    """
    tokens = sum(map(_tokens, draft.notes))
    if material_tokens > _SHRUNKEN_ABOVE and tokens * _SHRUNKEN_TO < material_tokens:
        raise refuse(
            "shrunken",
            f"The model noted {tokens:.0f} tokens of {material_tokens:,}.",
            "it left out nearly everything. Go through the history message by message.",
        )


def check_condensed_size(draft: Draft, notes: Sequence[Note]) -> None:
    """Refuse a reflection in which next to nothing is left, or most names of the high lines are
    gone.
    """
    before, after = sum(map(_tokens, notes)), sum(map(_tokens, draft.notes))
    whole = Source("\n".join([note.text, *note.details]) for note in draft.notes)
    names = list(
        dict.fromkeys(
            name
            for note in notes
            if note.priority == "high"
            for name in mentions_in(note.text).names
        )
    )
    kept = sum(whole.has_name(name) for name in names[:_MOST_CHECKED])
    is_lost = len(names) >= _CHECKED_LEAST and kept < _KEPT_SHARE * min(len(names), _MOST_CHECKED)
    if (before > _SHRUNKEN_ABOVE and after * _CONDENSED_TO < before) or is_lost:
        raise refuse(
            "shrunken",
            f"The model left {after:.0f} of {before:.0f} tokens, and {kept} of {len(names)} "
            "important names.",
            "it lost too much. Keep every 🔴 fact with its names.",
        )


def _tokens(note: Note) -> float:
    return estimate_o200k(note.text) + sum(map(estimate_o200k, note.details))
