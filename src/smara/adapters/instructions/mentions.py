"""The files and folders of a repository that a statement speaks of."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from smara.core.wordlists import word_set

_EXTENSIONS = word_set(
    "py pyi ts tsx js jsx mjs cjs mts cts md mdx mdc json jsonc json5 yaml yml toml ini cfg conf "
    "lock sh bash"
    " zsh fish ps1"
    " bat c h cc cpp hpp cs go rs rb php java kt kts swift m mm scala ex exs heex erl hs lua r jl "
    "dart sql html"
    " css scss"
    " sass less vue svelte astro xml csv txt env proto graphql gql tf tfvars ipynb gradle cmake "
    "prisma example template"
)
_BARE_NAMES = word_set(
    "makefile dockerfile justfile gemfile rakefile procfile cmakelists.txt package.json "
    "tsconfig.json pyproject.toml"
    " cargo.toml go.mod .env .gitignore .editorconfig docker-compose.yml"
)
# Names of products that look like files.
_PRODUCTS = re.compile(
    r"(node|next|nuxt|vue|react|express|three|d3|discord|alpine|backbone|ember|nest|deno|socket"
    r"|chart|moment|angular|"
    r"knockout|p5|electron|solid|meteor|underscore|require|asp|ado|vb|web3|ethers|polka|koa|bun"
    r"|ml|jquery|handlebars)"
    r"\.(js|ts|net|io)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w@.~*{}\[\],+-]*(?:/[\w@.~*{}\[\],+-]+)*/?(?::\d+(?:-\d+)?)?")
_URL = re.compile(r"\b\w+://\S+")
_LINE = re.compile(r":\d+(?:-\d+)?$")
_MOST = 20


@dataclass(frozen=True, slots=True)
class Mentions:
    """What a statement speaks of, relative to the root."""

    files: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


def mentions_in(text: str, root: str, folder: str = "") -> Mentions:
    """The files and folders that a text names; ``folder`` is where its paths may begin, besides the
    root.

    A name counts when it is there, or when it can be nothing else but a path.
    """
    files: dict[str, None] = {}
    modules: dict[str, None] = {}
    for name, is_coded in _names(text):
        place = _place(name, root, folder)
        if place is not None and os.path.isdir(os.path.join(root, place)):
            modules.setdefault(place)
        elif place is not None or _is_path(name, is_coded):
            files.setdefault(place or name)
        elif is_coded and name.endswith("/") and _is_plain(name):
            modules.setdefault(name.rstrip("/"))
    return Mentions(tuple(files)[:_MOST], tuple(modules)[:_MOST])


def modules_of(globs: Iterable[str], root: str, folder: str = "") -> tuple[str, ...]:
    """The folders that globs reach into: ``src/api/**/*.ts`` is about ``src/api``."""
    found: dict[str, None] = {}
    for glob in globs:
        steps = glob.removeprefix("./").removeprefix("/").split("/")
        fixed: list[str] = []
        for step in steps[:-1]:
            if re.search(r"[*?\[{]", step):
                break
            fixed.append(step)
        if fixed:
            name = "/".join(fixed)
            found.setdefault(_place(name, root, folder) or name)
    return tuple(found)


def _names(text: str) -> Iterator[tuple[str, bool]]:
    """What may be a path, and whether it stands in code."""
    bare = _URL.sub(" ", text)
    for number, piece in enumerate(bare.split("`")):
        for found in _WORD.finditer(piece):
            name = _LINE.sub("", found[0]).strip(",.+").removeprefix("./")
            if len(name) > 1 and len(name) <= 200 and (any(map(str.isalnum, name))):
                yield name, number % 2 == 1


def _place(name: str, root: str, folder: str) -> str | None:
    """The path relative to the root, when it is there."""
    if not _is_plain(name) or name.startswith(("~", "@", "-")) or ".." in name.split("/"):
        return None
    if "/" not in name and "." not in name and name.lower() not in _BARE_NAMES:
        return None  # a word that happens to be the name of a folder
    for start in dict.fromkeys((folder, "")):
        place = os.path.normpath(os.path.join(start, name.strip("/"))).replace(os.sep, "/")
        if place not in (".", "") and os.path.exists(os.path.join(root, place)):
            return place
    return None


def _is_plain(name: str) -> bool:
    return not re.search(r"[*?{}\[\]]", name)


def _is_path(name: str, is_coded: bool) -> bool:
    """Whether a name that is not there can only be a path."""
    if not _is_plain(name) or name.startswith(("@", "~", "-", "/")) or _PRODUCTS.fullmatch(name):
        return False
    if is_coded and re.fullmatch(r"[\w.@+-]+(/[\w.@+-]+)+\.[A-Za-z]\w{0,9}", name):
        return True
    stem, dot, extension = name.rpartition(".")
    if not dot or extension.lower() not in _EXTENSIONS:
        return name.lower() in _BARE_NAMES and is_coded
    return bool(stem.strip("./")) and ("/" in name or is_coded) and stem[-1] not in "/."
