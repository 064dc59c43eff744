"""Which candidates are still about something: their code is there, was changed on purpose, and not
long ago.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MOST_FILES = 20
"""A commit that touches more files speaks of none of them."""
MOST_YEARS = 6
"""Older than this, seen from the last commit, code has mostly been written anew; what its commits
say is past.
"""
_YEAR_MS = 365 * 86_400_000
_NOT_CODE = re.compile(
    r"(?:^|/)(?:docs?|documentation|examples?|samples?|\.github|\.circleci|\.azure|changelog\.d"
    r"|changes|news|changelog"
    r"|licenses?|scripts?|ci|hack|locale|translations?|i18n|fixtures?|snapshots?|__snapshots__"
    r"|testdata|vendor|third_party)/"
    r"|(?:^|/)(?:changelog|changes|history|authors|contributors|readme|license|licence|notice"
    r"|news|codeowners|security"
    r"|contributing|code_of_conduct|todo)[\w.-]*$|\.(?:md|rst|txt|po|pot|mo|lock|svg|png|jpg|gif"
    r"|ico|snap|toml|cfg|ini|ya?ml|json|csv|map)$"
    r"|(?:^|/)(?:go\.sum|go\.mod|pom\.xml|[^/]*\.gradle(?:\.kts)?|CMakeLists\.txt|setup\.py"
    r"|\.gitignore|\.gitattributes|\.mailmap|\.editorconfig|Makefile|Dockerfile)$",
    re.IGNORECASE,
)
_TEST = re.compile(
    r"(?:^|/)(?:[^/]*-)?(?:tests?|testing|spec|specs|__tests__|e2e|bench\w*|perf)/|^t/|(?:^"
    r"|/)(?:test_[^/]*|conftest)\.py$"
    r"|(?:^|/)[^/]*(?:_test|\.test|\.spec|-test|Test|Tests|IT|_spec)\.\w+$"
)


def is_code(path: str) -> bool:
    """Whether a file is part of the program: no test, no page of documentation, nothing
    generated.
    """
    return not _NOT_CODE.search(path) and not _TEST.search(path)


class Present:
    """The files that are there now. A file that was moved as a whole folder was, is found by the
    rest of its path.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._by_name: dict[str, list[str]] = {}
        for path in self._paths:
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)

    def find(self, path: str) -> str | None:
        """Where a file of old is now: ``requests/api.py`` may be ``src/requests/api.py``."""
        if path in self._paths:
            return path
        near = [
            each
            for each in self._by_name.get(path.rpartition("/")[2], ())
            if each.endswith(f"/{path}") or (path.endswith(f"/{each}") and "/" in each)
        ]
        return near[0] if len(near) == 1 else None


def about(files: Sequence[str], present: Present) -> tuple[tuple[str, ...], str | None]:
    """The files of the program that a commit is about and that are still there; or why there is
    nothing to say.
    """
    if len(files) > MOST_FILES:
        return (), f"it changed more than {MOST_FILES} files at once"
    code = tuple(path for path in files if is_code(path))
    if not code:
        return (), "it changed only tests, pages or settings"
    here = tuple(dict.fromkeys(found for path in code if (found := present.find(path))))
    if not here:
        return (), "its files are not there any more"
    return here, None


def is_long_ago(at_ms: int, newest_ms: int) -> bool:
    """Whether a commit lies too far behind the newest one."""
    return newest_ms - at_ms > MOST_YEARS * _YEAR_MS
