"""Take out of pages of working memory what came from erased messages.

A page has no sources of its own: an agent writes it while it talks. A line is taken for one from
an erased message if the page belongs to the conversation or to its person, the line was written
after the message, and it has a word that no message that stays has, or repeats a long piece.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from smara.core.escape import from_storable, to_storable
from smara.core.text import words
from smara.privacy.walk import Walk

_LONG_PIECE = 24


class PageChange(NamedTuple):
    """A page without the lines that go, and so its versions."""

    no: int
    content: str
    versions: Mapping[int, str]


class _ErasedWords(NamedTuple):
    """The words of one erased message."""

    at: int
    names: frozenset[str]
    text: str
    words: frozenset[str]


def change_pages(walk: Walk, is_used: Callable[[str], bool]) -> list[PageChange]:
    """Return the pages that lose lines.

    Args:
        walk: What goes.
        is_used: Tells if a message that stays has a word.
    """
    shown = "t.no, t.scope, t.resource_id, t.thread_id, t.content"
    staying = walk.select("working_memory", "1 = 1") - walk.rows["working_memory"]
    pages = walk.among("working_memory", "no", staying, shown)
    erased = _erased(walk) if pages else []
    changes: list[PageChange] = []
    used: dict[str, bool] = {}

    def is_rare(word: str) -> bool:
        if word not in used:
            used[word] = is_used(word)
        return not used[word]

    for no, scope, resource_id, thread_id, content in pages:
        owner = f"resource:{resource_id}" if scope == "resource" else f"thread:{thread_id}"
        mine = [each for each in erased if owner in each.names]
        if not mine:
            continue
        rows = walk.among(
            "working_memory_versions", "memory_no", [no], "t.version, t.content, t.created_at"
        )
        first: dict[str, int] = {}
        for _, text, at in sorted(rows):
            for line in _lines(from_storable(text)):
                first.setdefault(line, at)
        lost = {
            line
            for line in {*first, *_lines(from_storable(content))}
            if any(_is_from(line, first.get(line, 2**62), each, is_rare) for each in mine)
        }
        if lost:
            versions = {int(number): _without(text, lost) for number, text, _ in rows}
            changes.append(PageChange(int(no), _without(content, lost), versions))
    return changes


def _erased(walk: Walk) -> list[_ErasedWords]:
    rows = walk.among(
        "messages", "no", walk.rows["messages"], "t.thread_no, t.created_at, t.raw_content"
    )
    threads = {
        no: frozenset((f"thread:{name}", f"resource:{resource}"))
        for no, name, resource in walk.among(
            "threads", "no", {row[0] for row in rows}, "t.no, t.id, t.resource_id"
        )
    }
    return [
        _ErasedWords(at, threads[thread], _plain(from_storable(text)), frozenset(words(text)))
        for thread, at, text in rows
    ]


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _is_from(line: str, at: int, message: _ErasedWords, is_rare: Callable[[str], bool]) -> bool:
    if at < message.at:
        return False
    plain = _plain(line).lstrip("-*# ")
    if len(plain) >= _LONG_PIECE and plain in message.text:
        return True
    return any(is_rare(word) for word in words(line) if word in message.words)


def _lines(content: str) -> list[str]:
    """Return the lines of a page, or the texts in one of JSON."""
    value = _json(content)
    return content.splitlines() if value is None else list(_texts(value))


def _json(content: str) -> Any:
    try:
        value = json.loads(content)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []


def _without(stored: str, lost: set[str]) -> str:
    """Return a page as it is stored, without some lines."""
    content = from_storable(stored)
    value = _json(content)
    if value is not None:
        return to_storable(json.dumps(_pruned(value, lost), ensure_ascii=False))
    return to_storable("\n".join(line for line in content.splitlines() if line not in lost))


def _pruned(value: Any, lost: set[str]) -> Any:
    """Return a value with empty texts for lost ones; a list is shorter."""
    if isinstance(value, dict):
        return {name: _pruned(each, lost) for name, each in value.items()}
    if isinstance(value, list):
        return [
            _pruned(each, lost) for each in value if not (isinstance(each, str) and each in lost)
        ]
    return "" if isinstance(value, str) and value in lost else value
