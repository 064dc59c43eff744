"""What a path says of a file or a folder by its name alone: that it is a test, or nobody's
handwriting.
"""

from __future__ import annotations

import re

from smara.core.wordlists import word_set

MADE_FOLDERS = word_set(
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
"""Folders that machines make and nobody reads, whatever lies in them."""

OUTPUT_FOLDERS = word_set(
    "build _build dist out target bin obj coverage vendor third_party third-party Pods Carthage "
    "env venv bazel-out"
)
"""Folders that usually hold what is built or brought along; one with tracked files in it is source
like any other.
"""

_TEST_PATH = re.compile(
    r"(?:^|/)(?:tests?|testing|__tests__|specs?|e2e)/"
    r"|(?:^|/)(?:test_[^/]*|conftest\.py|[^/]*[._-](?:tests?|spec)\.\w+|[^/]*(?:Tests?|IT"
    r"|TestCase)\.(?:java|kt|cs))$"
)


def is_test_path(path: str) -> bool:
    """Whether a path looks like that of a test.

    >>> [is_test_path(path) for path in ("tests/shop.py", "src/shop.test.ts", "src/contest.py", "a/ShopIT.java")]
    [True, True, False, True]
    """  # noqa: E501
    return _TEST_PATH.search(path) is not None


def is_made_name(name: str) -> bool:
    """Whether folders of this name are a machine's."""
    return name in MADE_FOLDERS or name.endswith(
        (".egg-info", ".dist-info", ".xcodeproj", ".xcassets")
    )


def is_output_name(name: str) -> bool:
    """Whether folders of this name usually hold what is built or brought along."""
    return name in OUTPUT_FOLDERS
