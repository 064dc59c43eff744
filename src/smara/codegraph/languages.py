"""Which language a file is written in, told by its name and, where that says nothing, by its first
line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from smara.codegraph.models import Language

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
