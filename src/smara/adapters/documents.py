"""Read the elements of a whole JSON document one by one.

A list that breaks off in the middle still yields the elements before the break; the rest
is counted as lost.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from smara.adapters.lines import JsonLine, load_json, read_lines, read_whole, without_surrogates
from smara.adapters.records import Counted, Progress

MAX_DOCUMENT_BYTES = 256 * 1024 * 1024

_HEAD_BYTES = 4096
_PADDING = "\x00 \t\r\n\ufeff"
_GAP = re.compile(r"[\s,]*")


@dataclass(frozen=True, slots=True)
class Document:
    """The elements of a list in a document, with its surroundings."""

    entries: list[JsonLine | Counted]
    around: Any = None
    """The document without the list; of a broken one what stands before it; ``None`` when it is the
    list itself.
    """
    is_broken: bool = False


def is_document(path: str | os.PathLike[str]) -> bool:
    """Return True if a file is one JSON document.

    Unlike a file of one object a line, it opens what its first line does not close.

    Raises as :func:`smara.adapters.lines.read_lines` does.
    """
    return is_document_head(head_of(path))


def is_document_head(head: str) -> bool:
    """The same, from the first characters of a file."""
    lines = head.lstrip(_PADDING).splitlines()
    first = lines[0].strip() if lines else ""
    if first.startswith("["):
        return True
    # A line alone may be an object whose end is not written yet: a document has more of them.
    is_open = first == "{" or (first.startswith("{") and first.endswith((",", "{", "[")))
    return is_open and any(line.strip() for line in lines[1:])


def head_of(path: str | os.PathLike[str]) -> str:
    """The first characters of a file, unpacked."""
    found = ""
    for line in islice(read_lines(path), 200):
        found += line.data[:_HEAD_BYTES].decode("utf-8", "replace") + "\n"
        if len(found) >= _HEAD_BYTES:
            break
    return found


def elements(
    path: str | os.PathLike[str],
    key: str | None,
    progress: Progress | None = None,
    *,
    broken_keys: tuple[str, ...] = (),
) -> Document:
    """Read the elements of the list under ``key``, or of the document.

    Nothing in the file raises. Whatever is no object is counted. Of a broken document the list
    under the first of ``broken_keys`` that is found is read, too.
    """
    data, problem = read_whole(path, progress, max_bytes=MAX_DOCUMENT_BYTES)
    if not data:
        return Document(
            [Counted(1, "unreadable" if problem else "blank", problem or "an empty file")]
        )
    text, repairs = _decoded(data)
    try:
        value, more = load_json(text)
    except (ValueError, RecursionError):
        return _salvaged(text, (*((key,) if key else ()), *broken_keys), problem)
    around: Any = None
    found = value
    if isinstance(value, dict):
        found = value.get(key) if key is not None else None
        around = {
            name: inner
            for name, inner in value.items()
            if name != key or not isinstance(found, list)
        }
    mended = (*repairs, *more)
    entries = (
        [entry_of(number, each, mended) for number, each in enumerate(found, 1)]
        if isinstance(found, list)
        else []
    )
    return Document(entries, around if isinstance(value, dict) else None)


def entry_of(number: int, value: Any, repairs: tuple[str, ...] = ()) -> JsonLine | Counted:
    """An element as if it stood on a line of its own."""
    if not isinstance(value, dict):
        return Counted(number, "broken", "not a JSON object")
    raw = json.dumps(
        without_surrogates(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True
    )
    return JsonLine(number, raw.encode("utf-8", "replace"), value, repairs=repairs)


def _decoded(data: bytes) -> tuple[str, list[str]]:
    try:
        return data.decode("utf-8").strip(_PADDING), []
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").strip(_PADDING), ["invalid UTF-8 was replaced"]


def _salvaged(text: str, keys: tuple[str, ...], problem: str | None) -> Document:
    """The elements that can be read of a document that is broken, and a count of the break."""
    entries: list[JsonLine | Counted] = []
    start = _list_start(text, keys)
    for number, value in enumerate(_objects(text, start), 1) if start is not None else ():
        entries.append(entry_of(number, value))
    reason = problem or "the document breaks off or is not JSON from here on"
    around = _before(text[:start]) if start is not None else None
    return Document([*entries, Counted(len(entries) + 1, "broken", reason)], around, is_broken=True)


def _before(opened: str) -> Any:
    """What stands before a list of an object, as if the list were empty and the object ended
    there.
    """
    try:
        value, _ = load_json(opened + "]}")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _list_start(text: str, keys: tuple[str, ...]) -> int | None:
    if text.startswith("["):
        return 1
    names = "|".join(map(re.escape, keys))
    found = re.search(rf'"(?:{names})"\s*:\s*\[', text) if keys else None
    return found.end() if found else None


def _objects(text: str, start: int) -> Iterator[Any]:
    decoder = json.JSONDecoder(strict=False)
    while True:
        gap = _GAP.match(text, start)
        start = gap.end() if gap else start
        if start >= len(text) or text[start] == "]":
            return
        try:
            _, end = decoder.raw_decode(text, start)
            value, _ = load_json(text[start:end])
        except (ValueError, RecursionError):
            return
        yield value
        start = end
