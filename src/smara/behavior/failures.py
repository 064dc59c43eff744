"""Detect failed calls, their error line and the failed tests.

The fingerprint of an error is made of the part that is constant between runs.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from itertools import takewhile

from smara.behavior.commands import VERB, parse
from smara.core.events import HostEvent
from smara.core.tool_triggers import starts

_EXIT = re.compile(
    r"^\W{0,3}(?:exit code:? |Exit code |exit status |Process exited with code "
    r"|Command failed with exit code )([1-9]\d{0,2})"
    r"|[\"']exit_code[\"']: ?([1-9]\d{0,2})",
    re.IGNORECASE | re.MULTILINE,
)
_SURROUNDINGS = (
    "command not found", "No such file or directory", "ermission denied", "not recognized as",
    "annot find",
    "ould not ", "Couldn't ", "onnection refused", "ECONNREFUSED", "EADDRINUSE", "unrecognized ",
    "nknown option",
    "nknown command", "nknown flag", "not installed", "timed out", "has no upstream",
    "are ignored by",
    "does not exist", "already in use", "[rejected]", "non-fast-forward", "already exists",
    "No module named",
    "is required", "issing script", "not a git repository", "o such ", "pathspec",
)  # fmt: skip
"""Words of errors that speak of what is installed, running or spelled; some without their first
letter.
"""
_TROUBLE = (
    "Error",
    "Exception",
    "fatal:",
    "error:",
    "ERR!",
    "ERROR",
    "panic",
    "error[",
    "not found",
    "undefined reference",
)
_SAYS_NOTHING = re.compile(
    r"task failed|^\W*no output\W*$|exit(?:ed)? (?:status|with|code)|ELIFECYCLE|Command failed"
    r"|^make(?:\[\d+\])?: \*\*\*|^npm (?:ERR!|error)\s*(?:code|errno|path|A complete log)|failed "
    r"to push some refs"
    r"|error: Recipe|^\s*at .+:\d+|^\W*(?:\w+\W+)?warning\b|^\W*(?:ERROR|FAIL(?:ED)?|Error:?"
    r"|Traceback.*)\W*$",
    re.IGNORECASE,
)
_ABSENT_TOOL = re.compile(
    r"command not found|not installed|[Uu]nknown (?:flag|option|command|argument)"
    r"|unrecognized (?:option|argument|flag|subcommand)|No module named|Cannot find module"
    r"|ECONNREFUSED"
    r"|[Cc]onnection refused|[Pp]ermission denied|[Mm]issing script|not recognized as|not a git "
    r"repository|EADDRINUSE"
    r"|already in use",
)
_PAGED = re.compile(r"\|\s*(?:head|tail|cat|less|tee)\b[^|;&\n]*$")
_REFUSED = re.compile(r"\W*(?:error|fatal|usage|[\w./()-]{1,40}(?::\d+)?): ", re.IGNORECASE)
_REFUSAL = 800
_TELLING_LINE, _LEAST_LETTERS, _TRIES = 400, 8, 3
_ENVIRONMENT = re.compile(
    r"command not found|No module named|Cannot find module|No such file or directory"
    r"|[Pp]ermission denied|not installed"
    r"|ECONNREFUSED|[Cc]onnection refused|unrecognized (?:option|argument)|[Uu]nknown (?:option"
    r"|command|flag|argument)"
    r"|EADDRINUSE|already in use|no upstream|are ignored by|does not exist|not recognized|missing "
    r"script|is required"
    r"|could not (?:connect|find|resolve|open|read)|[Cc]annot find|no such (?:option|command"
    r"|table|column)|timed out"
    r"|authentication|credentials|version|not a git repository|pathspec|nothing to commit|lock",
)
_OPTION = re.compile(
    r"(?:unknown|unrecognized|invalid|unexpected|illegal|no such)[\w ]{0,12} (?:flag|option"
    r"|argument)s?\b"
    r"(?:[^\w-]{1,4}(?P<option>--?[A-Za-z][\w-]*))?",
    re.IGNORECASE,
)
_SUBCOMMAND = re.compile(
    r"(?:unknown|unrecognized|invalid|no such) (?:sub)?command\b[^\w-]{0,4}(?P<word>[\w:-]+)",
    re.IGNORECASE,
)
ABSENT_WORDS = ("not found", "not be found", "not recognized as")
"""One of these stands in every error that names a program which is not there."""
_ABSENT_PROGRAM = re.compile(
    r"command not found: ([\w.+-]+)|([\w.+-]+): (?:command )?not found\b|command '([\w.+-]+)' "
    r"could not be found"
    r"|'([\w.+-]+)' is not recognized as|\"([\w.+-]+)\": executable file not found"
)
_PASSING = re.compile(
    r"could not write index|index\.lock|another git process|temporarily unavailable|connection "
    r"(?:reset|timed out)"
    r"|TLS handshake|rate limit|too many requests|\b50[234]\b|could not resolve host|network is "
    r"unreachable"
    r"|unexpected disconnect|ETIMEDOUT|ECONNRESET|EAI_AGAIN|database is locked|\[(?:remote "
    r")?rejected\]|\bfetch first\b"
    r"|non-fast-forward|fix conflicts|could not apply",
    re.IGNORECASE,
)
_HARNESS = (
    "tool_use_error", "doesn't want to proceed", "request interrupted", "interrupted by user",
    "to replace not found",
    "has not been read", "no changes to make", "exceeds maximum allowed"
                                               " tokens", "sibling tool call", "requires approval",
    "require approval", "requires permission", "was rejected", "permission to use", "hook error",
    "blocked by hook",
    "eisdir", "inputvalidationerror", "matches of the string",
)  # fmt: skip
_CHANGED = re.compile(
    r"modified since (?:it was )?(?:last )?read|has been (?:unexpectedly )?modified|changed on "
    r"disk",
    re.IGNORECASE,
)
_ABSENT = re.compile(
    r"(?:File|Path|path) does not exist|ENOENT|No such file|file not found|cannot find the file",
    re.IGNORECASE,
)
_RED = re.compile(
    r"\b[1-9]\d* (?:failed|failing|failures?|errors?)\b|^FAIL(?:ED|:)?\b|--- FAIL|test result: "
    r"FAILED|Tests:.*\bfailed"
    r"|AssertionError|assertion .*failed|FAILED \(",
    re.MULTILINE | re.IGNORECASE,
)
_GREEN = re.compile(
    r"\b\d+ (?:passed|passing|tests?, 0 failures)\b|^OK\b|test result: ok|^ok\s+\S+|All tests "
    r"passed|\b0 fail(?:ed"
    r"|ures|ing)?\b",
    re.MULTILINE | re.IGNORECASE,
)
_NO_TESTS = re.compile(r"no tests (?:ran|found|collected)|collected 0 items", re.IGNORECASE)
_VARIES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\x1b\[[\d;]*m"), ""),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*|\b\d\d:\d\d:\d\d\S*"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-\S{22,}\b|\b0x[0-9a-f]+\b"
                r"|\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b", re.IGNORECASE), "ID"),
    (re.compile(r"(?:[A-Za-z]:)?(?:/|\./|\.\./)(?:[\w.@+-]+/)*([\w.@+-]+)"), r"\1"),
    (re.compile(r"(current branch )\S+"), r"\1NAME"),
    (re.compile(r"\d+"), "N"),
    (re.compile(r"\s+"), " "),
)  # fmt: skip
_HEAD, _TAIL = 600, 2_000
_SUMMARY = 1_200
"""Where a test run says how it went: at its end."""


def has_failed(event: HostEvent) -> bool:
    """Whether a tool call failed, by what the host says, or by the status that its output begins
    with.
    """
    if event.kind == "tool_fail" or event.error:
        return True
    return event.tool == "Bash" and (
        _EXIT.search(event.tool_output[:200]) is not None or _is_masked(event)
    )


def _is_masked(event: HostEvent) -> bool:
    """Whether a failure was hidden by a pager at the end of the line, whose status is what the host
    saw.

    Only where nothing but the shell's or the program's refusal to run came out: a long output may
    speak of errors.
    """
    output, line = event.tool_output, event.tool_input.get("command")
    if not output or len(output) > _REFUSAL or not isinstance(line, str) or "|" not in line:
        return False
    first = output.lstrip().split("\n", 1)[0]
    if not _PAGED.search(line) or not _REFUSED.match(first) or not is_absent_tool(first):
        return False
    command = parse(line)
    return command is not None and command.purpose not in (
        "read",
        "search",
        "look",
    )  # these print what others said


def ends_of(text: str) -> str:
    """The beginning and the end of a long output, where errors stand; the middle costs time and
    says little.
    """
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"


def telling_line(text: str) -> str:
    """The line that says what went wrong: the last that speaks of the surroundings, else that names
    an error.

    Empty when no line says anything: that a task has failed is known.
    """
    return _telling_line(ends_of(text))


@lru_cache(maxsize=128)
def _telling_line(ends: str) -> str:
    """What fails is tried again, and ends with the same words."""
    for words in (_SURROUNDINGS, _TROUBLE):
        rest = ends
        for _ in range(_TRIES):
            at = max(map(rest.rfind, words))
            if at < 0:
                break
            start, end = rest.rfind("\n", 0, at) + 1, rest.find("\n", at)
            line = _plain(rest[start : end if end >= 0 else len(rest)])
            if line:
                return line
            rest = rest[:start]
    lines = map(_plain, reversed(ends.rstrip().rsplit("\n", 8)[-8:]))
    return next((line for line in lines if line), "")


def _plain(line: str) -> str:
    """A line without colors; empty when it says nothing, or is no line of a message but a piece of
    data.
    """
    if len(line) > _TELLING_LINE:
        return ""
    plain = _VARIES[0][0].sub("", line).strip()[:300]
    letters = sum(map(str.isalpha, plain))
    return (
        plain
        if letters >= _LEAST_LETTERS and not _EXIT.match(plain) and not _SAYS_NOTHING.search(plain)
        else ""
    )


@lru_cache(maxsize=512)
def constant_part(line: str) -> str:
    """What stays of an error when it comes again: no numbers, times, hashes, folders, or names of
    branches.
    """
    for pattern, word in _VARIES:
        line = pattern.sub(word, line)
    return line.strip().lower()[:200]


def fingerprint(tool: str, head: str, line: str) -> str:
    """The same for the same error of the same program."""
    return hashlib.sha256(
        f"{tool}\0{head}\0{constant_part(line)}".encode("utf-8", "replace")
    ).hexdigest()[:16]


def is_harness(text: str) -> bool:
    """Whether it is the agent's own program that refused: no fact about the project."""
    return _is_harness(text[:600])


