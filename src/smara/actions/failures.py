"""Detect failed calls, their error line and the failed tests.

The fingerprint of an error is made of the part that is constant between runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice, takewhile

from smara.actions.commands import (
    COMMITTED,
    CUES,
    VERB,
    beside_commit,
    hides_exit,
    read_command,
    split_variables,
)
from smara.actions.models import LOOKING, Command, Failure, Outcome, Purpose
from smara.actions.tool_output import exit_code
from smara.core.events import HostEvent
from smara.core.startup.regex import re, regex
from smara.core.tool_triggers import starts

REPORT = 1_200
"""So many characters at the end of an output have the report of a test run."""
_PRINTING: frozenset[Purpose] = LOOKING | {"network", "query"}
"""Commands that print what others wrote."""
_WORK = frozenset({"check", "test", "install", "git", "commit"})
_TELLING_LINE, _LEAST_LETTERS = 400, 8
ABSENT_WORDS = ("not found", "not be found", "not recognized as")
"""One of these stands in every error that names a program which is not there."""
_NOT_RUN = (
    "sibling tool call errored", "has not been read yet", "string to replace not found",
    "no changes to make", "exceeds maximum allowed tokens", "inputvalidationerror",
)  # fmt: skip
_HARNESS = (
    *_NOT_RUN, "tool_use_error", "doesn't want to proceed", "request interrupted",
    "interrupted by user", "to replace not found", "has not been read", "sibling tool call",
    "requires approval", "require approval", "requires permission", "was rejected",
    "permission to use", "hook error", "blocked by hook", "eisdir", "matches of the string",
)  # fmt: skip
_VARIES: tuple[tuple[re.Pattern[str], str], ...] = (
    (regex(r"\x1b\[[\d;]*m"), ""),
    (regex(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*|\b\d\d:\d\d:\d\d\S*"), "TIME"),
    (regex(r"\b[0-9a-f]{8}-[0-9a-f]{4}-\S{22,}\b|\b0x[0-9a-f]+\b"
                r"|\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b", re.IGNORECASE), "ID"),
    (regex(r"(?:[A-Za-z]:)?(?:/|\./|\.\./)(?:[\w.@+-]+/)*([\w.@+-]+)"), r"\1"),
    (regex(r"(current branch )\S+"), r"\1NAME"),
    (regex(r"\d+"), "N"),
    (regex(r"\s+"), " "),
)  # fmt: skip
_HEAD, _TAIL = 600, 2_000


def outcome_of(event: HostEvent) -> Outcome:
    """Return how the tool call of an event ended."""
    is_error = event.kind == "tool_fail" or bool(event.error)
    if event.tool != "Bash":
        return "failed" if is_error else "ok"
    line = str(event.tool_input.get("command") or "")
    return read_outcome(line, event.tool_output, is_error=is_error)


def read_outcome(
    line: str,
    output: str,
    *,
    is_error: bool = False,
    code: int | None = None,
    command: Command | None = None,
) -> Outcome:
    """Return how a command ended, by host, exit code and words.

    Args:
        line: The command line.
        output: What came out, with the exit code if the host put it there.
        is_error: Whether the host says that it failed. That it says nothing proves nothing.
        code: The exit code, where it is known from elsewhere.
        command: The line as a command, where it was read before.

    >>> read_outcome("git push", "! [rejected] main -> main"), read_outcome("cat log", "fatal: x")
    ('failed', 'ok')
    >>> read_outcome("python x.py", "Traceback (most recent call last):\\nValueError: bad")
    'unknown'
    """
    code = exit_code(output) if code is None else code
    if is_error or code not in (None, 0):
        return "failed"
    ends = ends_of(output)
    if not line or not CUES["sign of failure"].search(ends):
        return "ok"
    command = command or read_command(line)
    purpose = command.purpose if command is not None else "idle"
    is_hidden = hides_exit(line, purpose)
    if command is not None and purpose == "commit" and COMMITTED.search(ends):
        # Unless what stands beside it clearly failed, the commit speaks for the line.
        rest = beside_commit(command, line)
        output = COMMITTED.sub("", output)  # its subject may speak of errors
        has_failed = rest and read_outcome(line, output, code=code, command=rest) == "failed"
        return "failed" if has_failed else "ok"
    if code == 0 and not is_hidden:
        return "ok"
    is_red = has_red_tests(ends)
    if is_red and command is not None and command.has("test"):
        return "failed"
    # A look is read whole: at the edge of a long output a complaint that is cut looks like a hit.
    if not (purpose in LOOKING and CUES["partial look"].match(output)) and _is_refusal(
        command, line, ends
    ):
        # A look that may fail asks something; another command may stand in for one that failed.
        if "||" not in line or (is_hidden and purpose not in LOOKING):
            return "failed"
        return "ok" if purpose in LOOKING else "unknown"
    failure = failure_in(ends.split("\n"))
    if (
        purpose in _PRINTING
        or (purpose == "test" and CUES["green tests"].search(ends))
        or not (is_red or (failure is not None and failure.is_certain))
    ):
        return "ok"
    # Behind a pipe the host saw another exit code; then the last word is that of the program.
    is_last = failure is not None and ends.rstrip().endswith(failure.line)
    is_known = purpose == "check" or (is_hidden and (is_last or purpose in _WORK))
    return "failed" if is_known else "unknown"


def _is_refusal(command: Command | None, line: str, output: str) -> bool:
    """Return True if a program of a line says that it failed, or the shell says so of it."""
    # Behind `&&` a command has not even begun; behind `;` it went on without the one before it.
    parts = () if command is None else (command.main,) if {";", "\n"} & {*line} else command.parts
    heads = [head for part in parts for head in (part.head, part.aim)] or [line.strip()]
    lines = output.strip().split("\n")
    if command is None or command.purpose in _PRINTING - {"query"}:
        del lines[1:]  # what follows is what others said
    return any(
        CUES["own failure"].search("\n".join(f"{head.partition(' ')[0]} {each}" for each in lines))
        for head in heads
    ) or bool(lacking(line, telling_line("\n".join(lines))))


def has_red_tests(output: str) -> bool:
    """Return True if the report of a test run counts failures.

    Where lines sum it up, titles and logs above the last of them count for nothing.

    >>> has_red_tests("shows 2 failed jobs\\n3 passed in 1s"), has_red_tests("shows 2 failed jobs")
    (False, True)
    >>> has_red_tests("ok  example.com/a 0.1s\\nDONE 5 tests, 1 failure in 0.1s")
    True
    """
    lines = _VARIES[0][0].sub("", output[-REPORT:]).split("\n")  # without colors
    sums = {
        at: bare
        for at, bare in enumerate(line.strip(" =\t\r") for line in lines)
        if CUES["test summary"].match(bare)
    }
    # What follows the last summary may be the report of another program, in a form not known.
    telling = "\n".join([*sums.values(), *lines[max(sums, default=-1) + 1 :]])
    return CUES["red tests"].search(telling) is not None


def ends_of(text: str) -> str:
    """Return a long output's beginning and end, where errors stand."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"


