"""Resolve Go packages by ``go.mod`` paths, and methods by receiver type."""

from __future__ import annotations

import re
from collections.abc import Iterator

from smara.codegraph.language import QUOTED_PATHS, ImportParts, LanguageSpec, RoutePattern
from smara.codegraph.models import Import
from smara.codegraph.resolve.rules import LanguageRules
from smara.codegraph.resolve.symbols import (
    FileOutline,
    NameTarget,
    Package,
    ProjectFiles,
    SymbolTable,
    join,
)

_MODULE = re.compile(r"^\s*module\s+\"?([^\s\"]+)", re.MULTILINE)


class GoRules(LanguageRules):
    own_names = frozenset()
    upper_names = frozenset()

    def __init__(self, table: SymbolTable, project: ProjectFiles) -> None:
        super().__init__(table, project)
        self._module_folders: list[tuple[str, str]] | None = None
        self._packages: dict[tuple[str, str], list[FileOutline]] = {}

    def forget(self) -> None:
        super().forget()
        self._packages.clear()

    def bound_name(self, imported: Import) -> str:
        if imported.alias in ("_", "."):
            return ""
        last = imported.module.strip('"').rpartition("/")[2]
        # A module's major version is no part of its package's name: ``x/yaml/v3`` is ``yaml``.
        if re.fullmatch(r"v\d+", last):
            last = imported.module.strip('"').split("/")[-2] if "/" in imported.module else last
        return imported.alias or last.removeprefix("go-")

    def find_module(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        folder = self._folder_of(imported.module.strip('"'))
        return NameTarget(Package(folder), -1) if folder is not None else None

    def files_of(self, outline: FileOutline, imported: Import) -> list[FileOutline]:
        module = self.find_module(outline, imported)
        return (
            self._outlines(module.where.folder)
            if module is not None and isinstance(module.where, Package)
            else []
        )

    def package_member(self, package: Package, name: str) -> NameTarget | None:
        for outline in self._outlines(package.folder):
            place = outline.top.get(name)
            if place is not None:
                return NameTarget(outline, place)
            type_ = outline.fields.get(-1, {}).get(name)
            if type_:
                return self.instance(outline, type_)
        return None

    def beyond_file(self, outline: FileOutline, name: str) -> NameTarget | None:
        folder = outline.path.rpartition("/")[0]
        for other in self._outlines(folder, outline.package, with_tests=True):
            place = other.top.get(name)
            if place is not None and other.path != outline.path:
                return NameTarget(other, place)
            type_ = other.fields.get(-1, {}).get(name)
            if type_ and other.path != outline.path:
                return self.instance(other, type_)
        return None

    def scattered_member(self, outline: FileOutline, place: int, name: str) -> NameTarget | None:
        qualname = f"{outline.qualnames[place]}.{name}"
        folder = outline.path.rpartition("/")[0]
        for other in self._outlines(folder, outline.package, with_tests=True):
            found = other.by_qualname.get(qualname)
            if found is not None:
                return NameTarget(other, found)
        return None

    def _outlines(
        self, folder: str, package: str | None = None, *, with_tests: bool = False
    ) -> list[FileOutline]:
        """Return the files of a package.

        Files of another name in the folder (``x_test``) are not of it.
        """
        key = (folder, f"{package}:{with_tests}")
        found = self._packages.get(key)
        if found is None:
            paths = [path for path in self.project.folders.get(folder, ()) if path.endswith(".go")]
            outlines = [
                self.table.outline(path)
                for path in paths
                if with_tests or not path.endswith("_test.go")
            ]
            found = [
                each for each in outlines if each is not None and package in (None, each.package)
            ]
            self._packages[key] = found
        return found

    def _folder_of(self, module: str) -> str | None:
        if self._module_folders is None:
            self._module_folders = []
            for path in self.project.by_name.get("go.mod", ()):
                declared = _MODULE.search(self.project.text(path) or "")
                if declared:
                    self._module_folders.append((declared.group(1), path.rpartition("/")[0]))
            self._module_folders.sort(key=lambda each: -len(each[0]))
        for name, folder in self._module_folders:
            if module == name or module.startswith(name + "/"):
                found = join(folder, module[len(name) :].lstrip("/")) if module != name else folder
                return found if found in self.project.folders else None
        return None


_IMPORT = re.compile(r"""([\w.]+)?\s*["`]([^"`]*)["`]""")


def read_imports(text: str) -> Iterator[ImportParts]:
    """Yield the package of one line of an import."""
    found = _IMPORT.match(text)
    if found:
        alias = found[1] or ""
        yield found[2], "*" if alias == "." else "", "" if alias == "." else alias, 0, False


_ROUTES = re.compile(
    rb"\.(?P<verb>HandleFunc|Handle|GET|POST|PUT|PATCH|DELETE|Get|Post|Put|Patch|Delete)"
    rb"\(\s*\"(?P<path>(?:[A-Z]+ )?/[^\"\n]*)\"\s*,"
)

LANGUAGES = (
    LanguageSpec(
        name="go",
        extensions=("go",),
        grammar=("tree_sitter_go", "language"),
        queries=("go",),
        rules=GoRules,
        read_imports=read_imports,
        test_names=re.compile(r"(?:Test|Benchmark|Fuzz|Example)(?![a-z])"),
        receiver_node="method_declaration",
        class_opening=b"{",
        routes=(RoutePattern(QUOTED_PATHS, _ROUTES),),
        manifests=("go.mod",),
        doors=("doc.go", "main.go"),
        entry_files=(("main.go", "a program"),),
    ),
)
