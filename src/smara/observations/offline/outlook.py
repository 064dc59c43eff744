"""Where a conversation stands: its title, the task at hand, how to go on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smara.observations.models import Note
from smara.observations.offline import phrases
from smara.observations.offline.acts import sort
from smara.observations.offline.exchanges import Exchange, Said
from smara.observations.offline.wording import clip, outline

_POLITE = re.compile(
    r"(?:(?:please|pls|hi|hello|hey|ok|okay|so|now|can you|could you|would you|will you|i want "
    r"you to|i need you to"
    r"|i'd like you to|let's|help me)[,!]?\s{1,3}){1,4}",
    re.IGNORECASE,
)
_LABELS = (phrases.REQUESTED, phrases.ASKED, phrases.GIVEN_TASK, phrases.ANSWERED)
_TITLE, _TASK = 60, 300


def thread_title(exchanges: Sequence[Exchange], is_coding: bool = True) -> str | None:
    """A short title: the first real request, or of a conversation about life the first words that
    tell something.
    """
    said = [
        words
        for exchange in exchanges
        for each in exchange.said
        for words in outline(each.text).prose
    ]
    sorted_words = [(sort(words, is_coding), words) for words in said[:40]]
    requests = [words for act, words in sorted_words if act == "request"] if is_coding else []
    others = [words for act, words in sorted_words if act != "chat"]
    chosen = next(iter([*requests, *others]), "")
    return clip(_without_politeness(chosen).rstrip(" .:!"), _TITLE) or None


def current_task(exchanges: Sequence[Exchange], notes: Sequence[Note]) -> str | None:
    """The newest request that is not reported as done, or a question without an answer.

    None when these messages say nothing of it: the task is then what it was.
    """
    requests = [
        note for note in notes if note.category == "request" and note.text.startswith(_LABELS)
    ]
    questions = [
        note
        for note in notes
        if note.category == "question" and note.text.startswith(phrases.ASKED)
    ]
    if questions and not _is_done(questions[-1], exchanges, notes):
        requests = sorted([*requests, questions[-1]], key=_place)
    if not requests:
        return None
    newest = max(requests, key=_place)
    words = clip(_without_label(newest.text), _TASK)
    if _is_done(newest, exchanges, notes):
        return clip(f"{phrases.WAITING} {words}", _TASK)
    return words or None


def _place(note: Note) -> int:
    return note.last_seq or 0


def _is_done(asked: Note, exchanges: Sequence[Exchange], notes: Sequence[Note]) -> bool:
    """Whether the agent has said its last word on it, and that it is done or answered."""
    ends = [
        note
        for note in notes
        if note.category in ("completion", "answer") and _place(note) > _place(asked)
    ]
    return bool(ends) and _is_at_rest(exchanges)


def suggested_response(exchanges: Sequence[Exchange], notes: Sequence[Note]) -> str | None:
    """How to go on: mend what fails, else continue with the task."""
    task = current_task(exchanges, notes)
    settled = max(
        (_place(note) for note in notes if note.category in ("completion", "test", "fix")),
        default=0,
    )
    open_errors = [note for note in notes if note.category == "error" and _place(note) > settled]
    if open_errors:
        return clip(f"{phrases.MEND} {open_errors[-1].text}", _TASK)
    if task is None or task.startswith(phrases.WAITING):
        return None
    return clip(f"{phrases.CONTINUE} {task}", _TASK)


def _without_label(text: str) -> str:
    return next((text[len(label) :].strip() for label in _LABELS if text.startswith(label)), text)


def _is_at_rest(exchanges: Sequence[Exchange]) -> bool:
    """Whether the agent has the last word, with no call behind it."""
    steps = exchanges[-1].steps if exchanges else []
    return bool(steps) and isinstance(steps[-1], Said)


def _without_politeness(words: str) -> str:
    polite = _POLITE.match(words)
    return words[polite.end() :] if polite else words
