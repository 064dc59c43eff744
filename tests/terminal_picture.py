"""Draw the terminal in the README: ``python -m tests.terminal_picture``.

The lines are those of `smara demo` in a terminal of 80 columns, with their colors. The test in
``tests/test_docs.py`` plays the story again and compares the text in the picture with it.
"""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.surfaces.shell import on_terminal, plain

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "terminal.svg"
FIRST, LAST = "A new session", "Each line has its source"
COLUMNS = 80
_VARIES = [
    (r"\b20\d\d-\d\d-\d\d\b", "DATE"),
    (r"#m-[a-z0-9]{4}\b", "#m-xxxx"),
]
# The columns are measured in em, so that every machine's own monospaced font fits the frame.
_FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>A terminal: TITLE</title>
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-ligatures: none;
}}
.{unique_id}-title {{ font-family: system-ui, sans-serif; font-size: 16px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
_THEME = TerminalTheme(
    (24, 26, 31),
    (222, 226, 232),
    [(60, 64, 72), (224, 108, 117), (152, 195, 121), (229, 192, 123),
     (97, 175, 239), (198, 120, 221), (86, 182, 194), (222, 226, 232)],
)  # fmt: skip


def scene() -> str:
    """Return the lines of the story that are shown, with their escapes."""
    lines = on_terminal("demo", "--fast", columns=COLUMNS).out.replace("\r\n", "\n").split("\n")
    first = next(number for number, line in enumerate(lines) if FIRST in line)
    last = next(number for number, line in enumerate(lines) if LAST in line)
    return "\n".join(lines[first : last + 1])


def draw(text: str, title: str = "smara demo") -> str:
    """Return the picture of lines."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(text), soft_wrap=True)
    drawn = console.export_svg(title=title, theme=_THEME, code_format=_FORMAT, unique_id="smara")
    return re.sub(r"[ \t]+$", "", drawn.replace("TITLE", title), flags=re.MULTILINE)


def lines_in(picture: str) -> list[str]:
    """Return the lines of text that a picture shows."""
    rows: dict[float, list[tuple[float, str]]] = {}
    root = ElementTree.fromstring(picture)
    for group in root.iter("{http://www.w3.org/2000/svg}g"):
        if group.get("class") == "smara-matrix":
            for text in group:
                place = float(text.get("x", 0)), text.text or ""
                rows.setdefault(float(text.get("y", 0)), []).append(place)
    joined = ("".join(text for _, text in sorted(rows[y])) for y in sorted(rows))
    return [" ".join(line.replace("\xa0", " ").split()) for line in joined if line.strip()]


def comparable(lines: list[str]) -> str:
    """Return lines without the dates and ids that differ from run to run."""
    text = "\n".join(" ".join(line.split()) for line in lines if line.strip())
    for pattern, sign in _VARIES:
        text = re.sub(pattern, sign, text)
    return text


def now() -> str:
    """Return what the story prints today, to compare."""
    return comparable(plain(scene()).split("\n"))


if __name__ == "__main__":
    PICTURE.write_text(draw(scene()), encoding="utf-8")
