"""Resolve Rust modules, ``crate``/``super`` paths and crates of a Cargo workspace."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from smara.codegraph.language import (
    HTTP_VERBS,
    QUOTED_PATHS,
    ImportParts,
    LanguageSpec,
    RoutePattern,
    aliases,
)
from smara.codegraph.models import Import
from smara.codegraph.resolve.rules import LanguageRules, is_class, steps
from smara.codegraph.resolve.symbols import (
    FileOutline,
    NameTarget,
    ProjectFiles,
    SymbolTable,
    folders_above,
    join,
)

if TYPE_CHECKING:
    from smara.codegraph.resolve.rules import ReferenceWalk


_ROOT_FILES = frozenset({"lib.rs", "main.rs", "mod.rs", "build.rs"})
_OWN_ROOTS = frozenset({"tests", "examples", "benches", "bin"})
"""Folders of a crate in which every file is a program of its own."""


class RustRules(LanguageRules):
    own_names = frozenset({"self", "Self"})
    upper_names = frozenset()

    def __init__(self, table: SymbolTable, project: ProjectFiles) -> None:
        super().__init__(table, project)
        self._crates: dict[str, str] | None = None
        self._roots: dict[str, str | None] = {}

    def bound_name(self, imported: Import) -> str:
        if imported.alias == "_":
            return ""
        name = imported.alias or imported.name
        last = steps(imported.module)[-1] if imported.module else ""
        # ``use a::b::{self}`` brings in ``b``.
        return last if name in ("", "self") else name

    def find_module(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        if not imported.module:
            return NameTarget(outline, -1)
        return self._path(outline, imported.scope, steps(imported.module))

    def imported(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        if not imported.module and imported.name:
            return self._first(outline, imported.scope, imported.name)
        if imported.name == "self":
            imported = imported._replace(name="")
        return super().imported(outline, imported)

    def files_of(self, outline: FileOutline, imported: Import) -> list[FileOutline]:
        found = self.imported(outline, imported) or self.find_module(outline, imported)
        return [found.where] if found is not None and isinstance(found.where, FileOutline) else []

    def _find_name(self, outline: FileOutline, name: str) -> NameTarget | None:
        if name == "crate":
            if outline.path not in self._roots:
                self._roots[outline.path] = _crate_root(self.project, outline.path)
            root = self._roots[outline.path]
            return self.file(root) if root is not None else None
        if name == "self":
            return NameTarget(outline, -1)
        if name == "super":
            return self._above(outline)
        return super()._find_name(outline, name)

    def submodule(self, outline: FileOutline, name: str) -> NameTarget | None:
        folder = self._folder_below(outline.path)
        for path in (join(folder, f"{name}.rs"), join(folder, name, "mod.rs")):
            if path in self.project.paths and path != outline.path:
                return self.file(path)
        return None

    def beyond_file(self, outline: FileOutline, name: str) -> NameTarget | None:
        """Return a crate of the workspace."""
        root = self._workspace().get(name)
        return self.file(root) if root is not None else None

    def scattered_member(self, outline: FileOutline, place: int, name: str) -> NameTarget | None:
        found = outline.by_qualname.get(f"{outline.qualnames[place]}.{name}")
        return NameTarget(outline, found) if found is not None else None

    def qualified(self, walk: ReferenceWalk, scope: int, receiver: str, name: str) -> str | None:
        """Find a method of a known type whose ``impl`` is elsewhere."""
        holder = walk.value(scope, receiver) if receiver else None
        if holder is None or not is_class(holder) or not isinstance(holder.where, FileOutline):
            return None
        return f"{holder.where.names[holder.place]}.{name}"

    def _path(self, outline: FileOutline, scope: int, parts: list[str]) -> NameTarget | None:
        if parts and not parts[0]:
            root = self._workspace().get(parts[1]) if len(parts) > 1 else None
            return self.follow(self.file(root) if root is not None else None, False, parts[2:])
        found = self._first(outline, scope, parts[0])
        rest = parts[1:]
        while (
            rest
            and rest[0] == "super"
            and found is not None
            and isinstance(found.where, FileOutline)
        ):
            found = self._above(found.where) if found.place < 0 else NameTarget(found.where, -1)
            rest = rest[1:]
        return self.follow(found, False, rest)

    def _first(self, outline: FileOutline, scope: int, name: str) -> NameTarget | None:
        """Return the first step of a path, where inline modules count as modules."""
        inline = scope
        while inline >= 0 and outline.kinds[inline] != "module":
            inline = outline.parents[inline]
        if inline >= 0:
            if name == "self":
                return NameTarget(outline, inline)
            if name == "super":
                above = outline.parents[inline]
                return NameTarget(
                    outline, above if above >= 0 and outline.kinds[above] == "module" else -1
                )
            inside = outline.members.get(inline, {}).get(name)
            if inside is not None:
                return NameTarget(outline, inside)
        return self.name_in(outline, name)

    def _folder_below(self, path: str) -> str:
        """Return the folder that a file's submodules stand in."""
        folder, _, name = path.rpartition("/")
        is_root = name in _ROOT_FILES or folder.rpartition("/")[2] in _OWN_ROOTS
        return folder if is_root else join(folder, name.removesuffix(".rs"))

    def _above(self, outline: FileOutline) -> NameTarget | None:
        folder, _, name = outline.path.rpartition("/")
        if name in ("lib.rs", "main.rs"):
            return None
        if name == "mod.rs":
            folder = folder.rpartition("/")[0]
        for path in (
            f"{folder}.rs",
            *(join(folder, each) for each in ("mod.rs", "lib.rs", "main.rs")),
        ):
            if path in self.project.paths and path != outline.path:
                return self.file(path)
        return None

    def _workspace(self) -> dict[str, str]:
        """Return the root file of each library crate by its name in code."""
        if self._crates is None:
            self._crates = {}
            for path in self.project.by_name.get("Cargo.toml", ()):
                folder = path.rpartition("/")[0]
                text = self.project.text(path) or ""
                manifest = _manifest(text)
                name = manifest.get("lib", {}).get("name") or manifest.get("package", {}).get(
                    "name"
                )
                root = _lib_path(text, folder)
                if name and isinstance(name, str) and root in self.project.paths:
                    self._crates[name.replace("-", "_")] = root
        return self._crates


