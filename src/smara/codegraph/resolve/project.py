"""List a tree's paths and manifests, to find modules by name."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeVar

LARGEST_MANIFEST = 1 << 20
T = TypeVar("T")


class ProjectFiles:
    """All paths of a tree, relative and with slashes; ``read`` gives the bytes of a manifest, or
    ``None``.
    """

    def __init__(
        self, paths: Iterable[str], read: Callable[[str], bytes | None] = lambda _path: None
    ) -> None:
        self.paths = frozenset(paths)
        self._read = read
        self._texts: dict[str, str | None] = {}
        self._kept: dict[str, Any] = {}

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What a language makes of the paths, made once for as long as they stay the same."""
        if name not in self._kept:
            self._kept[name] = make()
        found: T = self._kept[name]
        return found

    @cached_property
    def folders(self) -> dict[str, list[str]]:
        """The files directly in each folder; a folder that holds only folders has an empty list."""
        folders: dict[str, list[str]] = {"": []}
        for path in sorted(self.paths):
            folder = path.rpartition("/")[0]
            if folder not in folders:
                above = folder
                while above not in folders:
                    folders[above] = []
                    above = above.rpartition("/")[0]
            folders[folder].append(path)
        return folders

    @cached_property
    def by_name(self) -> dict[str, list[str]]:
        """Paths by their last part."""
        names: dict[str, list[str]] = {}
        for path in sorted(self.paths):
            names.setdefault(path.rpartition("/")[2], []).append(path)
        return names

    def text(self, path: str) -> str | None:
        """The text of a manifest; ``None`` when there is none, when it is very large or cannot be
        read.
        """
        if path not in self._texts:
            data = self._read(path)
            usable = data is not None and len(data) <= LARGEST_MANIFEST
            self._texts[path] = (
                data.decode("utf-8", "replace") if usable and data is not None else None
            )
        return self._texts[path]

    def nearest(self, name: str, from_path: str) -> str | None:
        """The path of the file called ``name`` in the folder of ``from_path`` or the closest one
        above it.
        """
        for folder in folders_above(from_path):
            path = join(folder, name)
            if path in self.paths:
                return path
        return None

    def ending_with(self, tail: str) -> list[str]:
        """The paths that are ``tail`` or end with ``/`` and it."""
        last = tail.rpartition("/")[2]
        return [
            path for path in self.by_name.get(last, ()) if path == tail or path.endswith("/" + tail)
        ]


def folders_above(path: str) -> list[str]:
    """The folder of a path and all above it, the closest first: ``a/b/c.py`` gives ``a/b``, ``a``
    and the root.
    """
    folder = path.rpartition("/")[0]
    found = [folder]
    while folder:
        folder = folder.rpartition("/")[0]
        found.append(folder)
    return found


def join(folder: str, *parts: str) -> str:
    """A path inside the tree, without ``.`` and ``..``; one that leads out of it starts with
    ``..``.
    """
    joined = posixpath.normpath(posixpath.join(folder, *parts)) if folder or parts else ""
    return "" if joined == "." else joined


def closest(paths: list[str], from_path: str) -> str | None:
    """The path that shares the most folders with ``from_path``; ``None`` when two are equally
    close.
    """
    if len(paths) == 1:
        return paths[0]
    ranked = sorted((-_shared(path, from_path), path.count("/"), path) for path in paths)
    if not ranked or (len(ranked) > 1 and ranked[0][:2] == ranked[1][:2]):
        return None
    return ranked[0][2]


def _shared(path: str, other: str) -> int:
    count = 0
    for one, two in zip(path.split("/")[:-1], other.split("/")[:-1], strict=False):
        if one != two:
            break
        count += 1
    return count
