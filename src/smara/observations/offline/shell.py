"""Shell commands: what a line runs, which of it matters, and how to show it.

``cd app && MIX_ENV=test mix test --seed 0 2>&1 | tail -5`` runs one thing that matters,
``mix test``, and is shown as ``MIX_ENV=test mix test --seed 0``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from smara.core.shell_kinds import is_check_run, is_test_run
from smara.core.wordlists import word_set
from smara.observations.offline.wording import clip, one_line, one_of

RunKind = Literal["commit", "test", "build", "install", "git", "query", "other", "look", "idle"]
# The most telling part of a line that runs several things gives the line its kind.
_WEIGHT: tuple[RunKind, ...] = (
    "idle",
    "look",
    "other",
    "git",
    "query",
    "install",
    "build",
    "test",
    "commit",
)

_LONGEST = 20_000
_QUOTED_OR_SPLIT = re.compile(r"'[^']{0,4000}'|\"(?:[^\"\\]|\\.){0,4000}\"|&&|\|\||[;\n]")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w{1,40})['\"]?")
_REDIRECT = re.compile(r"\s*(?:[12&]?>{1,2}\s*(?:&[12]|/dev/null|\S{1,200})|2>&1)\s*")
_PAGER = re.compile(r"\s*\|\s*(?:tail|head|cat|less|tee|wc|sort|uniq)\b[^|]{0,80}$")
_FILTER = re.compile(r"\s*\|\s*(?:grep|rg|awk|sed|jq|cut|tr|xargs)\b.{0,300}$")
_ASSIGNMENT = re.compile(r"(?:[A-Za-z_]\w{0,60}=\S{0,200}\s+)+(?=\S)")
_PREFIX = one_of(
    r"(?:sudo|time|nohup|env|npx|bunx|pnpx|uvx|exec|command|timeout\s+\S{1,10}|bundle\s+exec"
    r"|poetry\s+run|uv\s+run)\s+",
    r"(?:pipenv\s+run|python3?\s+-m)\s+|(?:\./)?\.?venv/bin/|node_modules/\.bin/|\./",
    flags=0,
)
_LOOKS = word_set(
    "ls cat head tail find grep rg ag sed awk wc pwd which whereis tree stat file jq cut sort "
    "uniq diff less more du df"
    " ps env printenv date whoami uname type id hostname top lsof history basename dirname "
    "realpath readlink xxd od"
    " md5sum sha256sum"
)
_IDLE = word_set(
    "cd echo true false sleep export set unset printf clear exit wait pushd popd source . : test "
    "[ read"
)
_BUILDS = one_of(
    r"(?:\S{0,80}/)?(?:make|webpack|vite|esbuild|rollup|rustc|gcc|g\+\+|clang|cmake|ninja|javac"
    r"|pre-commit)\b",
    r"(?:docker|docker-compose|nx|turbo|deno|terraform|helm|npm|pnpm|yarn|bun|mix|cargo|go|gradle"
    r"|\S{0,40}gradlew|mvn"
    r"|dotnet|swift|sbt|zig|bazel|flutter|stack|cabal)"
    r"\s+(?:run\s+|compose\s+)?(?:\w{1,20}:)?(?:build|validate|plan|apply|package|generate"
    r"|codegen|check|fmt|lint)",
    flags=0,
)
_INSTALLS = one_of(
    r"(?:pip3?|uv\s+pip|conda|mamba|apt|apt-get|brew|gem|dnf|yum|apk|pacman|choco|winget|cargo|go"
    r"|pipx)"
    r"\s+(?:-\S{1,40}\s+){0,4}(?:install|add)\b",
    r"(?:npm|pnpm|yarn|bun)\s+(?:install|i|add|remove|uninstall|rm|upgrade|up|ci)\b",
    r"(?:uv|poetry|cargo|pdm|hatch|bundle|rye|deno|dotnet)\s+(?:add|remove)\b",
    r"go\s+get\b|composer\s+require\b|mix\s+deps\.(?:get|update|add)\b",
    flags=0,
)
_INTERPRETERS = word_set("node python python3 ruby bash sh zsh perl php deno elixir julia Rscript")
_QUERIES = re.compile(r"(?:psql|sqlite3|mysql|mongosh?|redis-cli|bq|duckdb|clickhouse-client)\b")
_GIT_LOOKS = word_set(
    "status log diff show branch ls-files blame describe rev-parse remote reflog grep shortlog "
    "config tag"
)


@dataclass(frozen=True, slots=True)
class Command:
    """A command line: its kind, the program with its verb, and how it is shown."""

    kind: RunKind
    key: str
    """Two runs with one key are runs of the same thing: ``mix test``, ``git push``."""
    shown: str
    arguments: tuple[str, ...] = ()
    """The words of the telling part that are no options."""
    keys: frozenset[str] = frozenset()
    """The keys of all that the line runs."""
    is_masked: bool = False
    """Whether the exit code is that of a pager or a filter, and says nothing."""


def read_command(line: str, characters: int = 140) -> Command:
    """What a command line runs."""
    parts = [_bare(part) for part in _parts(line[:_LONGEST])]
    kinds = [kind_of_part(part) for part in parts]
    ranked = max(
        range(len(parts)), key=lambda place: (_WEIGHT.index(kinds[place]), -place), default=None
    )
    if ranked is None:
        return Command("idle", "", clip(line, characters))
    kind, main = kinds[ranked], parts[ranked]
    floor = 0 if kind in ("idle", "look") else 2
    shown = [part for part, each in zip(parts, kinds, strict=True) if _WEIGHT.index(each) >= floor]
    words = _words(_unprefixed(main))
    arguments = tuple(word for word in words[1:] if not word.startswith("-"))
    line_shown = "git commit" if kind == "commit" else clip(" && ".join(shown), characters)
    keys = frozenset(_key(_words(_unprefixed(part))) for part in parts)
    return Command(
        kind, _key(words), line_shown, arguments=arguments, keys=keys, is_masked="|" in line
    )


def _parts(line: str) -> list[str]:
    """The commands of a line; text that is fed to a command belongs to it and is left out."""
    if here := _HEREDOC.search(line):
        line = line[: here.start()] + _behind_heredoc(line, here)
    found: list[str] = []
    start = 0
    for match in _QUOTED_OR_SPLIT.finditer(line):
        if match[0][0] not in "'\"":
            found.append(line[start : match.start()])
            start = match.end()
    found.append(line[start:])
    return [
        stripped for part in found if (stripped := one_line(part)) and not stripped.startswith("#")
    ][:40]


def _behind_heredoc(line: str, here: re.Match[str]) -> str:
    end = line.find(f"\n{here[1]}", here.end())
    first_line_end = line.find("\n", here.end())
    on_first_line = line[here.end() : first_line_end] if first_line_end >= 0 else ""
    return on_first_line + (line[end + 1 + len(here[1]) :] if end >= 0 else "")


def _bare(part: str) -> str:
    """A command without its redirections, pagers and filters."""
    for _ in range(3):
        part = _PAGER.sub("", part)
    part = _FILTER.sub("", part) if not part.startswith(("grep", "rg", "find", "cat")) else part
    return one_line(_REDIRECT.sub(" ", part))


def _unprefixed(part: str) -> str:
    if assigned := _ASSIGNMENT.match(part):
        part = part[assigned.end() :]
    for _ in range(3):
        if match := _PREFIX.match(part):
            part = part[match.end() :]
    return part


def kind_of_part(part: str) -> RunKind:
    """The kind of one command."""
    bare = _unprefixed(part)
    words = bare.split(None, 2)
    if not words:
        return "idle"
    program = words[0].rpartition("/")[2]
    if program == "git":
        return _kind_of_git(words[1] if len(words) > 1 else "")
    if program in _IDLE:
        return "idle"
    if program in _LOOKS:
        return "look"
    if is_test_run(bare):
        return "test"
    if _INSTALLS.match(bare):
        return "install"
    if is_check_run(bare) or _BUILDS.match(bare):
        return "build"
    return "query" if _QUERIES.match(bare) else "other"


def _kind_of_git(verb: str) -> RunKind:
    if verb in ("commit", "add"):
        return "commit" if verb == "commit" else "idle"
    return "look" if verb in _GIT_LOOKS else "git"


def _words(part: str) -> list[str]:
    return part.split()[:40]


def _key(words: list[str]) -> str:
    """The program and its verb; of an interpreter its script."""
    if words and words[0] in _INTERPRETERS:
        script = next((word for word in words[1:] if not word.startswith("-")), "")
        return f"{words[0]} {script.rpartition('/')[2]}".strip()
    if len(words) > 1 and re.fullmatch(r"[a-z][\w:.-]{1,30}", words[1]) and "/" not in words[1]:
        return " ".join(words[:3] if words[1] in ("run", "exec", "compose") else words[:2])
    return words[0] if words else ""
