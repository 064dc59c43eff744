"""Resolve C and C++ names through includes, and bodies across translation units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from smara.codegraph.language import ImportParts, LanguageSpec
from smara.codegraph.models import Import
from smara.codegraph.resolve.rules import (
    DEEPEST,
    LanguageRules,
    ReferenceWalk,
    is_class,
    plain_type,
    steps,
)
from smara.codegraph.resolve.symbols import (
    FileOutline,
    NameTarget,
    Symbol,
    closest,
    join,
)
from smara.core.startup.regex import re, regex

HEADERS = (".h", ".hh", ".hpp", ".hxx", ".inl", ".inc")
MOST_OF_A_CLASS = 64
_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".c++")


class CRules(LanguageRules):
    own_names = frozenset({"this"})
    upper_names = frozenset()
    has_open_classes = True

    def imports_of(self, outline: FileOutline) -> tuple[dict[str, Import], list[Import]]:
        if outline not in self._bound:
            imports = outline.imports
            named = {each.name: each for each in imports if each.name not in ("", "*")}
            self._bound[outline] = (named, [each for each in imports if not each.name])
        return self._bound[outline]

    def find_module(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        if imported.name:
            return self.dotted(outline, imported.module)
        key = ("include", outline.path.rpartition("/")[0], imported.module)
        path = self.project.once(key, self._include, outline.path, imported.module)
        return self.file(path) if path is not None else None

    def files_of(self, outline: FileOutline, imported: Import) -> list[FileOutline]:
        return super().files_of(outline, imported) if not imported.name else []

    def _include(self, from_path: str, written: str) -> str | None:
        name = written.strip('"<>')
        beside = join(from_path.rpartition("/")[0], name)
        if beside in self.project.paths and not written.startswith("<"):
            return beside
        if name.startswith(".."):
            return None
        usual = (join(root, name) for root in ("", "include", "src"))
        if path := next((path for path in usual if path in self.project.paths), None):
            return path
        # The folders that a build searches are not known; the closest file whose path ends so is
        # the likeliest.
        return closest(self.project.ending_with(name), from_path)

    def name_in(self, outline: FileOutline, name: str) -> NameTarget | None:
        # A file's names without their namespaces.
        place = self.remember(("top", outline.path), partial(_flat_names, outline)).get(name)
        return NameTarget(outline, place) if place is not None else super().name_in(outline, name)

    def imported(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        if imported.name and imported.name != "*":
            # ``using a::b``: namespaces are looked through, so that the last name says enough.
            return self.from_stars(outline, imported.name)
        return super().imported(outline, imported)

    def member(self, outline: FileOutline, place: int, name: str) -> NameTarget | None:
        if outline.kinds[place] == "module":
            # A namespace goes on in other files.
            if (inside := outline.members.get(place, {}).get(name)) is None:
                return self.from_stars(outline, name)
            return NameTarget(outline, inside)
        if name == outline.names[place]:
            # A constructor is called by its class's name, and the class is what is meant.
            return NameTarget(outline, place)
        return super().member(outline, place, name)

    def class_named(self, outline: FileOutline, qualname: str) -> NameTarget | None:
        return super().class_named(outline, qualname.rpartition(".")[2])

    def instance(self, outline: FileOutline, type_: str, depth: int = 0) -> NameTarget | None:
        if (made := super().instance(outline, type_, depth)) is not None or depth > DEEPEST:
            return made
        name = plain_type(type_).rpartition(":")[2]
        return self.remember(("ahead", name), partial(self._declared_ahead, name))

    def _declared_ahead(self, name: str) -> NameTarget | None:
        """Return a class that a header only announces (``class Store;``).

        The only one of that name.
        """
        symbols = self.table.named([name], MOST_OF_A_CLASS) if name.isidentifier() else {}
        classes = [
            each
            for each in symbols.get(name, ())
            if each.kind == "class" and each.language in ("c", "cpp")
        ]
        outline = self.table.outline(classes[0].path) if len(classes) == 1 else None
        place = outline.by_qualname.get(classes[0].qualname) if outline is not None else None
        return (
            NameTarget(outline, place, is_instance=True) if outline and place is not None else None
        )

    def scattered_member(self, outline: FileOutline, place: int, name: str) -> NameTarget | None:
        """Find a method's body in the class's file or source."""
        for other in (outline, self._paired(outline)):
            for qualname in (outline.names[place], outline.qualnames[place]):
                if other is not None and f"{qualname}.{name}" in other.by_qualname:
                    return NameTarget(other, other.by_qualname[f"{qualname}.{name}"])
        return None

    def _paired(self, outline: FileOutline) -> FileOutline | None:
        stem, dot, ending = outline.path.rpartition(".")
        if dot + ending not in HEADERS:
            return None
        beside = (stem + suffix for suffix in _SOURCES if stem + suffix in self.project.paths)
        if path := next(beside, None):
            return self.table.outline(path)
        # The source of a header that stands in another folder (``include/``, ``src/``) includes it.
        name = stem.rpartition("/")[2]
        for suffix in _SOURCES:
            path = closest(self.project.ending_with(name + suffix), outline.path)
            source = self.table.outline(path) if path is not None else None
            if source is not None and any(
                file.path == outline.path
                for each in source.imports
                for file in self.files_of(source, each)
            ):
                return source
        return None

    def qualified(self, walk: ReferenceWalk, scope: int, receiver: str, name: str) -> str | None:
        if not receiver:
            return name
        holder = walk.value(scope, receiver)
        if holder is not None and isinstance(holder.where, FileOutline) and is_class(holder):
            return f"{holder.where.names[holder.place]}.{name}"
        last = steps(receiver)[-1]
        # ``Env::Default()``: the class is named, wherever it stands.
        return f"{last}.{name}" if last[:1].isupper() and last.isidentifier() else None

    def choose(self, outline: FileOutline, symbols: list[Symbol]) -> Symbol | None:
        """Return the only body.

        Where a header repeats a source's names, the source's.
        """
        bodies = [symbol for symbol in symbols if not symbol.path.endswith(HEADERS)] or symbols
        if len(bodies) == 1:
            return bodies[0]
        included = {file.path for each in outline.imports for file in self.files_of(outline, each)}
        stems = {path.rpartition(".")[0] for path in included}
        seen = [
            symbol
            for symbol in bodies
            if symbol.path in included or symbol.path.rpartition(".")[0] in stems
        ]
        return seen[0] if len(seen) == 1 else None


def _flat_names(outline: FileOutline) -> dict[str, int]:
    flat = dict(outline.top)
    is_open: list[bool] = []
    for place, parent in enumerate(outline.parents):
        within = parent < 0 or (parent < place and is_open[parent])
        is_open.append(within and outline.kinds[place] == "module")
        if within and outline.kinds[place] != "method":
            flat.setdefault(outline.names[place], place)
    return flat


_INCLUDE = regex(r'include(?:_next)?\s*(?:"([^"]*)"|(<[^>]*>))')


def read_imports(text: str) -> Iterator[ImportParts]:
    """Yield what an ``#include`` or a ``using`` brings in."""
    if text.startswith("using"):
        words = text.removeprefix("using").strip().rstrip(";").split()
        if words[:1] == ["namespace"] and len(words) > 1:
            yield words[-1], "*", "", 0, False
        elif words:
            module, _, name = words[-1].rpartition("::")
            yield module, name, "", 0, False
        return
    if include := _INCLUDE.search(text):
        yield include[1] or include[2], "", "", 0, False


