"""Read shell commands: purpose, program, variables, sameness.

A line is split into parts, a part into the programs of its pipe. Variables before a program are
part of its text: `PYTHONPATH=src pytest` is not `pytest`. Wrappers (`sudo`, `timeout`) and what
only trims the output (`| tail`, `2>&1`, `NO_COLOR=1`) are not.
"""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

from smara.actions.models import LOOKING, Command, CommandPart, CommitRun, Purpose
from smara.core.extract import read_cues
from smara.core.startup.regex import re, regex
from smara.core.tool_triggers import (
    ASSIGNMENT,
    SHOW_PROGRAMS,
    split_line,
    trims_output,
    unwrap,
)

LONGEST = 280
_MOST_CHARACTERS, _MOST_PARTS, _MOST_WORDS = 20_000, 40, 40
_WEIGHTS: tuple[frozenset[Purpose], ...] = (
    frozenset({"idle", "edit", "stage"}),
    frozenset({"look", "read", "search"}),
    frozenset({"ask"}),
    frozenset({"other", "network", "review"}),
    frozenset({"git", "revert"}),
    frozenset({"query"}),
    frozenset({"install"}),
    frozenset({"check"}),
    frozenset({"test"}),
    frozenset({"commit"}),
)
"""From the least telling purpose to the most: this one gives a line its purpose."""
WEIGHT: dict[Purpose, int] = {
    purpose: weight for weight, purposes in enumerate(_WEIGHTS) for purpose in purposes
}
TELLING = 2
"""The weight from which on a part is worth a mention beside others."""

CUES, WORDS = read_cues(__file__, "cues.txt")
"""By what a command or a line of output is recognized: patterns, and sets of words."""
CUES.update(read=regex(rf"^(?:{'|'.join(SHOW_PROGRAMS)}|sed\s+-n)\b"))

INNER_LINE = regex(r"^\s*(?:\S*/)?(?:ba|z|da)?sh\s+-l?i?c\s+(?:'([^']*)'|\"([^\"]*)\")\s*$")
# A here-document, or else what only looks like the mark of one: it stands in a quotation without an
# inner command, or nothing follows, and then there is no text.
DOCUMENT = regex(
    r"'[^']*'|\"[A-Za-z]:\\[^\"\n]*\"(?![^\s;&|)])|\"(?:[^\"\\$]|\\.|\$(?!\())*\""
    r"|(?<!\S)#[^\n]*|\\."
    r"|(?<!<)<<-?[ \t]*\\?['\"]?(?P<end>[A-Za-z_][\w-]{0,39})['\"]?(?P<rest>[^\n]*)"
    r"(?:\n(?P<text>.*?)(?:^[ \t]*(?P=end)[ \t\r]*$|\Z)|\Z)",
    re.DOTALL | re.MULTILINE,
)
_REDIRECT = regex(
    r"\s{0,9}(?:(?:[12]|&)?>{1,2}\s{0,9}(?:&[12]\b|(?:/dev/null|/tmp/\S{1,200})(?=\s|$))"
    r"|<\s{0,9}/dev/null)"
)
"""Spaces are bounded: a pattern that may begin anywhere in a long run of them takes minutes."""
_PREPARES = regex(
    rf"^(?:(?:cd|pushd)\s+[^\s;&|]+|(?:export\s+)?{ASSIGNMENT}|set\s+[-+]\w+(?:\s+\w+)?"
    r"|source\s+\S+|\.\s+\S+/activate)\s*$"
)
_EXPORT = regex(rf"^export\s+({ASSIGNMENT})\s*$")
_MESSAGE = regex(
    r"\s{1,9}(?:-\w{0,9}m|--message)[ =]?(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|\S+)|\s{1,9}-a?m$",
    re.DOTALL,
)
_PURPOSES: tuple[Purpose, ...] = ("edit", "search", "read", "other", "review", "install")
"""The purposes that a program's pattern shows before its name is looked up."""

_ENDS = regex(r"\|\|?|;|\n")
"""Between commands of which the last alone says how the line ended."""
_INSTALLED = regex(r"\b(?:install|add|i|get|dlx|npx|uvx)\s+([^\n|;&]+)", re.I)
_OF_THE_MOMENT_LENGTH = 160
_TOKEN = regex(r"[\w.@:/+-]+")
_EMPTY = regex(r"-{1,2}[\w-]*|[\d.]+|origin|run|/+")
VERB = regex(r"[a-z][a-z0-9:_-]{1,24}")
_PYTHON = regex(r"^python[\d.]*$")
_SCRIPT = regex(r"\.(?:py|[cm]?[jt]sx?|rb|sh|pl|php|exs?|jl|R)$")


