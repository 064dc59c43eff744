"""Resolve JavaScript and TypeScript imports by path, ``tsconfig.json`` and workspace package."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
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
    folders_above,
    join,
)
from smara.core.startup.regex import re, regex

_STRING_OR_COMMENT = regex(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = regex(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
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

    Any other text gives an empty one.
    """
    plain = _STRING_OR_COMMENT.sub(r"\1", (text or "").lstrip("\ufeff"))
    try:
        value = json.loads(_TRAILING_COMMA.sub(r"\1", plain))
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
    extends = content.get("extends")
    for name in extends if isinstance(extends, list) else [extends]:
        if isinstance(name, str) and name.startswith(".") and depth < _MOST_EXTENDED:
            for above in (name, f"{name}.json", f"{name}/tsconfig.json"):
                if join(folder, above) in project.paths:
                    extended = read_config(project, join(folder, above), depth + 1)
                    return extended if base is None else extended._replace(base=base)
    return ScriptConfig(base, ())


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
        value = {".": value}
    pairs = [(key, _first_string(each, 0)) for key, each in value.items()]
    return [(key, file) for key, file in pairs if file]


def _first_string(value: object, depth: int) -> str:
    if isinstance(value, str):
        return value
    if depth > 4:
        return ""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((text for each in inner if (text := _first_string(each, depth + 1))), "")


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
_USUAL_ENTRIES = ("src/index", "index", "lib/index", "src/main")
_DEFAULT = "default"