def _crate_root(project: ProjectFiles, path: str) -> str | None:
    """Return the file at which the crate of a file begins."""
    if path.rpartition("/")[2] in ("lib.rs", "main.rs", "build.rs"):
        return path
    above = folders_above(path)
    if above[0].rpartition("/")[2] in _OWN_ROOTS:
        return path
    for folder in above:
        for name in ("lib.rs", "main.rs"):
            if join(folder, name) in project.paths:
                return join(folder, name)
        if join(folder, "Cargo.toml") in project.paths:
            declared = _lib_path(project.text(join(folder, "Cargo.toml")) or "", folder)
            return declared if declared in project.paths else None
    return None


def _manifest(text: str) -> dict[str, dict[str, object]]:
    try:
        return {key: value for key, value in tomllib.loads(text).items() if isinstance(value, dict)}
    except tomllib.TOMLDecodeError:
        return {}


def _lib_path(text: str, folder: str) -> str:
    path = _manifest(text).get("lib", {}).get("path")
    return join(folder, path if isinstance(path, str) else "src/lib.rs")


_SLASHES = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_HEAD = re.compile(r"^(?:pub(?:\s*\([^)]*\))?\s+)?")
_BRACES = re.compile(r"[{},]")


def read_imports(text: str) -> Iterator[ImportParts]:
    """Read ``use``, ``mod x;`` and ``extern crate``; braces may hold braces."""
    is_export = text.startswith("pub")
    text = _HEAD.sub("", _SLASHES.sub(" ", text)).strip().rstrip(";").strip()
    if text.startswith("mod "):
        name = text.removeprefix("mod ").strip()
        yield f"self::{name}", "", name, 0, is_export
        return
    if text.startswith("extern crate "):
        for module, alias in aliases(text.removeprefix("extern crate ")):
            yield module, "", alias, 0, is_export
        return
    for path in _unfold(text.removeprefix("use ").strip().removeprefix("::")):
        named, _, alias = path.partition(" as ")
        module, _, name = named.strip().rpartition("::")
        if name == "self":
            module, _, name = module.rpartition("::")
        if name:
            yield module, name, alias.strip(), 0, is_export


def _unfold(text: str) -> Iterator[str]:
    """Yield each path of a tree of braces.

    ``a::{b, c::{d}}`` is ``a::b`` and ``a::c::d``.
    """
    prefixes: list[str] = [""]
    start, prefix = 0, ""
    for found in _BRACES.finditer(text):
        part = " ".join(text[start : found.start()].split())
        start = found.end()
        if found[0] == "{":
            prefix = prefixes[-1] + part
            prefixes.append(prefix)
            continue
        if part:
            yield prefixes[-1] + part
        if found[0] == "}" and len(prefixes) > 1:
            prefixes.pop()
    rest = " ".join(text[start:].split())
    if rest:
        yield prefixes[-1] + rest


_ROUTES = re.compile(
    rb"#\[(?P<verb>"
    + HTTP_VERBS
    + rb")\(\s*\"(?P<path>/[^\"\n]*)\"|\.route\(\s*\"(?P<pattern>/[^\"\n]*)\"\s*,"
)

LANGUAGES = (
    LanguageSpec(
        name="rust",
        extensions=("rs",),
        grammar=("tree_sitter_rust", "language"),
        queries=("rust",),
        rules=RustRules,
        read_imports=read_imports,
        separators=(b"::", b"."),
        selves=frozenset({"self"}),
        test_marks=re.compile(rb"#\[(?:[\w:]+::)?(?:test|rstest|bench)\b"),
        has_overloads=True,
        routes=(RoutePattern(QUOTED_PATHS, _ROUTES),),
        manifests=("Cargo.toml",),
        module_files=("mod.rs", "lib.rs", "main.rs"),
        doors=("mod.rs", "lib.rs", "main.rs"),
        entry_files=(("main.rs", "the program of its crate"),),
    ),
)