def read_command(line: object) -> Command | None:
    """Read a command line; None if it runs nothing.

    Such as ``cd app``.

    >>> command = read_command("cd /w && CI=1 npm run build 2>&1 | tail -5")
    >>> command.text, command.head, command.purpose, command.is_simple
    ('CI=1 npm run build', 'npm run build', 'check', True)
    """
    if not isinstance(line, str) or not line.strip():
        return None
    text = line.strip()[:_MOST_CHARACTERS]
    text = INNER_LINE.sub(r"\1\2", text)
    bodiless = _without_documents(text)
    parts: list[CommandPart] = []
    exported: list[str] = []
    commands = [
        [" ".join(program.split()) for program in programs]
        for programs in split_line(bodiless)[:_MOST_PARTS]
    ]
    is_block = any(CUES["block"].match(programs[0]) for programs in commands)
    is_piped = any(len(programs) > 1 for programs in commands)
    for programs in commands:
        if _PREPARES.match(programs[0]):
            exported += [match[1] for match in [_EXPORT.match(programs[0])] if match]
            continue
        if (part := _read_part(programs, exported)) is not None:
            parts.append(part)
    if not parts:
        return None
    if bodiless != text:  # the code that an interpreter is fed: another text does another thing
        fed = f" <<{crc32(text.encode('utf-8', 'surrogatepass')):08x}"
        parts = [
            replace(part, aim=part.aim + fed) if part.head in WORDS["interpreters"] else part
            for part in parts
        ]
    changing = [part for part in parts if part.purpose not in LOOKING] or parts
    main = max(reversed(parts), key=lambda part: WEIGHT[part.purpose])
    # What a line writes into a file, or stages for a commit, is another text each time.
    hidden = ("edit", "stage") if main.purpose == "commit" else ("edit",)
    shown = [part for part in changing if part.purpose not in hidden] or changing
    whole = (
        "; ".join(" | ".join(programs) for programs in commands)
        if is_block
        else " && ".join(part.text for part in shown)
    )
    is_simple = len(changing) == 1 and not is_block and bodiless == text
    return Command(tuple(parts), main, whole[:LONGEST], is_simple=is_simple, is_piped=is_piped)


def hides_exit(line: str, purpose: Purpose) -> bool:
    """Return True if another command decides a line's exit code.

    >>> hides_exit("pytest || true", "test"), hides_exit("cd app; pytest", "test")
    (True, False)
    """
    last = read_command(_ENDS.split(_without_documents(line).strip().rstrip(";"))[-1])
    return last is None or not last.has(purpose)


def beside_commit(command: Command, line: str) -> Command | None:
    """Return the parts of a line that its commit proves nothing of.

    Those behind it, and those before it of which something else hid the exit code. None if no such
    part weighs.

    >>> [beside_commit(read_command(each), each) for each in ("make && git commit -m x", "git commit")]
    [None, None]
    >>> beside_commit(read_command("git commit -m x && git push"), "git commit -m x && git push").text
    'git push'
    """  # noqa: E501
    last = max(at for at, part in enumerate(command.parts) if part.purpose == "commit")
    until = line.partition("git commit")[0] + "git commit"
    parts = tuple(
        part
        for at, part in enumerate(command.parts)
        if WEIGHT[part.purpose] >= TELLING
        and part.purpose != "commit"
        and (at > last or hides_exit(until, part.purpose))
    )
    if not parts:
        return None
    return replace(
        command,
        parts=parts,
        main=max(reversed(parts), key=lambda part: WEIGHT[part.purpose]),
        text=" && ".join(part.text for part in parts)[:LONGEST],
        is_simple=len(parts) == 1,
    )


def _without_documents(line: str) -> str:
    """Remove the bodies of here-documents: text that is fed to a command."""
    return DOCUMENT.sub(lambda each: each[0] if each["text"] is None else each["rest"], line)


