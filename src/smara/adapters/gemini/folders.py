"""Which folder a chat of Gemini CLI was held in.

Its files lie in ``tmp/<project>/``, where the project is named by the hash of its folder, or by
a short name that a file beside it and a table above it resolve.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

_MOST_BYTES = 4_000_000


def project_root_of(path: str | os.PathLike[str], candidates: Iterable[str] = ()) -> str:
    """The folder of the project that a chat belongs to; empty when nothing tells it.

    A hash cannot be undone, so it is compared with those of the ``candidates``.
    """
    folder = _project_folder(Path(os.path.abspath(path)))
    if folder is None:
        return ""
    told = _read(folder / ".project_root").strip()
    if told:
        return told
    for root, name in _registry(folder.parent.parent).items():
        if name == folder.name or _hash(root) == folder.name:
            return root
    return next((root for root in candidates if _hash(root) == folder.name), "")


def _project_folder(path: Path) -> Path | None:
    for parent in path.parents:
        if parent.parent.name == "tmp":
            return parent
    return None


def _registry(home: Path) -> dict[str, str]:
    try:
        told = json.loads(_read(home / "projects.json") or "{}")
    except (ValueError, RecursionError):
        return {}
    projects = told.get("projects") if isinstance(told, dict) else None
    if not isinstance(projects, dict):
        return {}
    return {root: name for root, name in projects.items() if isinstance(name, str)}


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _hash(root: str) -> str:
    return hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()