@lru_cache(maxsize=8)  # one failure is asked about more than once
def telling_line(text: str) -> str:
    """Return the line that says what went wrong; empty if none does."""
    lines = ends_of(text).rstrip().split("\n")
    failure = failure_in(lines)
    last = [failure.line] if failure is not None else []
    return next(filter(None, map(_plain, [*last, *reversed(lines[-8:])])), "")


def _plain(line: str) -> str:
    """A line without colors; empty when it says nothing, or is no line of a message but a piece of
    data.
    """
    if len(line) > _TELLING_LINE:
        return ""
    plain = _VARIES[0][0].sub("", line).strip()[:300]
    letters = sum(map(str.isalpha, plain))
    return plain if letters >= _LEAST_LETTERS and not CUES["says nothing"].search(plain) else ""


@lru_cache(maxsize=512)
def constant_part(line: str) -> str:
    """Return the part of an error that stays when it comes again.

    It has no numbers, times, hashes, folders or names of branches.
    """
    for pattern, word in _VARIES:
        line = pattern.sub(word, line)
    return line.strip().lower()[:200]


def fingerprint(tool: str, head: str, line: str) -> str:
    """Return the hash of an error of a program."""
    return hashlib.sha256(
        f"{tool}\0{head}\0{constant_part(line)}".encode("utf-8", "replace")
    ).hexdigest()[:16]


def was_not_run(text: str) -> bool:
    """Return True if the host itself refused a call."""
    return any(
        map(
            text[:600].lower().__contains__, (*_NOT_RUN, "has been modified since", "was cancelled")
        )
    )


def is_harness(text: str) -> bool:
    """Return True if the agent's own program refused the call."""
    return any(map(text[:600].lower().__contains__, _HARNESS))


@lru_cache(maxsize=512)
def is_environment(line: str) -> bool:
    """Return True if an error is about the environment.

    What is installed, running or spelled, not code being written.
    """
    return bool(CUES["environment"].search(line))


def is_absent_tool(line: str) -> bool:
    """Return True if a command could not run at all.

    Then a test or a check has not even begun.
    """
    return bool(CUES["absent tool"].search(line))


