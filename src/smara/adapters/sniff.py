"""Detect a file's transcript format and choose its reader.

Readers are imported on demand, each when its first file is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any

from smara.adapters.documents import head_of, is_document_head
from smara.adapters.host_specs import TRANSCRIPTS
from smara.adapters.lines import JsonLine, decode, is_database, read_lines
from smara.adapters.records import Progress, Record

PLAIN = {
    "json": "smara.adapters.readers.plain:read_conversations",
    "jsonl": "smara.adapters.readers.plain:read_jsonl",
}
"""Formats of no host: conversations in JSON, and messages line by line."""
FORMATS: tuple[str, ...] = (*TRANSCRIPTS, *PLAIN)
_STRICT = [each for each in TRANSCRIPTS.values() if not each.is_loose]
_LOOSE = [each for each in TRANSCRIPTS.values() if each.is_loose]
_LINES_LOOKED_AT = 50


def reader_of(format: str) -> Callable[..., Iterator[Record]]:
    """Return the reader of a format; its module is imported now."""
    place = TRANSCRIPTS[format].reader if format in TRANSCRIPTS else PLAIN[format]
    module, _, name = place.partition(":")
    reader: Callable[..., Iterator[Record]] = getattr(import_module(module), name)
    return reader


def read_records(
    path: str | os.PathLike[str], progress: Progress | None = None, *, format: str | None = None
) -> Iterator[Record]:
    """Read the records of a file in its format."""
    return reader_of(format or sniff(path))(path, progress)


def sniff(path: str | os.PathLike[str]) -> str:
    """Return the format of a file by its first lines, else ``jsonl``.

    Reading it as such is harmless: each line that is no message is counted with what to mend.
    """
    for each in TRANSCRIPTS.values():
        if each.is_file(path):
            return each.format
    head = head_of(path).lstrip("\ufeff")  # which editors on Windows put in front
    if is_document_head(head):
        every = ((each, pattern) for each in TRANSCRIPTS.values() for pattern in each.documents)
        return next((each.format for each, pattern in every if re.search(pattern, head)), "json")
    for value in _first_objects(path):
        for each in _STRICT:
            if each.is_record(value):
                return each.format
        if "role" not in value and isinstance(value.get("messages"), list):
            return "json"
        for each in _LOOSE:
            if each.is_record(value):
                return each.format
        if "role" in value or value.get("type") == "thread":
            return "jsonl"
    return "jsonl"


def import_order(paths: Iterable[str | os.PathLike[str]]) -> list[str | os.PathLike[str]]:
    """The same files, transcripts of sub-agents first.

    A session's file repeats some messages of its sub-agents. Whichever comes first decides
    their order in the thread, and only the sub-agent's own file has them all.
    """
    return sorted(paths, key=lambda path: not _is_subagent_file(path))


def _is_subagent_file(path: str | os.PathLike[str]) -> bool:
    objects = _first_objects(path) if not is_database(path) else iter(())
    return any(
        value.get("isSidechain") is True and "agentId" in value for value in islice(objects, 3)
    )


def _first_objects(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    for line in islice(read_lines(path), _LINES_LOOKED_AT):
        entry = decode(line)
        if isinstance(entry, JsonLine):
            yield entry.value
