"""The rule file of Cursor: what is known here, where builds whose hooks cannot pass it on still
read it.

One file, made by ``smara setup cursor`` and gone with ``--remove``; it is kept out of git
by the repository's own exclude file. Whoever writes the brief writes it anew. A file that
is not there is not made: taking it away is how a person says no.
"""

from __future__ import annotations

import os

PLACE = os.path.join(".cursor", "rules", "smara.mdc")
_HEAD = """\
---
description: What Smara knows about this repository
globs:
alwaysApply: true
---
<!-- Written by `smara setup cursor` and its hooks; `smara setup cursor --remove` takes it away. -->
"""
_NOTHING = "Nothing is known about this repository yet.\n"


def rule_of(text: str = "") -> str:
    """The file's content; a text that would end its head or its comment cannot."""
    return _HEAD + (text.strip() + "\n" if text.strip() else _NOTHING)


def is_rule(content: str) -> bool:
    """Whether a file is the one that we wrote."""
    return content.startswith(_HEAD)


def has_rule(root: str) -> bool:
    """Whether a repository has the file, and it is ours."""
    try:
        with open(os.path.join(root, PLACE), encoding="utf-8", errors="replace") as file:
            return is_rule(file.read(len(_HEAD)))
    except OSError:
        return False


def refresh_rule(root: str, text: str) -> bool:
    """Write what is known now into a rule file that is there and ours; whether it was changed.
    Never raises.
    """
    path = os.path.join(root, PLACE)
    wanted = rule_of(text)
    try:
        with open(path, encoding="utf-8") as file:
            before = file.read()
        if not is_rule(before) or before == wanted:
            return False
        hidden = f"{path}.{os.getpid()}"
        with open(hidden, "w", encoding="utf-8") as file:
            file.write(wanted)
        os.replace(hidden, path)
    except (OSError, ValueError):
        return False
    return True
