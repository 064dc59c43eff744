"""Compacting a thread through its observations: observed first, then summarized by what was
observed.

Where nothing may be observed, or it fails, the thread is compacted all the same, and its summaries
are made of its own words; a later compaction makes those anew from observations.
"""

from __future__ import annotations

from dataclasses import dataclass

from smara.messages.compaction import Compacted, Compactions
from smara.messages.messages import Messages
from smara.messages.summarize import OfflineSummarizer
from smara.observations.models import Outcome
from smara.observations.observations import Observations


@dataclass(frozen=True, slots=True)
class CompactedThread:
    """What came of compacting a thread: its new summaries, the observing before, and older
    summaries made anew.
    """

    compacted: Compacted
    observed: Outcome
    renewed: int = 0


def compact_thread(
    compactions: Compactions,
    observations: Observations,
    messages: Messages,
    thread_id: str,
    keep: int = 0,
    is_when_due: bool = False,
) -> CompactedThread:
    """Observe what is summarized or about to be, summarize it, and renew the summaries that were
    made without.
    """
    last = compactions.reaches_to(thread_id, keep, is_when_due)
    observed = (
        _observe(observations, messages, thread_id, last=last) if last else Outcome("observe", True)
    )
    done = (
        compactions.compact_when_due(thread_id)
        if is_when_due
        else compactions.compact(thread_id, keep)
    )
    return CompactedThread(done, observed, compactions.renew(thread_id, OfflineSummarizer.method))


def _observe(observations: Observations, messages: Messages, thread_id: str, last: int) -> Outcome:
    """Observe a thread up to a message; what is behind it stays as it is."""
    if observations.covered_seq(thread_id) >= last:
        return Outcome("observe", True)
    behind = sum(
        message.token_count for message in messages.stream(thread_id=thread_id, after=last)
    )
    return observations.observe(thread_id, retain_tokens=behind)