@lru_cache(maxsize=128)
def _is_harness(head: str) -> bool:
    lowered = head.lower()
    return any(word in lowered for word in _HARNESS)


@lru_cache(maxsize=512)
def is_environment(line: str) -> bool:
    """Whether an error speaks of the surroundings (what is installed, running, spelled), not of
    code being written.
    """
    return bool(_ENVIRONMENT.search(line))


def is_absent_tool(line: str) -> bool:
    """Whether an error speaks of what a command needs to run at all; then a test or a check has not
    even begun.
    """
    return bool(_ABSENT_TOOL.search(line))


def lacking(command: str, line: str) -> tuple[str, ...]:
    """What a command needs that is not there, as words that any other command would fail with;
    empty for all else.

    >>> lacking("go build ./...", "bash: line 1: go: command not found")
    ('go',)
    >>> lacking("gh pr diff 7 --stat", "unknown flag: --stat"), lacking("rtk bun test", "unrecognized subcommand 'bun'")
    (('gh', 'pr', 'diff', '--stat'), ('rtk', 'bun'))
    """  # noqa: E501
    program, *rest = command.split() or [""]
    absent = _ABSENT_PROGRAM.search(line)
    if absent is not None:
        named = next(filter(None, absent.groups()), "")
        return (named,) if starts(command, (named,)) else ()
    words = [word for word in rest if not word.startswith("-")]
    refused = _OPTION.search(line)
    if refused is not None and refused["option"]:
        verbs = [*takewhile(VERB.fullmatch, words)][:2]
        found = (program, *verbs, refused["option"])
    else:
        unknown = _SUBCOMMAND.search(line)
        if unknown is None or words[:1] != [unknown["word"]]:
            return ()
        found = (program, str(unknown["word"]))
    return found if starts(command, found) else ()


