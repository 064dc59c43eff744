"""Detect a file's transcript format and choose its reader.

Readers are imported on demand, each when its first file is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal, get_args

from smara.adapters.documents import head_of, is_document_head
from smara.adapters.lines import JsonLine, decode, is_database, read_lines, text_in
from smara.adapters.records import Progress, Record

HostFormat = Literal["claude-code", "codex", "gemini", "copilot", "opencode", "pi"]
Format = Literal["claude-code", "codex", "gemini", "copilot", "opencode", "pi", "json", "jsonl"]
HOST_FORMATS: tuple[HostFormat, ...] = get_args(HostFormat)
FORMATS: tuple[Format, ...] = get_args(Format)
Path = str | os.PathLike[str]


# Each reader is loaded when it is first asked for: the hooks, which only look at a file, wait for
# none of them.


def _claude_code(path: Path, progress: Progress | None = None, **options: Any) -> Iterator[Record]:
    from smara.adapters.readers.claude_code import read_transcript

    return read_transcript(path, progress, **options)


def _codex(path: Path, progress: Progress | None = None, **options: Any) -> Iterator[Record]:
    from smara.adapters.readers.codex import read_rollout

    return read_rollout(path, progress, **options)


def _gemini(path: Path, progress: Progress | None = None, **options: Any) -> Iterator[Record]:
    from smara.adapters.readers.gemini import read_chat

    return read_chat(path, progress, **options)


def _copilot(path: Path, progress: Progress | None = None, **options: Any) -> Iterator[Record]:
    from smara.adapters.readers.copilot import read_events

    return read_events(path, progress, **options)


def _opencode(path: Path, progress: Progress | None = None, **options: Any) -> Iterator[Record]:
    from smara.adapters.readers.opencode import read_sessions

    return read_sessions(path, progress, **options)


def _pi(path: Path, progress: Progress | None = None, **options: Any) -> Iterator[Record]:
    from smara.adapters.readers.pi import read_session

    return read_session(path, progress, **options)


def _json(path: Path, progress: Progress | None = None, **options: Any) -> Iterator[Record]:
    from smara.adapters.readers.plain import read_conversations

    return read_conversations(path, progress, **options)


def _jsonl(path: Path, progress: Progress | None = None, **options: Any) -> Iterator[Record]:
    from smara.adapters.readers.plain import read_jsonl

    return read_jsonl(path, progress, **options)


READERS: Mapping[Format, Callable[..., Iterator[Record]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini": _gemini,
    "copilot": _copilot,
    "opencode": _opencode,
    "pi": _pi,
    "json": _json,
    "jsonl": _jsonl,
}

_LINES_LOOKED_AT = 50
_TRANSCRIPT_KEYS = {
    "parentUuid",
    "isSidechain",
    "leafUuid",
    "isSnapshotUpdate",
    "toolUseID",
    "customTitle",
    "aiTitle",
}
_ROLLOUT_TYPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
# What the first characters of a document say about it; of several that are found the first counts.
_DOCUMENTS: tuple[tuple[Format, re.Pattern[str]], ...] = (
    ("gemini", re.compile(r'\A\s*\{[^{\[]*"sessionId"\s*:[^{\[]*"projectHash"\s*:', re.S)),
    ("gemini", re.compile(r'\A\s*\{[^{\[]*"projectHash"\s*:[^{\[]*"sessionId"\s*:', re.S)),
    ("gemini", re.compile(r'\A\s*\[\s*\{(?=[^}]*"sessionId"\s*:)(?=[^}]*"messageId"\s*:)', re.S)),
    ("opencode", re.compile(r'\A\s*\{\s*(?:"info"\s*:\s*\{)?[^{\[]*"id"\s*:\s*"ses_', re.S)),
    ("codex", re.compile(r'\A\s*\{\s*"session"\s*:\s*\{.*?"items"\s*:\s*\[', re.S)),
)


def read_records(
    path: str | os.PathLike[str], progress: Progress | None = None, *, format: Format | None = None
) -> Iterator[Record]:
    """The records of a file, in the format given or in the one it looks like."""
    return READERS[format or sniff(path)](path, progress)


def sniff(path: str | os.PathLike[str]) -> Format:
    """The format of a file, from its first lines; a file like no other is taken as plain JSONL.

    Reading it as such is harmless: each line that is no message is counted with what to mend.
    """
    if is_database(path):
        return "opencode"
    head = head_of(path).lstrip("\ufeff")  # which editors on Windows put in front
    if _is_session_of_opencode(path):
        return "opencode"
    if is_document_head(head):
        return next((format for format, pattern in _DOCUMENTS if pattern.search(head)), "json")
    for value in _first_objects(path):
        if _is_rollout_record(value):
            return "codex"
        if "projectHash" in value and "sessionId" in value:
            return "gemini"
        if value.get("type") == "session.start" and isinstance(value.get("data"), dict):
            return "copilot"
        if value.get("type") == "session" and "role" not in value and {"id", "cwd"} <= set(value):
            return "pi"
        if "role" not in value and str(value.get("id")).startswith("ses_") and "directory" in value:
            return "opencode"
        if "role" not in value and isinstance(value.get("messages"), list):
            return "json"
        if _is_transcript_record(value):
            return "claude-code"
        if "role" in value or value.get("type") == "thread":
            return "jsonl"
    return "jsonl"


def _is_session_of_opencode(path: Path) -> bool:
    """Whether a file lies where OpenCode keeps its sessions, with their messages beside."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    return os.path.basename(folder) == "session" and os.path.isdir(
        os.path.join(os.path.dirname(folder), "message")
    )


def _is_rollout_record(value: Mapping[str, Any]) -> bool:
    if text_in(value.get("type")) in _ROLLOUT_TYPES and isinstance(value.get("payload"), dict):
        return True
    # The first versions began with a line about the session, without a type.
    return (
        "type" not in value
        and "role" not in value
        and {"id", "timestamp", "instructions"} <= set(value)
    )


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


def _is_transcript_record(value: Mapping[str, Any]) -> bool:
    if not isinstance(value.get("type"), str) or value.get("type") == "thread":
        return False
    return not _TRANSCRIPT_KEYS.isdisjoint(value) or ("sessionId" in value and "role" not in value)


def _first_objects(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    for line in islice(read_lines(path), _LINES_LOOKED_AT):
        entry = decode(line)
        if isinstance(entry, JsonLine):
            yield entry.value
