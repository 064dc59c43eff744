"""Tell a file's kind and language, and load the language's grammar.

The name decides; where it says nothing, the first line does. Grammars and queries are loaded on
first use, with one parser for each thread.
"""

from __future__ import annotations

import importlib
import re
import threading
from dataclasses import dataclass
from functools import cache
from importlib import resources
from time import thread_time
from typing import TYPE_CHECKING

from smara.codegraph.models import FileKind, Language, SkipReason
from smara.core.extract import word_set

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node, Parser, Query


_CODE = word_set(
    "py pyi pyx pxd ts mts cts tsx js mjs cjs jsx rs go java c h cc cpp cxx hh hpp hxx inl ipp "
    "tpp cu cuh ino"
    " rb php kt kts swift cs fs fsx vb scala sc clj cljs cljc ex exs erl hrl hs lhs ml mli lua pl "
    "pm r jl dart"
    " groovy gradle zig nim cr d pas f f90 f95 for m mm sh bash zsh fish ps1 psm1 bat cmd sql vue "
    "svelte astro"
    " proto thrift graphql gql tf hcl cmake mk el lisp scm rkt asm s v sv vhd vhdl sol vy tcl awk "
    "coffee elm purs"
)
_PROSE = word_set("md markdown mdx rst txt adoc asciidoc org textile tex pod")
_DATA = word_set(
    "json jsonc json5 yaml yml toml ini cfg conf properties xml html htm xhtml css scss sass less "
    "csv tsv plist xsd xsl"
    " wsdl editorconfig ejs hbs j2 jinja jinja2 tmpl tpl mustache pug haml liquid erb ipynb"
)
_BINARY = word_set(
    "png jpg jpeg gif webp bmp ico icns tif tiff psd ai eps pdf doc docx xls xlsx ppt pptx odt "
    "ods odp zip gz tgz bz2"
    " xz zst 7z rar tar jar war ear whl egg so dylib dll exe a lib o obj pdb class pyc pyo pyd "
    "wasm woff woff2 ttf otf"
    " eot mp3 mp4 m4a wav ogg flac avi mov mkv webm db sqlite sqlite3 parquet arrow feather npy "
    "npz pkl pickle h5 hdf5"
    " pt pth onnx safetensors bin dat iso img dmg deb rpm apk ipa mo pack idx"
)
_PROSE_NAMES = word_set(
    "readme license licence copying notice authors contributors contributing changelog changes "
    "history news todo"
    " hacking"
)
_CODE_NAMES = word_set(
    "makefile gnumakefile dockerfile containerfile jenkinsfile vagrantfile rakefile gemfile "
    "podfile brewfile procfile"
    " justfile cmakelists.txt build workspace sconstruct sconscript meson.build"
)
_MADE_NAMES = word_set(
    "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lockb bun.lock "
    "poetry.lock pdm.lock uv.lock"
    " pipfile.lock cargo.lock composer.lock gemfile.lock go.sum go.work.sum mix.lock flake.lock "
    "pubspec.lock"
    " packages.lock.json podfile.lock gradle.lockfile deno.lock"
)
_MINIFIED_NAME = re.compile(
    r".*(?:[.-]min\.(?:js|css|mjs|cjs)|\.(?:bundle|chunk)\.js|\.(?:js|css|ts)\.map|\.map)$"
)


def kind_of(path: str) -> FileKind | SkipReason | None:
    """What a file is by its name: a kind, a reason to leave it out, or ``None`` when its first line
    has to say.

    >>> [kind_of(path) for path in ("a/b.py", "README", "logo.png", "uv.lock", "app.min.js", "run")]
    ['code', 'prose', 'binary', 'generated', 'minified', None]
    """
    name = path.rpartition("/")[2].lower()
    if name in _MADE_NAMES:
        return "generated"
    if _MINIFIED_NAME.match(name):
        return "minified"
    if name in _CODE_NAMES:
        return "code"
    stem, dot, extension = name.rpartition(".")
    if not stem and dot:
        return "data" if extension in _DATA else "unknown"
    if not dot:
        return "prose" if name in _PROSE_NAMES else None
    if extension in _CODE:
        return "code"
    if extension in _PROSE:
        return "prose"
    if extension in _DATA or name == "go.mod":
        return "data"
    if extension in _BINARY:
        return "binary"
    return "prose" if stem in _PROSE_NAMES else "unknown"


