"""Resolve Rust modules, ``crate``/``super`` paths and crates of a Cargo workspace."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

from smara.codegraph.language import (
    HTTP_VERBS,
    QUOTED_PATHS,
    ImportParts,
    LanguageSpec,
    RoutePattern,
    aliases,
)
from smara.codegraph.models import Import
from smara.codegraph.resolve.rules import LanguageRules, ReferenceWalk, is_class, steps
from smara.codegraph.resolve.symbols import (
    FileOutline,
    NameTarget,
    ProjectFiles,
    folders_above,
    join,
)
from smara.core.startup.regex import re, regex

_ROOT_FILES = frozenset({"lib.rs", "main.rs", "mod.rs", "build.rs"})
_OWN_ROOTS = frozenset({"tests", "examples", "benches", "bin"})
"""Folders of a crate in which every file is a program of its own."""


class RustRules(LanguageRules):
    own_names = frozenset({"self", "Self"})
    upper_names = frozenset()
    has_scattered_members = True

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
        first, *rest = steps(imported.module)
        if not first:
            return self.follow(self._crate(rest[0]) if rest else None, False, rest[1:])
        target = self._first(outline, imported.scope, first)
        while rest[:1] == ["super"] and target and isinstance(target.where, FileOutline):
            target = self._above(target.where) if target.place < 0 else NameTarget(target.where, -1)
            rest = rest[1:]
        return self.follow(target, False, rest)

    def imported(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        if not imported.module and imported.name:
            return self._first(outline, imported.scope, imported.name)
        if imported.name == "self":
            imported = imported._replace(name="")
        return super().imported(outline, imported)

    def files_of(self, outline: FileOutline, imported: Import) -> list[FileOutline]:
        target = self.imported(outline, imported) or self.find_module(outline, imported)
        return [target.where] if target and isinstance(target.where, FileOutline) else []

    def name_in(self, outline: FileOutline, name: str) -> NameTarget | None:
        if name == "crate":
            key = ("crate", outline.path)
            root = self.project.once(key, _crate_root, self.project, outline.path)
            return self.file(root) if root is not None else None
        if name == "self":
            return NameTarget(outline, -1)
        return self._above(outline) if name == "super" else super().name_in(outline, name)

    def submodule(self, outline: FileOutline, name: str) -> NameTarget | None:
        folder, _, file = outline.path.rpartition("/")
        if file not in _ROOT_FILES and folder.rpartition("/")[2] not in _OWN_ROOTS:
            folder = join(folder, file.removesuffix(".rs"))
        return self._other(outline, join(folder, f"{name}.rs"), join(folder, name, "mod.rs"))

    def _other(self, outline: FileOutline, *paths: str) -> NameTarget | None:
        there = (path for path in paths if path in self.project.paths and path != outline.path)
        return next(map(self.file, there), None)

    def beyond_file(self, outline: FileOutline, name: str) -> NameTarget | None:
        return self._crate(name)

    def _crate(self, name: str) -> NameTarget | None:
        root = self.project.once("rust", _crates, self.project).get(name)
        return self.file(root) if root is not None else None

    def qualified(self, walk: ReferenceWalk, scope: int, receiver: str, name: str) -> str | None:
        """Find a method of a known type whose ``impl`` is elsewhere."""
        holder = walk.value(scope, receiver) if receiver else None
        if holder and is_class(holder) and isinstance(holder.where, FileOutline):
            return f"{holder.where.names[holder.place]}.{name}"
        return None

    def _first(self, outline: FileOutline, scope: int, name: str) -> NameTarget | None:
        """Return the first step of a path, where inline modules count as modules."""
        inline = scope
        while inline >= 0 and outline.kinds[inline] != "module":
            inline = outline.parents[inline]
        if inline < 0:
            return self.name_in(outline, name)
        above = outline.parents[inline]
        is_module = above >= 0 and outline.kinds[above] == "module"
        names = {
            **outline.members.get(inline, {}),
            "self": inline,
            "super": above if is_module else -1,
        }
        return NameTarget(outline, names[name]) if name in names else self.name_in(outline, name)

    def _above(self, outline: FileOutline) -> NameTarget | None:
        folder, _, name = outline.path.rpartition("/")
        if name in ("lib.rs", "main.rs"):
            return None
        if name == "mod.rs":
            folder = folder.rpartition("/")[0]
        inside = (join(folder, each) for each in ("mod.rs", "lib.rs", "main.rs"))
        return self._other(outline, f"{folder}.rs", *inside)


def _crates(project: ProjectFiles) -> dict[str, str]:
    crates: dict[str, str] = {}
    for path in project.by_name.get("Cargo.toml", ()):
        text = project.text(path) or ""
        manifest = _manifest(text)
        name = manifest.get("lib", {}).get("name") or manifest.get("package", {}).get("name")
        root = _lib_path(text, path.rpartition("/")[0])
        if name and isinstance(name, str) and root in project.paths:
            crates[name.replace("-", "_")] = root
    return crates


def _crate_root(project: ProjectFiles, path: str) -> str | None:
    folders, name = folders_above(path), path.rpartition("/")[2]
    is_program = folders[0].rpartition("/")[2] in _OWN_ROOTS
    if is_program or name in ("lib.rs", "main.rs", "build.rs"):
        return path
    for folder in folders:
        roots = (join(folder, name) for name in ("lib.rs", "main.rs"))
        if root := next((root for root in roots if root in project.paths), None):
            return root
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


_SLASHES = regex(r"//[^\n]*|/\*.*?\*/", re.S)
_HEAD = regex(r"^(?:pub(?:\s*\([^)]*\))?\s+)?")
_BRACES = regex(r"[{},]")


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
    prefixes, start = [""], 0
    for brace in _BRACES.finditer(text):
        part = " ".join(text[start : brace.start()].split())
        start = brace.end()
        if brace[0] == "{":
            prefixes.append(prefixes[-1] + part)
            continue
        if part:
            yield prefixes[-1] + part
        if brace[0] == "}" and len(prefixes) > 1:
            prefixes.pop()
    if rest := " ".join(text[start:].split()):
        yield prefixes[-1] + rest


_ROUTES = regex(
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
        test_marks=regex(rb"#\[(?:[\w:]+::)?(?:test|rstest|bench)\b"),
        has_overloads=True,
        routes=(RoutePattern(QUOTED_PATHS, _ROUTES),),
        manifests=("Cargo.toml",),
        module_files=("mod.rs", "lib.rs", "main.rs"),
        doors=("mod.rs", "lib.rs", "main.rs"),
        entry_files=(("main.rs", "the program of its crate"),),
    ),
)
