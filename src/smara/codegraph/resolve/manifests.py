"""Reading ``tsconfig.json``, ``jsconfig.json`` and ``package.json``: what imports without a dot
mean.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from smara.codegraph.resolve.project import ProjectFiles, join

_STRING_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_MOST_EXTENDED = 5


class ScriptConfig(NamedTuple):
    """The paths of one ``tsconfig.json``: where bare names start, and patterns with the places they
    stand for.
    """

    base: str | None
    paths: tuple[tuple[str, tuple[str, ...]], ...]


class ScriptPackage(NamedTuple):
    """One ``package.json`` of the tree: its name, its folder, and the files it says it begins
    with.
    """

    name: str
    folder: str
    entries: tuple[str, ...]
    exports: tuple[tuple[str, str], ...]
    inner: tuple[tuple[str, str], ...]
    """Its ``imports``: names that start with ``#``."""


def read_json(text: str | None) -> dict[str, object]:
    """An object out of JSON with comments and trailing commas; empty when it is none."""
    if text is None:
        return {}
    plain = _STRING_OR_COMMENT.sub(lambda found: found.group(1) or "", text.lstrip("\ufeff"))
    plain = _TRAILING_COMMA.sub(lambda found: found.group(1) or "", plain)
    try:
        value = json.loads(plain)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read_config(project: ProjectFiles, path: str, depth: int = 0) -> ScriptConfig:
    """The paths that a configuration sets, or the one it extends."""
    content = read_json(project.text(path))
    folder = path.rpartition("/")[0]
    options = content.get("compilerOptions")
    options = options if isinstance(options, dict) else {}
    base_url, paths = options.get("baseUrl"), options.get("paths")
    base = join(folder, base_url) if isinstance(base_url, str) else None
    if isinstance(paths, dict):
        start = base if base is not None else folder
        patterns = [
            (pattern, tuple(join(start, place) for place in places if isinstance(place, str)))
            for pattern, places in paths.items()
            if isinstance(places, list)
        ]
        # The longest pattern before its star is the one that counts.
        patterns.sort(key=lambda each: -len(each[0].partition("*")[0]))
        return ScriptConfig(base, tuple(patterns))
    extended = _extended(project, folder, content, depth=depth)
    return ScriptConfig(base if base is not None else extended.base, extended.paths)


def _extended(
    project: ProjectFiles, folder: str, content: dict[str, object], depth: int
) -> ScriptConfig:
    above = content.get("extends")
    names = above if isinstance(above, list) else [above]
    for name in names:
        if isinstance(name, str) and name.startswith(".") and depth < _MOST_EXTENDED:
            for path in (
                join(folder, name),
                join(folder, f"{name}.json"),
                join(folder, name, "tsconfig.json"),
            ):
                if path in project.paths:
                    return read_config(project, path, depth + 1)
    return ScriptConfig(None, ())


def read_package(project: ProjectFiles, path: str) -> ScriptPackage:
    content = read_json(project.text(path))
    name = content.get("name")
    entries = [content.get(key) for key in ("source", "types", "typings", "module", "main")]
    return ScriptPackage(
        name if isinstance(name, str) else "",
        path.rpartition("/")[0],
        tuple(entry for entry in entries if isinstance(entry, str)),
        exports=tuple(_mapped(content.get("exports"))),
        inner=tuple(_mapped(content.get("imports"))),
    )


def _mapped(value: object) -> list[tuple[str, str]]:
    """A map of subpaths to files, one file each: the first string among the conditions."""
    if isinstance(value, str):
        return [(".", value)]
    if not isinstance(value, dict):
        return []
    if not any(key.startswith((".", "#")) for key in value):
        found = _first_string(value, 0)
        return [(".", found)] if found else []
    pairs = [(key, _first_string(each, 0)) for key, each in value.items()]
    return [(key, found) for key, found in pairs if found]


def _first_string(value: object, depth: int) -> str:
    if isinstance(value, str):
        return value
    if depth > 4:
        return ""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for each in inner if (found := _first_string(each, depth + 1))), "")