_SUFFIXES: dict[str, Language] = {
    "py": "python", "pyi": "python", "pyw": "python",
    "ts": "typescript", "mts": "typescript", "cts": "typescript", "tsx": "tsx",
    "js": "javascript", "mjs": "javascript", "cjs": "javascript", "jsx": "javascript",
    "rs": "rust", "go": "go", "java": "java",
    "c": "c", "h": "c",
    "cc": "cpp", "cpp": "cpp", "cxx": "cpp", "c++": "cpp", "hh": "cpp", "hpp": "cpp", "hxx": "cpp",
    "h++": "cpp",
    "ipp": "cpp", "inl": "cpp", "tpp": "cpp", "cu": "cpp", "cuh": "cpp",
}  # fmt: skip
_NAMES: dict[str, Language] = {"SConstruct": "python", "SConscript": "python", "wscript": "python"}
_SHEBANG = re.compile(rb"#!.*\b(?:(python|pypy)[\d.]*|(node|nodejs|bun)|(deno|ts-node|tsx))\b")


@dataclass(frozen=True, slots=True)
class Traits:
    """What the queries of a language cannot say."""

    separators: tuple[bytes, ...]
    """What stands between a receiver and a name."""
    selves: frozenset[str]
    """What an object calls itself."""
    test_names: re.Pattern[str] | None = None
    """Functions of a test file that are tests by their names."""
    test_marks: re.Pattern[bytes] | None = None
    """What stands before a function that is a test, wherever it is."""
    types_first: bool = False
    """A type is written before the variable."""


_NONE: frozenset[str] = frozenset()
_SCRIPT = Traits((b".",), frozenset({"this"}))
TRAITS: dict[Language, Traits] = {
    "python": Traits((b".",), frozenset({"self", "cls"}), re.compile(r"test")),
    "typescript": _SCRIPT,
    "tsx": _SCRIPT,
    "javascript": _SCRIPT,
    "rust": Traits(
        (b"::", b"."), frozenset({"self"}),
        test_marks=re.compile(rb"#\[(?:[\w:]+::)?(?:test|rstest|bench)\b")),
    "go": Traits((b".",), _NONE, re.compile(r"(?:Test|Benchmark|Fuzz|Example)(?![a-z])")),
    "java": Traits(
        (b".", b"::"), frozenset({"this"}), types_first=True,
        test_marks=re.compile(rb"@(?:Test|ParameterizedTest|RepeatedTest|TestFactory|Property)\b"),
    ),
    "c": Traits((b"->", b"."), _NONE, re.compile(r"test_"), types_first=True),
    "cpp": Traits((b"->", b"::", b"."), frozenset({"this"}), re.compile(r"test_"),
    types_first=True),
}  # fmt: skip


def language_of(path: str, first_line: bytes = b"") -> Language | None:
    """Return the language of a file, or ``None`` for one that is not read as code.

    ``.h`` is read as C; a header that speaks of classes or templates is told by
    ``header_language``.
    """
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    if dot and stem:
        return _SUFFIXES.get(suffix) or _SUFFIXES.get(suffix.lower())
    if name in _NAMES:
        return _NAMES[name]
    found = _SHEBANG.match(first_line)
    if found is None:
        return None
    return "python" if found[1] else "javascript" if found[2] else "typescript"


_CPP_HEADER = re.compile(
    rb"^[ \t]*(?:class\s+\w[^;{]{0,200}[{:]|namespace\s+\w|template\s*<|public:|private:|using\s)",
    re.M,
)


