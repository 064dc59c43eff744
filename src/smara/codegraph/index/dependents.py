"""Track which files' edges depend on which names, and make them.

While a file is joined to the others, every question to the symbol table is recorded. The recorded
keys and the words of the file are stored as sorted numbers. When a file changes, the files whose
keys contain a changed name are the ones whose edges are made again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from smara.codegraph.codec import bytes_of, pack_edges, unpack_facts
from smara.codegraph.language import tables
from smara.codegraph.models import FileFacts
from smara.codegraph.resolve.resolver import Resolver, tested_stem
from smara.codegraph.resolve.scip import Precise
from smara.codegraph.resolve.symbols import (
    FileOutline,
    ProjectFiles,
    Symbol,
    SymbolTable,
)
from smara.core.items import grouped
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import regex

if TYPE_CHECKING:
    from numpy.typing import NDArray


_WORD = regex(r"\w+")


@dataclass(eq=False)
class Recorder:
    """A table that notes what it is asked."""

    table: SymbolTable
    paths: set[str] = field(default_factory=set, init=False)
    names: set[str] = field(default_factory=set, init=False)

    def outline(self, path: str) -> FileOutline | None:
        self.paths.add(path)
        return self.table.outline(path)

    def named(self, names: Collection[str], limit: int) -> dict[str, list[Symbol]]:
        self.names.update(names)
        return self.table.named(names, limit)


class OutlineChange(NamedTuple):
    """The differences of one file that other files can see."""

    path: str
    names: frozenset[str] | None
    """The names that now mean something else; ``None`` when it may be anything."""
    defined: frozenset[str] = frozenset()
    """The names it defines more, fewer or other things by."""
    is_come_or_gone: bool = False


_SEEDS = {kind: crc32(f"{kind}:".encode()) for kind in "onwmd"}


def keys_of(kind: str, texts: Iterable[str]) -> set[int]:
    """Return numbers for texts of a kind.

    The kinds: o, a file asked about; n, a name looked up; w, a word; m, a mention; d, a folder.

    >>> keys_of("w", ["send"]) == {crc32(b"w:send")}
    True
    """
    seed = _SEEDS[kind]
    return {crc32(text.encode("utf-8", "replace"), seed) for text in texts}


def file_keys(facts: FileFacts, paths: Iterable[str], names: Iterable[str]) -> bytes:
    """Return the notes on one file.

    The files it asked about, the names it looked up, the words it and its outline use.
    """
    used = {each.name for each in facts.references}
    used.update(bound.name for bound in facts.bindings)
    receivers = {each.receiver for each in facts.references if each.receiver}
    used.update(*map(_WORD.findall, receivers))
    # A method that stands outside its class finds the class by its qualified name.
    used.update(part for each in facts.definitions for part in each.qualname.split("."))
    # Other files see of this one what its outline shows: bases, types and imports.
    mentioned = {word for bound in facts.bindings for word in _WORD.findall(bound.type)}
    mentioned.update(
        *((each.name, each.alias, *_WORD.findall(each.module)) for each in facts.imports),
        *(
            (each.name, *_WORD.findall(each.receiver))
            for each in facts.references
            if each.kind == "inherits"
        ),
    )
    folder, _, name = facts.path.rpartition("/")
    mentioned |= {name.partition(".")[0], tested_stem(facts.path) or ""}
    texts = {"d": [folder], "o": paths, "n": names, "m": mentioned, "w": used | mentioned}
    keys: set[int] = set()
    return bytes_of(sorted(keys.union(*(keys_of(kind, some) for kind, some in texts.items()))))


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
        self._path_keys = {no: keys_of("o", [path]).pop() for no, path in paths.items()}

    def touched(self, changes: Collection[OutlineChange]) -> set[int] | None:
        """Return the files whose edges may be others after the changes.

        ``None`` when that may be all of them.
        """
        # What an ``__init__.py`` defines is looked up as usual; what a manifest says is not.
        if any(
            each.path.rpartition("/")[2]
            in (tables().module_files if each.is_come_or_gone else tables().manifests)
            for each in changes
        ):
            return None
        numbers = self._with(keys_of("n", [name for each in changes for name in each.defined]))
        for change in changes:
            asking = keys_of("o", [change.path])
            if change.is_come_or_gone:
                folder, _, name = change.path.rpartition("/")
                numbers |= self._using(
                    {name.partition(".")[0], name.rpartition(".")[0], folder.rpartition("/")[2]}
                )
                numbers |= self._with(asking | keys_of("d", [folder]))
            elif change.names is None:
                numbers |= self._with(asking)
            elif change.names:
                numbers |= self._with(asking) & self._using(change.names)
        return numbers

    def _using(self, names: Collection[str]) -> set[int]:
        """Return the files that use one of the words, directly or through another's outline."""
        mentioning = self._with(keys_of("m", names))
        return self._with(keys_of("w", names)) | self._with(
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
        some = np.array(sorted(keys), dtype=np.uint32)
        ends = [np.searchsorted(all_keys, some, side=side) for side in ("left", "right")]
        numbers = {
            no for first, last in zip(*ends, strict=True) for no in owners[first:last].tolist()
        }
        return (numbers - self._later.keys()) | {
            no for no, late in self._later.items() if not late.isdisjoint(keys)
        }


def change_between(
    path: str, before: FileOutline | None, after: FileOutline | None
) -> OutlineChange | None:
    """Return what others see differently of a file.

    ``None`` when that is nothing.
    """
    if before is None or after is None:
        names = frozenset(there.names) if (there := before or after) else None
        return OutlineChange(path, None, names, is_come_or_gone=True) if names is not None else None
    was, now = _visible(before), _visible(after)
    defined, imported, typed = (
        frozenset(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
        for old, new in zip(was, now, strict=True)
    )
    is_open = (
        (before.package, before.language, before.file_no)
        != (after.package, after.language, after.file_no)
        or "*" in imported
        or _bases(before, after) != _bases(after, before)
    )
    if is_open:
        return OutlineChange(path, None, defined)
    names = defined | imported | typed
    return OutlineChange(path, names, defined) if names else None


Facts = dict[str, list[Any]]


def _visible(outline: FileOutline) -> tuple[Facts, Facts, Facts]:
    """Return what others see of a file by name: definitions, imports, types."""
    names, qualnames = outline.names, (*outline.qualnames, "")  # of the file itself, at -1
    above = [qualnames[parent] for parent in outline.parents]
    definitions = zip(outline.kinds, outline.qualnames, outline.nos, above, strict=True)
    imports = (
        (name, each._replace(line=0, scope=-1))
        for each in outline.imports
        for name in (each.alias, each.name, each.module.partition(".")[0])
        if name
    )
    # Variables, fields and results stand under the name they are reached by.
    fields = (
        (
            names[place] if key == "()" and place >= 0 else key.removeprefix("self."),
            (qualnames[place], type_),
        )
        for place, types in outline.fields.items()
        for key, type_ in sorted(types.items())
    )
    return grouped(zip(names, definitions, strict=True)), grouped(imports), grouped(fields)


def _bases(outline: FileOutline, other: FileOutline) -> dict[str, list[str]]:
    """Return what the classes extend that both have, by their qualified names.

    One that is new is found by its name.
    """
    qualnames = (*outline.qualnames, "")  # of the file itself, at -1
    return grouped(
        (qualnames[place], text)
        for place, texts in outline.bases.items()
        for text in texts
        if not qualnames[place] or qualnames[place] in other.by_qualname
    )


class FileEdges(NamedTuple):
    """The edges of one file, packed, and the notes.

    No edges where its facts could not be read.
    """

    file_no: int
    edges: bytes | None
    keys: bytes


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

    def join(self, file_no: int, path: str, uses: bytes | FileFacts) -> FileEdges:
        """Return the edges out of a file from its facts."""
        facts = unpack_facts(uses) if isinstance(uses, bytes) else uses
        outline = self._table.outline(path)
        if facts is None or outline is None:
            return FileEdges(file_no, None, b"")
        # What an earlier file asked must not be taken for known: this one's notes would miss it.
        self._table.paths, self._table.names = set(), set()
        self._resolver.forget()
        nos = (*outline.nos, outline.file_no)  # the file itself stands at -1
        edges = pack_edges((nos[edge.scope], *edge[1:]) for edge in self._resolver.resolve(facts))
        return FileEdges(file_no, edges, file_keys(facts, self._table.paths, self._table.names))
