"""Describe a language by one spec.

Tell a file's language and kind from its name.

A language is a `LanguageSpec` in a module of ``languages/``, with its query beside it. Everything
that differs between languages is a field of the spec, so that no other module names a language.
The specs are loaded on first use; one without rules, reader, grammar or query is refused by name.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from smara.codegraph.models import FileKind, Language, SkipReason
from smara.core.extract import word_set
from smara.core.startup.record import dataclass
from smara.core.startup.regex import re, regex
from smara.errors import ConfigError

_FOLDER = "smara.codegraph.languages"

ImportParts = tuple[str, str, str, int, bool]
"""Module, name, alias, level, and True for what is passed on; see `models.Import`."""


class RoutePattern(NamedTuple):
    """The form of a web route, and its mark in files."""

    marks: tuple[bytes, ...]
    """Found much faster than a route; a file with none of them is not searched."""
    pattern: re.Pattern[bytes]


HTTP_VERBS = rb"get|post|put|patch|delete|head|options"
QUOTED_PATHS = (b'("/', b"('/", b"(`/", b'(r"/', b"(r'/")
"""One of these stands wherever a call or a decorator names a route."""


def _missing(*_: object) -> NoReturn:
    raise AssertionError("a spec without this is refused when the languages are loaded")


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageSpec:
    """All that the code graph knows of one language."""

    name: Language
    extensions: tuple[str, ...]
    """Endings of its files, without the dot."""
    grammar: tuple[str, str] = ("", "")
    """The module of a tree-sitter grammar, and its function that returns the language."""
    queries: tuple[str, ...]
    """Names of the ``.scm`` files that are read as one query; dialects share some."""
    rules: Callable[..., Any] = _missing
    """A subclass of `resolve.rules.LanguageRules`. Languages with the same one see each other."""
    read_imports: Callable[[str], Iterator[ImportParts]] = _missing
    """Read the names that the text of one import statement brings in."""
    separators: tuple[bytes, ...] = (b".",)
    """What stands between a receiver and a name."""
    selves: frozenset[str] = frozenset()
    """What an object calls itself."""

    file_names: tuple[str, ...] = ()
    """Files without an ending that are written in it."""
    shebangs: tuple[str, ...] = ()
    """Programs that a first line names, without their version."""
    dialect: Callable[[str, bytes], Language] | None = None
    """Name the language of a file of these endings by its path and content."""
    prepare: Callable[[bytes], bytes] | None = None
    """Blank what the grammar cannot read; the length of the text stays."""

    test_names: re.Pattern[str] | None = None
    """Functions of a test file that are tests by their names."""
    test_marks: re.Pattern[bytes] | None = None
    """What stands before a function that is a test, wherever it is."""
    tested_extensions: tuple[str, ...] = ()
    """Endings of the file that a test file is named after; its own if none are given."""
    has_titled_tests: bool = False
    """Tests have titles: ``describe("send", …)`` defines nothing that is called ``send``."""

    types_first: bool = False
    """A type is written before the variable."""
    has_docstrings: bool = False
    """A definition says what it is for in a string, not in the comment above it."""
    ignores_trailing_commas: bool = False
    """A comma before a closing bracket says nothing."""
    has_macros: bool = False
    """A name in capitals may be any header's macro."""
    has_untyped_parameters: bool = False
    """A parameter without a type hides what the file calls so."""
    has_overloads: bool = False
    """Several definitions of one name hold at once: by parameters, or by what is built."""
    has_members_outside: bool = False
    """A member may stand in a namespace, outside of its class, and is no name of the namespace."""
    receiver_node: str = ""
    """The type of node of a method that names its class in a field ``receiver``."""
    class_opening: bytes = b""
    """Where the head of a class ends that has no field ``body``."""
    routes: tuple[RoutePattern, ...] = ()
    """What its web routes look like; the first whose mark is in the file holds."""

    manifests: tuple[str, ...] = ()
    """Files that say how modules are found. A change of one resolves the whole tree again."""
    module_files: tuple[str, ...] = ()
    """Files by whose coming and going modules get other names."""
    doors: tuple[str, ...] = ()
    """Files that speak for their folder, the best first."""
    entry_files: tuple[tuple[str, str], ...] = ()
    """Files at which a program is entered, each with the reason."""


