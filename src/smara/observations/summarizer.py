"""Summarize messages for compaction by their observations.

A run of messages that was not observed to its end goes to the offline summarizer. The
store is imported only when a run is due, because every message append loads this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smara.core.scope import Scope as Wall
from smara.database.database import Database
from smara.messages.compaction import Summarizer, Summary
from smara.messages.models import Message

if TYPE_CHECKING:
    from smara.observations.models import Observation


METHOD = "observations-1"
_MOST_CHARACTERS = {1: 2_000, 2: 700}
_LEAST_CHARACTERS = 300
_ORDER = {"high": 0, "medium": 1, "low": 2}


@dataclass(frozen=True, eq=False)
class ObservedSummarizer:
    """Summarizes by observations where there are some."""

    method = METHOD

    database: Database
    wall: Wall
    otherwise: Summarizer
    timezone: str

    def summarize(self, messages: Sequence[Message], level: int) -> Summary:
        """Summarize a run by its observations, else by another summarizer."""
        found = self.otherwise.summarize(messages, level)
        # Loaded when a run is due, not with every message.
        from smara.observations.store import ObservationStore

        store, first, last = ObservationStore(self.database, self.wall), messages[0], messages[-1]
        rows = store.ask(
            store.noted_between,
            first.thread_id,
            first.resource_id,
            first_seq=first.seq,
            last_seq=last.seq,
        )
        length = sum(len(message.raw_content) for message in messages)
        room = min(_MOST_CHARACTERS[level], max(_LEAST_CHARACTERS, length // 2))
        text = fitted(rows, self.timezone, room)
        if not text:
            return replace(found, method=found.method or self.otherwise.method)
        return Summary(text, found.code, METHOD)


def fitted(rows: Sequence[Observation], timezone: str, characters: int) -> str:
    """Render as many observations as fit, the important ones first.

    The most important one is told even when it takes more room than there is, without its details.
    """
    from smara.observations.render import render, render_note

    chosen: list[Observation] = []
    for row in sorted(rows, key=lambda each: (_ORDER[each.priority], each.first_seq)):
        length = len(render_note(row, timezone)) + 1
        if length > characters and not chosen:
            row, length = replace(row, details=()), characters
        if length <= characters:
            chosen.append(row)
            characters -= length
    return render(sorted(chosen, key=lambda each: (each.said_at, each.first_seq)), timezone, False)
