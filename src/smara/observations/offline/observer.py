"""The observer that needs no model: what happened in some messages, in their own words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from smara.core.days import zone_of
from smara.core.wordlists import word_set
from smara.messages.models import Message
from smara.observations.models import Draft, Note, ObserveRequest
from smara.observations.offline import phrases
from smara.observations.offline.agent_speech import only_announces
from smara.observations.offline.assistants import Asked, Assistant
from smara.observations.offline.drafting import Scene, make_note
from smara.observations.offline.exchanges import Call, Exchange, Reading, Said, read
from smara.observations.offline.known import Known
from smara.observations.offline.outlook import current_task, suggested_response, thread_title
from smara.observations.offline.paths import Paths
from smara.observations.offline.tools import path_of
from smara.observations.offline.users import Person, speakers_in
from smara.observations.offline.work import Work

METHOD = "offline-1"
_WORD = re.compile(r"[A-Za-z_][\w-]{4,40}")
_NOT_TELLING = word_set(
    "about after always anything besides every everything keep look mention note observe please "
    "record things"
)


class OfflineObserver:
    """Deterministic, fast, no key. Every word of a note beside its label was said in the
    messages.
    """

    method = METHOD

    def observe(self, request: ObserveRequest) -> Draft:
        """The notes on some messages, in the order of their times. Never raises, whatever the
        messages hold.
        """
        known = Known(request.known)
        notes: list[Note] = []
        readings: list[Reading] = []
        for messages in _by_thread(request.messages):
            reading = read(messages)
            readings.append(reading)
            notes += _notes_of(request, reading, known)
        notes.sort(key=attrgetter("said_at"))
        exchanges = [exchange for reading in readings for exchange in reading.exchanges]
        extracted, warnings = _extracted(request, notes)
        return Draft(
            tuple(note for note in notes if not known.has(note)),
            current_task=current_task(exchanges, notes),
            suggested_response=suggested_response(exchanges, notes)
            if request.wants_suggested_response
            else None,
            thread_title=thread_title(exchanges, request.flavor == "coding")
            if request.wants_title
            else None,
            extracted=extracted,
            warnings=tuple(warnings),
        )


def _extracted(request: ObserveRequest, notes: Sequence[Note]) -> tuple[dict[str, Any], list[str]]:
    if not request.extractors:  # most have none, and need not load what checks schemas
        return {}, []
    from smara.observations.offline.extracting import extract_offline

    return extract_offline(request.messages, notes, request.extractors, timezone=request.timezone)


def _by_thread(messages: Sequence[Message]) -> Iterable[list[Message]]:
    """The messages of each thread; sequence numbers count within one."""
    order = {
        thread: place
        for place, thread in enumerate(dict.fromkeys(message.thread_id for message in messages))
    }
    placed = sorted(messages, key=lambda message: order[message.thread_id])
    return [list(group) for _, group in groupby(placed, key=attrgetter("thread_id"))]


def _notes_of(request: ObserveRequest, reading: Reading, known: Known) -> list[Note]:
    scene = Scene(
        zone_of(request.timezone),
        Paths(
            reading.folder,
            (
                path_of(step)
                for each in reading.exchanges
                for step in each.steps
                if isinstance(step, Call)
            ),
            request.root,
        ),
        request.mode,
        flavor=request.flavor,
        wanted=frozenset(word.lower() for word in _WORD.findall(request.instructions))
        - _NOT_TELLING,
    )
    person = Person(scene, speakers_in(reading.exchanges))
    work = Work(scene, known)
    notes: list[Note] = []
    asked: Said | None = None
    for exchange in reading.exchanges:
        said = person.notes(exchange, asked)
        notes += said
        notes += _notes_of_agent(scene, exchange, work, asked=_what_was_asked(said))
        asked = _question_at_end(exchange)
    work.finish()
    return notes + work.notes


def _notes_of_agent(scene: Scene, exchange: Exchange, work: Work, asked: Asked) -> list[Note]:
    assistant = Assistant(scene, asked)
    last = _last_words(exchange)
    notes: list[Note] = []
    for step in exchange.steps:
        if isinstance(step, Call):
            work.take(step)
        elif step.voice == "reasoning":
            notes += assistant.thought(step)
        else:
            is_end = step is last and (
                exchange.is_closed or step.is_last or not only_announces(step.text)
            )
            notes += assistant.last(step) if is_end else assistant.between(step)
    if exchange.is_closed:
        work.end_stretch()
    if exchange.interrupted is not None:
        seq, at = exchange.interrupted
        notes.append(
            make_note(
                scene, "low", "note", text=phrases.INTERRUPTED, at=at, seqs=[seq], inputs=["user"]
            )
        )
    return notes


def _last_words(exchange: Exchange) -> Said | None:
    """The words with which the agent ended its turn; none while it is still at work."""
    spoken = [
        step for step in exchange.steps if isinstance(step, Call) or step.voice == "assistant"
    ]
    last = spoken[-1] if spoken else None
    return last if isinstance(last, Said) else None


def _question_at_end(exchange: Exchange) -> Said | None:
    last = _last_words(exchange)
    return last if last is not None and last.text.rstrip().endswith(("?", "？")) else None


def _what_was_asked(notes: Sequence[Note]) -> Asked:
    categories = {note.category for note in notes}
    if "request" in categories:
        return "request"
    return "question" if "question" in categories else "other"
