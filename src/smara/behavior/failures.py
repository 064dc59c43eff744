"""Failures as behavior sees them: whether a call failed, the line that says why, and what is constant in it."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from smara.core.events import HostEvent

_EXIT = re.compile(
    r"^\W{0,3}(?:exit code:? |Exit code |exit status |Process exited with code "
    r"|Command failed with exit code )([1-9]\d{0,2})"
    r"|[\"']exit_code[\"']: ?([1-9]\d{0,2})",
    re.IGNORECASE | re.MULTILINE,
)
_SURROUNDINGS = (
    "command not found", "No such file or"
                         " directory", "ermission denied", "not recognized as", "annot find", "ould not ",
    "Couldn't ", "onnection refused", "ECONNREFUSED", "EADDRINUSE", "unrecognized ", "nknown option", "nknown command",
    "nknown flag", "not installed", "timed out", "has no"
                                                 " upstream", "are ignored by", "does not exist", "already in use",
    "already exists", "No module named", "is required", "issing script", "not a git repository", "no such ", "pathspec",
)  # fmt: skip
"""Words of errors that speak of what is installed, running or spelled; some without their first letter."""
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
_ENVIRONMENT = re.compile(
    r"command not found|No module named|Cannot find module|No such file or directory|[Pp]ermission denied|not installed"
    r"|ECONNREFUSED|[Cc]onnection refused|unrecognized (?:option|argument)|[Uu]nknown (?:option|command|flag|argument)"
    r"|EADDRINUSE|already in use|no upstream|are ignored by|does not exist|not recognized|missing script|is required"
    r"|could not (?:connect|find|resolve|open|read)|[Cc]annot find|no such (?:option|command|table|column)|timed out"
    r"|authentication|credentials|version|not a git repository|pathspec|nothing to commit|lock",
)
_HARNESS = (
    "tool_use_error", "doesn't want to proceed", "request interrupted", "interrupted by user", "to replace not found",
    "has not been read", "no changes to make", "exceeds maximum allowed"
                                               " tokens", "sibling tool call", "requires approval",
    "require approval", "requires permission", "was rejected", "permission to use", "hook error", "blocked by hook",
    "eisdir", "inputvalidationerror", "matches of the string",
)  # fmt: skip
_CHANGED = re.compile(
    r"modified since (?:it was )?(?:last )?read|has been (?:unexpectedly )?modified|changed on disk", re.IGNORECASE
)
_ABSENT = re.compile(
    r"(?:File|Path|path) does not exist|ENOENT|No such file|file not found|cannot find the file", re.IGNORECASE
)
_RED = re.compile(
    r"\b[1-9]\d* (?:failed|failing|failures?|errors?)\b|^FAIL(?:ED|:)?\b|--- FAIL|test result: FAILED|Tests:.*\bfailed"
    r"|AssertionError|assertion .*failed|FAILED \(",
    re.MULTILINE | re.IGNORECASE,
)
_GREEN = re.compile(
    r"\b\d+ (?:passed|passing|tests?, 0 failures)\b|^OK\b|test result: ok|^ok\s+\S+|All tests passed|\b0 fail(?:ed"
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
    """Whether a tool call failed, by what the host says, or by the status that its output begins with."""
    if event.kind == "tool_fail" or event.error:
        return True
    return event.tool == "Bash" and _EXIT.search(event.tool_output[:200]) is not None


def ends_of(text: str) -> str:
    """The beginning and the end of a long output, where errors stand; the middle costs time and says little."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"


def telling_line(text: str) -> str:
    """The line that says what went wrong: the last that speaks of the surroundings, else that names an error."""
    ends = ends_of(text)
    at = max(map(ends.rfind, _SURROUNDINGS))
    if at < 0:
        at = max(map(ends.rfind, _TROUBLE))
    if at < 0:
        lines = [line for line in ends.rstrip().rsplit("\n", 8)[-8:] if line.strip() and not _EXIT.match(line.strip())]
        return _plain(lines[-1]) if lines else ""
    start, end = ends.rfind("\n", 0, at) + 1, ends.find("\n", at)
    return _plain(ends[start : end if end >= 0 else len(ends)])


def _plain(line: str) -> str:
    return _VARIES[0][0].sub("", line).strip()[:300]


@lru_cache(maxsize=512)
def constant_part(line: str) -> str:
    """What stays of an error when it comes again: no numbers, times, hashes, folders, or names of branches."""
    for pattern, word in _VARIES:
        line = pattern.sub(word, line)
    return line.strip().lower()[:200]


def fingerprint(tool: str, head: str, line: str) -> str:
    """The same for the same error of the same program."""
    return hashlib.sha256(f"{tool}\0{head}\0{constant_part(line)}".encode("utf-8", "replace")).hexdigest()[:16]


def is_harness(text: str) -> bool:
    """Whether it is the agent's own program that refused: no fact about the project."""
    head = text[:600].lower()
    return any(word in head for word in _HARNESS)


@lru_cache(maxsize=512)
def is_environment(line: str) -> bool:
    """Whether an error speaks of the surroundings (what is installed, running, spelled), not of code being written."""
    return bool(_ENVIRONMENT.search(line))


def was_changed_by_others(text: str) -> bool:
    return bool(_CHANGED.search(text[:600]))


def is_absent(text: str) -> bool:
    return bool(_ABSENT.search(text[:600]))


def test_verdict(output: str, failed: bool) -> bool | None:
    """Whether tests were green; ``None`` when no test has run."""
    ends = output[-_SUMMARY:]
    lowered = ends.lower()
    if not failed and "fail" not in lowered and "no tests" not in lowered and "collected 0" not in lowered:
        return True if lowered.strip() else None
    if _NO_TESTS.search(ends):
        return None
    if failed:
        return False if _RED.search(ends) or not is_environment(telling_line(ends)) else None
    zero = re.sub(r"\b0 (?:failed|failing|failures?|errors?)\b", "", ends, flags=re.IGNORECASE)
    is_red = bool(
        re.search(r"\b[1-9]\d* (?:failed|failing|failures)\b|test result: FAILED|^FAIL\b|--- FAIL", zero, re.MULTILINE)
    )
    if is_red:
        return False
    return True if _GREEN.search(ends) or ends.strip() else None
