"""Map file paths to project paths, modules and kinds of file."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from functools import lru_cache

from smara.actions.commands import CUES, WORDS
from smara.core.git import find_repository
from smara.core.paths import is_test_path
from smara.core.startup.regex import re, regex

_REMEMBERED = 4_096
"""A session touches the same files again and again."""
LONGEST_PATH = 145
"""Two paths fit into one key of a ledger."""
_DRIVE = regex(r"[A-Za-z]:(?:/|$)")


def rooted(path: str) -> str:
    """Return a path with forward slashes and its drive as folder.

    >>> rooted("D:\\\\shop\\\\a.py"), rooted("d:/shop"), rooted("src/a.py")
    ('/d:/shop/a.py', '/d:/shop', 'src/a.py')
    """
    plain = path.replace("\\", "/")
    return f"/{plain[0].lower()}{plain[1:]}" if _DRIVE.match(plain) else plain


@lru_cache(maxsize=256)
def root_of(cwd: str) -> str:
    """Return a session's repository root, or its folder."""
    plain = rooted(cwd)
    if not plain.startswith("/"):
        return cwd
    try:  # a drive of another system is no folder here, and must not be looked for below this one
        repository = find_repository(cwd) if posixpath.isabs(cwd) or os.path.isabs(cwd) else None
    except (OSError, ValueError):
        repository = None
    return rooted(repository.root) if repository else plain.rstrip("/") or "/"


def project_path(path: object, root: str, cwd: str = "") -> str | None:
    """Return a path from the project's root, or None.

    >>> project_path("/w/app/src/a.py", "/w/app"), project_path("/etc/hosts", "/w/app"), project_path("./a.py", "/w")
    ('src/a.py', None, 'a.py')
    """  # noqa: E501
    if not isinstance(path, str) or not path or len(path) > 1_000 or "\n" in path or "\0" in path:
        return None
    return _project_path(path, root, cwd)


@lru_cache(maxsize=_REMEMBERED)
def _project_path(path: str, root: str, cwd: str) -> str | None:
    plain, root, cwd = rooted(path), rooted(root), rooted(cwd)
    if not plain.startswith("/"):
        plain = posixpath.join(cwd, plain) if cwd.startswith(root + "/") else plain
    if plain.startswith("/"):
        if not root or not (plain + "/").startswith(root.rstrip("/") + "/"):
            return None
        plain = plain[len(root.rstrip("/")) + 1 :]
    plain = posixpath.normpath(plain) if plain else ""
    is_inside = (
        bool(plain)
        and bool(plain.rsplit("/", 1)[-1].strip("."))
        and not plain.startswith(("../", "~"))
    )
    return plain if is_inside and len(plain) <= LONGEST_PATH else None


@lru_cache(maxsize=_REMEMBERED)
def module_of(path: str) -> str | None:
    """Return a file's module: at most two specific folders.

    >>> module_of("src/smara/tasks/store.py"), module_of("setup.py"), module_of("src/auth.py")
    ('smara/tasks', None, None)
    """
    folders = path.split("/")[:-1]
    if is_test(path):
        return "tests"
    while folders and folders[0].lower() in WORDS["generic folders"]:
        folders = folders[1:]
    return "/".join(folders[:2]) or None


@lru_cache(maxsize=_REMEMBERED)
def is_at_module(place: str, module: str) -> bool:
    """Return True if a place lies in a module, or around it.

    >>> is_at_module("src/shop/cart.py", "shop"), is_at_module("src/shop/cart.py", "shop.cart")
    (True, True)
    >>> is_at_module("shop", "shop/cart"), is_at_module("src", "shop"), is_at_module("cart", "art")
    (True, False, False)
    """
    parts, inner = (
        list(filter(None, re.split(r"[/.]", each.casefold()))) for each in (place, module)
    )
    for names in (parts, inner):
        while names and names[0] in WORDS["generic folders"]:
            del names[0]
    around, within = (f"/{'/'.join(names)}/" for names in (parts, inner))
    is_inside = bool(inner) and (within in around or within.startswith(around))
    return is_inside or module_of(place) == module


def modules_of(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the modules of files, each once."""
    return tuple(dict.fromkeys(filter(None, map(module_of, paths))))


@lru_cache(maxsize=_REMEMBERED)
def is_config(path: str) -> bool:
    name = path.rsplit("/", 1)[-1].lower()
    return not is_lock(path) and (
        name in WORDS["config names"] or bool(CUES["config path"].search(path))
    )


def is_manifest(path: str) -> bool:
    """Return True if a file lists dependencies and a version.

    It is changed for many reasons.
    """
    return path.rsplit("/", 1)[-1].lower() in WORDS["manifests"]


def is_lock(path: str) -> bool:
    """Return True if a package manager writes a file.

    It changes with another one by itself.
    """
    return bool(CUES["lock path"].search(path))


@lru_cache(maxsize=_REMEMBERED)
def is_test(path: str) -> bool:
    """Return True if a file is a test.

    A page in a folder of specifications is not.
    """
    return is_test_path(path) and not is_prose(path)


def is_prose(path: str) -> bool:
    return bool(CUES["prose path"].search(path))


@lru_cache(maxsize=_REMEMBERED)
def is_source(path: str) -> bool:
    """Return True if a file is the project's own code.

    No test, no configuration, no prose.
    """
    return bool(CUES["source path"].search(path)) and not is_test(path) and not is_config(path)


def stem_of(path: str) -> str:
    """Return the name of a file without folders and endings.

    >>> stem_of("src/auth/token.service.ts"), stem_of(".gitignore")
    ('token', '.gitignore')
    """
    name = path.rsplit("/", 1)[-1]
    return name.split(".", 1)[0] or name


def is_test_of(one: str, other: str) -> bool:
    """Return True if one of two files tests the other.

    That they change together is no news.
    """
    if is_test(one) == is_test(other):
        return False
    test, source = (one, other) if is_test(one) else (other, one)
    name, stem = stem_of(test).lower(), stem_of(source).lower()
    bare = re.sub(r"^(?:test|spec)[_-]|[_-]?(?:tests?|spec)$", "", name)
    is_of_part = (
        len(bare) >= 4
        and stem.startswith(f"{bare}_")
        and test.rpartition("/")[0] == source.rpartition("/")[0]
    )
    return bare == stem or is_of_part or bare in (source.lower().split("/")[-2:-1] or [""])