def lacking(command: str, line: str) -> tuple[str, ...]:
    """Return the words of a missing program or option.

    Any other command with these words would fail as well. Empty for all else.

    >>> lacking("go build ./...", "bash: line 1: go: command not found")
    ('go',)
    >>> lacking("gh pr diff 7 --stat", "unknown flag: --stat"), lacking("rtk bun test", "unrecognized subcommand 'bun'")
    (('gh', 'pr', 'diff', '--stat'), ('rtk', 'bun'))
    """  # noqa: E501
    command = split_variables(command)[1]
    program, *rest = command.split() or [""]
    if (absent := CUES["absent program"].search(line)) is not None:
        named = next(filter(None, absent.groups()), "")
        return (named,) if starts(command, (named,)) else ()
    words = [word for word in rest if not word.startswith("-")]
    if (refused := CUES["refused option"].search(line)) is not None and refused["option"]:
        verbs = [*takewhile(VERB.fullmatch, words)][:2]
        found = (program, *verbs, refused["option"])
    else:
        unknown = CUES["unknown subcommand"].search(line)
        if unknown is None or words[:1] != [unknown["word"]]:
            return ()
        found = (program, str(unknown["word"]))
    return found if starts(command, found) else ()


def is_option(line: str) -> bool:
    """Return True if a program does not know a given option."""
    return bool(CUES["refused option"].search(line))


def is_passing(line: str) -> bool:
    """Return True if an error is temporary.

    Such as a lock, a network, or what others had pushed meanwhile.
    """
    return bool(CUES["passing"].search(line))


def is_absent(text: str) -> bool:
    return bool(CUES["absent file"].search(text[:600]))


_RANKED = (
    regex(
        r"(?:[\w.]{1,80}\.)?[A-Z]\w{0,60}(?:Error|Exception|Warning|Fault|Interrupt|Exit)\b[:( "
        r"].{0,300}"
    ),
    regex(r"(?i).{0,60}\berror(?:\[\w{1,12}\]|\s\w{2,4}\d{2,6})?\s?: .{1,300}"),
    regex(r"\*\* \(\w.{1,300}"),
    regex(
        r"(?i)(?:fatal|panic|npm err!|e:|err!?|\[error\]|✘|× |failed|failure|aborted|rejected)[:! "
        r"].{1,300}"
    ),
    regex(
        r"(?i).{0,160}(?:no such file|not found|permission denied|cannot |could not |undefined "
        r"|refused|timed out|ignored by|\[(?:remote )?rejected"
        r"|unable to |must be |is required|not formatted|does not exist|beyond a symbolic|is not "
        r"a).{0,200}"
    ),
    regex(r"(?i).{0,160}(?:\bfail|\berror|exception|invalid|assertion).{0,200}"),
)
_LIBRARY = (
    "node_modules/",
    "site-packages/",
    "/deps/",
    "deps/",
    "/usr/",
    "<frozen",
    "lib/python",
    "internal/",
)
_CERTAIN = 3
_MARGIN = " \t│|┃>└─"

MOST_LINES = 4_000


def failure_in(lines: Iterable[str]) -> Failure | None:
    """Return the failure in an output, or None."""
    silent = len(_RANKED)
    words, rank, is_traceback, is_assertion = "", silent + 1, False, False
    place, words_at_place, before, trace = ("", 0), "", "", list[str]()
    for line in islice(lines, MOST_LINES + 1):
        bare = line.rstrip().lstrip(_MARGIN)
        # The first place outside of libraries; a linter says what is wrong beside it or in the
        # line before.
        is_candidate = ":" in line or "(" in line or 'File "' in line
        if is_candidate and (match := CUES["error place"].search(line)):
            file, number = [group for group in match.groups() if group]
            if len(trace) < 5:
                trace.append(" ".join(line.split()))
            if not place[0] and not any(map(file.__contains__, _LIBRARY)):
                place = (file, int(number))
                beside = line[match.end() :].strip(_MARGIN + ":0123456789")
                words_at_place = bare if beside.count(" ") > 1 else before
        elif bare:
            before = bare
        if is_assertion and line.strip():
            # Behind "Assertion failed" the next line says what was asserted.
            is_assertion = False
            words = f"{words}; {bare}"
        if CUES["hint of failure"].search(line) and not CUES["no failure"].search(line):
            is_traceback = is_traceback or line.startswith("Traceback")
            if bare.startswith("E  "):  # the margin of pytest
                bare = bare[1:].lstrip()
            line_rank = next(
                (number for number, each in enumerate(_RANKED) if each.match(bare)), silent + 1
            )
            if line_rank < silent and CUES["says nothing"].search(bare):
                line_rank = silent  # for want of another
            # Python tells the error last; the others tell the first error first.
            if line_rank < rank or (is_traceback and line_rank == rank == 0):
                rank, words = line_rank, bare
                is_assertion = "ssertion" in bare
    words = words or words_at_place
    if not words:
        return None
    kind = CUES["error type"].search(words)
    return Failure(
        words,
        kind[1] if kind else "",
        place[0],
        line_number=place[1],
        trace=tuple(trace),
        is_certain=rank <= _CERTAIN and "arning" not in words,
    )
