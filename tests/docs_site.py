"""Fill the generated pages of the documentation site, for ``make docs``.

MkDocs calls the functions named ``on_…``. The reference of Python is made from the public names
and their docstrings, that of the command line from every command's own help.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

import smara
from smara.surfaces.cli.app import COMMANDS, cli
from smara.testing import open_temporary

DOCS = Path(__file__).parents[1] / "docs"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def slug(title: str, separator: str) -> str:
    """Return the anchor of a title as the pages' own links spell it."""
    plain = re.sub(r"<[^>]+>|[`*]", "", title)
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", separator)


def on_config(config: Any) -> Any:
    """List the decisions, by their number, in the navigation."""
    pages = sorted((DOCS / "decisions").glob("*.md"))
    config["nav"].append({"Decisions": [f"decisions/{each.name}" for each in pages]})
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Add what is generated, and unlink what lies outside of the site."""
    source = Path(page.file.abs_src_path)
    generated = GENERATED.get(page.file.src_uri)
    text = markdown + ("\n" + generated() if generated else "")
    return _LINK.sub(lambda match: _inside(match, source), text)


def _inside(match: re.Match[str], source: Path) -> str:
    """Return a link, or its words where it leads to a file that the site has not."""
    target = match[3].partition("#")[0]
    if not target or ":" in target or match[1]:
        return match[0]
    linked = (source.parent / target).resolve()
    is_page = linked.is_file() and linked.is_relative_to(DOCS)
    return match[0] if is_page or not linked.exists() else match[2]


def python_reference() -> str:
    """Return the public names, and every room of a memory with its methods."""
    parts = []
    for name in sorted(set(smara.__all__) - {"__version__"}):
        value = getattr(smara, name)
        parts.append(f"## smara.{name}\n\n{_described(value, f'smara.{name}')}")
    with open_temporary() as memory:
        for name, room in vars(smara.Memory).items():
            if type(room).__name__ == "Room":
                parts.append(f"## memory.{name}\n\n{room.__doc__}\n")
                parts += _methods(type(getattr(memory, name)), f"memory.{name}")
    return "\n".join(parts)


def _described(value: Any, name: str) -> str:
    own = f"{_text(value)}\n" if inspect.isclass(value) else ""
    called = "" if inspect.isclass(value) and value is smara.Memory else _signature(value, name)
    methods = _methods(value, "memory" if value is smara.Memory else name.rpartition(".")[2])
    is_async = value is smara.AsyncMemory  # the same methods, awaited
    return f"{own}{called}" + ("" if is_async else "\n".join(methods))


def _methods(owner: Any, name: str) -> list[str]:
    """Return the public methods of a class, its bases' included."""
    if not inspect.isclass(owner) or issubclass(owner, BaseException):
        return []
    found = inspect.getmembers(owner, inspect.isfunction)
    ordered = sorted(found, key=lambda each: each[1].__code__.co_firstlineno)
    return [
        f"### {name}.{key}\n\n{_signature(method, f'{name}.{key}')}"
        for key, method in ordered
        if not key.startswith("_") and method.__doc__ and method.__module__.startswith("smara")
    ]


def _signature(value: Any, name: str) -> str:
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    words = [each for key, each in found.parameters.items() if key != "self"]
    signature = str(found.replace(parameters=words)).replace("'", "")
    signature = re.sub(r"<[^>]*>", "…", signature)
    lines = textwrap.fill(f"{name}{signature}", 96, subsequent_indent="    ")
    own = "" if inspect.isclass(value) else _text(value)
    return f"```python\n{lines}\n```\n\n{own}\n"


def _text(value: Any) -> str:
    """Return a docstring as Markdown: its lists of arguments become lists."""
    text = inspect.getdoc(value) or ""
    text = re.sub(r":(?:class|meth|mod):`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    text = re.sub(r"(?m)^>>> .*(?:\n(?!\n).*)*", lambda each: f"```pycon\n{each[0]}\n```", text)
    lines, is_list = [], False
    for line in text.splitlines():
        if line in ("Args:", "Returns:", "Raises:", "Yields:"):
            lines += ["", f"**{line[:-1]}**", ""]
            is_list = True
        elif is_list and (match := re.match(r"    (\*{0,2}\w+): (.*)", line)):
            lines.append(f"- `{match[1]}`: {match[2]}")
        elif is_list and line.startswith("    "):
            lines.append(("  " if lines[-1][:1] in ("-", " ") else "") + line.strip())
        else:
            is_list = is_list and not line.strip()
            lines.append(line)
    return "\n".join(lines)


def command_reference() -> str:
    """Return the help of every command."""
    parts = ["## Every command's help\n"]
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        for words, each in _leaves(command, (name,)):
            context = click.Context(each, info_name=f"smara {' '.join(words)}")
            text = each.get_help(context)
            parts.append(f"### smara {' '.join(words)}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def _leaves(
    command: click.Command, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            under = command.get_command(click.Context(command), name)
            if under is not None and not under.hidden:
                yield from _leaves(under, (*words, name))


GENERATED: dict[str, Callable[[], str]] = {
    "reference/api.md": python_reference,
    "reference/cli.md": command_reference,
}
"""The pages that are made longer, by their path."""
