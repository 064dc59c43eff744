"""Classify a path by its name: test, generated, output or instruction file.

Instruction files (AGENTS.md, CLAUDE.md, .cursorrules) stand in the table of hosts.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

from smara.core.extract import word_set
from smara.core.host_table import INSTRUCTION_FILES, INSTRUCTION_FOLDERS
from smara.core.startup.regex import regex

GENERATED_FOLDERS = word_set(
    ".git .hg .svn .jj CVS node_modules bower_components jspm_packages .pnpm-store .yarn "
    "__pycache__ .venv .tox"
    " .nox .eggs .mypy_cache .pytest_cache .ruff_cache .hypothesis .ipynb_checkpoints .cache "
    ".parcel-cache .turbo"
    " .next .nuxt .output .svelte-kit .angular .gradle .idea .vs .terraform .serverless .aws-sam "
    ".dart_tool .bundle"
    " .stack-work .direnv .pixi site-packages DerivedData .ccls-cache .clangd htmlcov .nyc_output "
    "elm-stuff"
    " __pypackages__ .smara"
)
"""Folders that machines make and people do not read, whatever lies in them."""

OUTPUT_FOLDERS = word_set(
    "build _build dist out target bin obj coverage vendor third_party third-party Pods Carthage "
    "env venv bazel-out"
)
"""Folders that usually hold what is built or brought along; one with tracked files in it is source
like any other.
"""

FILE_EXTENSIONS = word_set(
    "py pyi ts tsx js jsx mjs cjs mts cts md mdx mdc json jsonc json5 yaml yml toml ini cfg conf"
    " lock sh bash zsh fish ps1 bat c h cc cpp hpp cs go rs rb php java kt kts swift m mm scala ex"
    " exs heex erl hs lua r jl dart sql html css scss sass less vue svelte astro xml csv txt env"
    " proto graphql gql tf tfvars ipynb gradle cmake prisma example template"
)
"""Ends of names that make a path of a text a file, where nothing else shows it."""
PATH_IN_TEXT = regex(
    r"(?<![\w/.:@-])(?P<path>(?:\.{0,2}/)?[\w.@+-]+(?:/[\w.@+-]+)*\.[A-Za-z][A-Za-z0-9]{0,9})"
    r"(?::(?:(?P<first>\d{1,6})(?:-(?P<last>\d{1,6}))?|(?P<symbol>[^\W\d][\w.]*)))?(?![\w/])"
)
"""A path in a text, perhaps with lines or a name in it: ``src/auth.py:10-20``."""

_TEST_PATH = regex(
    r"(?:^|/)(?:tests?|testing|__tests__|specs?|e2e)/"
    r"|(?:^|/)(?:test_[^/]*|conftest\.py|[^/]*[._-](?:tests?|spec)\.\w+|[^/]*(?:Tests?|IT"
    r"|TestCase)\.(?:java|kt|cs))$"
)


def is_test_path(path: str) -> bool:
    """Return True if a path looks like a test's.

    >>> [is_test_path(path) for path in ("tests/shop.py", "src/shop.test.ts", "src/contest.py", "a/ShopIT.java")]
    [True, True, False, True]
    """  # noqa: E501
    return _TEST_PATH.search(path) is not None


def is_generated_folder(name: str) -> bool:
    """Return True if folders of this name are generated."""
    return name in GENERATED_FOLDERS or name.endswith(
        (".egg-info", ".dist-info", ".xcodeproj", ".xcassets")
    )


def is_output_folder(name: str) -> bool:
    """Return True if folders of this name usually hold output."""
    return name in OUTPUT_FOLDERS


_NOTES = ("memory.md", "skill.md")
"""What hosts write and read by themselves, wherever it lies."""


def host_of(path: str) -> tuple[str, str] | None:
    """Return an instruction file's host and folder, or ``None``.

    >>> host_of("packages/app/CLAUDE.md")
    ('claude', 'packages/app')
    """
    parts = path.split("/")
    for depth in range(len(parts)):
        below = "/".join(parts[depth:])
        for host, pattern in INSTRUCTION_FILES:
            if fnmatchcase(below, pattern.replace("/**/", "/*")):
                return host, "/".join(parts[:depth])
    return None


@lru_cache(maxsize=1_024)
def is_instruction_file(path: str) -> bool:
    """Return True if a path is an instruction file of agents.

    In whatever letters and slashes.

    >>> is_instruction_file("packages/app/CLAUDE.md"), is_instruction_file("src/claude.py")
    (True, False)
    """
    name = path.replace("\\", "/").casefold()
    if name.rpartition("/")[2] in _NOTES or any(
        f"/{folder}/" in f"/{name}" for folder in INSTRUCTION_FOLDERS
    ):
        return True
    parts = name.split("/")
    below = ["/".join(parts[depth:]) for depth in range(len(parts))]
    return any(fnmatchcase(each, pattern) for each in below for pattern in _FOLDED)


_FOLDED = tuple(pattern.replace("/**/", "/*").casefold() for _, pattern in INSTRUCTION_FILES)
