"""Track which files' edges depend on which names, and make them.

While a file is joined to the others, every question to the symbol table is recorded. The recorded
keys and the words of the file are stored as sorted numbers. When a file changes, the files whose
keys contain a changed name are the ones whose edges are made again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from smara.codegraph.codec import bytes_of, pack_edges, unpack_facts
from smara.codegraph.index.files import NotRead, TreeReader
from smara.codegraph.language import tables
from smara.codegraph.models import FileFacts, Import
from smara.codegraph.resolve.resolver import Resolver, tested_stem
from smara.codegraph.resolve.scip import Precise
from smara.codegraph.resolve.symbols import (
    FileOutline,
    MemoryTable,
    ProjectFiles,
    Symbol,
    SymbolTable,
    unpack_outline,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


_WORD = re.compile(r"\w+")


class Recorder:
    """A table that notes what it is asked."""

    def __init__(self, table: SymbolTable) -> None:
        self._table = table
        self.paths: set[str] = set()
        self.names: set[str] = set()

    def outline(self, path: str) -> FileOutline | None:
        self.paths.add(path)
        return self._table.outline(path)

    def named(self, names: Collection[str], limit: int) -> dict[str, list[Symbol]]:
        self.names.update(names)
        return self._table.named(names, limit)

    def forget(self) -> None:
        """Begin again, for the next file."""
        self.paths, self.names = set(), set()


class OutlineChange(NamedTuple):
    """The differences of one file that other files can see."""

    path: str
    names: frozenset[str] | None
    """The names that now mean something else; ``None`` when it may be anything."""
    defined: frozenset[str] = frozenset()
    """The names it defines more, fewer or other things by."""
    is_come_or_gone: bool = False


_SEEDS = {kind: crc32(f"{kind}:".encode()) for kind in "onwmd"}


def key_of(kind: str, text: str) -> int:
    """Return a number for a text of a kind.

    The kinds: o, a file asked about; n, a name looked up; w, a word; m, a mention; d, a folder.

    >>> key_of("w", "send") == crc32(b"w:send")
    True
    """
    return crc32(text.encode("utf-8", "replace"), _SEEDS[kind])


def _keys(kind: str, texts: Iterable[str]) -> Iterator[int]:
    seed = _SEEDS[kind]
    return (crc32(text.encode("utf-8", "replace"), seed) for text in texts)


def keys_of(facts: FileFacts, asked_paths: Iterable[str], asked_names: Iterable[str]) -> bytes:
    """Return the notes on one file.

    Whom it asked about, which names it looked up, which words it and its outline use.
    """
    used, mentioned = _words(facts)
    folder, _, name = facts.path.rpartition("/")
    mentioned |= {name.partition(".")[0], tested_stem(facts.path) or ""}
    keys = {
        key_of("d", folder),
        *_keys("o", asked_paths),
        *_keys("n", asked_names),
        *_keys("m", mentioned),
    }
    keys.update(_keys("w", used | mentioned))
    return bytes_of(sorted(keys))


def _words(facts: FileFacts) -> tuple[set[str], set[str]]:
    """Return the words a file uses, and those that its outline shows to others."""
    used = {each.name for each in facts.references}
    mentioned: set[str] = set()
    chains = {each.receiver for each in facts.references if each.receiver}
    for each in facts.references:
        if each.kind == "inherits":
            mentioned.add(each.name)
            mentioned.update(_WORD.findall(each.receiver))
    for bound in facts.bindings:
        mentioned.update(_WORD.findall(bound.type))
        used.add(bound.name)
    for imported in facts.imports:
        mentioned.update(_WORD.findall(imported.module))
        mentioned.update((imported.name, imported.alias))
    for chain in chains:
        used.update(_WORD.findall(chain))
    # A method that stands outside its class finds the class by its qualified name.
    used.update(part for each in facts.definitions for part in each.qualname.split("."))
    return used, mentioned


_MOST_LATER = 200


class DependencyKeys:
    """The keys of all files of a tree, by file number."""

    def __init__(self) -> None:
        self._of: dict[int, NDArray[Any]] = {}
        self._sorted: tuple[NDArray[Any], NDArray[Any]] | None = None
        self._later: dict[int, frozenset[int]] = {}
        """The notes on files that have changed since all were sorted; they are looked at one by
        one.
        """
        self._path_keys: dict[int, int] = {}

    def put(self, file_no: int, keys: bytes) -> None:
        import numpy as np

        self._of[file_no] = np.frombuffer(keys, dtype="<u4")
        if self._sorted is not None:
            self._later[file_no] = frozenset(self._of[file_no].tolist())
            if len(self._later) > _MOST_LATER:
                self._sorted = None

    def keep(self, paths: dict[int, str]) -> None:
        """Forget all files but these, which are given by number."""
        for no in self._of.keys() - paths.keys():
            del self._of[no]
            self._later[no] = frozenset()
        self._path_keys = {no: key_of("o", path) for no, path in paths.items()}

    def touched(self, changes: Collection[OutlineChange]) -> set[int] | None:
        """Return the files whose edges may be others after the changes.

        ``None`` when that may be all of them.
        """
        for change in changes:
            name = change.path.rpartition("/")[2]
            # What an ``__init__.py`` defines is looked up as usual; what a manifest says is not.
            if name in tables().manifests or (
                change.is_come_or_gone and name in tables().module_files
            ):
                return None
        found = self._with({key_of("n", name) for change in changes for name in change.defined})
        for change in changes:
            if change.is_come_or_gone:
                folder, _, name = change.path.rpartition("/")
                found |= self._using(
                    {name.partition(".")[0], name.rpartition(".")[0], folder.rpartition("/")[2]}
                )
                found |= self._with({key_of("d", folder), key_of("o", change.path)})
            elif change.names is None:
                found |= self._with({key_of("o", change.path)})
            elif change.names:
                found |= self._with({key_of("o", change.path)}) & self._using(change.names)
        return found

    def _using(self, names: Collection[str]) -> set[int]:
        """Return the files that use one of the words, directly or through another's outline."""
        mentioning = self._with({key_of("m", name) for name in names})
        return self._with({key_of("w", name) for name in names}) | self._with(
            {self._path_keys[no] for no in mentioning if no in self._path_keys}
        )

    def get_ready(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return all keys, sorted, with the files they belong to.

        Sorted now if they are not.
        """
        import numpy as np

        if self._sorted is None:
            sizes = [len(each) for each in self._of.values()]
            owners = np.repeat(np.fromiter(self._of, dtype=np.int64, count=len(sizes)), sizes)
            all_keys = np.concatenate([np.array([], dtype="<u4"), *self._of.values()])
            order = np.argsort(all_keys)
            self._sorted, self._later = (all_keys[order], owners[order]), {}
        return self._sorted

    def _with(self, keys: set[int]) -> set[int]:
        import numpy as np

        if not keys or not self._of:
            return set()
        all_keys, owners = self.get_ready()
        wanted = np.array(sorted(keys), dtype=np.uint32)
        spans = zip(
            np.searchsorted(all_keys, wanted),
            np.searchsorted(all_keys, wanted, side="right"),
            strict=True,
        )
        found = {no for first, last in spans for no in owners[first:last].tolist()}
        return (found - self._later.keys()) | {
            no for no, late in self._later.items() if not late.isdisjoint(keys)
        }


def change_between(
    path: str, before: FileOutline | None, after: FileOutline | None
) -> OutlineChange | None:
    """Return what others see differently of a file.

    ``None`` when that is nothing.
    """
    if before is None or after is None:
        there = before or after
        return (
            OutlineChange(path, None, frozenset(there.names), is_come_or_gone=True)
            if there is not None
            else None
        )
    defined = _different(_definitions(before), _definitions(after))
    bound_before, bound_after = _imports(before), _imports(after)
    is_open = (
        before.package != after.package
        or before.language != after.language
        or before.file_no != after.file_no
        or bound_before.get("*") != bound_after.get("*")
        or _bases(before, after) != _bases(after, before)
    )
    if is_open:
        return OutlineChange(path, None, defined)
    names = (
        defined | _different(bound_before, bound_after) | _different(_types(before), _types(after))
    )
    return OutlineChange(path, names, defined) if names else None


def _different(before: dict[str, Any], after: dict[str, Any]) -> frozenset[str]:
    return frozenset(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )


def _definitions(outline: FileOutline) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for place, name in enumerate(outline.names):
        parent = outline.parents[place]
        above = outline.qualnames[parent] if parent >= 0 else ""
        found.setdefault(name, []).append(
            (outline.kinds[place], outline.qualnames[place], outline.nos[place], above)
        )
    return found


def _imports(outline: FileOutline) -> dict[str, list[Import]]:
    found: dict[str, list[Import]] = {}
    for each in outline.imports:
        bound = each._replace(line=0, scope=-1)
        if each.name == "*" and not each.alias:
            found.setdefault("*", []).append(bound)
        else:
            for name in {each.alias, each.name, each.module.partition(".")[0]} - {""}:
                found.setdefault(name, []).append(bound)
    return found


def _bases(outline: FileOutline, other: FileOutline) -> dict[str, list[str]]:
    """Return what the classes extend that both have, by their qualified names.

    One that is new is found by its name.
    """
    found: dict[str, list[str]] = {}
    for place, texts in outline.bases.items():
        qualname = outline.qualnames[place] if place >= 0 else ""
        if not qualname or qualname in other.by_qualname:
            found.setdefault(qualname, []).extend(texts)
    return found


def _types(outline: FileOutline) -> dict[str, list[tuple[str, str]]]:
    """Return the types of variables, fields and results, by the name they are reached by."""
    found: dict[str, list[tuple[str, str]]] = {}
    for place, types in outline.fields.items():
        qualname = outline.qualnames[place] if place >= 0 else ""
        for key, type_ in sorted(types.items()):
            name = outline.names[place] if key == "()" and place >= 0 else key.removeprefix("self.")
            found.setdefault(name, []).append((qualname, type_))
    return found


_LARGEST_MANIFEST = 1 << 20


class FileEdges(NamedTuple):
    """The edges of one file, packed, and the notes.

    No edges where its facts could not be read.
    """

    file_no: int
    edges: bytes | None
    asked: bytes


class Joiner:
    """Makes the edges of files, one after the other."""

    def __init__(
        self,
        table: SymbolTable,
        project: ProjectFiles,
        precise: Callable[[str], Precise] | None = None,
    ) -> None:
        self._table = Recorder(table)
        self._resolver = Resolver(self._table, project, precise)

    @classmethod
    def of_all(
        cls, reader: TreeReader, outlines: Iterable[tuple[str, int, bytes]], paths: Sequence[str]
    ) -> Joiner:
        """Return a joiner that has every outline of a tree at hand."""
        unpacked = (unpack_outline(path, no, data) for path, no, data in outlines)
        table = MemoryTable(outline for outline in unpacked if outline is not None)
        return cls(table, ProjectFiles(paths, manifest_reader(reader)))

    def join(self, file_no: int, path: str, uses: bytes | FileFacts) -> FileEdges:
        """Return the edges out of a file from its facts."""
        facts = unpack_facts(uses) if isinstance(uses, bytes) else uses
        outline = self._table.outline(path)
        if facts is None or outline is None:
            return FileEdges(file_no, None, b"")
        # What an earlier file asked must not be taken for known: this one's notes would miss it.
        self._table.forget()
        self._resolver.forget()
        nos = (*outline.nos, outline.file_no)  # the file itself stands at -1
        found = self._resolver.resolve(facts)
        edges = pack_edges(
            [
                (nos[scope], to, kind, line, sure, source)
                for scope, to, kind, line, sure, source in found
            ]
        )
        return FileEdges(file_no, edges, keys_of(facts, self._table.paths, self._table.names))


class manifest_reader:
    """Reads the files that say how modules are called."""

    def __init__(self, reader: TreeReader) -> None:
        self._reader = reader

    def __call__(self, path: str) -> bytes | None:
        try:
            return self._reader.read(path, _LARGEST_MANIFEST).data
        except NotRead:
            return None
