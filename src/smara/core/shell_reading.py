"""The files that a command line shows: some agents have no other way to open one."""

from __future__ import annotations

import re

_JOINTS = re.compile(r"&&|\|\||[;|\n]")
_READING = ("cat", "head", "tail", "nl", "less", "bat", "sed")
_WORD = re.compile(r"""'([^']*)'|"([^"$`\\]*)"|(\S+)""")
_NO_PATH = re.compile(r"[*?$`<>(){}\[\]!&\\'\"]")
_NAMED = re.compile(r"/|\.[A-Za-z]|^[A-Z]\w+$")  # a path, an ending, or a name such as Makefile
_MOST_CHARACTERS = 2_000
_MOST_FILES = 4


def files_shown(command: str) -> list[str]:
    """The files that a command line writes to the screen, as far as it names them plainly.

    >>> files_shown("cd web && sed -n '1,80p' src/cart.py"), files_shown("nl -ba src/a.py | head -n 20")
    (['src/cart.py'], ['src/a.py'])
    >>> files_shown("cat > src/a.py"), files_shown("sed -i s/a/b/ src/a.py"), files_shown("git log | head -5")
    ([], [], [])
    """  # noqa: E501
    found: list[str] = []
    for part in _JOINTS.split(command[:_MOST_CHARACTERS]):
        words = [next(filter(None, each), "") for each in _WORD.findall(part)]
        if (
            words
            and words[0].rpartition("/")[2] in _READING
            and ">" not in part
            and "<" not in part
        ):
            found += _paths(words[0].rpartition("/")[2], words[1:])
    return list(dict.fromkeys(found))[:_MOST_FILES]


def _paths(program: str, words: list[str]) -> list[str]:
    if program == "sed":
        if "-n" not in words:
            return []  # it may write as well as show
        words = [word for word in words if not word.startswith("-")][
            1:
        ]  # the first is what it does
    return [
        word
        for word in words
        if _NAMED.search(word) and word[0] != "-" and not _NO_PATH.search(word)
    ]