def is_option(line: str) -> bool:
    """Whether a program says that it does not know an option it was given."""
    return bool(_OPTION.search(line))


def is_passing(line: str) -> bool:
    """Whether an error is one of that hour, such as a lock, a network, or what others had pushed
    meanwhile.
    """
    return bool(_PASSING.search(line))


def was_changed_by_others(text: str) -> bool:
    return bool(_CHANGED.search(text[:600]))


def is_absent(text: str) -> bool:
    return bool(_ABSENT.search(text[:600]))


def has_run_tests(output: str) -> bool:
    """Whether a run says how many tests passed or failed: whatever else it prints, it could run."""
    ends = output[-_SUMMARY:]
    return bool(_RED.search(ends) or _GREEN.search(ends))


def test_verdict(output: str, failed: bool) -> bool | None:
    """Whether tests were green; ``None`` when no test has run."""
    ends = output[-_SUMMARY:]
    lowered = ends.lower()
    if (
        not failed
        and "fail" not in lowered
        and "no tests" not in lowered
        and "collected 0" not in lowered
    ):
        return True if lowered.strip() else None
    if _NO_TESTS.search(ends):
        return None
    if failed:
        return False if _RED.search(ends) or not is_environment(telling_line(ends)) else None
    zero = re.sub(r"\b0 (?:failed|failing|failures?|errors?)\b", "", ends, flags=re.IGNORECASE)
    is_red = bool(
        re.search(
            r"\b[1-9]\d* (?:failed|failing|failures)\b|test result: FAILED|^FAIL\b|--- FAIL",
            zero,
            re.MULTILINE,
        )
    )
    if is_red:
        return False
    return True if _GREEN.search(ends) or ends.strip() else None


