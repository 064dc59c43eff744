"""The documents tell the truth: links lead somewhere, commands exist, snippets run, tables are
complete.
"""

from __future__ import annotations

import ast
import doctest
import json
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import fields
from functools import partial
from importlib import import_module
from itertools import groupby
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
from smara.knowledge.models import Evidence
from smara.surfaces.cli import app
from smara.surfaces.http.server import ServeOptions, announced, serving
from tests import apart, terminal_picture
from tests.surfaces.shell import smara as typed

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CLI_PAGE = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")

# An example in a list is indented; a block of four backticks may show one of three.
_FENCE = re.compile(r"^([ \t]*)(`{3,})(\w*)[^\n`]*\n(.*?)^\1\2[ \t]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_INLINE = re.compile(r"`(smara\s[^`]+)`")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def fences(page: Path) -> list[tuple[str, str]]:
    """The language and the text of each block of a page, without its indentation."""
    return [
        (language, textwrap.dedent(text))
        for _, _, language, text in _FENCE.findall(page.read_text(encoding="utf-8"))
    ]


def blocks(page: Path, language: str) -> list[str]:
    return [text for each, text in fences(page) if each == language]


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


def calls_in(line: str) -> Iterator[list[str]]:
    """The words of each `smara` in a line of a shell, alone or in a pipe."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    for is_sign, words in groupby(lexer, lambda word: set(word) <= set(lexer.punctuation_chars)):
        call = list(words)
        if not is_sign and call[0] == "smara":
            yield call


def typed_commands() -> Iterator[object]:
    """The calls a reader is told to type; of a console, what follows its `$`."""
    for page in PAGES:
        for shell in ("console", "sh", "bash", "shell"):
            for line in (line for block in blocks(page, shell) for line in block.splitlines()):
                if shell != "console" or line.startswith("$ "):
                    for call in calls_in(line.removeprefix("$ ")):
                        yield pytest.param(call[1:], id=f"{name_of(page)} {' '.join(call)[:58]}")


@pytest.mark.parametrize("words", list(typed_commands()))
def test_command_that_a_reader_types_is_understood(words: list[str]) -> None:
    """Parsed as click parses it, with every option and argument; not run."""
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


def test_commands_for_the_first_week_do_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every line of the page is typed, in its order, in a repository with a past."""
    subprocess.run(["git", "init", "-q", str(tmp_path / "shop")], check=True)
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.setenv("SMARA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.delenv("SMARA_PROJECT")
    Path("src").mkdir()
    Path("src/auth.py").write_text("def login():\n    return authenticateUser()\n" * 30)
    Path("AGENTS.md").write_text("# Rules\n\n- Never edit files below generated/ by hand.\n")
    with smara.open() as memory:
        place = memory.messages.add(
            thread_id="retries", role="assistant", content="The retry logic is in src/retry.py"
        )
        memory.messages.add(
            thread_id="retries", role="user", content="authenticateUser takes a LoginSchema"
        )
        known = memory.memories.add(
            "`make deploy` needs a key that only the build server has",
            type="gotcha",
            by="agent",
            evidence=[Evidence(message_id=place.id, quote="The retry logic")],
        ).memory
    assert known is not None
    assert typed("setup", "claude", "--yes").code == 0
    ids = {"memories": known.short_id[2:], "tasks": ""}
    for block in blocks(ROOT / "docs/use-an-agent.md", "console"):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)[2:]
            if words[0] == "ui":
                continue
            words = [
                {"k3f9": ids.get(words[0], ""), "THREAD:SEQ": f"{place.thread_id}:{place.seq}",
                 "SESSION": "session-2"}.get(word, word) for word in words
            ]  # fmt: skip
            if words[:3] == ["memories", "review", "undo"]:
                assert typed("memories", "review", "accept", words[3]).code == 0
            if words[:2] == ["tasks", "release"] or words[:2] == ["tasks", "close"]:
                typed("tasks", "release", ids["tasks"], "--force")
                assert typed("tasks", "claim", ids["tasks"]).code == 0
            said = typed(*words, *(["--yes"] if words[:2] == ["setup", "claude"] else []))
            assert said.code == 0, (line, said.err)
            if words[:2] == ["tasks", "add"]:
                ids["tasks"] = re.findall(r"t-(\w+)", said.out)[0]
    assert not Path(".claude/settings.local.json").exists()


DOCUMENTED = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
SERVER = "http://127.0.0.1:40733"
"""The address of `smara serve` in the documents; an example that names it gets a real one."""


def snippets() -> Iterator[object]:
    """Every Python example of the documentation."""
    for page in DOCUMENTED:
        for number, text in enumerate(blocks(page, "python"), 1):
            yield pytest.param(text, id=f"{name_of(page)} {number}")


@pytest.mark.parametrize("text", list(snippets()))
def test_snippet_runs_as_it_stands(text: str, tmp_path: Path) -> None:
    apart.skip_without(text)
    with ExitStack() as stack:
        if SERVER in text:
            options = ServeOptions()
            opened = partial(smara.open, str(tmp_path / "served.db"))
            url, service = stack.enter_context(serving(opened, options))
            stack.enter_context(announced(url, service.key, options.folder))
            text = text.replace(SERVER, url)
        done = subprocess.run(
            [sys.executable, "-W", apart.warnings_for(text), "-c", text],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_python_example_is_run() -> None:
    """Whatever its indentation and its quoting; in the pages that hold examples and in the rest."""
    opened = re.compile(r"^[\s>]*(?:`{3,}|~{3,})[ {.]*(?:python|py|pycon|python3)\b", re.MULTILINE)
    written = {page: len(opened.findall(page.read_text(encoding="utf-8"))) for page in PAGES}
    run = {page: len(blocks(page, "python")) for page in DOCUMENTED}
    assert {page: count for page, count in written.items() if count != run.get(page, 0)} == {}
    assert sum(written.values()) > 40


def calls_smara(text: str) -> bool:
    """True for a program that uses the package."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return False
    return any(isinstance(each, ast.Name) and each.id == "smara" for each in nodes) and any(
        isinstance(each, ast.Call | ast.Import | ast.ImportFrom) for each in nodes
    )


def test_no_python_example_is_quoted_as_something_else() -> None:
    assert [
        (name_of(page), text)
        for page in PAGES
        for language, text in fences(page)
        if language != "python" and calls_smara(text)
    ] == []


@pytest.mark.parametrize("margin", ["", "   ", "\t"])
def test_the_reader_of_examples_sees_indented_ones(margin: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    lines = ["```python", "if True:", "    pass", "```"]
    page.write_text("1. First:\n\n" + "".join(f"{margin}{line}\n" for line in lines))
    assert blocks(page, "python") == ["if True:\n    pass\n"]


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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site as `make docs` builds it: it stops at a link that leads nowhere."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": ".", "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_site_has_every_public_name_and_command(site: Path) -> None:
    python = (site / "reference/api.html").read_text(encoding="utf-8")
    names = {f"smara.{name}" for name in smara.__all__ if name != "__version__"}
    rooms = {"memory.tasks.claim", "memory.memories.remember", "memory.moments.before_tool"}
    assert {
        name for name in names | rooms if f'id="{name.replace(".", "").lower()}"' not in python
    } == set()
    commands = (site / "reference/cli.html").read_text(encoding="utf-8")
    assert {name for name in app.COMMANDS if f"Usage: smara {name} " not in commands} == set()


def test_site_loads_nothing_from_elsewhere_and_can_be_searched(site: Path) -> None:
    loads = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//""")
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert [path.name for path, text in pages.items() if loads.search(text)] == []
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    found = {each["location"].partition("#")[0] for each in index["docs"]}
    pages_of_docs = {str(each.relative_to(ROOT / "docs")) for each in (ROOT / "docs").rglob("*.md")}
    assert found == {each.removesuffix(".md") + ".html" for each in pages_of_docs}


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    listed = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    pages = {str(each.relative_to(ROOT / "docs")) for each in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if not page.startswith("decisions/")} == listed


