"""Match statements with repository paths and with earlier memories.

Nothing is written here. A statement and a memory match if the file has the same words; lines
and the file may have moved. Edited words match by similarity within one file. A memory that
a person deprecated stays deprecated. `mentions_in` finds the files a statement is about.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from smara.adapters.instructions.markdown import InstructionFile, InstructionStatement
from smara.core.extract import word_set
from smara.knowledge.models import TypedMemory

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
class PathMentions:
    """The paths in a statement, relative to the root."""

    files: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


def mentions_in(text: str, root: str, folder: str = "") -> PathMentions:
    """Return the files and folders that a text names.

    ``folder`` is where its paths may begin, besides the root.

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
    return PathMentions(tuple(files)[:_MOST], tuple(modules)[:_MOST])


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


LIKE_ENOUGH = 0.6
"""Unrelated sentences are alike by 0.2 to 0.45, a sentence with a word changed by 0.7 and more."""
_COMPARED_CHARACTERS = 400
_NOT_WORDS = re.compile(r"[\s*_`\"'“”‘’]+")


@dataclass(frozen=True, slots=True)
class StatementPlace:
    """The place of a statement in a file."""

    file: InstructionFile
    statement: InstructionStatement


@dataclass(slots=True)
class Saying:
    """A statement with all places that make it."""

    key: str
    text: str
    places: list[StatementPlace] = field(default_factory=list)


@dataclass(slots=True)
class Matched:
    """A memory with all statements about it; there may be two."""

    memory: TypedMemory
    sayings: list[Saying] = field(default_factory=list)


@dataclass(slots=True)
class MatchPlan:
    """The actions of an import; each saying and memory is in one."""

    kept: list[Matched] = field(default_factory=list)
    changed: list[tuple[Saying, TypedMemory]] = field(default_factory=list)
    returned: list[Matched] = field(default_factory=list)
    put_aside: list[tuple[Saying, TypedMemory]] = field(default_factory=list)
    """A person rejected or forgot it, or something better took its place: the file is not asked."""
    added: list[Saying] = field(default_factory=list)
    removed: list[TypedMemory] = field(default_factory=list)


def key_of(text: str) -> str:
    """Return the words of a text without spaces, marks and capitals."""
    plain = _NOT_WORDS.sub(" ", text).strip(" .;,").casefold()
    return hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()[:32]


def sayings_of(places: Iterable[tuple[StatementPlace, str]]) -> list[Saying]:
    """Group places by what they say, in order of appearance."""
    found: dict[str, Saying] = {}
    for place, text in places:
        key = key_of(text)
        found.setdefault(key, Saying(key, text)).places.append(place)
    return list(found.values())


def keys_of(memory: TypedMemory) -> set[str]:
    """Return the keys of a memory's original texts.

    A person may have put it in other words since.
    """
    return {key_of(each.quote) for each in memory.evidence if each.quote} or {
        key_of(memory.content)
    }


def paths_of(memory: TypedMemory) -> set[str]:
    """The files a memory was imported from."""
    return {each.path for each in memory.evidence if each.path}


def match(
    sayings: Sequence[Saying], memories: Sequence[TypedMemory], is_by_person: dict[str, bool]
) -> MatchPlan:
    """Match sayings with memories and return what is to be done.

    ``is_by_person`` says by id if a person put a memory aside.
    """
    plan = MatchPlan()
    known = _Known(memories)
    waiting = [saying for saying in sayings if not known.keep(saying)]
    plan.kept = known.kept()
    for saying in list(waiting):
        memory = known.newest(saying)
        if memory is None:
            continue
        waiting.remove(saying)
        newer = known.successor(memory)
        if newer is not None:
            # The file went back to its old words: what had taken their place gives way again.
            plan.changed.append((saying, newer))
        elif is_by_person.get(memory.id) or memory.deprecated_because in (
            "rejected",
            "merged",
            "superseded",
        ):
            plan.put_aside.append((saying, memory))
        else:
            plan.returned.append(Matched(memory, [saying]))
    taken = {memory.id for _, memory in plan.changed}
    left = [each for each in known.unsaid() if each.id not in taken]
    plan.changed += _alike(waiting, left)
    replaced = {memory.id for _, memory in plan.changed}
    said = {saying.key for saying, _ in plan.changed}
    plan.added = [saying for saying in waiting if saying.key not in said]
    plan.removed = [memory for memory in left if memory.id not in replaced]
    return plan


class _Known:
    """The memories of earlier imports, by what the files said."""

    def __init__(self, memories: Sequence[TypedMemory]) -> None:
        self._memories = {each.id: each for each in memories}
        self._by_key: dict[str, list[TypedMemory]] = {}
        for memory in sorted(memories, key=lambda each: -each.created_at):
            for key in keys_of(memory):
                self._by_key.setdefault(key, []).append(memory)
        self._said: dict[str, Matched] = {}

    def keep(self, saying: Saying) -> bool:
        """Note that an active memory was made of a saying.

        Returns True if there is one.
        """
        active = [each for each in self._by_key.get(saying.key, ()) if each.is_active]
        for each in active[:1]:
            self._said.setdefault(each.id, Matched(each)).sayings.append(saying)
        return bool(active)

    def kept(self) -> list[Matched]:
        return list(self._said.values())

    def newest(self, saying: Saying) -> TypedMemory | None:
        """Return the newest memory of a saying that was put aside."""
        return next(iter(self._by_key.get(saying.key, ())), None)

    def successor(self, memory: TypedMemory) -> TypedMemory | None:
        """Return the imported memory that replaced another and is unsaid now."""
        newer = (
            self._memories.get(memory.superseded_by or "")
            if memory.deprecated_because == "superseded"
            else None
        )
        return (
            newer if newer is not None and newer.is_active and newer.id not in self._said else None
        )

    def unsaid(self) -> list[TypedMemory]:
        """The active ones that no file says any more."""
        return [
            each for each in self._memories.values() if each.is_active and each.id not in self._said
        ]


def _alike(
    sayings: Sequence[Saying], memories: Sequence[TypedMemory]
) -> Iterator[tuple[Saying, TypedMemory]]:
    """Pairs that say nearly the same in the same file, the most alike first, each once."""
    pairs: list[tuple[float, int, Saying, TypedMemory]] = []
    for saying in sayings:
        files = {place.file.path for place in saying.places}
        for memory in memories:
            if files & paths_of(memory):
                olds = [each.quote for each in memory.evidence if each.quote] or [memory.content]
                new = saying.text[:_COMPARED_CHARACTERS].casefold()
                likeness = max(
                    SequenceMatcher(None, old[:_COMPARED_CHARACTERS].casefold(), new, False).ratio()
                    for old in olds
                )
                if likeness >= LIKE_ENOUGH:
                    pairs.append((-likeness, len(pairs), saying, memory))
    seen: set[str] = set()
    for _, _, saying, memory in sorted(pairs, key=lambda pair: pair[:2]):
        if saying.key not in seen and memory.id not in seen:
            seen |= {saying.key, memory.id}
            yield saying, memory
