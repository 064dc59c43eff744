"""Find the commands that a person's words refuse.

"Not pip", said after ``pip install``, is told again before the next command that starts pip.
Commands come from the session, so no list of programs is needed, and no language: only the small
words of refusal. What the agent does after it tells the rest: a command that it goes on to run was
refused for that moment, if at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from smara.actions.commands import read_command
from smara.actions.models import LOOKING
from smara.core.startup.regex import re
from smara.core.terms import cjk_run
from smara.core.tool_triggers import starts
from smara.decisions.utterances import content_terms, count_signs, signs

_NAMED_ALONE = frozenset({"commit", "push", "stash", "rebase", "amend", "squash", "cherry-pick"})
"""Subcommands that mean the same without their program."""
_RUNNERS = frozenset({"run", "exec", "-m"})
"""Words after which a program stands."""
_ORDINARY = frozenset({"go", "make", "just", "task", "time", "open", "start", "code", "node"})
"""Programs that are words of every talk; they are named with a subcommand."""
_BETWEEN = r"(?:[^\w,;.:!?()]+[^\s,;.:!?()]+){0,4}?[^\w,;.:!?()]+"
"""Up to four words of one clause."""
_MOST_COMMANDS = 400


class RunCommand(NamedTuple):
    """A command that an agent ran: program and subcommands, all words."""

    head: tuple[str, ...]
    words: tuple[str, ...]


def commands_run(lines: Sequence[str]) -> list[RunCommand]:
    """Return the commands of lines, without those that only look.

    >>> [each.head for each in commands_run(["cd a && uv run pytest -q", "git push", "git log"])]
    [('uv', 'run', 'pytest'), ('git', 'push')]
    """
    read = (read_command(line) for line in lines[-_MOST_COMMANDS:])
    return [
        RunCommand(tuple(part.head.split()), tuple(part.text.split()))
        for command in read
        if command is not None
        for part in command.parts
        if part.purpose not in LOOKING and part.head
    ]


def refused_commands(
    text: str, commands: Iterable[RunCommand], later: Sequence[str] = ()
) -> list[tuple[str, ...]]:
    """Return the commands that a sentence refuses, as programs with subcommands.

    Args:
        text: The sentence.
        commands: What was run; see `commands_run`.
        later: The command lines that the agent ran after it.

    >>> run = commands_run(["pip install x", "git add . && git push"])
    >>> refused_commands("ugh, not pip", run), refused_commands("please don't push to main", run)
    ([('pip',)], [('git', 'push')])
    >>> refused_commands("no git add . here", run), refused_commands("not pip", run, ["pip list"])
    ([('git', 'add', '.')], [])
    """
    found = set()
    for head, words in commands:
        phrase = " ".join(head[:1] + head[-1:])
        if len(head) > 1 and _is_refused(text, phrase):
            # "No git add ." leaves "git add a.py".
            rest = text.lower().partition(phrase)[2].split(None, 1)[:1]
            found.add(head + tuple(word for word in rest if word in words and word not in head))
            continue
        for place, word in enumerate(head):
            is_program = not place or head[place - 1] in _RUNNERS
            is_verb = head[0] == "git" and word in _NAMED_ALONE
            if (is_verb or (is_program and _is_name(word))) and _is_refused(text, word):
                found.add(head[: place + 1])
                break
    return sorted(
        each
        for each in found
        # "No git add" does not refuse all of git.
        if not any(each == more[: len(each)] for more in found - {each})
        and not any(starts(line, each) for line in later)
    )


def replaced_programs(
    text: str, before: Iterable[RunCommand], after: Iterable[RunCommand]
) -> list[tuple[str, ...]]:
    """Return programs that are given up for others; a text names both.

    >>> before, after = commands_run(["docker run x"]), commands_run(["podman run x"])
    >>> replaced_programs("docker is banned, podman it is", before, after)
    [('docker',)]
    """
    old, new = ({each.head[0] for each in some} for some in (before, after))
    named = {name for name in old ^ new if _is_name(name) and _named(name).search(text)}
    return sorted((name,) for name in named & old) if named & new else []


def _is_name(word: str) -> bool:
    return word not in _ORDINARY and word[:1].isalpha() and bool(content_terms(word))


def _is_refused(text: str, name: str) -> bool:
    """Return True if a small word of refusal stands beside a name."""
    if name not in text.lower():
        return False
    if cjk_run().search(text):  # where in the sentence it stands tells nothing
        return bool(_named(name).search(text) and count_signs(text, "refuse"))
    return _beside(name).search(text.replace("’", "'")) is not None


@cache
def _named(name: str) -> re.Pattern[str]:
    return re.compile(_word(name), re.IGNORECASE)


def _word(name: str) -> str:
    return rf"(?<![A-Za-z0-9_./-]){re.escape(name)}(?![A-Za-z0-9_/-]|\.\w)"


@cache
def _beside(name: str) -> re.Pattern[str]:
    refuse, word = signs()["refuse"][0].pattern, _word(name)
    return re.compile(rf"(?:{refuse}){_BETWEEN}{word}|{word}{_BETWEEN}(?:{refuse})", re.IGNORECASE)