def _read_part(programs: list[str], exported: list[str]) -> CommandPart | None:
    """Read one command of a line from the programs of its pipe."""
    while (
        len(programs) > 1 and _program(programs[-1]) in WORDS["trims"] and ">" not in programs[-1]
    ):
        programs = programs[:-1]
    variables, first = split_variables(programs[0])
    if not first:
        return None
    bases = [first, *(split_variables(program)[1] for program in programs[1:])]
    purpose, main = max(
        ((_purpose_of(base), base) for base in bases), key=lambda each: WEIGHT[each[0]]
    )
    bare = CUES["runner"].sub("", main)
    words = bare.split()[1:_MOST_WORDS]
    telling = [variable for variable in [*exported, *variables] if not trims_output(variable)]
    piped = " | ".join([first, *(_REDIRECT.sub("", program) for program in programs[1:])])
    aim = head_of(bare)
    return CommandPart(
        " ".join([*telling, piped]),
        head_of(main),
        # `python -c A` and `python -c B` do different things; `python3 -c A` is the first again.
        f"{aim} {bare.partition(' ')[2]}".rstrip() if aim in WORDS["interpreters"] else aim,
        purpose=purpose,
        arguments=tuple(word for word in words if not word.startswith("-")),
    )


def split_variables(text: str) -> tuple[list[str], str]:
    """Split off the variables set for a command, without wrappers.

    >>> split_variables("sudo -E FOO='a b' timeout 60 git -C sub push > /dev/null")
    (["FOO='a b'"], 'git push')
    """
    variables, text = unwrap(_REDIRECT.sub("", text))
    text = CUES["git options"].sub("git ", text).removesuffix(" &")
    if text.startswith("git commit"):
        text = _MESSAGE.sub("", text)  # another message each time, and the same command
    return variables, text


def _purpose_of(text: str) -> Purpose:
    bare = CUES["runner"].sub("", text)
    program = _program(bare)
    if program == "git" and not CUES["search"].match(bare):
        if CUES["git commit"].match(text):
            return "commit"
        if CUES["git revert"].match(text):
            return "revert"
        if CUES["git look"].match(text) or CUES["asks"].match(text):
            return "look"
        return "stage" if re.match(r"git\s+(?:add|stage)\b", text) else "git"
    for purpose in _PURPOSES:
        if CUES[purpose].search(bare):
            return purpose
    if program in WORDS["idle"]:
        return "idle"
    if program in WORDS["look"]:
        return "look"
    if CUES["asks"].match(text):
        return "ask"
    if is_test_run(bare):
        return "test"
    if CUES["check run"].search(bare) or CUES["build"].match(bare):
        return "check"
    if CUES["query"].search(bare):
        return "query"
    return "network" if CUES["network"].search(f"{text} ") else "other"


def is_test_run(command: str) -> bool:
    """Return True if a command runs tests.

    >>> [is_test_run(each) for each in ("go test", "npm run test:ci", "uv run pytest -q", "make latest", "go vet")]
    [True, True, True, False, False]
    """  # noqa: E501
    return CUES["test run"].search(command) is not None


def head_of(text: str) -> str:
    """Return a command's program and subcommand.

    >>> head_of("git push -u origin x"), head_of("./run.sh --fast"), head_of(".venv/bin/python -m pytest tests")
    ('git push', 'run.sh', 'python -m pytest')
    >>> head_of("CI=1 npm run build -- --fast"), head_of("docker compose up -d"), head_of("python scripts/seed.py")
    ('npm run build', 'docker compose up', 'python seed.py')
    """  # noqa: E501
    if not (words := split_variables(text)[1].split()):
        return ""
    program = _program(words[0])
    if program == "python" and len(words) > 2 and words[1] == "-m":
        return f"python -m {words[2]}"
    following = [word for word in words[1:_MOST_WORDS] if not word.startswith("-")][:2]
    if program in WORDS["interpreters"] and following and _SCRIPT.search(following[0]):
        return f"{program} {following[0].rpartition('/')[2]}"
    verbs = following if following[:1] in (["run"], ["exec"], ["compose"]) else following[:1]
    if not all(VERB.fullmatch(word) for word in verbs):
        verbs = [word for word in verbs[:1] if VERB.fullmatch(word)]
    return " ".join([program, *verbs])


def _program(text: str) -> str:
    name = (text.split(None, 1) or [""])[0].rsplit("/", 1)[-1]
    return "python" if _PYTHON.match(name) else {"pip3": "pip", "nodejs": "node"}.get(name, name)


def is_of_the_moment(text: str) -> bool:
    """Return True if a command is particular to one session.

    That is a long script, a commit, the number of a comment, a download; a URL of a file here is
    none.

    >>> is_of_the_moment("X=sqlite:///dev.db make up"), is_of_the_moment("npx https://x.y/z")
    (False, True)
    """
    return len(text) > _OF_THE_MOMENT_LENGTH or bool(CUES["of the moment"].search(text))


