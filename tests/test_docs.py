"""The documents tell the truth: links lead somewhere, commands exist, snippets run, tables are
complete.
"""

from __future__ import annotations

import doctest
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import click
import pytest

import smara
from smara import __version__
from smara.config import Settings
from smara.errors import (
    BusyError,
    ConfigError,
    ConflictError,
    DatabaseError,
    ModelError,
    NotFoundError,
    SmaraError,
    UsageError,
)
from smara.surfaces.cli import app
from tests import apart

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CLI_PAGE = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_INLINE = re.compile(r"`(smara\s[^`]+)`")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def blocks(page: Path, language: str) -> list[str]:
    return [
        text for kind, text in _FENCE.findall(page.read_text(encoding="utf-8")) if kind == language
    ]


def links() -> Iterator[object]:
    for page in PAGES:
        for target in sorted(set(_LINK.findall(prose(page)))):
            if not target.startswith(("http://", "https://", "mailto:")):
                yield pytest.param(page, target, id=f"{name_of(page)} {target}")


@pytest.mark.parametrize(("page", "target"), list(links()))
def test_link_leads_to_a_file_and_heading_that_exist(page: Path, target: str) -> None:
    path, _, heading = target.partition("#")
    linked = (page.parent / path).resolve() if path else page
    assert linked.exists(), f"{name_of(page)} links to {target}"
    if heading:
        titles = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
        assert heading in [
            re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles
        ]


def typed_commands() -> Iterator[object]:
    """The lines a reader is told to type: `$ smara …` in console blocks."""
    for page in PAGES:
        for block in blocks(page, "console"):
            for line in block.splitlines():
                if line.startswith("$ smara "):
                    yield pytest.param(line[2:], id=f"{name_of(page)} {line[2:60]}")


@pytest.mark.parametrize("line", list(typed_commands()))
def test_command_that_a_reader_types_is_understood(line: str) -> None:
    """Parsed as click parses it, with every option and argument; not run."""
    words = shlex.split(line, comments=True)[1:]
    command: click.Command = app.cli
    context = command.make_context("smara", list(words))
    while isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        if not rest and command.invoke_without_command:
            return
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command = found
        context = command.make_context(name or "", rest, parent=context)


def mentioned_commands() -> Iterator[object]:
    """Commands in running text and tables, where `[]` and `|` are notation."""
    for page in PAGES:
        for text in sorted(set(_INLINE.findall(prose(page)))):
            yield pytest.param(
                " ".join(text.replace("\\|", "|").split()), id=f"{name_of(page)} {text[:50]!r}"
            )


