"""Outline files, look up symbols, find modules by path.

A `FileOutline` holds a file's definitions, imports and base classes. It is much smaller than the
facts and is all that resolving another file asks of this one, so it is stored beside the file.
"""

from __future__ import annotations

import json
import posixpath
import zlib
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from smara.codegraph.codec import NODE_KIND_NO
from smara.codegraph.language import languages
from smara.codegraph.models import NODE_KINDS, FileFacts, Import, Language, NodeKind
from smara.core.items import grouped

LARGEST_MANIFEST = 1 << 20
T = TypeVar("T")


class ProjectFiles:
    """All paths of a tree, relative and with slashes.

    ``read`` gives the bytes of a manifest, or ``None``.
    """

    def __init__(
        self, paths: Iterable[str], read: Callable[[str], bytes | None] = lambda _path: None
    ) -> None:
        self.paths = frozenset(paths)
        self._read = read
        self._views: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[..., T], *given: Any) -> T:
        """Make a view of the paths and manifests once."""
        if key not in self._views:
            self._views[key] = make(*given)
        return cast(T, self._views[key])

    @cached_property
    def folders(self) -> dict[str, list[str]]:
        """Return the files directly in each folder.

        A folder that holds only folders has an empty list.
        """
        folders: dict[str, list[str]] = {"": []}
        for path in sorted(self.paths):
            above = folder = path.rpartition("/")[0]
            while above not in folders:
                folders[above] = []
                above = above.rpartition("/")[0]
            folders[folder].append(path)
        return folders

    @cached_property
    def by_name(self) -> dict[str, list[str]]:
        """Return paths by their last part."""
        return grouped((path.rpartition("/")[2], path) for path in sorted(self.paths))

    def text(self, path: str) -> str | None:
        """Return the text of a manifest; ``None`` if very large or unreadable."""
        data = self.once(("text", path), self._read, path)
        is_usable = data is not None and len(data) <= LARGEST_MANIFEST
        return data.decode("utf-8", "replace") if is_usable and data is not None else None

    def nearest(self, name: str, from_path: str) -> str | None:
        """Return the nearest file called ``name`` at or above a path."""
        paths = (join(folder, name) for folder in folders_above(from_path))
        return next((path for path in paths if path in self.paths), None)

    def ending_with(self, tail: str) -> list[str]:
        """Return the paths that are ``tail`` or end with ``/`` and it."""
        paths = self.by_name.get(tail.rpartition("/")[2], ())
        return [path for path in paths if path == tail or path.endswith("/" + tail)]


def folders_above(path: str) -> list[str]:
    """Return a path's folders, closest first.

    ``a/b/c.py`` gives ``a/b``, ``a`` and the root.
    """
    folders = [path.rpartition("/")[0]]
    while folders[-1]:
        folders.append(folders[-1].rpartition("/")[0])
    return folders


def join(folder: str, *parts: str) -> str:
    """Return a path inside the tree, without ``.`` and ``..``.

    One that leads out of it starts with ``..``.
    """
    joined = posixpath.normpath(posixpath.join(folder, *parts)) if folder or parts else ""
    return "" if joined == "." else joined


def closest(paths: list[str], from_path: str) -> str | None:
    """Return the path that shares the most folders with ``from_path``.

    ``None`` when two are equally close.
    """
    if len(paths) == 1:
        return paths[0]
    above = set(folders_above(from_path))
    ranked = sorted(
        (-len(above.intersection(folders_above(path))), path.count("/"), path) for path in paths
    )
    is_tie = len(ranked) > 1 and ranked[0][:2] == ranked[1][:2]
    return ranked[0][2] if ranked and not is_tie else None


OUTLINE_VERSION = 1
"""Of the packed form; an outline of another version is read as none, and its file is indexed
again.
"""


class FileOutline:
    """One file as others see it.

    A *place* is a position in its definitions; -1 is the file itself.
    """

    __slots__ = (
        "bases", "by_qualname", "fields", "file_no", "imports", "kinds", "language", "members",
        "names", "nos",
        "package", "parents", "path", "qualnames", "top", "twins",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        language: Language,
        file_no: int,
        nos: Sequence[int],
        definitions: Sequence[tuple[NodeKind, str, str, int]],
        imports: Sequence[Import],
        bases: dict[int, list[str]],
        fields: dict[int, dict[str, str]],
        package: str = "",
    ) -> None:
        self.path = path
        self.language = language
        self.file_no = file_no
        self.nos = nos
        self.kinds = [definition[0] for definition in definitions]
        self.names = [definition[1] for definition in definitions]
        self.qualnames = [definition[2] for definition in definitions]
        self.parents = [definition[3] for definition in definitions]
        self.imports = imports
        self.bases = bases
        """What a class extends, as written and by its place."""
        self.fields = fields
        """Types by name: a class's attributes (``self.x``), a file's variables (-1), a function's
        result (``()``).
        """
        self.package = package
        self.top: dict[str, int] = {}
        """The file's own names. The last definition of a name is the one that others get."""
        self.members: dict[int, dict[str, int]] = {}
        self.by_qualname: dict[str, int] = {}
        self.twins: dict[int, list[int]] = {}
        """For each of several definitions of one name, all of them: overloads, and variants for
        several platforms.
        """
        spec = languages()[language]
        for place, parent in enumerate(self.parents):
            name = self.names[place]
            if spec.has_titled_tests and self.kinds[place] == "test":
                continue
            first = self.by_qualname.setdefault(self.qualnames[place], place)
            if first != place and spec.has_overloads and self.kinds[place] == self.kinds[first]:
                same = self.twins.setdefault(first, [first])
                same.append(place)
                self.twins[place] = same
            if parent >= 0:
                qualname = f"{self.qualnames[parent]}.{name}"
                if spec.has_members_outside and self.qualnames[place] != qualname:
                    # ``void Client::Send()`` stands in a namespace and is none of its names.
                    continue
                self.members.setdefault(parent, {})[name] = place
            elif self.qualnames[place] == name:
                self.top[name] = place


