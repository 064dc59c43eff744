"""Resolve JavaScript and TypeScript imports by path, ``tsconfig.json`` and workspace package."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from smara.codegraph.language import (
    HTTP_VERBS,
    QUOTED_PATHS,
    ImportParts,
    LanguageSpec,
    RoutePattern,
    aliases,
)
from smara.codegraph.models import Import
from smara.codegraph.resolve.rules import DEEPEST, LanguageRules
from smara.codegraph.resolve.symbols import (
    FileOutline,
    NameTarget,
    ProjectFiles,
    SymbolTable,
    folders_above,
    join,
)

_STRING_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_MOST_EXTENDED = 5


class ScriptConfig(NamedTuple):
    """The paths of one ``tsconfig.json``.

    Where bare names start, and patterns with the places they stand for.
    """

    base: str | None
    paths: tuple[tuple[str, tuple[str, ...]], ...]


class ScriptPackage(NamedTuple):
    """One ``package.json`` of the tree.

    Its name, its folder, and the files it says it begins with.
    """

    name: str
    folder: str
    entries: tuple[str, ...]
    exports: tuple[tuple[str, str], ...]
    inner: tuple[tuple[str, str], ...]
    """Its ``imports``: names that start with ``#``."""


def read_json(text: str | None) -> dict[str, object]:
    """Return an object out of JSON with comments and trailing commas.

    Empty when it is none.
    """
    if text is None:
        return {}
    plain = _STRING_OR_COMMENT.sub(lambda found: found.group(1) or "", text.lstrip("\ufeff"))
    plain = _TRAILING_COMMA.sub(lambda found: found.group(1) or "", plain)
    try:
        value = json.loads(plain)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read_config(project: ProjectFiles, path: str, depth: int = 0) -> ScriptConfig:
    """Return the paths that a configuration sets, or the one it extends."""
    content = read_json(project.text(path))
    folder = path.rpartition("/")[0]
    options = content.get("compilerOptions")
    options = options if isinstance(options, dict) else {}
    base_url, paths = options.get("baseUrl"), options.get("paths")
    base = join(folder, base_url) if isinstance(base_url, str) else None
    if isinstance(paths, dict):
        start = base if base is not None else folder
        patterns = [
            (pattern, tuple(join(start, place) for place in places if isinstance(place, str)))
            for pattern, places in paths.items()
            if isinstance(places, list)
        ]
        # The longest pattern before its star is the one that counts.
        patterns.sort(key=lambda each: -len(each[0].partition("*")[0]))
        return ScriptConfig(base, tuple(patterns))
    extended = _extended(project, folder, content, depth=depth)
    return ScriptConfig(base if base is not None else extended.base, extended.paths)


def _extended(
    project: ProjectFiles, folder: str, content: dict[str, object], depth: int
) -> ScriptConfig:
    above = content.get("extends")
    names = above if isinstance(above, list) else [above]
    for name in names:
        if isinstance(name, str) and name.startswith(".") and depth < _MOST_EXTENDED:
            for path in (
                join(folder, name),
                join(folder, f"{name}.json"),
                join(folder, name, "tsconfig.json"),
            ):
                if path in project.paths:
                    return read_config(project, path, depth + 1)
    return ScriptConfig(None, ())


def read_package(project: ProjectFiles, path: str) -> ScriptPackage:
    content = read_json(project.text(path))
    name = content.get("name")
    entries = [content.get(key) for key in ("source", "types", "typings", "module", "main")]
    return ScriptPackage(
        name if isinstance(name, str) else "",
        path.rpartition("/")[0],
        tuple(entry for entry in entries if isinstance(entry, str)),
        exports=tuple(_mapped(content.get("exports"))),
        inner=tuple(_mapped(content.get("imports"))),
    )