def header_language(data: bytes) -> Language:
    """Return whether a ``.h`` file is written in C or in C++."""
    return "cpp" if _CPP_HEADER.search(data, 0, 65_536) else "c"


_GRAMMARS: dict[Language, tuple[str, str]] = {
    "python": ("tree_sitter_python", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "javascript": ("tree_sitter_javascript", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "go": ("tree_sitter_go", "language"),
    "java": ("tree_sitter_java", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
}
_QUERIES: dict[Language, tuple[str, ...]] = {
    "typescript": ("ecmascript", "typescript"),
    "tsx": ("ecmascript", "typescript", "tsx"),
    "javascript": ("ecmascript", "javascript"),
    "cpp": ("c", "cpp"),
}
"""What the dialects of one language share is written once."""
DEEPEST_LEVEL = 2_000
"""Beyond 65,535 levels a search takes minutes; nobody writes code nested in two thousand."""
MOST_CHILDREN_OF_AN_ERROR = 10_000
"""The search looks at all children of an error for each of them; with 100,000 of them that takes a
minute.
"""
_PIECE = 16_384
_BASE_SECONDS = 1.0
_SECONDS_PER_BYTE = 2e-6
_HERE = threading.local()


@cache
def grammar(language: Language) -> Grammar:
    """Return the grammar of a language."""
    from tree_sitter import Language as Grammar

    module, function = _GRAMMARS[language]
    return Grammar(getattr(importlib.import_module(module), function)())


@cache
def query(language: Language) -> Query:
    """Return what is looked for in a language: all of it in one query, so that the tree is walked
    once.
    """
    from tree_sitter import Query

    folder = resources.files("smara.codegraph") / "queries"
    parts = _QUERIES.get(language, (language,))
    return Query(
        grammar(language),
        "".join((folder / f"{part}.scm").read_text(encoding="utf-8") for part in parts),
    )


def parse(language: Language, data: bytes) -> tuple[Node, bool]:
    """Return the tree of a text and whether all of the text is in it.

    Text that is no code at all can take time that grows with its square: 120 kB of ``a?b:`` read as
    Python take a minute. A text is therefore handed over piece by piece, and after a second (two
    more for each megabyte, fifteen times what code takes) it is said to have ended.
    """
    if len(data) <= _PIECE:
        return parser(language).parse(data).root_node, True
    deadline = thread_time() + _BASE_SECONDS + _SECONDS_PER_BYTE * len(data)
    end = len(data)

    def read(offset: int, _point: object) -> bytes:
        nonlocal end
        if offset >= end:
            return b""
        if thread_time() > deadline:
            end = offset
            return b""
        return data[offset : offset + _PIECE]

    return parser(language).parse(read).root_node, end == len(data)


def parser(language: Language) -> Parser:
    """Return this thread's parser of a language; a parser must not be used by two threads at
    once.
    """
    from tree_sitter import Parser

    parsers: dict[Language, Parser] = _HERE.__dict__.setdefault("parsers", {})
    found = parsers.get(language)
    if found is None:
        found = parsers[language] = Parser(grammar(language))
    return found


def captures(language: Language, root: Node) -> dict[str, list[Node]]:
    """Return what the query finds under a node, by name and in no order; nothing in a hopeless
    tangle of errors.
    """
    from tree_sitter import QueryCursor

    if root.has_error and _is_hopeless(root):
        return {}
    cursor = QueryCursor(query(language))
    cursor.set_max_start_depth(DEEPEST_LEVEL)
    return cursor.captures(root)


def _is_hopeless(root: Node) -> bool:
    """Say whether an error under a node has so many children that a search would not come back."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error and node.child_count > MOST_CHILDREN_OF_AN_ERROR:
            return True
        waiting.extend(child for child in node.children if child.has_error)
    return False