@cache
def languages() -> Mapping[Language, LanguageSpec]:
    """Return all languages by name, in a stable order.

    Raises:
        ConfigError: If a spec lacks its rules, its import reader, its grammar or its query, or
            claims the name or a file ending of another.
    """
    specs: dict[Language, LanguageSpec] = {}
    endings: dict[str, Language] = {}
    package = importlib.import_module(_FOLDER)
    for name in sorted(each.name for each in pkgutil.iter_modules(package.__path__)):
        module = importlib.import_module(f"{_FOLDER}.{name}")
        for spec in getattr(module, "LANGUAGES", ()):
            if lacking := _lacking(spec):
                raise ConfigError(
                    f"The language {spec.name!r} of {module.__file__} {lacking}",
                    language=spec.name,
                )
            for ending in spec.extensions:
                if endings.setdefault(ending, spec.name) != spec.name or spec.name in specs:
                    raise ConfigError(
                        f"The language {spec.name!r} claims the name or the ending {ending!r} of "
                        f"{endings[ending]!r}. Give each ending to one language.",
                        language=spec.name,
                    )
            specs[spec.name] = spec
    return specs


def _lacking(spec: LanguageSpec) -> str:
    """Return what a spec lacks and how to mend it, or nothing."""
    module = spec.grammar[0]
    absent = [name for name in spec.queries if query_file(name) is None]
    needs = {
        "has no rules for resolving names. Give it `rules`, a subclass of LanguageRules.": (
            spec.rules is not _missing
        ),
        "has no reader of imports. Give it `read_imports`.": spec.read_imports is not _missing,
        "has no grammar. Give it `grammar`, a module and its function.": all(spec.grammar),
        f"needs the grammar {module}. Install its wheel.": (
            module and importlib.util.find_spec(module) is not None
        ),
        f"has no query. Put {', '.join(absent) or spec.name}.scm beside it.": (
            spec.queries and not absent
        ),
    }
    return next((lack for lack, is_met in needs.items() if not is_met), "")


def query_file(name: str) -> Path | None:
    """Return where a query lies, or ``None``."""
    folders = importlib.import_module(_FOLDER).__path__
    paths = (Path(folder) / f"{name}.scm" for folder in folders)
    return next((path for path in paths if path.is_file()), None)


class LanguageTables(NamedTuple):
    """The tables that follow from all specs."""

    by_extension: dict[str, LanguageSpec]
    by_file_name: dict[str, LanguageSpec]
    by_shebang: tuple[tuple[re.Pattern[bytes], LanguageSpec], ...]
    manifests: frozenset[str]
    module_files: frozenset[str]
    """With the manifests: files by which modules get their names."""
    doors: tuple[str, ...]
    entry_files: dict[str, str]


@cache
def tables() -> LanguageTables:
    """Return the tables that are derived from the specs."""
    specs = languages().values()
    manifests = frozenset(name for spec in specs for name in spec.manifests)
    return LanguageTables(
        {ending: spec for spec in specs for ending in spec.extensions},
        {name: spec for spec in specs for name in spec.file_names},
        tuple(
            (re.compile(rf"#!.*\b(?:{'|'.join(spec.shebangs)})[\d.]*\b".encode()), spec)
            for spec in specs
            if spec.shebangs
        ),
        manifests=manifests,
        module_files=manifests.union(*(spec.module_files for spec in specs)),
        doors=tuple(dict.fromkeys(name for spec in specs for name in spec.doors)),
        entry_files={name: why for spec in specs for name, why in spec.entry_files},
    )


def language_of(path: str, data: bytes = b"") -> Language | None:
    """Return a file's language, or ``None`` if not code.

    The name decides; where it says nothing, the first line of ``data`` does. A language with
    dialects looks at the content besides: ``.h`` is C or C++.
    """
    name = path.rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    languages = tables()
    if dot and stem:
        spec = languages.by_extension.get(ending) or languages.by_extension.get(ending.lower())
    else:
        line = data[:200].split(b"\n", 1)[0]
        spec = languages.by_file_name.get(name) or next(
            (spec for program, spec in languages.by_shebang if program.match(line)), None
        )
    if spec is None:
        return None
    return spec.dialect(path, data) if spec.dialect is not None else spec.name