def _mapped(value: object) -> list[tuple[str, str]]:
    """Return a map of subpaths to files, one file each.

    The first string among the conditions.
    """
    if isinstance(value, str):
        return [(".", value)]
    if not isinstance(value, dict):
        return []
    if not any(key.startswith((".", "#")) for key in value):
        found = _first_string(value, 0)
        return [(".", found)] if found else []
    pairs = [(key, _first_string(each, 0)) for key, each in value.items()]
    return [(key, found) for key, found in pairs if found]


def _first_string(value: object, depth: int) -> str:
    if isinstance(value, str):
        return value
    if depth > 4:
        return ""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for each in inner if (found := _first_string(each, depth + 1))), "")


_SUFFIXES = (
    ".ts",
    ".tsx",
    ".d.ts",
    ".mts",
    ".cts",
    ".js",
    ".jsx",
    ".mjs",
    ".cjs",
    ".vue",
    ".svelte",
)
_WRITTEN_FOR = {
    ".js": (".ts", ".tsx", ".d.ts", ".jsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",
    ),
}  # fmt: skip
"""TypeScript names the file that will be built: ``./x.js`` may be ``./x.ts`` here."""
_BUILT = ("dist/", "build/", "lib/", "out/", "esm/", "cjs/", "types/")
_DEFAULT = "default"


