"""Resolve Java classes by package and name, and members without a receiver."""

from __future__ import annotations

from collections.abc import Iterator

from smara.codegraph.language import ImportParts, LanguageSpec, RoutePattern
from smara.codegraph.models import Import
from smara.codegraph.resolve.rules import LanguageRules
from smara.codegraph.resolve.symbols import FileOutline, NameTarget, Package, closest
from smara.core.startup.regex import regex


class JavaRules(LanguageRules):
    own_names = frozenset({"this"})
    upper_names = frozenset({"super"})
    has_open_classes = True

    def find_module(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        parts = imported.module.split(".")
        for cut in range(len(parts), 0, -1):
            start = self._class("/".join(parts[: cut - 1]), parts[cut - 1], outline.path)
            if start is not None:
                return self.follow(start, False, parts[cut:])
        return NameTarget(Package("/".join(parts)), -1)

    def files_of(self, outline: FileOutline, imported: Import) -> list[FileOutline]:
        """Return the file of the class that is imported.

        A whole package leads to no single file.
        """
        found = self.imported(outline, imported)
        if found is not None and isinstance(found.where, FileOutline):
            return [found.where]
        return super().files_of(outline, imported)

    def package_member(self, package: Package, name: str) -> NameTarget | None:
        found = self._class(package.folder, name, "")
        if found is None and self._is_package(f"{package.folder}/{name}"):
            return NameTarget(Package(f"{package.folder}/{name}"), -1)
        return found

    def beyond_file(self, outline: FileOutline, name: str) -> NameTarget | None:
        folder = outline.package.replace(".", "/")
        return self._class(folder, name, outline.path) if name[:1].isupper() else None

    def name_in(self, outline: FileOutline, name: str) -> NameTarget | None:
        found = super().name_in(outline, name)
        if found is None and name[:1].islower() and outline.package:
            # The first step of a fully qualified name: ``com.example.Client.make()``.
            return NameTarget(Package(name), -1) if self._is_package(name) else None
        return found

    def member(self, outline: FileOutline, place: int, name: str) -> NameTarget | None:
        # A constructor is called by its class's name, and the class is what is meant.
        is_constructor = name == outline.names[place]
        return (
            NameTarget(outline, place) if is_constructor else super().member(outline, place, name)
        )

    def _class(self, folder: str, name: str, from_path: str) -> NameTarget | None:
        tail = f"{folder}/{name}.java" if folder else f"{name}.java"
        paths = self.project.ending_with(tail)
        path = closest(paths, from_path) if from_path or len(paths) == 1 else None
        outline = self.table.outline(path) if path is not None else None
        if outline is None or outline.package.replace(".", "/") != folder:
            return None
        return NameTarget(outline, outline.top[name]) if name in outline.top else None

    def _is_package(self, name: str) -> bool:
        return any(f"/{name}/" in f"/{folder}/" for folder in self.project.folders)


def read_imports(text: str) -> Iterator[ImportParts]:
    """Yield the class or member that an import names."""
    words = text.removeprefix("import").strip().rstrip(";").replace("static ", "", 1)
    module, _, name = "".join(words.split()).rpartition(".")
    yield module, name, "", 0, False


_ROUTES = regex(
    rb"@(?P<verb>Get|Post|Put|Patch|Delete|Request)Mapping\(\s*(?:(?:value"
    rb"|path)\s*=\s*)?\{?\s*\"(?P<path>[^\"\n]*)\""
)

LANGUAGES = (
    LanguageSpec(
        name="java",
        extensions=("java",),
        grammar=("tree_sitter_java", "language"),
        queries=("java",),
        rules=JavaRules,
        read_imports=read_imports,
        separators=(b".", b"::"),
        selves=frozenset({"this"}),
        test_marks=regex(rb"@(?:Test|ParameterizedTest|RepeatedTest|TestFactory|Property)\b"),
        types_first=True,
        has_overloads=True,
        routes=(RoutePattern((b"Mapping(",), _ROUTES),),
        doors=("package-info.java",),
    ),
)
