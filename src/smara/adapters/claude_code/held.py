"""Records whose meaning only a later record settles.

A prompt typed while the model works is first queued; mostly it comes again as a user
record when it is sent, but one taken up in the middle of a turn may stand nowhere else.
The output of a running command comes in pieces; mostly the tool result has it all, but
a command that was cut off or went to the background has no such result. Both are held
back until it is clear whether their words would be lost.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from smara.adapters.decoding import Entry
from smara.adapters.records import Counted

MAX_HELD = 256
MAX_OUTPUT_CHARS = 1_000_000

_OVERLAP_CHARS = 200


@dataclass(slots=True)
class Held:
    """A record that waits, with what is needed to keep it as a message after all."""

    entry: Entry
    thread_id: str
    text: str
    created_at: int | None
    call_id: str | None = None
    is_program_text: bool = False
    is_taken_up: bool = False


class QueuedPrompts:
    """Prompts that were queued and not yet seen as records of their own."""

    def __init__(self) -> None:
        self._waiting: list[Held] = []

    def add(self, held: Held) -> Held | None:
        """Hold one more; when there are too many the oldest comes back, to be kept."""
        self._waiting.append(held)
        return self._waiting.pop(0) if len(self._waiting) > MAX_HELD else None

    def sent(self, text: str) -> Counted | None:
        """The words have come as a record of their own: count the queued copy."""
        for position, held in enumerate(self._waiting):
            if held.text.strip() == text.strip():
                del self._waiting[position]
                return Counted(
                    held.entry.line,
                    "queue-operation/enqueue",
                    "queued words, kept where they were sent",
                )
        return None

    def take_up(self, text: str) -> None:
        """A prompt left the queue in the middle of a turn; without a name, the newest of a
        person.
        """
        for held in reversed(self._waiting):
            if (
                held.is_taken_up
                or (text and held.text != text)
                or (not text and held.is_program_text)
            ):
                continue
            held.is_taken_up = True
            return

    def pop_taken_up(self) -> list[Held]:
        """Those the model has now read without a record of their own."""
        taken = [held for held in self._waiting if held.is_taken_up]
        if taken:
            self._waiting = [held for held in self._waiting if not held.is_taken_up]
        return taken

    def pop_all(self) -> list[Held]:
        waiting, self._waiting = self._waiting, []
        return waiting


class RunningOutputs:
    """The latest output of each command that has no result yet."""

    def __init__(self) -> None:
        self._latest: OrderedDict[str, Held] = OrderedDict()

    def add(self, call_id: str, held: Held) -> Held | Counted | None:
        """Hold the newest output of a call, joined to what is held of it already."""
        older = self._latest.pop(call_id, None)
        self._latest[call_id] = held
        if older is None:
            return self._latest.popitem(last=False)[1] if len(self._latest) > MAX_HELD else None
        joined = join_windows(older.text, held.text)
        if len(joined) > MAX_OUTPUT_CHARS:
            return older
        held.text = joined
        return _counted(older, "output of a running command, continued by a later record")

    def settle(self, call_id: str, result: str) -> Held | Counted | None:
        """The call has its result: count the output if the result has it all, else keep it."""
        held = self._latest.pop(call_id, None)
        if held is None:
            return None
        if _has_all(result, held.text):
            return _counted(held, "output of a running command, contained in its result")
        return held

    def pop_all(self) -> list[Held]:
        waiting = list(self._latest.values())
        self._latest.clear()
        return waiting


def join_windows(older: str, newer: str) -> str:
    """Two views of an output that scrolls, as one: "a b c" and "b c d" → "a b c d"."""
    overlap = older.rfind(newer[:_OVERLAP_CHARS])
    # The older view may end in the middle of a line, so the newer one replaces the overlap.
    return older[:overlap] + newer if overlap >= 0 else f"{older}\n{newer}"


def _has_all(whole: str, piece: str) -> bool:
    """Whether every line with a letter or digit in it stands in the whole as well."""
    missing = {line.strip() for line in piece.splitlines()} - {
        line.strip() for line in whole.splitlines()
    }
    return all(line in whole for line in missing if any(map(str.isalnum, line)))


def _counted(held: Held, reason: str) -> Counted:
    return Counted(held.entry.line, "progress/bash_progress", reason)