_BEFORE_A_NAME = regex(
    rb"\b(?:class|struct"
    rb"|union)\s+([A-Z][A-Z0-9_]{2,})(?:\([^()\n]*\))?(?=\s+[A-Za-z_][\w:]*\s*(?:final\s*)?[:{])"
)
_ANNOTATIONS = regex(
    rb"\b(?:[A-Z_]*GUARDED_BY|[A-Z_]*LOCKS?_(?:REQUIRED|EXCLUDED|RETURNED)|(?:SCOPED_)?LOCKABLE"
    rb"|(?:EXCLUSIVE|SHARED)_(?:TRY)?LOCK_FUNCTION|UNLOCK_FUNCTION"
    rb"|NO_THREAD_SAFETY_ANALYSIS)\b(?:\([^()\n]*\))?"
)
_HINTS = (b"GUARDED_BY", b"LOCKS_", b"LOCK_", b"LOCKABLE", b"NO_THREAD_SAFETY")


def without_macros(text: bytes) -> bytes:
    """Blank macros that the grammar cannot read: ``class EXPORTED Slice {``."""
    if b"class" in text or b"struct" in text:
        text = _BEFORE_A_NAME.sub(
            lambda match: (
                (head := match[0][: match.start(1) - match.start()])
                + b" " * (len(match[0]) - len(head))
            ),
            text,
        )
    if any(hint in text for hint in _HINTS):
        text = _ANNOTATIONS.sub(lambda match: b" " * len(match[0]), text)
    return text


_CPP_HEADER = regex(
    rb"^[ \t]*(?:class\s+\w[^;{]{0,200}[{:]|namespace\s+\w|template\s*<|public:|private:|using\s)",
    re.M,
)


def header_language(path: str, data: bytes) -> str:
    """Return ``cpp`` for a header with classes or templates, else ``c``."""
    return "cpp" if path.endswith(".h") and _CPP_HEADER.search(data, 0, 65_536) else "c"


_CPP_ENDINGS = (
    "cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "h++", "ipp", "inl", "tpp", "cu", "cuh",
)  # fmt: skip
_C = LanguageSpec(
    name="c",
    extensions=("c", "h"),
    dialect=header_language,
    grammar=("tree_sitter_c", "language"),
    queries=("c",),
    rules=CRules,
    read_imports=read_imports,
    prepare=without_macros,
    separators=(b"->", b"."),
    test_names=regex(r"test_"),
    types_first=True,
    has_macros=True,
)
LANGUAGES = (
    _C,
    replace(
        _C,
        name="cpp",
        extensions=_CPP_ENDINGS,
        dialect=None,
        grammar=("tree_sitter_cpp", "language"),
        queries=("c", "cpp"),
        separators=(b"->", b"::", b"."),
        selves=frozenset({"this"}),
        tested_extensions=("cc", "cpp", "cxx", "h", "hh", "hpp", "c"),
        has_overloads=True,
        has_members_outside=True,
    ),
)
