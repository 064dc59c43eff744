"""The seam for summaries, and the summarizer that needs no model.

The offline one does not pretend to understand. It keeps what a later search or a later
model needs: what was asked, the names, paths and commands that appeared, and the lines
of code that define something.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from smara.messages.models import Message


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands for a run of messages: a text, and the lines of code worth keeping."""

    text: str
    code: str = ""


class Summarizer(Protocol):
    """Turns a run of messages into a summary. ``method`` is stored with every summary."""

    method: str

    def summarize(self, messages: Sequence[Message], level: int) -> Summary: ...


_READ_CHARACTERS = 6_000
_NAMES_CHARACTERS = 2_000
_AROUND = ".,;:!?\"'()[]{}<>*~=|&%$^`-“”‘’…—–"
_FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)
_SENTENCE = re.compile(r"[^\n.!?。!?]{8,}(?:[.](?=\w)[^\n.!?]+)*[.!?。!?]?")
_DEFINITION = re.compile(
    r"\s*(?:export\s+)?(?:async\s+)?(?:def|class|function|const|let|var|type|interface|struct|enum|fn|func|impl|trait"
    r"|import|from|CREATE|ALTER|SELECT|INSERT|UPDATE|public|private|protected|module|package|use|#include|@\w+)\b.*",
    re.IGNORECASE,
)


class OfflineSummarizer:
    """Deterministic, fast, no key: keeps requests, names and defining lines."""

    method = "offline-1"

    def summarize(self, messages: Sequence[Message], level: int) -> Summary:
        """One run as text. Level 2 keeps the requests and the names alone."""
        texts = [(message.role, message.raw_content[:_READ_CHARACTERS]) for message in messages]
        budget = 900 if level == 1 else 360
        asked = [_first_sentence(text) for role, text in texts if role == "user"]
        answered = [_first_sentence(text) for role, text in texts if role == "assistant"] if level == 1 else []
        names = _distinct(name for _, text in texts for name in _names(text[:_NAMES_CHARACTERS]))
        lines = [
            _told("User asked", asked, budget // 2),
            _told("Assistant", answered, budget // 3),
            _told("Names", names, budget // 2, separator=", "),
        ]
        text = " ".join(line for line in lines if line) or _first_sentence(texts[0][1] if texts else "")
        code = "\n".join(_fit(_code_lines(text for _, text in texts), 1_200)) if level == 1 else ""
        return Summary(text or "(nothing but empty messages)", code)


def _names(text: str) -> list[str]:
    """What looks like a name: it has an underscore, a slash or a dot in it, or capitals behind its first letter."""
    found = []
    for chunk in text.split():
        if chunk.isalpha() and chunk[1:].islower():
            continue
        word = chunk.strip(_AROUND).split("(")[0]
        if 3 <= len(word) <= 80 and _is_name(word):
            found.append(word)
    return found


def _is_name(word: str) -> bool:
    if word.isalpha():
        return not word.isupper() and not word[1:].islower()
    is_joined = "_" in word or "/" in word or "." in word
    return is_joined and word[0] not in "0123456789=" and "\\" not in word


def _first_sentence(text: str) -> str:
    match = _SENTENCE.search(_FENCE.sub(" ", text))
    return " ".join(match[0].split())[:200] if match else " ".join(text.split())[:80]


def _code_lines(texts: Iterable[str]) -> list[str]:
    """The lines of fenced code that define, import or query something, in order, each once."""
    found: dict[str, None] = {}
    for text in texts:
        for block in _FENCE.findall(text):
            for line in block.splitlines():
                if _DEFINITION.fullmatch(line):
                    found.setdefault(line.rstrip()[:200])
    return list(found)


def _told(label: str, items: Sequence[str], characters: int, separator: str = "; ") -> str:
    kept = _fit(_distinct(stripped for item in items if (stripped := item.rstrip(".;, "))), characters)
    return f"{label}: {separator.join(kept)}." if kept else ""


def _fit(items: Sequence[str], characters: int) -> list[str]:
    """As many of the first items as fit; the first always does."""
    kept: list[str] = []
    used = 0
    for item in items:
        used += len(item) + 2
        if kept and used > characters:
            break
        kept.append(item[:characters])
    return kept


def _distinct(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
