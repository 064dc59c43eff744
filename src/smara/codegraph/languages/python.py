"""Resolve Python modules by dotted name, and names through ``__init__`` files."""

from __future__ import annotations

import sys
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
from smara.codegraph.resolve.rules import LanguageRules
from smara.codegraph.resolve.symbols import (
    FileOutline,
    NameTarget,
    Package,
    folders_above,
)
from smara.core.startup.regex import re, regex

_SUFFIXES = (".py", ".pyi")
_USUAL_ROOTS = ("src", "lib", "python")


class PythonRules(LanguageRules):
    own_names = frozenset({"self", "cls"})
    upper_names = frozenset({"super()"})

    def bound_name(self, imported: Import) -> str:
        return imported.alias or imported.name or imported.module.partition(".")[0]

    def imported(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        if (
            not imported.name
            and not imported.alias
            and "." in imported.module
            and not imported.level
        ):
            # ``import a.b`` binds ``a``; ``b`` is reached through it.
            return self._module(outline, imported.module.partition(".")[0])
        return super().imported(outline, imported)

    def find_module(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        if not imported.level:
            return self._module(outline, imported.module)
        folders = folders_above(outline.path)
        if imported.level > len(folders):
            return None
        parts = imported.module.split(".") if imported.module else []
        return self._target(self._walk_down(folders[imported.level - 1], parts))

    def files_of(self, outline: FileOutline, imported: Import) -> list[FileOutline]:
        module = self.find_module(outline, imported)
        if module is not None and imported.name not in ("", "*"):
            below = self.attribute(module, imported.name)
            if below is not None and isinstance(below.where, FileOutline) and below.place < 0:
                return [below.where]
        return super().files_of(outline, imported)

    def submodule(self, outline: FileOutline, name: str) -> NameTarget | None:
        folder, _, file = outline.path.rpartition("/")
        is_door = file.startswith("__init__.")
        return self._target(self._path_below(folder, name)) if is_door else None

    def package_member(self, package: Package, name: str) -> NameTarget | None:
        return self._target(self._path_below(package.folder, name))

    def _target(self, module: str | Package | None) -> NameTarget | None:
        if isinstance(module, Package):
            return NameTarget(module, -1)
        return self.file(module) if module is not None else None

    def _path_below(self, folder: str, name: str) -> str | Package | None:
        """Return the file of the module ``name`` in a folder, or the folder that is a
        package without one.
        """
        below = f"{folder}/{name}" if folder else name
        ends = (f"{init}{suffix}" for suffix in _SUFFIXES for init in ("/__init__", ""))
        path = next((below + end for end in ends if below + end in self.project.paths), None)
        return path or (Package(below) if below in self.project.folders else None)

    def _walk_down(self, folder: str, parts: list[str]) -> str | Package | None:
        """Return the module that ``parts`` lead to from a folder.

        With none, the folder's own.
        """
        if not parts:
            doors = (f"{folder}/__init__{suffix}".lstrip("/") for suffix in _SUFFIXES)
            path = next((door for door in doors if door in self.project.paths), None)
            return path or (Package(folder) if folder in self.project.folders else None)
        *above, last = parts
        # Only folders lead on: what ``a/b.py`` holds is no module below ``a.b``.
        return self._path_below("/".join([folder, *above] if folder else above), last)

    def _module(self, outline: FileOutline, dotted: str) -> NameTarget | None:
        key = ("python", outline.path.rpartition("/")[0], dotted)
        module = self.project.once(key, self._find_module, outline.path, dotted)
        return None if module == outline.path and "." not in dotted else self._target(module)

    def _find_module(self, from_path: str, dotted: str) -> str | Package | None:
        parts = dotted.split(".")
        roots = self._roots_for(from_path, parts[0])
        modules = [self._walk_down(root, parts) for root in roots]
        files = [module for module in modules if isinstance(module, str)]
        return next((module for module in (*files, *modules) if module is not None), None)

    def _roots_for(self, from_path: str, first: str) -> list[str]:
        """Return the folders that ``first`` may stand in, the likeliest first."""
        offering = self.project.once("python", _offering, self.project.folders).get(first)
        if not offering:
            return []
        above = [folder for folder in folders_above(from_path) if folder in offering]
        beside = [
            root
            for folder in folders_above(from_path)
            for usual in _USUAL_ROOTS
            if (root := f"{folder}/{usual}" if folder else usual) in offering
        ]
        if above or beside:
            return list(dict.fromkeys([*above, *beside]))
        # A name of the standard library means a file of ours only where that file is plainly in
        # reach.
        is_standard_library = self.project.paths >= {"os.py", "abc.py", "types.py"}
        is_plain = is_standard_library or first not in sys.stdlib_module_names
        return offering if len(offering) == 1 and is_plain else []


def _offering(folders: dict[str, list[str]]) -> dict[str, list[str]]:
    """For each top name, the folders that hold it and are no packages themselves."""
    packages = {
        folder
        for folder, paths in folders.items()
        if any(path.endswith(("/__init__.py", "/__init__.pyi")) for path in paths)
    }
    roots: dict[str, set[str]] = {}
    for folder, paths in folders.items():
        above, _, name = folder.rpartition("/")
        if folder and above not in packages:
            roots.setdefault(name, set()).add(above)
        for path in paths if folder not in packages else ():
            if path.endswith(_SUFFIXES):
                roots.setdefault(path.rpartition("/")[2].partition(".")[0], set()).add(folder)
    return {name: sorted(places) for name, places in roots.items()}


_FROM = regex(r"from\s*(\.*)\s*([\w.]*)\s*import\b(.*)", re.S)


def read_imports(text: str) -> Iterator[ImportParts]:
    """Yield the names of an ``import`` or a ``from`` statement."""
    if "#" in text or "\\" in text:
        text = re.sub(r"#[^\n]*|\\", " ", text)
    if statement := _FROM.match(text):
        dots, module, names = statement.groups()
        for name, alias in aliases(names.strip(" \t\r\n()")):
            yield module, name, alias, len(dots), False
    else:
        for module, alias in aliases(text.removeprefix("import")):
            yield module.replace(" ", ""), "", alias, 0, False


_ROUTES = regex(
    rb"\.(?P<verb>route|api_route|websocket|"
    + HTTP_VERBS
    + rb")\(\s*[rf]?[\"'](?P<path>/[^\"'\n]*)[\"']"
)
_DJANGO_ROUTES = regex(rb"(?P<verb>)\b(?:re_path|path|url)\(\s*r?[\"'](?P<path>[^\"'\n]*)[\"']\s*,")

LANGUAGES = (
    LanguageSpec(
        name="python",
        extensions=("py", "pyi", "pyw"),
        file_names=("SConstruct", "SConscript", "wscript"),
        shebangs=("python", "pypy"),
        grammar=("tree_sitter_python", "language"),
        queries=("python",),
        rules=PythonRules,
        read_imports=read_imports,
        selves=frozenset({"self", "cls"}),
        test_names=regex(r"test"),
        tested_extensions=("py",),
        has_docstrings=True,
        ignores_trailing_commas=True,
        has_untyped_parameters=True,
        # A file that lists its routes names one by ``path("…")`` anywhere in it.
        routes=(
            RoutePattern((b"urlpatterns",), _DJANGO_ROUTES),
            RoutePattern(QUOTED_PATHS, _ROUTES),
        ),
        module_files=("__init__.py", "__init__.pyi"),
        doors=("__init__.py",),
        entry_files=(
            ("__main__.py", "run by python -m"),
            ("manage.py", "a script of its project"),
            ("wsgi.py", "a web server's door"),
            ("asgi.py", "a web server's door"),
        ),
    ),
)
