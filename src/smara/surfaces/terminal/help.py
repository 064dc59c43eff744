"""Define `smara help`, the guide in the terminal, and `smara man`.

The pages of the guide come with the package; in a working copy they are those of ``docs/guide``.
The manual page is made from the commands themselves.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from smara import __version__
from smara.core.startup.regex import regex
from smara.errors import NotFoundError
from smara.surfaces.cli import output
from smara.surfaces.cli.app import EXIT_CODES, GROUPS, cli
from smara.surfaces.cli.options import Invocation, Reply, common

_LINK = regex(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")
_WIDEST = 100
_SEE = {
    "SMARA_DB": "The store: a file, or the address of a PostgreSQL server.",
    "SMARA_HOME": "The folder of the store and its settings.",
    "SMARA_PROJECT": "The project; `auto` is the repository of the current folder.",
    "SMARA_ACTOR": "Who does it, in histories.",
}


def pages() -> dict[str, Path]:
    """Return the pages of the guide by name."""
    inside = Path(str(files("smara"))) / "guide"
    folder = inside if inside.is_dir() else Path(__file__).parents[4] / "docs" / "guide"
    return {path.stem: path for path in sorted(folder.glob("*.md"))}


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in pages() if name.startswith(incomplete)]


@click.command("help")
@click.argument("words", metavar="[TOPIC|COMMAND]", nargs=-1, shell_complete=_complete)
@common
def help_command(call: Invocation, words: tuple[str, ...]) -> Reply:
    """Show a page of the guide, or the help of a command.

    Without a topic it lists the pages.
    """
    found = pages()
    if not words:
        yield {"topics": [{"name": name, "title": _title(path)} for name, path in found.items()]}
        output.say("`smara help TOPIC` shows a page of the guide:", "")
        output.table(
            ("topic", "about"),
            [(name, _title(path)) for name, path in found.items()],
            folding=("about",),
        )
        return
    topic = "-".join(words).lower()
    if topic in found:
        text = found[topic].read_text(encoding="utf-8")
        yield {"topic": topic, "title": _title(found[topic]), "text": text}
        _print_page(text)
        return
    command = _find_command(words)
    if command is None:
        names = dict.fromkeys([*found, *cli.list_commands(click.Context(cli))])
        near = difflib.get_close_matches(topic, list(names), 3)
        hint = f" Near it: {', '.join(near)}." if near else ""
        raise NotFoundError(
            f"No page and no command is called {' '.join(words)!r}.{hint} `smara help` lists the "
            "pages, `smara --help` the commands."
        )
    text = command[0].get_help(command[1])
    yield {"topic": " ".join(words), "title": command[0].get_short_help_str(80), "text": text}
    output.say(text)


def _title(path: Path) -> str:
    with open(path, encoding="utf-8") as file:
        return file.readline().removeprefix("# ").strip()


def _print_page(text: str) -> None:
    """Print Markdown: drawn on a terminal, as it is in a pipe."""
    if not output.is_terminal():
        output.say(text.rstrip("\n"))
        return
    from rich.console import Console
    from rich.markdown import Markdown

    # A link to another page leads nowhere in a terminal; its words do.
    drawn = Markdown(_LINK.sub(r"\1", output.printable(text)), hyperlinks=False)
    Console(width=output.terminal_width(at_most=_WIDEST)).print(drawn)


def _find_command(words: tuple[str, ...]) -> tuple[click.Command, click.Context] | None:
    """Return the command that words name, with a context that prints its usage."""
    command: click.Command = cli
    context = click.Context(cli, info_name="smara", **cli.context_settings)
    for word in words:
        inner = command.get_command(context, word) if isinstance(command, click.Group) else None
        if inner is None:
            return None
        command, context = inner, click.Context(inner, info_name=word, parent=context)
    return command, context


@click.command("man")
@common
def man_command(call: Invocation) -> Reply:
    """Print the manual page: smara man | man -l -."""
    page = "".join(f"{line}\n" for line in _manual())
    yield {"page": page}
    click.echo(output.encodable(page), nl=False)


def _manual() -> Iterator[str]:
    """Yield the lines of the manual page, in the language of man(7)."""
    yield f'.TH SMARA 1 "" "smara {__version__}" "User Commands"'
    yield from (".SH NAME", r"smara \- one memory for coding agents", ".SH SYNOPSIS")
    yield from (".B smara", r"[\fIOPTIONS\fR] [\fICOMMAND\fR [\fIARGUMENTS\fR]]")
    yield ".SH DESCRIPTION"
    yield from _paragraphs(cli.help or "")
    yield ".SH OPTIONS"
    root = click.Context(cli, info_name="smara", **cli.context_settings)
    yield from _options(cli, root)
    for title, names in GROUPS.items():
        yield f'.SH "{_roff(title.upper())}"'
        for name in names:
            yield from _commands((name,))
    yield ".SH ENVIRONMENT"
    for name, text in _SEE.items():
        yield from (".TP", f".B {name}", _roff(text))
    yield ".SH EXIT STATUS"
    codes = {0: "done", 1: "a bug", 8: "the doctor found problems", 130: "interrupted"}
    for kind, code in EXIT_CODES:
        codes.setdefault(code, kind.__name__.removesuffix("Error").lower())
    for code, text in sorted(codes.items()):
        yield from (".TP", f".B {code}", _roff(text))
    yield from (".SH SEE ALSO", _roff("`smara help` shows the guide."))


def _commands(words: tuple[str, ...]) -> Iterator[str]:
    """Yield a command with its options, and the commands below it."""
    found = _find_command(words)
    if found is None:
        return
    command, context = found
    pieces = " ".join(_roff(piece) for piece in command.collect_usage_pieces(context))
    yield f'.SS "{_roff(" ".join(("smara", *words)))}"'
    yield f"\\fBsmara {_roff(' '.join(words))}\\fR {pieces}"
    yield ".PP"
    yield from _paragraphs(command.help or "")
    yield from _options(command, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from _commands((*words, name))


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    shared = {"--db", "--project", "--json", "--help"} if command is not cli else set()
    for parameter in command.get_params(context):
        record: Any = parameter.get_help_record(context)
        if record is not None and not shared & {*parameter.opts}:
            yield from (".TP", f"\\fB{_roff(record[0])}\\fR", _roff(record[1]))


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.replace("\b", "").strip().split("\n\n")):
        if number:
            yield ".PP"
        yield _roff(" ".join(paragraph.split()))


def _roff(text: str) -> str:
    """Return a text with nothing that man(7) would read as a command."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq")
    return rf"\&{escaped}" if escaped[:1] in (".", "'") else escaped