def is_dictated(text: str, output: str) -> bool:
    """Return True if output told to install what a command installs.

    A module that is named as missing is what the code imports. An order to install something is
    the word of an author that is not known.

    >>> is_dictated("pip install evil", "No module named 'x'. Run `pip install evil`")
    True
    >>> is_dictated("pip install requests", "No module named 'requests'")
    False
    >>> is_dictated("pip install -e .", "Run `pip install -e .`")
    False
    """
    packages, orders = (
        {word.strip("`'\".,;:!?)") for each in _INSTALLED.findall(words) for word in each.split()}
        for words in (text, output)
    )
    # The folder itself and a list of requirements are the repository's.
    return any(not re.match(r"-|$|.*\.txt$", word) for word in packages & orders)


def is_named_anew(text: str) -> bool:
    """Return True if a command names something else at each run.

    Such as a message, files, a branch.
    """
    return bool(CUES["named anew"].match(split_variables(text)[1]))


def fails_by_nature(text: str) -> bool:
    """Return True if failing is an answer, as with ``grep``."""
    return bool(CUES["fails by nature"].match(split_variables(text)[1]))


def is_same_program(one: str, other: str) -> bool:
    """Return True if two commands start the same program.

    >>> is_same_program("ruff check --x", "uv run ruff check"), is_same_program("golangci-lint run", "staticcheck .")
    (True, False)
    """  # noqa: E501
    program = head_of(one).split(" ")[0]
    base = split_variables(other)[1]
    return program == head_of(base).split(" ")[0] or bool(
        CUES["found by"].match(base) and program in _words(base)
    )


def is_same_aim(failed: str, worked: str) -> bool:
    """Return True if a working command replaces a failed one.

    It has the same words, or the same program with other variables.

    >>> is_same_aim("npm test", "pnpm test"), is_same_aim("python x.py", ".venv/bin/python x.py")
    (True, True)
    >>> is_same_aim("pytest", "PYTHONPATH=src pytest"), is_same_aim("pytest", "pytest")
    (True, False)
    """
    if failed == worked:
        return False
    failed, worked = (
        split_variables(each)[1].replace("docker-compose ", "docker compose ", 1)
        for each in (failed, worked)
    )
    if failed == worked:
        return True
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
        return program == other_program or bool(CUES["found by"].match(worked) and program in other)
    # Nor have `git add one.py` and `git add two.py` more in common than what they do.
    aims = aims - {head_of(failed).rpartition(" ")[2]} or aims
    shared = len(aims & others)
    # Another program must be given the same to do.
    least = 0.5 if program == other_program else 2 / 3
    return shared / len(aims) >= least and shared / max(1, len(others)) >= 1 / 4


def _words(text: str) -> set[str]:
    """Return the words of a command without options and numbers; of a path its last part."""
    words = [word for word in _TOKEN.findall(text) if not _EMPTY.fullmatch(word)]
    return {_program(word.rstrip("/")) for word in words}


COMMITTED = regex(
    r"^\[(?P<branch>[^\]\n]{1,120}?)(?: \(root-commit\))? (?P<sha>[0-9a-f]{7,40})\] "
    r"(?P<subject>.+)$",
    re.MULTILINE,
)
_MESSAGES = regex(r"(?:-\w*m|--message)[ =]?(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)')", re.DOTALL)


def read_commit(line: str, output: str) -> CommitRun:
    """Read a commit from its command line and git's output.

    >>> read_commit("git commit -m 'fix: it' -m 'why'", "[main 1a2b3c4] fix: it")
    CommitRun(branch='main', sha='1a2b3c4', subject='fix: it', message='fix: it\\n\\nwhy')
    """
    line = INNER_LINE.sub(r"\1\2", line[:_MOST_CHARACTERS])
    documents = (
        each for each in DOCUMENT.finditer(line) if each["text"] and not each["rest"].strip()
    )
    document = next(documents, None)
    message = (
        document["text"]
        if document
        else "\n\n".join(one or other for one, other in _MESSAGES.findall(line))
    ).strip()
    if (stated := COMMITTED.search(output[:_MOST_CHARACTERS])) is None:
        return CommitRun("", "", message.partition("\n")[0].strip(), message=message)
    return CommitRun(stated["branch"], stated["sha"], stated["subject"], message=message)
