"""Which format a file is in, and in which order files are best imported."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal

from smara.adapters.claude_code import read_transcript
from smara.adapters.decoding import Entry, decode
from smara.adapters.jsonl import read_jsonl
from smara.adapters.reading import read_lines
from smara.adapters.records import Progress, Record

Format = Literal["claude-code", "jsonl"]

READERS: Mapping[Format, Callable[..., Iterator[Record]]] = {"claude-code": read_transcript, "jsonl": read_jsonl}

_LINES_LOOKED_AT = 50
_TRANSCRIPT_KEYS = {"parentUuid", "isSidechain", "leafUuid", "isSnapshotUpdate", "toolUseID", "customTitle", "aiTitle"}


def read_records(
    path: str | os.PathLike[str], progress: Progress | None = None, *, format: Format | None = None
) -> Iterator[Record]:
    """The records of a file, in the format given or in the one it looks like."""
    return READERS[format or sniff(path)](path, progress)


def sniff(path: str | os.PathLike[str]) -> Format:
    """The format of a file, from its first lines; a file like no other is taken as plain JSONL.

    Reading it as such is harmless: each line that is no message is counted with what to mend.
    """
    for value in _first_objects(path):
        if _is_transcript_record(value):
            return "claude-code"
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
    objects = _first_objects(path)
    return any(value.get("isSidechain") is True and "agentId" in value for value in islice(objects, 3))


def _is_transcript_record(value: Mapping[str, Any]) -> bool:
    if not isinstance(value.get("type"), str) or value.get("type") == "thread":
        return False
    return not _TRANSCRIPT_KEYS.isdisjoint(value) or ("sessionId" in value and "role" not in value)


def _first_objects(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    for line in islice(read_lines(path), _LINES_LOOKED_AT):
        entry = decode(line)
        if isinstance(entry, Entry):
            yield entry.value
