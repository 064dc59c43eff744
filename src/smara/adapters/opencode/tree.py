"""OpenCode's folder of JSON files: one for each session, message and part.

``storage/session/<project>/<session>.json``, ``storage/message/<session>/<message>.json`` and
``storage/part/<message>/<part>.json``; the first versions kept all of it below ``session``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from smara.adapters.decoding import load_json, mapping_in, text_in
from smara.adapters.opencode.models import StoredMessage, StoredSession
from smara.adapters.reading import read_whole
from smara.adapters.records import Counted
from smara.errors import SmaraError

_MOST_BYTES = 80 * 1024 * 1024


def tree_session(path: Path, info: Mapping[str, Any]) -> StoredSession:
    """The session whose file this is."""
    session_id = text_in(info.get("id")) or path.stem
    if path.parent.name == "info":  # the first versions
        above = path.parent.parent
        return StoredSession(
            info, _messages(above / "message" / session_id, above / "part" / session_id)
        )
    storage = path.parent.parent.parent
    return StoredSession(info, _messages(storage / "message" / session_id, storage / "part"))


def _messages(folder: Path, parts: Path) -> Iterator[StoredMessage | Counted]:
    found: list[tuple[Any, str, Mapping[str, Any]]] = []
    for path in _files(folder):
        told = read_object(path)
        if isinstance(told, str):
            yield Counted(1, "message", told, detail=path.name)
            continue
        created = mapping_in(told.get("time")).get("created")
        found.append((created if isinstance(created, int | float) else 0, path.stem, told))
    for _, name, info in sorted(found, key=lambda each: each[:2]):
        yield StoredMessage(info, tuple(_parts(parts / (text_in(info.get("id")) or name))))


def _parts(folder: Path) -> Iterator[Mapping[str, Any] | Counted]:
    for path in _files(folder):
        told = read_object(path)
        if isinstance(told, str):
            yield Counted(1, "part", told, detail=path.name)
        else:
            yield told if text_in(told.get("id")) else {**told, "id": path.stem}


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(Path(each.path) for each in os.scandir(folder) if each.name.endswith(".json"))
    except OSError:
        return []  # a session without messages has no folder


def read_object(path: Path) -> dict[str, Any] | str:
    """The object in a file, or why there is none."""
    try:
        data, problem = read_whole(path, max_bytes=_MOST_BYTES)
        value, _ = load_json(data.decode("utf-8", "replace").strip("\x00 \t\r\n\ufeff"))
    except RecursionError:
        return "nested too deeply to be read"
    except (ValueError, SmaraError):
        return "invalid JSON"
    if problem:
        return problem
    return value if isinstance(value, dict) else "not a JSON object"