def outline_of(facts: FileFacts, file_no: int, nos: Sequence[int]) -> FileOutline:
    """Build the outline of a file from its numbered definitions."""
    bases = grouped(
        (scope, f"{receiver}.{name}" if receiver else name)
        for kind, name, receiver, _line, scope in facts.references
        if kind == "inherits"
    )
    kinds = [definition.kind for definition in facts.definitions]
    fields: dict[int, dict[str, str]] = {}
    for name, type_, scope in facts.bindings:
        if type_ and (scope < 0 or name == "()" or kinds[scope] in ("class", "module")):
            fields.setdefault(scope, {}).setdefault(name, type_)
    return FileOutline(
        facts.path,
        facts.language,
        file_no,
        nos=nos,
        definitions=[
            (kind, name, qualname, parent)
            for kind, name, qualname, _1, _2, _3, _4, parent, *_ in facts.definitions
        ],
        imports=[each for each in facts.imports if each.scope < 0],
        bases=bases,
        fields=fields,
        package=facts.package,
    )


def pack_outline(outline: FileOutline) -> bytes:
    """Return the outline as bytes, to be kept beside its file."""
    odd = list(outline.qualnames)
    for place, (name, parent) in enumerate(zip(outline.names, outline.parents, strict=True)):
        # A method may stand before its type (Go); what comes later is not known yet when this is
        # read back.
        usual = f"{outline.qualnames[parent]}.{name}" if parent >= 0 else name
        if parent <= place and odd[place] == usual:
            odd[place] = ""
    columns = [
        OUTLINE_VERSION,
        outline.language,
        outline.package,
        list(outline.nos),
        [NODE_KIND_NO[kind] for kind in outline.kinds],
        outline.names,
        odd,
        outline.parents,
        [list(each) for each in outline.imports],
        [[place, *names] for place, names in outline.bases.items()],
        [[place, names] for place, names in outline.fields.items()],
    ]
    return zlib.compress(json.dumps(columns, ensure_ascii=False, separators=(",", ":")).encode(), 1)


def unpack_outline(path: str, file_no: int, data: bytes) -> FileOutline | None:
    """Return what was packed; ``None`` for another version's or broken bytes."""
    try:
        columns = json.loads(zlib.decompress(data))
        if columns[0] != OUTLINE_VERSION or columns[1] not in languages():
            return None
        _, language, package, nos, kind_nos, names, odd, parents, imports, bases, fields = columns
        qualnames: list[str] = []
        for place, name in enumerate(names):
            usual = f"{qualnames[parents[place]]}.{name}" if 0 <= parents[place] < place else name
            qualnames.append(odd[place] or usual)
        kinds = [NODE_KINDS[number] for number in kind_nos]
        return FileOutline(
            path,
            language,
            file_no,
            nos=nos,
            definitions=list(zip(kinds, names, qualnames, parents, strict=True)),
            imports=[Import(*each) for each in imports],
            bases={each[0]: each[1:] for each in bases},
            fields={place: dict(names) for place, names in fields},
            package=package,
        )
    except (ValueError, TypeError, IndexError, zlib.error):
        return None


class Symbol(NamedTuple):
    """A definition in the tree, as found by name."""

    no: int
    path: str
    language: Language
    kind: NodeKind
    name: str
    qualname: str


class SymbolTable(Protocol):
    """The tree's definitions by file and name.

    Both are asked for often: implementations cache them.
    """

    def outline(self, path: str) -> FileOutline | None:
        """Return what the file offers.

        ``None`` if it is not indexed or not code.
        """

    def named(self, names: Collection[str], limit: int) -> dict[str, list[Symbol]]:
        """Return the definitions of each name, at most ``limit`` of each.

        A name without any is missing.

        Asked once per file with all the names that need it, so that a database answers in one
        statement.
        """


class MemoryTable:
    """A symbol table held in memory, as a full index has it."""

    def __init__(self, outlines: Iterable[FileOutline] = ()) -> None:
        self._outlines = {outline.path: outline for outline in outlines}

    def outline(self, path: str) -> FileOutline | None:
        return self._outlines.get(path)

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[FileOutline, int]]]:
        return grouped(
            (name, (outline, place))
            for outline in self._outlines.values()
            for place, name in enumerate(outline.names)
        )

    def named(self, names: Collection[str], limit: int) -> dict[str, list[Symbol]]:
        return {
            name: [
                Symbol(
                    outline.nos[place],
                    outline.path,
                    outline.language,
                    kind=outline.kinds[place],
                    name=name,
                    qualname=outline.qualnames[place],
                )
                for outline, place in self._by_name[name][:limit]
            ]
            for name in names
            if name in self._by_name
        }


class Package(NamedTuple):
    """A folder that is named like a module and is no file.

    A Go or Java package, a Python namespace package.
    """

    folder: str


class NameTarget(NamedTuple):
    """A file (``place`` -1), a definition, or an instance."""

    where: FileOutline | Package
    place: int
    is_instance: bool = False