class ScriptRules(LanguageRules):
    own_names = frozenset({"this"})
    upper_names = frozenset({"super"})
    has_scattered_members = True

    def bound_name(self, imported: Import) -> str:
        if imported.is_export and not imported.module and imported.alias in ("", imported.name):
            # ``export { a }`` says nothing new about ``a``.
            return ""
        is_named = imported.name not in ("", "*", _DEFAULT)
        is_passed_on = imported.is_export and imported.module
        return imported.alias or (imported.name if is_named or is_passed_on else "")

    def find_module(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        if not imported.module:
            return NameTarget(outline, -1)
        key = ("script", outline.path.rpartition("/")[0], imported.module)
        path = self.project.once(key, self._find, outline.path, imported.module)
        return self.file(path) if path is not None else None

    def imported(self, outline: FileOutline, imported: Import) -> NameTarget | None:
        if not imported.module and imported.is_export:
            # ``export { a as b }`` passes on a name of the same file.
            return self.name_in(outline, imported.name) if imported.name != imported.alias else None
        return super().imported(outline, imported)

    def result(self, target: NameTarget, depth: int = 0) -> NameTarget | None:
        meant = self.meant(target)
        where, place, is_instance = meant
        if isinstance(where, FileOutline) and place >= 0 and not is_instance:
            # Functions that have methods, as classes were written before there were classes.
            prototypes = self.remember(("prototypes", where.path), partial(_prototypes, where))
            if where.qualnames[place] in prototypes:
                return NameTarget(where, place, is_instance=True)
        return super().result(meant, depth)

    def class_named(self, outline: FileOutline, qualname: str) -> NameTarget | None:
        target = self.dotted(outline, qualname)
        is_definition = target and isinstance(target.where, FileOutline) and target.place >= 0
        return target if is_definition else None

    def attribute(self, target: NameTarget, name: str, depth: int = 0) -> NameTarget | None:
        own = super().attribute(target, name, depth)
        # ``module.exports = Router`` makes the class's names those of the module.
        main = self._default(target) if own is None and name != _DEFAULT else None
        return super().attribute(main, name, depth) if main and main.place >= 0 else own

    def meant(self, target: NameTarget) -> NameTarget:
        """Return a module's default export, when called or extended."""
        for _ in range(DEEPEST):
            if (main := self._default(target)) is None:
                break
            target = main
        return target

    def _default(self, target: NameTarget) -> NameTarget | None:
        where = target.where if target.place < 0 else None
        return self.name_in(where, _DEFAULT) if isinstance(where, FileOutline) else None

    def _find(self, from_path: str, name: str) -> str | None:
        if name.startswith((".", "/")):
            folder = from_path.rpartition("/")[0] if name.startswith(".") else ""
            return self._file_at(join(folder, name.lstrip("/")))
        if name.startswith("#"):
            if (manifest := self.project.nearest("package.json", from_path)) is None:
                return None
            package = read_package(self.project, manifest)
            return self._mapped_file(package.folder, package.inner, name)
        return self._by_config(from_path, name) or self._by_package(name)

    def _file_at(self, path: str) -> str | None:
        """Return the file that an import of ``path`` reads.

        With an ending guessed, or a folder's index.
        """
        paths = self.project.paths
        if path in paths and not path.endswith("/"):
            return path
        stem, dot, ending = path.rpartition(".")
        guesses = chain(
            (stem + suffix for suffix in _WRITTEN_FOR.get(dot + ending, ())),
            (path + suffix for suffix in _SUFFIXES),
            (join(path, f"index{suffix}") for suffix in _SUFFIXES),
        )
        if guess := next((guess for guess in guesses if guess in paths), None):
            return guess
        manifest = join(path, "package.json")
        is_package = path and manifest in paths
        return self._entry(read_package(self.project, manifest)) if is_package else None

    def _by_config(self, from_path: str, name: str) -> str | None:
        for folder in folders_above(from_path):
            config = self.project.once(("config", folder), _config_in, self.project, folder)
            if config is None:
                continue
            places = [
                place.replace("*", rest, 1)
                for pattern, places in config.paths
                if (rest := _matched(pattern, name)) is not None
                for place in places
            ]
            places += [join(config.base, name)] if config.base is not None else []
            if path := next(filter(None, map(self._file_at, places)), None):
                return path
        return None

    def _by_package(self, name: str) -> str | None:
        """Return a package of the same tree, by its name, or a file below it."""
        parts = name.split("/")
        named = "/".join(parts[:2]) if name.startswith("@") else parts[0]
        if (package := self.project.once("packages", _packages, self.project).get(named)) is None:
            return None
        if not (below := name[len(named) + 1 :]):
            return self._entry(package)
        exports = [(pattern.removeprefix("./"), place) for pattern, place in package.exports]
        return (
            self._mapped_file(package.folder, exports, below)
            or self._file_at(join(package.folder, below))
            or self._file_at(join(package.folder, "src", below))
        )

    def _mapped_file(
        self, folder: str, patterns: Iterable[tuple[str, str]], name: str
    ) -> str | None:
        """Return the file that a package's map of names gives a name."""
        places = (
            place.replace("*", rest, 1)
            for pattern, place in patterns
            if (rest := _matched(pattern, name)) is not None
        )
        return next((path for place in places if (path := self._built(folder, place))), None)

    def _entry(self, package: ScriptPackage) -> str | None:
        """Return the file a package begins with.

        Its source, where what it names is built from it.
        """
        declared = [place for pattern, place in package.exports if pattern == "."]
        built = (self._built(package.folder, place) for place in (*package.entries, *declared))
        usual = (self._file_at(join(package.folder, place)) for place in _USUAL_ENTRIES)
        files = (path for path in usual if path and path.rpartition("/")[2] != "package.json")
        return next((path for path in chain(built, files) if path is not None), None)

    def _built(self, folder: str, place: str) -> str | None:
        path = join(folder, place)
        if path in self.project.paths:
            return path
        plain = place.removeprefix("./")
        for built in _BUILT:
            if plain.startswith(built):
                rest = plain.removeprefix(built)
                stem = re.sub(r"\.d\.ts$|\.[^.]*$", "", rest) or rest
                return self._file_at(join(folder, "src", stem)) or self._file_at(join(folder, stem))
        return self._file_at(path) if not path.endswith(".json") else None


def _config_in(project: ProjectFiles, folder: str) -> ScriptConfig | None:
    paths = (join(folder, name) for name in ("tsconfig.json", "jsconfig.json"))
    path = next((path for path in paths if path in project.paths), None)
    return read_config(project, path) if path else None


def _packages(project: ProjectFiles) -> dict[str, ScriptPackage]:
    paths = project.by_name.get("package.json", ())
    packages = [read_package(project, path) for path in paths if "node_modules/" not in path]
    return {package.name: package for package in packages if package.name}


def _prototypes(outline: FileOutline) -> set[str]:
    return {
        outline.qualnames[place].rpartition(".")[0]
        for place, kind in enumerate(outline.kinds)
        if kind == "method" and outline.parents[place] < 0
    }


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


_SCRIPT_COMMENT = regex(r"//[^\n\"'`]*$|/\*.*?\*/", re.M | re.S)
_LAST_STRING = regex(r"""["'`]([^"'`]*)["'`][^"'`]*\Z""")
_CALLED = regex(r"import\s*\(")
_IMPORT_WORDS = regex(r"^import\b\s*(?:type\s+(?!from\b|,))?(?:typeof\s+)?")
_BRACES = regex(r"\{[^{}]*\}")
_REQUIRE = regex(
    r"(?:(?P<local>\{[^{}]*\}"
    r"|[\w$]+)\s*(?::[^=]*)?=\s*)?require\s*\(\s*[\"'`](?P<module>[^\"'`]+)[\"'`]\s*\)(?:\.(?P<member>[\w$]+))?"
)
_EXPORTS = regex(
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
    elif exports := _EXPORTS.match(text):
        yield from _script_exports(exports["name"] or "default", exports["value"].strip())
    elif required := _REQUIRE.match(text):
        local, module, member = (text or "" for text in required.groups())
        local = local.strip()
        if local.startswith("{"):
            for name, alias in aliases(local.strip("{} ").replace(":", " as ").partition("=")[0]):
                yield module, name, alias, 0, False
        else:
            yield module, member, "" if local == member else local, 0, False


def _script_import(text: str) -> Iterator[ImportParts]:
    if (module := _LAST_STRING.search(text)) is None:
        return
    if _CALLED.match(text):
        yield module[1], "", "", 0, False
        return
    if "require" in text and (required := _REQUIRE.match(_IMPORT_WORDS.sub("", text))):
        yield module[1], "", required["local"] or "", 0, False
        return
    head = _IMPORT_WORDS.sub("", text[: module.start()]).strip()
    if not (head := head.removesuffix("from").rstrip()):
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


def _script_exports(alias: str, value: str) -> Iterator[ImportParts]:
    if value.startswith("{"):
        for part in value.strip("{}").split(","):
            name, _, other = part.partition(":")
            name, other = name.strip(), other.strip() or name.strip()
            if name.isidentifier() and other.isidentifier():
                yield "", other, "" if name == other else name, 0, True
    elif value.startswith("require") and (module := _LAST_STRING.search(value)):
        yield module[1], "", alias, 0, True
    elif value.isidentifier():
        yield "", value, "" if alias == value else alias, 0, True


_ROUTES = regex(rb"\.(?P<verb>" + HTTP_VERBS + rb"|all)\(\s*[\"'`](?P<path>/[^\"'`\n]*)[\"'`]\s*,")

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
