"""What a model is shown of a thread: whole messages, and each compacted run once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from smara.core.tokens import TokenCounter
from smara.messages.messages import Messages
from smara.messages.models import Message, Role

_PAGE = 100


@dataclass(frozen=True, slots=True)
class Shown:
    """One entry of a window: a message, or the summary of a run of them."""

    role: Role
    text: str
    first_seq: int
    last_seq: int
    token_count: int
    message_id: str | None = None
    compaction_id: str | None = None


class History:
    """Windows over threads, for building a context."""

    def __init__(self, messages: Messages, counter: TokenCounter) -> None:
        self._messages = messages
        self._counter = counter

    def window(
        self,
        thread_id: str,
        *,
        last: int | None = None,
        tokens: int | None = None,
        before: int | None = None,
    ) -> list[Shown]:
        """The newest entries, oldest first: at most ``last`` of them, within ``tokens``.

        A compacted run counts as one entry and costs its summary. The newest entry is
        always there, whatever its size. ``before`` ends the window at a sequence number.
        """
        if last is not None and last < 1:
            return []
        found: list[Shown] = []
        used = 0
        for entry in self._backwards(thread_id, before):
            if found and (
                (last is not None and len(found) >= last)
                or (tokens is not None and used + entry.token_count > tokens)
            ):
                break
            used += entry.token_count
            found.append(entry)
        return found[::-1]

    def _backwards(self, thread_id: str, before: int | None) -> Iterator[Shown]:
        """Entries from the newest to the oldest, a page at a time; a run is stepped over whole."""
        while page := self._messages.list(thread_id=thread_id, limit=_PAGE, before=before):
            skip_from: int | None = None
            for message in reversed(page):
                before = message.seq
                if skip_from is not None and message.seq >= skip_from:
                    continue
                entry = self._entry(message)
                if message.compaction is not None:
                    skip_from = message.compaction.start_seq
                yield entry
            if skip_from is not None:
                before = min(before or skip_from, skip_from)

    def _entry(self, message: Message) -> Shown:
        run = message.compaction
        if run is None:
            return Shown(
                message.role,
                message.raw_content,
                message.seq,
                last_seq=message.seq,
                token_count=message.token_count,
                message_id=message.id,
            )
        text = run.injection_text
        return Shown(
            "system",
            text,
            run.start_seq,
            last_seq=run.end_seq,
            token_count=self._counter.count(text).tokens,
            compaction_id=run.id,
        )
