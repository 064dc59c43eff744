"""The code that a text names: paths, places in files, and words that look like names in code.

Whether a name is one of this project's, the index says. Here it only has to look like one:
written as code, with an underscore or a hump in it, with dots between names or brackets behind.
"""

from __future__ import annotations

import re

from smara.codegraph.anchors.models import Named

MOST_NAMES = 24
_MOST_TEXT = 20_000
_NAME = r"[^\W\d]\w*"
_DOTTED = re.compile(rf"{_NAME}(?:(?:\.|::|#){_NAME})*")
_CODE = re.compile(r"`([^`\n]{1,200})`")
_PATH = re.compile(
    r"(?<![\w/.:@-])(?P<path>(?:\.{0,2}/)?[\w.@+-]+(?:/[\w.@+-]+)*\.[A-Za-z][A-Za-z0-9]{0,9})"
    r"(?::(?:(?P<first>\d{1,6})(?:-(?P<last>\d{1,6}))?|(?P<symbol>[^\W\d][\w.]*)))?(?![\w/])"
)
_WORD = re.compile(rf"(?<![\w./\\@-]){_NAME}(?:(?:\.|::){_NAME})*(?P<call>\(\))?")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")


def paths_in(text: str) -> list[Named]:
    """Paths and places in files that a text names: ``src/auth.py``, ``src/auth.py:10-20``,
    ``src/auth.py:login``.
    """
    found: dict[Named, None] = {}
    for match in _PATH.finditer(text[:_MOST_TEXT]):
        path = match["path"].removeprefix("./").rstrip(".")
        first = int(match["first"]) if match["first"] else None
        last = int(match["last"]) if match["last"] else first
        found[
            Named(path, match["symbol"] or "", first, last_line=last, commit=None, named_by="text")
        ] = None
    return list(found)[:MOST_NAMES]


def names_in(text: str) -> list[str]:
    """What looks like a name in code, without paths, those written as code first.

    >>> names_in("Call `Session.login` before refresh_token(); the loginForm and `run` are fine, e.g. here.")
    ['Session.login', 'run', 'refresh_token', 'loginForm']
    """  # noqa: E501
    cut = text[:_MOST_TEXT]
    found: dict[str, None] = {}
    for match in _CODE.finditer(cut):
        inside = match[1].strip().removesuffix("()").split("(")[0]
        if _DOTTED.fullmatch(inside):
            found[plain_name(inside)] = None
    plain = _PATH.sub(
        lambda match: " " if "/" in match["path"] or match["first"] else match[0],
        _CODE.sub(" ", cut),
    )
    for match in _WORD.finditer(plain):
        word = match[0].removesuffix("()")
        is_call = bool(match["call"])
        if is_call or "_" in word.strip("_") or _HUMP.search(word) or _is_qualified(word):
            found[plain_name(word)] = None
    return list(found)[:MOST_NAMES]


def plain_name(name: str) -> str:
    """A name with dots between its parts, whatever the language writes there."""
    return name.replace("::", ".").replace("#", ".")


def _is_qualified(word: str) -> bool:
    """``Session.login`` and not ``e.g`` or the end of a sentence without a space."""
    parts = plain_name(word).split(".")
    return (
        len(parts) > 1
        and all(len(part) > 2 for part in parts)
        and any(part[0].isupper() for part in parts[:-1])
    )
