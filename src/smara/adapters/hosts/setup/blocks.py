"""A block of ours at the end of a text file: TOML and Markdown, between two marks, the rest
untouched.
"""

from __future__ import annotations

import re
from typing import Literal

Form = Literal["toml", "markdown"]
_MARKS: dict[Form, tuple[str, str]] = {
    "toml": ("# smara:begin v1 (managed by `smara setup`)", "# smara:end"),
    "markdown": ("<!-- smara:begin v1 (managed by `smara setup`) -->", "<!-- smara:end -->"),
}
_ANY: dict[Form, re.Pattern[str]] = {
    "toml": re.compile(r"(?:\r?\n)?^# smara:begin[^\n]*\n.*?^# smara:end[^\n]*\n?", re.S | re.M),
    "markdown": re.compile(
        r"(?:\r?\n)?^<!-- smara:begin[^\n]*\n.*?^<!-- smara:end -->[^\n]*\n?", re.S | re.M
    ),
}


def put_block(text: str, form: Form, body: str) -> str:
    """The text with the block at its end; one that was there is replaced."""
    text = cut_block(text, form)
    newline = "\r\n" if "\r\n" in text else "\n"
    begin, end = _MARKS[form]
    lines = [begin, *body.strip("\n").split("\n"), end]
    gap = "" if not text or text == "\ufeff" else newline if text.endswith("\n") else newline * 2
    return text + gap + newline.join(lines) + newline


def cut_block(text: str, form: Form) -> str:
    """The text without the block."""
    return _ANY[form].sub("", text)


def has_block(text: str, form: Form) -> bool:
    """Whether there is a block of ours."""
    return _ANY[form].search(text) is not None