def test_picture_of_the_readme_shows_what_the_story_prints() -> None:
    """Drawn by ``python -m tests.terminal_picture``."""
    drawn = terminal_picture.lines_in(terminal_picture.PICTURE.read_text(encoding="utf-8"))
    played = terminal_picture.now()
    assert terminal_picture.comparable(drawn) == played
    (quoted,) = blocks(ROOT / "README.md", "text")
    shown = " ".join(played.replace("┃ ", "").split())
    for line in quoted.replace("\n  ", " ").splitlines():
        sentence = terminal_picture.comparable([line]).partition(" [Memory")[0]
        assert sentence in shown


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


def test_every_test_that_a_page_names_exists() -> None:
    """But for those of frameworks, which run their own tests against our classes."""
    theirs = (ROOT / "docs/reference/conformance.md", ROOT / "docs/howto/add-a-framework.md")
    named = {
        (path, test)
        for page in PAGES
        if page not in theirs
        for path, test in re.findall(
            r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page.read_text(encoding="utf-8")
        )
    }
    assert len(named) > 20
    assert [
        (path, test)
        for path, test in sorted(named)
        if not (ROOT / path).is_file()
        or (test and f"def {test}(" not in (ROOT / path).read_text(encoding="utf-8"))
    ] == []


def test_no_file_names_a_package_registry() -> None:
    """Whoever installs uses the registry of their own machine."""
    found = {
        name_of(path): hit[0]
        for path in shipped_files()
        if path.is_file()
        and (hit := _REGISTRY.search(path.read_text(encoding="utf-8", errors="replace")))
    }
    assert found == {}