def options_of(command: click.Command) -> set[str]:
    return {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {
        "--help"
    }


@pytest.mark.parametrize("text", list(mentioned_commands()))
def test_command_that_is_mentioned_exists_with_its_options(text: str) -> None:
    current: click.Command = app.cli
    group: click.Group = app.cli
    for word in re.sub(r"[\[\]…]|\.\.\.", " ", text).split()[1:]:
        if word == "|":
            current = current if group is app.cli else group
        elif word.startswith("--"):
            assert word in options_of(current) | options_of(app.cli), f"{word} in {text!r}"
        elif current is group:
            found = group.get_command(click.Context(group), word)
            assert found is not None, f"there is no command {word!r} in {text!r}"
            current = found
            group = found if isinstance(found, click.Group) else group


def snippets() -> Iterator[object]:
    """Every Python example of the documentation."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for number, text in enumerate(blocks(page, "python"), 1):
            yield pytest.param(text, id=f"{name_of(page)} {number}")


@pytest.mark.parametrize("text", list(snippets()))
def test_snippet_runs_as_it_stands(text: str, tmp_path: Path) -> None:
    apart.skip_without(text)
    done = subprocess.run(
        [sys.executable, "-W", apart.warnings_for(text), "-c", text],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_snippet_of_the_readme_prints_the_schema_first(tmp_path: Path) -> None:
    (text,) = blocks(ROOT / "README.md", "python")
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert re.match(r"1 0\.99\d* export const LoginSchema = z\.object\(\{ … \}\) \(", done.stdout)
    assert (tmp_path / "memory.db").exists()


def test_every_example_in_a_docstring_holds() -> None:
    attempted, broken = 0, []
    for found in pkgutil.walk_packages(smara.__path__, "smara."):
        if not found.name.endswith("__main__") and not apart.missing(found.name):
            done = doctest.testmod(import_module(found.name), report=False)
            attempted += done.attempted
            broken += [found.name] * done.failed
    assert (broken, attempted > 100) == ([], True)


def rows(page: str) -> dict[str, list[str]]:
    """The rows of a page's tables by their first cell."""
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\|", "¦")
    cells = [
        [cell.strip() for cell in line.strip("|\n ").split("|")]
        for line in text.splitlines()
        if line[:1] == "|"
    ]
    return {row[0].strip("`"): [cell.strip("`") for cell in row[1:]] for row in cells}


@pytest.mark.parametrize("setting", fields(Settings), ids=lambda setting: setting.name)
def test_setting_is_documented_with_its_default(setting) -> None:
    default, meaning = rows("docs/reference/settings.md")[setting.name]
    assert meaning
    if setting.default is None:
        assert default in (
            "the per-user store",
            "see [storage](../guide/storage.md)",
            "the system's user",
            "none",
        )
    elif isinstance(setting.default, bool):
        assert default == str(setting.default).lower()
    elif isinstance(setting.default, str):
        assert default == setting.default
    else:
        assert float(default) == setting.default


def test_no_setting_is_documented_that_does_not_exist() -> None:
    known = {setting.name for setting in fields(Settings)}
    assert set(rows("docs/reference/settings.md")) - {"name", "---"} == known


@pytest.mark.parametrize("name", app.COMMANDS)
def test_command_is_in_the_reference(name: str) -> None:
    assert re.search(rf"^\| `smara {name}\b", CLI_PAGE, re.MULTILINE)


@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_option_of_a_command_is_in_the_reference(name: str) -> None:
    """But for those that every command takes, which are told once."""
    command = app.cli.get_command(click.Context(app.cli), name)
    assert command is not None
    leaves = command.commands.values() if isinstance(command, click.Group) else [command]
    lines = "".join(
        line for line in CLI_PAGE.splitlines() if re.match(rf"\| `smara {name}\b", line)
    )
    everywhere = {"--db", "--project", "--json", "--verbose", "--help"}
    own = {
        option for leaf in leaves for option in options_of(leaf) if option.startswith("--")
    } - everywhere
    assert {option for option in own if not re.search(rf"{option}\b", lines)} == set()


def test_exit_codes_of_the_reference_are_those_of_the_program() -> None:
    documented = {int(code) for code in rows("docs/reference/cli.md") if code.isdigit()}
    assert documented == {0, 1, 2, 8, 130} | {code for _, code in app.EXIT_CODES}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError, 2), (NotFoundError, 3), (ConflictError, 4), (ConfigError, 5), (DatabaseError,
        6), (BusyError, 7),
        (ModelError, 9),
    ],
)  # fmt: skip
def test_errors_have_the_documented_codes(error: type[SmaraError], code: int) -> None:
    assert app.exit_code(error("words")) == code


def test_changelog_speaks_of_this_version_first() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## (\S+)", text, re.MULTILINE)
    assert first is not None
    assert first[1] == __version__


def test_version_is_told_once() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{__version__}"' in project or 'dynamic = ["version"]' in project


_REGISTRY = re.compile(
    r"index-url|trusted-host|find-links|pypi\.org|pythonhosted\.org|registry\.[a-z0-9-]+\."
    r"|artifactory|jfrog|nexus\.|\.pkg\.dev",
    re.IGNORECASE,
)


def shipped_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this is not a git checkout")
    names = [name for name in listed.stdout.decode().split("\0") if name]
    # The rules of the secrets room, what is suspected by them, and their tests speak of vendors'
    # hosts.
    spared = ("secrets/", "core/secret_prefilter", "tests/test_docs.py")
    return [ROOT / name for name in names if not any(each in name for each in spared)]


def test_no_file_names_a_package_registry() -> None:
    """Whoever installs uses the registry of their own machine."""
    found = {
        name_of(path): hit[0]
        for path in shipped_files()
        if path.is_file()
        and (hit := _REGISTRY.search(path.read_text(encoding="utf-8", errors="replace")))
    }
    assert found == {}
