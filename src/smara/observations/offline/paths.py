"""Paths, short enough to read: below the folder of the work, and many of one folder together."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence

from smara.core.wordlists import word_set

# A folder that holds one of these is taken for the root of a project when nothing tells it.
_TOP_FOLDERS = word_set(
    "src lib test tests spec app apps packages cmd internal pkg assets priv config docs doc "
    "scripts bin public static"
    " migrations .github web server client frontend backend components crates evals bench examples"
)
_LEAST_STEPS = 3
"""A project lies at least so deep: ``/home/ada/shop``."""


class Paths:
    """Writes paths the short way. With a ``root`` that is known nothing is guessed, and every batch
    writes alike.
    """

    def __init__(self, folder: str, mentioned: Iterable[str], root: str = "") -> None:
        if known_root := _as_folder(root):
            self._root = known_root
            return
        known = list(mentioned)
        candidates = sorted({_as_folder(folder), _likely_root(known)} - {""}, key=len)
        # Somebody may have gone into a folder of the project; the outer of two that hold as much is
        # the project's.
        self._root = max(
            candidates, key=lambda root: sum(path.startswith(root) for path in known), default=""
        )

    def short(self, path: str) -> str:
        """The path below the folder of the work, or as it is."""
        path = path.strip()
        if self._root and path.startswith(self._root) and len(path) > len(self._root):
            return path[len(self._root) :]
        return path[2:] if path.startswith("./") and len(path) > 2 else path

    def shorten(self, text: str) -> str:
        """A text, such as a command, with the folder of the work left out of its paths."""
        return text.replace(self._root, "") if self._root and len(self._root) > 4 else text


def _as_folder(path: str) -> str:
    stripped = path.strip().rstrip("/\\")
    return f"{stripped}/" if stripped.startswith("/") or stripped[1:2] == ":" else ""


def _likely_root(paths: Iterable[str]) -> str:
    """The folder above the most ``src``, ``lib`` or ``test`` folders that are mentioned; nothing
    when there is none.
    """
    roots: Counter[str] = Counter()
    for path in paths:
        if not path.startswith("/") or path.startswith("/usr/"):
            continue
        steps = path.split("/")
        for place, step in enumerate(steps[_LEAST_STEPS:-1], _LEAST_STEPS):
            if step in _TOP_FOLDERS:
                roots["/".join(steps[:place]) + "/"] += 1
                break
    return roots.most_common(1)[0][0] if roots else ""


def by_folder(paths: Sequence[str], most: int = 14) -> str:
    """Files by their folders, in order: ``src/auth/: login.py, token.py; README.md``."""
    groups: dict[str, list[str]] = {}
    for path in list(dict.fromkeys(paths))[:most]:
        folder, name = posixpath.split(path)
        groups.setdefault(folder, []).append(name)
    written = [_group(folder, names) for folder, names in groups.items()]
    return "; ".join(written) + ("; …" if len(set(paths)) > most else "")


def _group(folder: str, names: list[str]) -> str:
    if not folder:
        return ", ".join(names)
    return (
        f"{folder.rstrip('/')}/{names[0]}"
        if len(names) == 1
        else f"{folder.rstrip('/')}/: {', '.join(names)}"
    )


def common_folder(paths: Sequence[str]) -> str:
    """The deepest folder that holds all of the paths, with at least two steps; else nothing."""
    folders = {posixpath.dirname(path) for path in paths}
    if len(folders) != 1:
        return ""
    (folder,) = folders
    return f"{folder}/" if folder.count("/") >= 1 else ""
