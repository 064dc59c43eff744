"""Print a JSON envelope, terminal tables or plain lines.

Control characters in stored text are escaped before they reach a terminal. Progress bars go
to standard error, and only when a person is watching.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, TextIO
from unicodedata import category

import click

from smara import texts
from smara.core.extract import one_line
from smara.core.ids import beginning_of
from smara.core.startup.regex import regex

SCHEMA = 1
_UNDERSCORE = regex(r"_(.)")
_SUBAGENT = regex(r"(/[a-z]+-[0-9a-f]{4})[0-9a-f]+$")
_JOINERS = "\u200c\u200d"  # scripts and emoji need them, and they move no other text
NOTHING_FOUND = "No matches. Try fewer or other words, or a part of a name."


def envelope(
    data: Any, warnings: Iterable[str] = (), error: Mapping[str, Any] | None = None
) -> None:
    """Print the one shape every ``--json`` answer has."""
    whole: dict[str, Any] = {"schema": SCHEMA, "data": data, "warnings": list(warnings)}
    if error is not None:
        whole["error"] = dict(error)
    # ASCII, so that lone surrogates and a terminal's encoding cannot break the answer.
    click.echo(json.dumps(whole, ensure_ascii=True, indent=2 if sys.stdout.isatty() else None))


def camel_case(record: Any) -> dict[str, Any]:
    """Return all fields of a record, under the names that JSON has."""
    return {
        _UNDERSCORE.sub(lambda match: match[1].upper(), name): value
        for name, value in asdict(record).items()
    }


def warn(warnings: Iterable[str]) -> None:
    """Print warnings to standard error."""
    for warning in warnings:
        complain(f"warning: {warning}")


def complain(text: str) -> None:
    """Print a text to standard error, its lines wrapped on a terminal."""
    for line in printable(text, sys.stderr).splitlines():
        click.echo(paragraph(line, "", "") if sys.stderr.isatty() else line, err=True)


def say(*lines: str, **style: Any) -> None:
    """Print lines, or an empty one, whatever their characters.

    ``style`` (of ``click.style``) is for terminals.
    """
    print_lines(lines or ("",), **style)


def print_lines(lines: Iterable[str], **style: Any) -> None:
    """Print lines as `say` does; none without any."""
    for line in lines:
        clean = printable(line)
        is_styled = clean and any(style.values()) and is_terminal()
        click.echo(click.style(clean, **style) if is_styled else clean)


def sentence(*texts: str, others: str = "") -> None:
    """Print sentences, wrapped on a terminal; ``others`` begins each further line."""
    say(*(paragraph(each, "", others) if is_terminal() else each for each in texts))


def printable(text: str, stream: TextIO | None = None) -> str:
    """Return the text without control sequences and unencodable characters."""
    shown = (
        each
        if each.isprintable() or each in "\n\t" or each in _JOINERS
        else " "
        if category(each) == "Zs"
        else "\ufffd"
        for each in text.replace("\r\n", "\n")
    )
    return encodable("".join(shown), stream)


def encodable(text: str, stream: TextIO | None = None) -> str:
    """Return the text without what a stream cannot write.

    By default standard output.
    """
    encoding = (stream or sys.stdout).encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding, "replace")


def is_terminal() -> bool:
    """Return True if standard output is a terminal."""
    return sys.stdout.isatty()


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    folding: Sequence[str] = (),
    wide: Sequence[str] = (),
) -> None:
    """Print a table on a terminal, tab-separated lines in a pipe.

    The columns in ``folding`` share the space that the others leave; numbers align right. Those in
    ``wide``, the least important last, are left out of a terminal that has no space for them.
    """
    if not is_terminal():
        for line in (columns, *rows):
            row(line)
        return
    for name in reversed(wide):
        if _least_width(columns, rows, folding) <= shutil.get_terminal_size().columns:
            break
        left = [position for position, each in enumerate(columns) if each != name]
        columns = [columns[each] for each in left]
        rows = [[line[each] for each in left] for line in rows]
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(
        box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold"
    )
    for position, name in enumerate(columns):
        is_number = bool(rows) and all(isinstance(each[position], int | float) for each in rows)
        drawn.add_column(
            name,
            overflow="fold",
            no_wrap=name not in folding,
            justify="right" if is_number else "left",
        )
    for each in rows:
        drawn.add_row(*(Text(printable(_cell(value))) for value in each))
    Console().print(drawn)


def _least_width(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], folding: Sequence[str]
) -> int:
    """Return the width at which a table can be read: 24 cells for a text that folds."""
    widest = [
        max(len(_cell(each)) for each in column) for column in zip(columns, *rows, strict=True)
    ]
    return sum(
        2 + (min(24, each) if name in folding else each)
        for name, each in zip(columns, widest, strict=True)
    )


def row(values: Iterable[Any]) -> None:
    """Print one tab-separated line, for a pipe."""
    cells = (_cell(value).replace("\t", " ").splitlines() for value in values)
    say("\t".join(map(" ".join, cells)))


def facts(rows: Sequence[tuple[str, str]]) -> None:
    """Print names and values: aligned on a terminal, tab-separated in a pipe.

    A terminal does not show the empty ones.
    """
    width = max(len(name) for name, _ in rows) + 2
    for name, value in rows:
        if not is_terminal():
            row((name, value))
        elif value:
            sentence(f"{name:<{width}}{value}", others=" " * width)


def _cell(value: Any) -> str:
    if isinstance(value, int) and is_terminal():
        return f"{value:,}"
    return "" if value is None else str(value)


def paragraph(text: str, first: str, others: str) -> str:
    """Return a text wrapped at the width of the terminal.

    ``first`` begins its first line and ``others`` each further one.
    """
    import textwrap

    return textwrap.fill(
        text,
        terminal_width(),
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
        break_long_words=False,
    )


def print_nearest(lines: Iterable[str]) -> None:
    """Print what came closest where nothing was found, beside the results."""
    for number, line in enumerate(lines):
        if number == 0:
            click.echo("Nearest, and probably not an answer:", err=True)
        click.echo(printable(paragraph(one_line(line, 200), "- ", "  "), sys.stderr), err=True)


def terminal_width(at_most: int = 100) -> int:
    """Return the width of the terminal, at most ``at_most``."""
    return max(20, min(at_most, shutil.get_terminal_size().columns))


moment = partial(texts.moment, is_local=True)
"""Return a time as text, in the local time zone."""


def when(milliseconds: int) -> str:
    """Return a time such as "3 hours ago".

    In a pipe, and after a week, it is the time itself.
    """
    seconds = time.time() - milliseconds / 1000
    if not is_terminal() or not 0 <= seconds < 7 * 86_400:
        return moment(milliseconds)[: 10 if is_terminal() else None]
    return f"{span} ago" if (span := texts.age(seconds)) else "just now"


def short(name: str) -> str:
    """Return the beginning of an id, in a pipe the whole."""
    return _SUBAGENT.sub(r"\1", beginning_of(name)) if is_terminal() else name


def message_head(message: Any) -> str:
    """Return who said a message or a hit, where and when."""
    return texts.message_head(
        message.role, short(message.thread_id), message.seq, message.created_at, is_local=True
    )


def size(count: float) -> str:
    """Return a number of bytes as text."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return ""


def count(number: int, noun: str, many: str | None = None) -> str:
    """Return a number with its noun.

    >>> count(1, "session"), count(20, "message"), count(2, "match", "matches")
    ('1 session', '20 messages', '2 matches')
    """
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


@contextmanager
def bar(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a progress bar; yield the function to call with (done, total).

    Without a terminal it yields ``None``.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),  # a file may be called "[bold].jsonl"
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(one_line(printable(label, sys.stderr), 50), total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
