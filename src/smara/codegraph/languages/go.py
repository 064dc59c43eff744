"""Resolve Go packages by ``go.mod`` paths, and methods by receiver type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from smara.codegraph.language import QUOTED_PATHS, ImportParts, LanguageSpec, RoutePattern
from smara.codegraph.models import Import
from smara.codegraph.resolve.rules import LanguageRules
from smara.codegraph.resolve.symbols import (
    FileOutline,
    NameTarget,
    Package,
    join,
)
from smara.core.startup.regex import re, regex

_MODULE = regex(r"^\s*module\s+\"?([^\s\"]+)", re.MULTILINE)


class GoRules(LanguageRules):
    own_names = frozenset()
    upper_names = frozenset()

    def bound_name(self, imported: Import) -> str:
        if imported.alias in ("_", "."):
            return ""
        last = imported.module.strip('"').rpartition("/")[2]
        # A module's major version is no part of its package's name: ``x/yaml/v3`` is ``yaml``.
        if re.fullmatch(r"v\d+", last):
            last = imported.module.strip('"').split("/")[-2] if "/" in imported.module else last
        return imported.alias or last.removeprefix("go-")

    def find_module(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        module = imported.module.strip('"')
        for name, folder in self.project.once("go", self._module_folders):
            if module == name or module.startswith(name + "/"):
                below = join(folder, module[len(name) :].lstrip("/")) if module != name else folder
                return NameTarget(Package(below), -1) if below in self.project.folders else None
        return None

    def _module_folders(self) -> list[tuple[str, str]]:
        """Return the modules of the tree with their folders, the longest name first."""
        paths = self.project.by_name.get("go.mod", ())
        declared = [(path, _MODULE.search(self.project.text(path) or "")) for path in paths]
        folders = [(match[1], path.rpartition("/")[0]) for path, match in declared if match]
        return sorted(folders, key=lambda each: -len(each[0]))

    def files_of(self, outline: FileOutline, imported: Import) -> list[FileOutline]:
        module = self.find_module(outline, imported)
        package = module.where if module is not None else None
        return self._outlines(package.folder) if isinstance(package, Package) else []

    def package_member(self, package: Package, name: str) -> NameTarget | None:
        return self._name_of(self._outlines(package.folder), name)

    def _name_of(self, outlines: Iterable[FileOutline], name: str) -> NameTarget | None:
        for outline in outlines:
            if name in outline.top:
                return NameTarget(outline, outline.top[name])
            if type_ := outline.fields.get(-1, {}).get(name):
                return self.instance(outline, type_)
        return None

    def beyond_file(self, outline: FileOutline, name: str) -> NameTarget | None:
        others = (each for each in self._beside(outline) if each.path != outline.path)
        return self._name_of(others, name)

    def scattered_member(self, outline: FileOutline, place: int, name: str) -> NameTarget | None:
        qualname = f"{outline.qualnames[place]}.{name}"
        return next(
            (
                NameTarget(each, each.by_qualname[qualname])
                for each in self._beside(outline)
                if qualname in each.by_qualname
            ),
            None,
        )

    def _beside(self, outline: FileOutline) -> list[FileOutline]:
        """Return the files of a file's own package, with itself and its tests."""
        folder = outline.path.rpartition("/")[0]
        return self._outlines(folder, outline.package, with_tests=True)

    def _outlines(
        self, folder: str, package: str | None = None, *, with_tests: bool = False
    ) -> list[FileOutline]:
        """Return the files of a package.

        Files of another name in the folder (``x_test``) are not of it.
        """

        def read() -> list[FileOutline]:
            outlines = [
                self.table.outline(path)
                for path in self.project.folders.get(folder, ())
                if path.endswith(".go") and (with_tests or not path.endswith("_test.go"))
            ]
            return [each for each in outlines if each and package in (None, each.package)]

        return self.remember((folder, package, with_tests), read)


_IMPORT = regex(r"""([\w.]+)?\s*["`]([^"`]*)["`]""")


def read_imports(text: str) -> Iterator[ImportParts]:
    """Yield the package of one line of an import."""
    if line := _IMPORT.match(text):
        alias = line[1] or ""
        yield line[2], "*" if alias == "." else "", "" if alias == "." else alias, 0, False


_ROUTES = regex(
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
        test_names=regex(r"(?:Test|Benchmark|Fuzz|Example)(?![a-z])"),
        receiver_node="method_declaration",
        class_opening=b"{",
        routes=(RoutePattern(QUOTED_PATHS, _ROUTES),),
        manifests=("go.mod",),
        doors=("doc.go", "main.go"),
        entry_files=(("main.go", "a program"),),
    ),
)
