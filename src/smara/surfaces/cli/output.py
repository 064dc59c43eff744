"""Print a JSON envelope, terminal tables or plain lines.

Control characters in stored text are escaped before they reach a terminal. Progress bars go
to standard error, and only when a person is watching.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TextIO
from unicodedata import category

import click

from smara.messages.models import Compaction, Message, Part, Thread

SCHEMA = 1
_JOINERS = "\u200c\u200d"  # scripts and emoji need them, and they move no other text


def envelope(
    data: Any, warnings: Iterable[str] = (), error: Mapping[str, Any] | None = None
) -> None:
    """Print the one shape every ``--json`` answer has."""
    whole: dict[str, Any] = {"schema": SCHEMA, "data": data, "warnings": list(warnings)}
    if error is not None:
        whole["error"] = dict(error)
    # ASCII, so that lone surrogates and a terminal's encoding cannot break the answer.
    click.echo(json.dumps(whole, ensure_ascii=True, indent=2 if sys.stdout.isatty() else None))


def warn(warnings: Iterable[str]) -> None:
    """Print warnings to standard error."""
    for warning in warnings:
        click.echo(f"warning: {printable(warning, sys.stderr)}", err=True)


def say(text: str = "", **style: Any) -> None:
    """Print a line, whatever its characters; ``style`` (of ``click.style``) is for terminals."""
    clean = printable(text)
    click.echo(click.style(clean, **style) if any(style.values()) and is_terminal() else clean)


def printable(text: str, stream: TextIO | None = None) -> str:
    """The text as a terminal can show it: no control sequences, no unencodable characters."""
    return encodable("".join(map(_shown, text.replace("\r\n", "\n"))), stream)


def encodable(text: str, stream: TextIO | None = None) -> str:
    """The text without what the stream (standard output, if not said) cannot write."""
    encoding = (stream or sys.stdout).encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding, "replace")


def _shown(character: str) -> str:
    if character.isprintable() or character in "\n\t" or character in _JOINERS:
        return character
    return " " if category(character) == "Zs" else "\ufffd"


def is_terminal() -> bool:
    """Whether a person is looking."""
    return sys.stdout.isatty()


def table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], folding: Sequence[str] = ()
) -> None:
    """A table on a terminal, tab-separated lines with a heading in a pipe.

    The columns in ``folding`` share the room that the others leave; numbers stand to the right.
    """
    if not is_terminal():
        for line in (columns, *rows):
            row(line)
        return
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


def row(values: Iterable[Any]) -> None:
    """One tab-separated line, for a pipe."""
    say(_tabbed(values))


def facts(rows: Sequence[tuple[str, str]]) -> None:
    """Names and values: aligned on a terminal, without the empty ones; tab-separated in a pipe."""
    width = max(len(name) for name, _ in rows) + 2
    for name, value in rows:
        if not is_terminal():
            say(_tabbed((name, value)))
        elif value:
            say(f"{name:<{width}}{value}")


def _tabbed(values: Iterable[Any]) -> str:
    """One line, whatever is in the values."""
    return "\t".join(" ".join(_cell(value).replace("\t", " ").splitlines()) for value in values)


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def paragraph(text: str, first: str, others: str) -> str:
    """A text set to the width of the terminal; ``first`` and ``others`` begin its lines."""
    import textwrap

    return textwrap.fill(
        text,
        terminal_width(),
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
        break_long_words=False,
    )


def terminal_width(at_most: int = 100) -> int:
    """How wide prose is set: as wide as the terminal, within reason."""
    return max(20, min(at_most, shutil.get_terminal_size().columns))


def moment(milliseconds: int) -> str:
    """A time as a person reads it, in the local time zone."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return str(milliseconds)


def size(count: float) -> str:
    """A number of bytes as a person reads it."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return ""


def short(text: str, width: int) -> str:
    """One line of at most ``width`` characters."""
    line = " ".join(text[: width * 4].split())
    return line if len(line) <= width else line[: width - 1] + "…"


def thread_json(thread: Thread) -> dict[str, Any]:
    """A thread as JSON."""
    return {
        "id": thread.id,
        "resourceId": thread.resource_id,
        "kind": thread.kind,
        "parentId": thread.parent_id,
        "title": thread.title,
        "metadata": dict(thread.metadata),
        "createdAt": thread.created_at,
        "updatedAt": thread.updated_at,
        "messageCount": thread.message_count,
        "tokenCount": thread.token_count,
    }


def message_json(message: Message) -> dict[str, Any]:
    """A message as JSON."""
    return {
        "id": message.id,
        "threadId": message.thread_id,
        "resourceId": message.resource_id,
        "seq": message.seq,
        "role": message.role,
        "content": message.raw_content,
        "parts": [part_json(part) for part in message.parts],
        "tokenCount": message.token_count,
        "tokenMethod": message.token_method,
        "createdAt": message.created_at,
        "clientId": message.client_id,
        "taskId": message.task_id,
        "isSealed": message.is_sealed,
        "compactionLevel": message.compaction_level,
        "metadata": dict(message.metadata),
    }


def part_json(part: Part) -> dict[str, Any]:
    """A part as JSON; what it does not have is left out."""
    fields = {
        "type": part.type,
        "text": part.text,
        "name": part.name,
        "callId": part.call_id,
        "arguments": part.arguments,
        "isError": part.is_error or None,
        "mediaType": part.media_type,
        "uri": part.uri,
        "sizeBytes": part.size_bytes,
    }
    return {name: value for name, value in fields.items() if value is not None and value != ""}


def compaction_json(compaction: Compaction) -> dict[str, Any]:
    """A compaction as JSON."""
    return {
        "id": compaction.id,
        "level": compaction.level,
        "startSeq": compaction.start_seq,
        "endSeq": compaction.end_seq,
        "messageCount": compaction.message_count,
        "summary": compaction.summary,
        "code": compaction.code,
        "method": compaction.method,
        "createdAt": compaction.created_at,
        "undoneAt": compaction.undone_at,
    }


@contextmanager
def bar(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """Gives a function to call with (done, total); ``None`` when nobody is looking."""
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
        task = progress.add_task(printable(label, sys.stderr), total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
