"""Define the summarizer interface and one that needs no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from smara.core.extract import code_lines, distinct, first_sentence, fit, names_in
from smara.messages.models import Message


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands for a run of messages: a text, and the lines of code worth keeping."""

    text: str
    code: str = ""
    method: str | None = None
    """How it was made, where that is not how its summarizer makes them all."""


class Summarizer(Protocol):
    """Turns a run of messages into a summary. ``method`` is stored with every summary that does not
    name its own.
    """

    method: str

    def summarize(self, messages: Sequence[Message], level: int) -> Summary: ...


_READ_CHARACTERS = 6_000
_NAMES_CHARACTERS = 2_000


class OfflineSummarizer:
    """Deterministic, fast, no key: keeps requests, names and defining lines."""

    method = "offline-1"

    def summarize(self, messages: Sequence[Message], level: int) -> Summary:
        """One run as text. Level 2 keeps the requests and the names alone."""
        texts = [(message.role, message.raw_content[:_READ_CHARACTERS]) for message in messages]
        budget = 900 if level == 1 else 360
        asked = [first_sentence(text) for role, text in texts if role == "user"]
        answered = (
            [first_sentence(text) for role, text in texts if role == "assistant"]
            if level == 1
            else []
        )
        names = distinct(name for _, text in texts for name in names_in(text[:_NAMES_CHARACTERS]))
        lines = [
            _summary_line("User asked", asked, budget // 2),
            _summary_line("Assistant", answered, budget // 3),
            _summary_line("Names", names, budget // 2, separator=", "),
        ]
        text = " ".join(line for line in lines if line) or first_sentence(
            texts[0][1] if texts else ""
        )
        code = "\n".join(fit(code_lines(text for _, text in texts), 1_200)) if level == 1 else ""
        return Summary(text or "(nothing but empty messages)", code)


def _summary_line(label: str, items: Sequence[str], characters: int, separator: str = "; ") -> str:
    kept = fit(
        distinct(stripped for item in items if (stripped := item.rstrip(".;, "))), characters
    )
    return f"{label}: {separator.join(kept)}." if kept else ""
