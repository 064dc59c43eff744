"""The head of a rule file.

It looks like YAML and is not: Cursor writes ``globs: *.ts,src/**`` without quotes, which a
YAML reader takes for an alias. So lines of ``name: value`` and lists below a name are read,
and nothing else.
"""

from __future__ import annotations

import re

from smara.adapters.instructions.models import Head

_NAME = re.compile(r"([A-Za-z_][\w-]*)\s*:\s*(.*)")
_GLOBS = ("globs", "glob", "paths", "path", "applyto", "filematchpattern")
_MOST_LINES = 100


def read_head(lines: list[str]) -> Head:
    """The head a file begins with; an empty one when it has none."""
    if not lines or lines[0].strip() != "---":
        return Head()
    end = next(
        (at for at, line in enumerate(lines[1:_MOST_LINES], 1) if line.strip() in ("---", "...")),
        None,
    )
    if end is None:
        return Head()
    values = _values(lines[1:end])
    globs = tuple(glob for name in _GLOBS for each in values.get(name, ()) for glob in _split(each))
    always = " ".join(values.get("alwaysapply", ())).lower()
    return Head(
        " ".join(values.get("description", ())),
        tuple(dict.fromkeys(globs)),
        always == "true" or not globs,
        lines=end + 1,
    )


def _values(lines: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        named = _NAME.fullmatch(line.rstrip())
        if named:
            current = found.setdefault(named[1].lower(), [])
            if _plain(named[2]):
                current.append(_plain(named[2]))
        elif line.strip().startswith("- "):
            current.append(_plain(line.strip()[2:]))
        elif line.strip() and line[:1].isspace():
            current.append(_plain(line))
    return found


def _plain(value: str) -> str:
    text = value.strip()
    if text[:1] in (">", "|") and len(text) <= 2:
        return ""  # a folded text follows in the next lines
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _split(value: str) -> list[str]:
    """Globs of one line: ``*.ts,*.tsx``, ``["*.ts", "*.tsx"]``; commas in braces belong to the
    glob.
    """
    inner = (
        value.strip().removeprefix("[").removesuffix("]")
        if value.strip().startswith("[")
        else value
    )
    pieces, depth, start = [], 0, 0
    for at, character in enumerate(inner):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            pieces.append(inner[start:at])
            start = at + 1
    pieces.append(inner[start:])
    return [_plain(piece) for piece in pieces if _plain(piece)]