class ScriptRules(LanguageRules):
    own_names = frozenset({"this"})
    upper_names = frozenset({"super"})

    def __init__(self, table: SymbolTable, project: ProjectFiles) -> None:
        super().__init__(table, project)
        self._found: dict[tuple[str, str], str | None] = {}
        self._configs: dict[str, ScriptConfig | None] = {}
        self._packages: dict[str, ScriptPackage] | None = None
        self._prototypes: dict[str, set[str]] = {}

    def bound_name(self, imported: Import) -> str:
        if imported.is_export and not imported.module and imported.alias in ("", imported.name):
            # ``export { a }`` says nothing new about ``a``.
            return ""
        if imported.is_export and imported.module:
            return imported.alias or imported.name
        if imported.name in ("", "*", _DEFAULT):
            return imported.alias
        return imported.alias or imported.name

    def find_module(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        if not imported.module:
            return NameTarget(outline, -1)
        folder = outline.path.rpartition("/")[0]
        key = (folder, imported.module)
        if key not in self._found:
            self._found[key] = self._find(outline.path, imported.module)
        path = self._found[key]
        return self.file(path) if path is not None else None

    def imported(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        if not imported.module and imported.is_export:
            # ``export { a as b }`` passes on a name of the same file.
            return self.name_in(outline, imported.name) if imported.name != imported.alias else None
        return super().imported(outline, imported)

    def forget(self) -> None:
        super().forget()
        self._prototypes.clear()

    def result(self, target: NameTarget, depth: int = 0) -> NameTarget | None:
        meant = self.meant(target)
        where, place, is_instance = meant
        is_definition = isinstance(where, FileOutline) and place >= 0 and not is_instance
        if (
            is_definition
            and isinstance(where, FileOutline)
            and where.qualnames[place] in self._with_members(where)
        ):
            return NameTarget(where, place, is_instance=True)
        return super().result(meant, depth)

    def holds_members(self, target: NameTarget) -> bool:
        return isinstance(target.where, FileOutline) and target.place >= 0

    def scattered_member(self, outline: FileOutline, place: int, name: str) -> NameTarget | None:
        """Return what was assigned to an object or a function's prototype.

        ``app.use = …``, ``View.prototype.render = …``.
        """
        found = outline.by_qualname.get(f"{outline.qualnames[place]}.{name}")
        return NameTarget(outline, found) if found is not None else None

    def _with_members(self, outline: FileOutline) -> set[str]:
        """Return the functions of a file that have methods, as classes were written before
        there were classes.
        """
        found = self._prototypes.get(outline.path)
        if found is None:
            methods = [place for place, kind in enumerate(outline.kinds) if kind == "method"]
            found = {
                outline.qualnames[place].rpartition(".")[0]
                for place in methods
                if outline.parents[place] < 0
            }
            self._prototypes[outline.path] = found
        return found

    def attribute(self, target: NameTarget, name: str, depth: int = 0) -> NameTarget | None:
        found = super().attribute(target, name, depth)
        if (
            found is None
            and isinstance(target.where, FileOutline)
            and target.place < 0
            and name != _DEFAULT
        ):
            # ``module.exports = Router`` makes the class's names those of the module.
            main = self.name_in(target.where, _DEFAULT)
            if main is not None and main.place >= 0:
                return super().attribute(main, name, depth)
        return found

    def meant(self, target: NameTarget) -> NameTarget:
        """Return a module's default export, when called or extended."""
        for _ in range(DEEPEST):
            where = target.where
            main = (
                self.name_in(where, _DEFAULT)
                if isinstance(where, FileOutline) and target.place < 0
                else None
            )
            if main is None:
                break
            target = main
        return target

    def _find(self, from_path: str, name: str) -> str | None:
        if name.startswith((".", "/")):
            folder = from_path.rpartition("/")[0] if name.startswith(".") else ""
            return self._file_at(join(folder, name.lstrip("/")))
        if name.startswith("#"):
            return self._inner(from_path, name)
        return self._by_config(from_path, name) or self._by_package(name)

    def _file_at(self, path: str) -> str | None:
        """Return the file that an import of ``path`` reads.

        With an ending guessed, or a folder's index.
        """
        paths = self.project.paths
        if path in paths and not path.endswith("/"):
            return path
        stem, dot, ending = path.rpartition(".")
        for written in _WRITTEN_FOR.get(dot + ending, ()):
            if stem + written in paths:
                return stem + written
        for suffix in _SUFFIXES:
            if path + suffix in paths:
                return path + suffix
        for suffix in _SUFFIXES:
            index = join(path, f"index{suffix}")
            if index in paths:
                return index
        manifest = join(path, "package.json")
        return (
            self._entry(read_package(self.project, manifest))
            if path and manifest in paths
            else None
        )

    def _by_config(self, from_path: str, name: str) -> str | None:
        for folder in folders_above(from_path):
            if folder not in self._configs:
                paths = (join(folder, each) for each in ("tsconfig.json", "jsconfig.json"))
                path = next((each for each in paths if each in self.project.paths), None)
                self._configs[folder] = read_config(self.project, path) if path else None
            config = self._configs[folder]
            if config is None:
                continue
            for pattern, places in config.paths:
                rest = _matched(pattern, name)
                if rest is None:
                    continue
                for place in places:
                    found = self._file_at(place.replace("*", rest, 1))
                    if found is not None:
                        return found
            found = self._file_at(join(config.base, name)) if config.base is not None else None
            if found is not None:
                return found
        return None

    def _by_package(self, name: str) -> str | None:
        """Return a package of the same tree, by its name, or a file below it."""
        if self._packages is None:
            manifests = self.project.by_name.get("package.json", ())
            packages = [
                read_package(self.project, path)
                for path in manifests
                if "node_modules/" not in path
            ]
            self._packages = {package.name: package for package in packages if package.name}
        parts = name.split("/")
        named = "/".join(parts[:2]) if name.startswith("@") else parts[0]
        package = self._packages.get(named)
        if package is None:
            return None
        below = name[len(named) + 1 :]
        if not below:
            return self._entry(package)
        for pattern, place in package.exports:
            rest = _matched(pattern.removeprefix("./"), below)
            found = (
                self._built(package.folder, place.replace("*", rest, 1))
                if rest is not None
                else None
            )
            if found is not None:
                return found
        return self._file_at(join(package.folder, below)) or self._file_at(
            join(package.folder, "src", below)
        )

    def _inner(self, from_path: str, name: str) -> str | None:
        manifest = self.project.nearest("package.json", from_path)
        if manifest is None:
            return None
        package = read_package(self.project, manifest)
        for pattern, place in package.inner:
            rest = _matched(pattern, name)
            found = (
                self._built(package.folder, place.replace("*", rest, 1))
                if rest is not None
                else None
            )
            if found is not None:
                return found
        return None

    def _entry(self, package: ScriptPackage) -> str | None:
        """Return the file a package begins with.

        Its source, where what it names is built from it.
        """
        declared = [place for pattern, place in package.exports if pattern == "."]
        for place in (*package.entries, *declared):
            found = self._built(package.folder, place)
            if found is not None:
                return found
        for place in ("src/index", "index", "lib/index", "src/main"):
            found = self._file_at(join(package.folder, place))
            if found is not None and found.rpartition("/")[2] != "package.json":
                return found
        return None

    def _built(self, folder: str, place: str) -> str | None:
        path = join(folder, place)
        if path in self.project.paths:
            return path
        plain = place.removeprefix("./")
        for built in _BUILT:
            if plain.startswith(built):
                rest = plain[len(built) :]
                stem = (
                    rest.removesuffix(".d.ts")
                    if rest.endswith(".d.ts")
                    else rest.rpartition(".")[0] or rest
                )
                return self._file_at(join(folder, "src", stem)) or self._file_at(join(folder, stem))
        return self._file_at(path) if not path.endswith(".json") else None


def _matched(pattern: str, name: str) -> str | None:
    """Return what the star of a pattern stands for in a name.

    ``None`` when the pattern does not fit.
    """
    before, star, after = pattern.partition("*")
    if not star:
        return "" if name == pattern else None
    if len(name) >= len(before) + len(after) and name.startswith(before) and name.endswith(after):
        return name[len(before) : len(name) - len(after)]
    return None


_SCRIPT_COMMENT = re.compile(r"//[^\n\"'`]*$|/\*.*?\*/", re.M | re.S)
_LAST_STRING = re.compile(r"""["'`]([^"'`]*)["'`][^"'`]*\Z""")
_CALLED = re.compile(r"import\s*\(")
_IMPORT_WORDS = re.compile(r"^import\b\s*(?:type\s+(?!from\b|,))?(?:typeof\s+)?")
_BRACES = re.compile(r"\{[^{}]*\}")
_REQUIRE = re.compile(
    r"(?:(?P<local>\{[^{}]*\}"
    r"|[\w$]+)\s*(?::[^=]*)?=\s*)?require\s*\(\s*[\"'`](?P<module>[^\"'`]+)[\"'`]\s*\)(?:\.(?P<member>[\w$]+))?"
)
_EXPORTS = re.compile(
    r"(?:module\.)?exports(?:\.(?P<name>[\w$]+))?\s*=\s*(?P<value>[\w$]+|\{.*\}"
    r"|require\s*\(\s*[\"'`][^\"'`]+[\"'`]\s*\))\s*\Z",
    re.S,
)


def read_imports(text: str) -> Iterator[ImportParts]:
    """Read JavaScript's and TypeScript's imports, exports from elsewhere, ``require`` and
    ``module.exports``.
    """
    text = _SCRIPT_COMMENT.sub(" ", text) if "//" in text or "/*" in text else text
    if text.startswith("import"):
        yield from _script_import(text)
    elif text.startswith("export") and not text.startswith("exports"):
        yield from _script_export(text)
    elif found := _EXPORTS.match(text):
        yield from _script_exports(found)
    elif found := _REQUIRE.match(text):
        local, module, member = (
            (found["local"] or "").strip(),
            found["module"],
            found["member"] or "",
        )
        if local.startswith("{"):
            for name, alias in aliases(local.strip("{} ").replace(":", " as ").partition("=")[0]):
                yield module, name, alias, 0, False
        else:
            yield module, member, "" if local == member else local, 0, False


def _script_import(text: str) -> Iterator[ImportParts]:
    module = _LAST_STRING.search(text)
    if module is None:
        return
    if _CALLED.match(text):
        yield module[1], "", "", 0, False
        return
    if "require" in text and (found := _REQUIRE.match(_IMPORT_WORDS.sub("", text))):
        yield module[1], "", found["local"] or "", 0, False
        return
    head = _IMPORT_WORDS.sub("", text[: module.start()]).strip()
    head = head.removesuffix("from").rstrip()
    if not head:
        yield module[1], "", "", 0, False
    for part in _BRACES.findall(head):
        for name, alias in aliases(part.strip("{}")):
            yield module[1], name.removeprefix("type "), alias, 0, False
    for part in _BRACES.sub("", head).split(","):
        words = part.split()
        if words[:1] == ["*"]:
            yield module[1], "*", words[-1], 0, False
        elif words:
            yield module[1], "default", words[-1], 0, False


def _script_export(text: str) -> Iterator[ImportParts]:
    text = text.removeprefix("export").strip()
    module = _LAST_STRING.search(text)
    source = module[1] if module and "from" in text else ""
    text = text.removeprefix("type ").strip()
    if text.startswith("*"):
        words = text.split()
        yield source, "*", words[2] if words[1:2] == ["as"] else "", 0, True
    elif text.startswith("{"):
        for name, alias in aliases(text.partition("}")[0].strip("{ ")):
            yield source, name.removeprefix("type "), alias, 0, True
    elif text.startswith("default"):
        yield "", text.removeprefix("default").strip(" ;\n"), "default", 0, True


def _script_exports(found: re.Match[str]) -> Iterator[ImportParts]:
    value = found["value"].strip()
    if value.startswith("{"):
        for part in value.strip("{}").split(","):
            name, _, other = part.partition(":")
            name, other = name.strip(), other.strip() or name.strip()
            if name.isidentifier() and other.isidentifier():
                yield "", other, "" if name == other else name, 0, True
    elif value.startswith("require") and (module := _LAST_STRING.search(value)):
        yield module[1], "", found["name"] or "default", 0, True
    elif value.isidentifier():
        alias = found["name"] or "default"
        yield "", value, "" if alias == value else alias, 0, True


_ROUTES = re.compile(
    rb"\.(?P<verb>" + HTTP_VERBS + rb"|all)\(\s*[\"'`](?P<path>/[^\"'`\n]*)[\"'`]\s*,"
)

_JAVASCRIPT = LanguageSpec(
    name="javascript",
    extensions=("js", "mjs", "cjs", "jsx"),
    shebangs=("node", "nodejs", "bun"),
    grammar=("tree_sitter_javascript", "language"),
    queries=("ecmascript", "javascript"),
    rules=ScriptRules,
    read_imports=read_imports,
    selves=frozenset({"this"}),
    tested_extensions=("js", "jsx", "mjs", "cjs", "ts"),
    has_titled_tests=True,
    has_untyped_parameters=True,
    routes=(RoutePattern(QUOTED_PATHS, _ROUTES),),
    manifests=("tsconfig.json", "jsconfig.json", "package.json"),
    module_files=("index.js", "index.jsx", "index.mjs", "index.cjs"),
    doors=("index.ts", "index.js"),
)
_TYPESCRIPT = replace(
    _JAVASCRIPT,
    name="typescript",
    extensions=("ts", "mts", "cts"),
    shebangs=("deno", "ts-node", "tsx"),
    grammar=("tree_sitter_typescript", "language_typescript"),
    queries=("ecmascript", "typescript"),
    tested_extensions=("ts", "tsx", "js", "jsx"),
    has_overloads=True,
    module_files=("index.ts", "index.d.ts"),
)
_TSX = replace(
    _TYPESCRIPT,
    name="tsx",
    extensions=("tsx",),
    shebangs=(),
    grammar=("tree_sitter_typescript", "language_tsx"),
    queries=("ecmascript", "typescript", "tsx"),
    tested_extensions=("tsx", "ts", "jsx", "js"),
    module_files=("index.tsx",),
)
LANGUAGES = (_JAVASCRIPT, _TYPESCRIPT, _TSX)
