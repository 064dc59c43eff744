"""Parse shell commands: purpose, program, sameness and side effects."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from smara.core.command_kinds import is_check_run, is_test_run

Purpose = Literal[
    "test",
    "check",
    "commit",
    "revert",
    "review",
    "read",
    "search",
    "look",
    "setup",
    "network",
    "other",
]

LONGEST = 280
_CUT_OFF = re.compile(r"\s*(?:2>&1)?\s*\|\s*(?:head|tail|grep|rg|cat|less|wc|sort|tee)\b[^|;&]*$")
_REDIRECT = re.compile(r"\s*(?:2>&1|[12]?>\s*/dev/null|&>\s*/dev/null)")
_JOINED = re.compile(r"(\"(?:[^\"\\]|\\.)*\"|'[^']*')|\s*(?:&&|;|\|\||\n)\s*")
_BLOCK = re.compile(r"^(?:for|while|until|if|case|do|done|then|else|fi|function)\b|^[{}()]")
_BEFORE = re.compile(
    r"^(?:(?:cd|pushd)\s+[^\s;&|]+|(?:export\s+)?[A-Z_][A-Z0-9_]*=(?:\"[^\"]*\"|'[^']*'|\S*)"
    r"|set\s+-\w+|source\s+\S+|\.\s+\S+/activate)\s*$"
)
_ASSIGNED = re.compile(r"^(?:[A-Z_][A-Z0-9_]*=(?:\"[^\"]*\"|'[^']*'|\S*)\s+)+")
_WRAPPER = re.compile(
    r"^(?:sudo(?:\s+-\w+)*|time|nice(?:\s+-n\s*\d+)?|timeout(?:\s+-\w+)*\s+\w+|env"
    r"|command(?!\s+-)|exec)\s+"
)
_DOCUMENT = re.compile(r"\s*(?:-m\s+|-F\s+)?\"?\$\(cat\s*<<|\s*<<-?\s*['\"]?\w")
_MESSAGE = re.compile(
    r"\s+(?:-\w*m|--message)[ =]?(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|\S+)|\s+-a?m$", re.DOTALL
)
_HEREDOC = re.compile(r"<<-?\s*['\"]?\w+")

_COMMIT = re.compile(r"^git\s+(?:-\S+\s+\S+\s+)?commit\b(?!.*--dry-run)")
_REVERT = re.compile(
    r"^git\s+(?:checkout\s+(?:\S+\s+)?--\s|checkout\s+\.|restore\b(?!.*--staged\s+\S+$)"
    r"|reset\s+--hard|revert\b)"
)
_REVIEW = re.compile(r"^gh\s+pr\s+(?:review|comment)\b|^glab\s+mr\s+(?:note|approve)\b")
_READ = re.compile(r"^(?:cat|bat|head|tail|less|more|nl|sed\s+-n)\b")
_SEARCH = re.compile(r"^(?:rg|grep|egrep|ag|ack|git\s+grep)\b")
_LOOK = re.compile(
    r"^(?:ls|pwd|tree|find|fd|which|type|echo|printf|date|whoami|uname|env|printenv|wc|stat|file"
    r"|du|df|ps|top|sleep|true|test"
    r"|\[|diff|cmp|jq|git\s+(?:status|diff|log|show|branch|blame|remote|rev-parse|ls-files|config"
    r"|describe|tag|stash\s+list"
    r"|reflog|shortlog|cat-file|worktree\s+list)|gh\s+(?:pr|issue|run|repo)\s+(?:view|list|diff"
    r"|status|checks)"
    r"|docker\s+(?:ps|images|logs)|kubectl\s+(?:get|describe|logs)|bd\s+(?:show|list|ready"
    r"|stats))(?:\s|$)"
)
_ASKS = re.compile(
    r"^\S+(?:\s+[a-z][\w-]*){0,3}?\s+(?:list|ls|status|show|view|info|help|--help|-h|--version"
    r"|-V)(?:\s|$)"
)
"""A program that is asked how things stand changes nothing: neither is it a fix, nor a step of a
recipe.
"""
_SETUP = re.compile(
    r"\b(?:install|sync|add|init|setup|bootstrap|up|start|migrate|login|use|enable|create|mkdir"
    r"|chmod|export|fetch|pull"
    r"|deps\.get|build)\b"
)
_NETWORK = re.compile(r"(?:^|\s|/)(?:curl|wget|http|https|lynx|w3m|aria2c)\s")
_FAILS_BY_NATURE = re.compile(
    r"^(?:rg|grep|egrep|ag|git\s+grep|test|\[|diff|cmp|which|type|git\s+diff|pgrep|ls|find"
    r"|command)(?:\s|$)"
)
_OF_THE_MOMENT = re.compile(
    r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b|/tmp/|<<|\$\(|\n|/(?:Users|home)/|#\d|\b\d{4,}\b"
    r"|[\"'][^\"']{20}"
)
_OF_THE_MOMENT_LENGTH = 160
_NAMED_ANEW = re.compile(
    r"^git\s+(?:commit|add|push|pull|checkout|switch|rm|mv)\b|^gh\s+(?:pr|issue)\s+(?:create"
    r"|edit)\b"
)
_RUN_BY = re.compile(
    r"(?:npx|bunx|pnpx|uvx|pipx\s+run|(?:npm|pnpm|yarn|bun|mise)\s+(?:exec|x|run|dlx)|(?:uv"
    r"|poetry|pdm|pipenv|hatch)\s+run"
    r"|bundle\s+exec|python[\d.]*\s+-m|docker(?:\s+compose)?\s+exec|sudo|\S*/bin/\w|\./)"
)
"""What is put before a program so that it is found."""
_TOKEN = re.compile(r"[\w.@:/+-]+")
_EMPTY = re.compile(r"-{1,2}[\w-]*|[\d.]+|origin|run|/+")
_GIT_FOLDER = re.compile(r"^(?:\S*/)?git\s+(?:-[Cc]\s+\S+\s+|--no-pager\s+)+")
VERB = re.compile(r"[a-z][a-z0-9:_-]{1,24}")
_PYTHON = re.compile(r"^python[\d.]*$")


class Command(NamedTuple):
    """A command line: as it was meant, without what only trims its output, and what it is for."""

    text: str
    """The part that matters, on one line."""
    head: str
    """Its program and first word, such as ``git push``."""
    purpose: Purpose
    is_simple: bool
    """Whether it is one command, so that its failing is the failing of this."""


def parse(line: object) -> Command | None:
    """What a command line does; ``None`` for what is none.

    >>> parse("cd /w && npm run build 2>&1 | tail -5")
    Command(text='npm run build', head='npm run build', purpose='check', is_simple=True)
    """
    if not isinstance(line, str) or not line.strip():
        return None
    first = line.strip()[:4_000]
    has_document = bool(_HEREDOC.search(first))
    if has_document:
        first = _DOCUMENT.split(first, maxsplit=1)[0].split("\n", 1)[0]
    if "commit" in first:
        first = _MESSAGE.sub("", first)  # another message each time, and the same command
    parts = [part for part in _commands_in(first) if part and not _BEFORE.match(part)]
    if not parts:
        return None
    cleaned = [_bare(part) for part in parts]
    telling = [each for each in cleaned if each and not _is_look(each)] or cleaned
    text = " && ".join(telling) if len(telling) > 1 else telling[0]
    if not text:
        return None
    purposes = [each for each in map(_purpose, reversed(telling)) if each != "other"]
    purpose: Purpose = purposes[0] if purposes else "other"
    is_simple = len(telling) == 1 and not has_document and not any(map(_BLOCK.match, parts))
    return Command(text[:LONGEST], head_of(telling[-1]), purpose, is_simple=is_simple)


def _commands_in(line: str) -> list[str]:
    """The commands of a line; what stands between quotation marks is not cut.

    >>> _commands_in("cd app && python -c 'a; b'; ls")
    ['cd app', "python -c 'a; b'", 'ls']
    """
    found, start = [], 0
    for match in _JOINED.finditer(line):
        if match[1] is None:
            found.append(line[start : match.start()])
            start = match.end()
    return [*found, line[start:]]


def _bare(part: str) -> str:
    """One command without what trims its output, without variables and wrappers."""
    before = None
    text = " ".join(part.split())
    while text != before:
        before = text
        text = _REDIRECT.sub("", _CUT_OFF.sub("", text)).strip()
        text = _WRAPPER.sub("", _ASSIGNED.sub("", text))
    return _GIT_FOLDER.sub("git ", text)


def _is_look(text: str) -> bool:
    return bool(_LOOK.match(text) or _ASKS.match(text))


def _purpose(text: str) -> Purpose:
    for purpose, is_so in _PURPOSES:
        if is_so(text):
            return purpose
    return "other"


_PURPOSES: tuple[tuple[Purpose, Callable[[str], object]], ...] = (
    ("commit", _COMMIT.search), ("revert", _REVERT.search), ("review", _REVIEW.search), ("search",
    _SEARCH.search),
    ("read", _READ.search), ("look", _is_look), ("test", is_test_run), ("check", is_check_run),
    ("network", _NETWORK.search), ("setup", _SETUP.search),
)  # fmt: skip


def head_of(text: str) -> str:
    """The program and, where it has one, the word that says what it shall do.

    >>> head_of("git push -u origin x"), head_of("./run.sh --fast"), head_of(".venv/bin/python -m pytest tests")
    ('git push', 'run.sh', 'python -m pytest')
    >>> head_of("npm run build -- --fast")
    'npm run build'
    """  # noqa: E501
    words = _GIT_FOLDER.sub("git ", text).split()
    if not words:
        return ""
    program = _program(words[0])
    if program == "python" and len(words) > 2 and words[1] == "-m":
        return f"python -m {words[2]}"
    following = [word for word in words[1:] if not word.startswith("-")][:2]
    verbs = following if following[:1] == ["run"] else following[:1]
    if not all(VERB.fullmatch(word) for word in verbs):
        verbs = verbs[:1] if verbs[0] == "run" else []
    return " ".join([program, *verbs])


def _program(word: str) -> str:
    name = word.rsplit("/", 1)[-1]
    return "python" if _PYTHON.match(name) else {"pip3": "pip", "nodejs": "node"}.get(name, name)


def is_of_the_moment(text: str) -> bool:
    """Whether a command has something in it that no other session has: a long script, a commit, a
    comment's number.
    """
    return len(text) > _OF_THE_MOMENT_LENGTH or bool(_OF_THE_MOMENT.search(text))


def is_named_anew(text: str) -> bool:
    """Whether a command names something else each time it is run: a message, files, a branch."""
    return bool(_NAMED_ANEW.match(text))


def fails_by_nature(text: str) -> bool:
    """Whether a failing status is an answer and no trouble, as with ``grep``."""
    return bool(_FAILS_BY_NATURE.match(text))


def is_same_program(one: str, other: str) -> bool:
    """Whether two commands start the same program, however it is found.

    >>> is_same_program("ruff check --x", "uv run ruff check"), is_same_program("golangci-lint run", "staticcheck .")
    (True, False)
    """  # noqa: E501
    program = head_of(one).split(" ")[0]
    return program == head_of(other).split(" ")[0] or bool(
        _RUN_BY.match(other) and program in _words(other)
    )


def is_same_aim(failed: str, worked: str) -> bool:
    """Whether a command that worked was for the same as one that failed: the same words, said
    differently.

    >>> is_same_aim("npm test", "pnpm test"), is_same_aim("python x.py", ".venv/bin/python x.py")
    (True, True)
    """
    if failed == worked:
        return False
    # `git status` and `git read-tree` of one folder have the folder in common, and no aim.
    (program, *verb), (other_program, *other_verb) = (
        [word for word in head_of(each).split(" ") if word != "run"] for each in (failed, worked)
    )
    if program == other_program and verb and other_verb and verb != other_verb:
        return False
    one, other = _words(failed), _words(worked)
    if not one or not other:
        return False
    # `make seed` and `make reset` have only their program in common.
    aims, others = one - {program}, other - {program}
    if not aims:
        return program == other_program or bool(_RUN_BY.match(worked) and program in other)
    # Nor have `git add one.py` and `git add two.py` more in common than what they do.
    aims = aims - {head_of(failed).rpartition(" ")[2]} or aims
    shared = len(aims & others)
    least = (
        0.5 if program == other_program else 2 / 3
    )  # another program must be given the same to do
    return shared / len(aims) >= least and shared / max(1, len(others)) >= 1 / 4


def _words(text: str) -> set[str]:
    """The words of a command, without options and numbers; of a path its last part."""
    words = [word for word in _TOKEN.findall(text) if not _EMPTY.fullmatch(word)]
    return {_program(word.rstrip("/")) for word in words}
