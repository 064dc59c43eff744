"""Find what the files of a repository define, by name.

Decisions name code in plain words. What a name means is read from the tracked files themselves, in
about a second, whether or not the code is indexed.
"""

from __future__ import annotations

import os

from smara.actions.paths import is_prose
from smara.core.files import read_regular
from smara.core.git import ask_git
from smara.core.paths import FILE_EXTENSIONS
from smara.core.startup.regex import regex

_DEFINITION = regex(
    r"\b(?:def|class|function|func|fn|const|let|var|type|interface|struct|enum|trait|module)"
    r"[ \t]+(?:\([^)\n]{0,60}\)[ \t]*)?([A-Za-z_]\w{3,60})"
)
_MOST_SOURCES, _LONGEST_SOURCE, _MOST_READ = 4_000, 300_000, 24_000_000


def definitions(root: str) -> dict[str, list[str]]:
    """Return the names that tracked files define, with the files.

    Only so much is read as takes about a second.
    """
    answer = ask_git(root, "ls-files", "-z", timeout_seconds=10.0)
    paths = answer.text.split("\0") if answer is not None and answer.code == 0 else []
    found: dict[str, list[str]] = {}
    size = 0
    for path in paths[:_MOST_SOURCES]:
        if size > _MOST_READ or path.rpartition(".")[2].lower() not in FILE_EXTENSIONS:
            continue
        try:
            text = read_regular(os.path.join(root, path), _LONGEST_SOURCE).decode(
                "utf-8", "replace"
            )
        except OSError:
            continue
        size += len(text)
        found.setdefault(path.rpartition("/")[2], []).append(path)
        # A plan or a page shows code; it defines nothing.
        for name in set(_DEFINITION.findall(text)) if not is_prose(path) else ():
            found.setdefault(name, []).append(path)
    return found