def aliases(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and aliases of a list: ``a, b as c``."""
    for part in text.split(","):
        words = part.split()
        if len(words) >= 3 and words[-2] == "as":
            yield " ".join(words[:-2]), words[-1]
        elif words:
            yield " ".join(words), ""


_ENDINGS: dict[str, FileKind | SkipReason] = {
    **dict.fromkeys(
        word_set(
            "png jpg jpeg gif webp bmp ico icns tif tiff psd ai eps pdf doc docx xls xlsx ppt "
            "pptx odt ods odp zip gz tgz bz2 xz zst 7z rar tar jar war ear whl egg so dylib dll "
            "exe a lib o obj pdb class pyc pyo pyd wasm woff woff2 ttf otf eot mp3 mp4 m4a wav "
            "ogg flac avi mov mkv webm db sqlite sqlite3 parquet arrow feather npy npz pkl "
            "pickle h5 hdf5 pt pth onnx safetensors bin dat iso img dmg deb rpm apk ipa mo pack "
            "idx"
        ),
        "binary",
    ),
    **dict.fromkeys(
        word_set(
            "json jsonc json5 yaml yml toml ini cfg conf properties xml html htm xhtml css scss "
            "sass less csv tsv plist xsd xsl wsdl editorconfig ejs hbs j2 jinja jinja2 tmpl tpl "
            "mustache pug haml liquid erb ipynb"
        ),
        "data",
    ),
    **dict.fromkeys(
        word_set("md markdown mdx rst txt adoc asciidoc org textile tex pod"),
        "prose",
    ),
    # Code that no grammar here reads; it is searched as text.
    **dict.fromkeys(
        word_set(
            "pyx pxd ino rb php kt kts swift cs fs fsx vb scala sc clj cljs cljc ex exs erl hrl "
            "hs lhs ml mli lua pl pm r jl dart groovy gradle zig nim cr d pas f f90 f95 for m "
            "mm sh bash zsh fish ps1 psm1 bat cmd sql vue svelte astro proto thrift graphql gql "
            "tf hcl cmake mk el lisp scm rkt asm s v sv vhd vhdl sol vy tcl awk coffee elm purs"
        ),
        "code",
    ),
}
_NAMES: dict[str, FileKind | SkipReason] = {
    **dict.fromkeys(
        word_set(
            "makefile gnumakefile dockerfile containerfile jenkinsfile vagrantfile rakefile "
            "gemfile podfile brewfile procfile justfile cmakelists.txt build workspace "
            "sconstruct sconscript meson.build"
        ),
        "code",
    ),
    **dict.fromkeys(
        word_set(
            "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lockb bun.lock "
            "poetry.lock pdm.lock uv.lock pipfile.lock cargo.lock composer.lock gemfile.lock "
            "go.sum go.work.sum mix.lock flake.lock pubspec.lock packages.lock.json "
            "podfile.lock gradle.lockfile deno.lock"
        ),
        "generated",
    ),
}
_PROSE_NAMES = word_set(
    "readme license licence copying notice authors contributors contributing changelog changes "
    "history news todo hacking"
)
_MINIFIED_NAME = regex(
    r".*(?:[.-]min\.(?:js|css|mjs|cjs)|\.(?:bundle|chunk)\.js|\.(?:js|css|ts)\.map|\.map)$"
)


def kind_of(path: str) -> FileKind | SkipReason | None:
    """Return a file's kind, a reason to skip it, or ``None``.

    With ``None`` the first line has to say.

    >>> [kind_of(path) for path in ("a/b.py", "README", "logo.png", "uv.lock", "app.min.js", "run")]
    ['code', 'prose', 'binary', 'generated', 'minified', None]
    """
    name = path.rpartition("/")[2].lower()
    if name in _NAMES or _MINIFIED_NAME.match(name):
        return _NAMES.get(name, "minified")
    stem, dot, ending = name.rpartition(".")
    if not stem and dot:
        return "data" if _ENDINGS.get(ending) == "data" else "unknown"
    if not dot:
        return "prose" if name in _PROSE_NAMES else None
    if ending in tables().by_extension:
        return "code"
    other: FileKind | SkipReason = "prose" if stem in _PROSE_NAMES else "unknown"
    return _ENDINGS.get(ending, "data" if name in tables().manifests else other)
