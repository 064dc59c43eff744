"""Read the Markdown notes of basic-memory: a folder, or one file.

Each note is kept word for word as a message. Its observations (``- [category] text #tag
(context)``) and its relations (``- type [[Target]]``) are facts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from smara.core.startup.regex import re, regex
from smara.privacy.foreign.records import (
    Candidate,
    ForeignFact,
    ForeignFormat,
    ForeignMessage,
    ForeignRecord,
    Malformed,
    Unread,
    digest_of,
    notes_in,
    read_text,
    texts_of,
    time_of,
)

_HEAD = regex(r"---[ \t]*\r?\n(?P<head>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = regex(r"(?P<name>[\w-]+):[ \t]*(?P<value>.*)")
_OBSERVATION = regex(r"\[(?P<category>[^\[\]()]+)\]\s+(?P<text>.+)", re.DOTALL)
_CLOCK = regex(r"[\d:.,\s-]+")
_CONTEXT = regex(r"(?P<text>.*\S)\s*\((?P<context>[^()]*)\)", re.DOTALL)
_RELATION = regex(
    r"(?:(?P<type>[^\s\"'\[]+)|\"(?P<double>[^\"]+)\"|'(?P<single>[^']+)')\s*"
    r"\[\[(?P<target>[^\[\]]+)\]\](?:\s*\((?P<context>.*)\))?",
    re.DOTALL,
)
_TAG = regex(r"(?:^|\s)#(?P<tag>[^\s#]*[^\s#\d][^\s#]*)")
_LAST_TAGS = regex(r"(?:\s+#[^\s#]+)+$")


def _recognizes(candidate: Candidate) -> bool:
    heads = (_HEAD.match(each) for each in candidate.notes)
    return any(head and re.search(r"^permalink:", head["head"], re.MULTILINE) for head in heads)


def _read(path: str) -> Iterator[ForeignRecord]:
    root = Path(path)
    files = notes_in(path) if root.is_dir() else iter([root])
    first = next(files, None)
    if first is None:
        raise Malformed(path, "it is a folder without Markdown files")
    for file in chain([first], files):
        yield from _note(file, file.relative_to(root if root.is_dir() else root.parent).as_posix())


def _note(file: Path, place: str) -> Iterator[ForeignRecord]:
    text = read_text(file)
    head = _HEAD.match(text)
    fields = _fields(head["head"]) if head else {}
    body = text[head.end() :].strip() if head else text.strip()
    title = _one(fields, "title") or file.stem
    name = _one(fields, "permalink") or os.path.splitext(place)[0]
    times = {key: _one(fields, key) or None for key in ("modified", "updated", "created", "date")}
    at = time_of(times, place, *times) or int(file.stat().st_mtime * 1000)
    if not body:
        yield Unread("a note without words")
        return
    message = f"{name}-{digest_of(body)}"
    yield ForeignMessage(message, name, body, at_ms=at, title=title, kind="note")
    tags = texts_of({"tags": fields.get("tags", [])}, place, "tags")
    for words, is_item in _blocks(body):
        relation = _RELATION.fullmatch(words) if is_item else None
        fact = _relation(relation, title) if relation else _observation(words, title, is_item)
        if fact is not None:
            about, more = fact
            yield ForeignFact(
                f"{name}-{digest_of(about)}",
                about,
                at,
                tags=tuple(dict.fromkeys((*more, *tags))),
                messages=(message,),
            )


def _blocks(body: str) -> Iterator[tuple[str, bool]]:
    """Yield the texts of paragraphs and list items, outside quotations and code."""
    from markdown_it import MarkdownIt

    quotes = items = 0
    is_heading = False
    for token in MarkdownIt().parse(body):
        quotes += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        items += {"list_item_open": 1, "list_item_close": -1}.get(token.type, 0)
        is_heading = token.type == "heading_open" or (is_heading and token.type == "inline")
        if token.type == "inline" and not quotes and not is_heading:
            yield " ".join(token.content.split()), items > 0


def _relation(match: re.Match[str], title: str) -> tuple[str, tuple[str, ...]]:
    kind = match["type"] or match["double"] or match["single"]
    context = f" ({match['context'].strip()})" if match["context"] else ""
    return f"{title} {kind.replace('_', ' ')} {match['target'].strip()}{context}", ("relation",)


def _observation(words: str, title: str, is_item: bool) -> tuple[str, tuple[str, ...]] | None:
    match = _OBSERVATION.fullmatch(words)
    category = match["category"].strip() if match else ""
    is_task = len(category) == 1 and (category in "xX" or not category.isalnum())
    if match and (is_task or not category or _CLOCK.fullmatch(category)):
        return None  # a box to tick, or the time of a transcript
    tags = _TAG.findall(words)
    if match is None and not (tags and is_item):
        return None
    text = match["text"] if match else words
    context = _CONTEXT.fullmatch(text)
    statement = _LAST_TAGS.sub("", context["text"] if context else text).strip()
    if not statement:
        return None
    more = f" ({context['context'].strip()})" if context and context["context"].strip() else ""
    return f"{title}: {statement}{more}", ((category.lower(),) if category else ()) + tuple(tags)


def _fields(head: str) -> dict[str, list[str]]:
    """Return the fields of a head; a list may stand in one line or below."""
    fields: dict[str, list[str]] = {}
    values: list[str] = []
    for line in head.splitlines():
        match = _FIELD.fullmatch(line.rstrip())
        if match:
            value = match["value"].strip()
            pieces = value[1:-1].split(",") if value.startswith("[") else [value]
            values = fields[match["name"].lower()] = []
            values += [_bare(each) for each in pieces if _bare(each)]
        elif line.lstrip().startswith("- "):
            values.append(_bare(line.lstrip()[2:]))
    return fields


def _bare(value: str) -> str:
    text = value.strip()
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text


def _one(fields: dict[str, list[str]], name: str) -> str:
    return next(iter(fields.get(name, ())), "")


BASIC_MEMORY = ForeignFormat("basic-memory", "basic-memory", _recognizes, _read)