_MOST = 12
_LINES: tuple[re.Pattern[str], ...] = (
    # pytest
    re.compile(r"^(?:FAILED|ERROR) (?P<name>[\w./\\-]+(?:::[^\s]+)+)(?: - (?P<why>.+))?$",
    re.MULTILINE),
    re.compile(r"^\s*--- FAIL: (?P<name>\S+)[^\n]*"
               r"(?:\n\s+(?P<path>[\w./-]+_test\.go):\d+:[ \t]*(?P<why>[^\n]{0,240})"
               # go, testify
               r"(?:\n\s+Error Trace:[^\n]*\n\s+Error:\s+(?P<wanted>[^\n]{3,240}))?)?",
                   re.MULTILINE),
    re.compile(r"^error: (?P<why>[^\n]{3,240})\n(?:[^\n]*\n){0,40}?"
               r"\(fail\) (?P<name>[^\n]{3,160}?)(?: \[[\d.]+m?s\])?$", re.MULTILINE),  # bun
    re.compile(r"^test (?P<name>[\w:]+) \.\.\. FAILED(?P<why>)", re.MULTILINE),  # cargo
    # jest
    re.compile(r"^\s*● (?P<name>[^\n]{3,160} › [^\n]{2,160})\n+\s*(?P<why>[^\n]{0,240})",
    re.MULTILINE),
    # vitest
    re.compile(r"^ (?:FAIL|×)\s+(?P<name>\S+ > [^\n]{2,160})\n+\s*(?P<why>[^\n]{0,240})",
    re.MULTILINE),
    re.compile(r"^(?:FAIL|ERROR): (?P<name>\w+ \([\w.]+\))(?P<why>)", re.MULTILINE),  # unittest
    re.compile(r"^\s*\d+\) test (?P<name>[^\n]{3,160} \([\w.]+\))"
               r"\n\s+(?P<path>\S+:\d+)\n\s+(?P<why>[^\n]{0,240})", re.MULTILINE),  # ExUnit
)  # fmt: skip
_REASON = re.compile(r"^E\s+(?P<why>\w*(?:Error|Exception|assert)\b.{0,240})$", re.MULTILINE)


def failed_tests(output: str) -> list[tuple[str, str, str]]:
    """(name, why, file) of the failed tests, at most a dozen; the file is empty where a run does
    not name it.
    """
    ends = ends_of(output)
    found: dict[str, str] = {}
    files: dict[str, str] = {}
    for pattern in _LINES:
        for match in pattern.finditer(ends):
            name = match["name"].strip()
            given = match.groupdict()
            found.setdefault(name, (given.get("wanted") or given["why"] or "").strip())
            place = given.get("path") or (
                name.split("::", 1)[0] if "::" in name and "/" in name else ""
            )
            files.setdefault(name, place.rsplit(":", 1)[0] if place.count(":") == 1 else place)
    if len(found) == 1:
        reason = _REASON.search(ends)
        name = next(iter(found))
        found[name] = found[name] or (reason["why"] if reason else "")
    return [(name, why, files[name]) for name, why in list(found.items())[:_MOST]]
