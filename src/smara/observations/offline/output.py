"""Find failures and test results in the output of commands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from smara.observations.offline.notes import clip, one_line, one_of

# One look that spares most lines the patterns below.
_HINT = one_of(
    r"error|exception|fail|fatal|panic|denied|not found|no such|cannot|could not|undefined"
    r"|unresolved|traceback|abort",
    r"refused|timed? ?out|invalid|unable|✘|\*\* \(|ENOENT|EACCES|assert|is required|not formatted",
)
_RANKED = (
    re.compile(
        r"(?:[\w.]{1,80}\.)?[A-Z]\w{0,60}(?:Error|Exception|Warning|Fault|Interrupt|Exit)\b[:( "
        r"].{0,300}"
    ),
    re.compile(r"(?i).{0,60}\berror(?:\[\w{1,12}\]|\s\w{2,4}\d{2,6})?\s?: .{1,300}"),
    re.compile(r"\*\* \(\w.{1,300}"),
    re.compile(
        r"(?i)(?:fatal|panic|npm err!|e:|err!?|\[error\]|✘|× |failed|failure|aborted|rejected)[:! "
        r"].{1,300}"
    ),
    re.compile(
        r"(?i).{0,160}(?:no such file|not found|permission denied|cannot |could not |undefined "
        r"|refused|timed out"
        r"|unable to |must be |is required|not formatted|does not exist|beyond a symbolic|is not "
        r"a).{0,200}"
    ),
    re.compile(r"(?i).{0,160}(?:\bfail|\berror|exception|invalid|assertion).{0,200}"),
)
_BORING = one_of(
    r"\b(?:0 (?:errors?|failures?|failed|warnings?)|no (?:errors?|issues|problems)|failures?: 0"
    r"|errors?: 0)",
    r"\b(?:build failed with \d{1,6} errors?:?$|fix these issues|exit code \d{1,5}$)",
)
_TYPE = one_of(
    r"\b((?:\w{1,40}\.){0,4}[A-Z]\w{1,60}(?:Error|Exception|Fault|Warning)"
    r"|error\[?[A-Z]{1,3}\d{2,6}\]?"
    r"|[A-Z]{2,3}\d{3,5}|E[A-Z]{4,12}|panic|fatal)\b",
    flags=0,
)
_PLACE = one_of(
    r"((?:[A-Za-z]:)?[\w./@+-]{1,160}\.[A-Za-z]\w{0,5}):(\d{1,6})\b",
    r"File \"([^\"\n]{1,200})\", line (\d{1,6})",
    r"([\w./@+-]{1,160}\.[A-Za-z]{1,4})\((\d{1,6})[,)]",
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
_EXIT = re.compile(
    r"\s{0,4}\[?(?:exit(?:ed with)?(?: code| status)?|process exited with code|return code"
    r"|exit_code)"
    r"\W{1,3}(-?\d{1,5})",
    re.IGNORECASE,
)
_EXIT_TAG = re.compile(r"<exit_code>(-?\d{1,5})</exit_code>|\"exit_code\":\s?(-?\d{1,5})")
_NOT_RUN = (
    "Sibling tool call errored", "has not been read yet", "has been modified since",
    "String to replace not found",
    "InputValidationError", "exceeds maximum allowed tokens", "No changes to make", "was cancelled",
)  # fmt: skip
_VARIABLE = re.compile(
    r"\s{0,12}(?:\w{1,12}: )?([A-Za-z_][\w.\[\]]{0,40})\s{0,3}(?:=|:)\s{1,4}(\S.{0,80})"
)
REJECTED = "The user doesn't want to proceed with this tool use"

_PREAMBLE = (
    "warning",
    "Compiling",
    "Generated",
    "Exit code",
    "Checking ",
    "Running ",
    "Getting ",
    "hint:",
    "> ",
)
_CERTAIN = 3
_VERDICT = one_of(
    r"\b(?:\d{1,9}|no|found|zero)\b.{0,40}"
    r"\b(?:issues?|errors?|warnings?|problems?|suggestions?|violations?|offenses?)\b",
    r"all checks passed|success",
)
_MARGIN = " \t│|┃>└─"

MOST_LINES = 4_000


@dataclass(frozen=True, slots=True)
class OutputFailure:
    """What went wrong: the line that says it, the type of the error, the place in the code, the
    first of the trace.
    """

    line: str
    type: str = ""
    file: str = ""
    line_number: int = 0
    trace: tuple[str, ...] = ()
    is_certain: bool = True
    """Whether the line is one that only a failing program prints."""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line_number}" if self.file else ""


def exit_code(text: str) -> int | None:
    """The exit code that an output begins or ends with, or None."""
    for piece in (text[:300], text[-300:]):
        if match := _EXIT.match(piece) or _EXIT_TAG.search(piece):
            return int(next(group for group in match.groups() if group))
    last = text[-200:].rpartition("\n")[2]
    return int(match[1]) if (match := _EXIT.match(last)) else None


def was_not_run(text: str) -> bool:
    """Whether a result says that the host refused the call for a reason of its own."""
    return any(map(text[:600].__contains__, _NOT_RUN))


def failure_in(lines: Iterable[str]) -> OutputFailure | None:
    """The failure that an output tells of, or None when no line of it sounds like one."""
    search = _FailureSearch()
    for number, line in enumerate(lines):
        if number > MOST_LINES:
            break
        search.look_for_place(line)
        search.look_for_code(line)
        if _HINT.search(line) and not _BORING.search(line):
            search.look_for_words(line)
    found = search.words or search.words_at_place
    if not found:
        return None
    kind = _TYPE.search(found)
    file, line_number = search.place
    is_certain = search.rank <= _CERTAIN and "arning" not in found
    return OutputFailure(
        clip(found, 220),
        kind[1] if kind else "",
        file,
        line_number=line_number,
        trace=tuple(search.trace),
        is_certain=is_certain,
    )


class _FailureSearch:
    """The best line so far, and the first place in the code."""

    def __init__(self) -> None:
        self.words = ""
        self.words_at_place = ""
        self.place = ("", 0)
        self.trace: list[str] = []
        self.rank = len(_RANKED)
        self._is_traceback = False
        self._before = ""
        self._wants_code = False

    def look_for_code(self, line: str) -> None:
        """Behind "Assertion failed" the next line says what was asserted."""
        if self._wants_code and line.strip():
            self._wants_code = False
            self.words = f"{self.words}; {line.strip(_MARGIN)}"

    def look_for_words(self, line: str) -> None:
        self._is_traceback = self._is_traceback or line.startswith("Traceback")
        stripped = line.strip(_MARGIN)
        if stripped.startswith("E  "):  # the margin of pytest
            stripped = stripped[1:].lstrip()
        rank = next(
            (rank for rank, pattern in enumerate(_RANKED) if pattern.match(stripped)), len(_RANKED)
        )
        # Python tells the error last; the others tell the first error first.
        if rank < self.rank or (self._is_traceback and rank == self.rank == 0):
            self.rank, self.words = rank, stripped
            self._wants_code = "ssertion" in stripped

    def look_for_place(self, line: str) -> None:
        """The first place outside of libraries. A linter says what is wrong beside it or in the
        line before.
        """
        is_candidate = ":" in line or "(" in line or 'File "' in line
        if is_candidate and (match := _PLACE.search(line)):
            file, number = [group for group in match.groups() if group]
            if len(self.trace) < 5:
                self.trace.append(clip(line, 160))
            if not self.place[0] and not any(map(file.__contains__, _LIBRARY)):
                self.place = (file, int(number))
                beside = line[match.end() :].strip(_MARGIN + ":0123456789")
                self.words_at_place = line.strip(_MARGIN) if beside.count(" ") > 1 else self._before
        elif line.strip(_MARGIN):
            self._before = line.strip(_MARGIN)


def verdict_in(lines: Iterable[str], characters: int = 110) -> str:
    """The last line in which a checker says what it found: "found no issues", "2 errors"."""
    verdict = ""
    for line in lines:
        if _VERDICT.search(line[:300]):
            verdict = line
    return clip(verdict, characters)


def last_words(lines: Iterable[str], characters: int = 110) -> str:
    """The last line of an output that has words in it."""
    for line in reversed(list(lines)[-40:]):
        if sum(map(str.isalpha, line[:60])) >= 4:
            return clip(line, characters)
    return ""


def first_words(lines: Iterable[str], characters: int = 110) -> str:
    """The first line of an output that has words in it, else its first line."""
    first = ""
    for number, line in enumerate(lines):
        words = one_line(line)
        first = first or words
        if number > 60:
            break
        is_margin = line[:1] in "└│┃" or line.startswith("    ")
        if (
            sum(map(str.isalpha, words[:60])) >= 4
            and not is_margin
            and not words.startswith(_PREAMBLE)
        ):
            return clip(words, characters)
    return (
        clip(first, characters)
        if any(map(str.isalnum, first)) and not first.startswith(_PREAMBLE)
        else ""
    )


def variables_in(lines: Iterable[str], most: int = 8) -> dict[str, str]:
    """Values that an output shows: ``left: []``, ``user_id = 42``."""
    found: dict[str, str] = {}
    for line in lines:
        if len(found) >= most:
            break
        if match := _VARIABLE.fullmatch(line.rstrip()):
            found.setdefault(match[1], clip(match[2], 80))
    return found


_SUMMARY = re.compile(
    # pytest
    r"(?:=+ )?(?:\d+ failed, )?\d+ (?:passed|failed|error|errors|skipped|xfailed"
    r"|deselected)\b.{0,120}"
    r"|(?:Tests|Test Suites|Test Files)\s{0,4}:?\s{1,8}\d+ \w+.{0,120}"  # jest, vitest
    r"|(?:\d+ (?:doctests?|properties|features?), ){0,3}\d+ tests?, \d+ failures?.{0,60}"  # ExUnit
    r"|test result: \w+\. \d+ passed; \d+ failed.{0,80}"  # cargo
    r"|\d+ examples?, \d+ failures?.{0,60}"  # rspec
    r"|\d+ (?:passing|failing|pending)\b.{0,40}"  # mocha
    r"|OK \(\d+ tests?, .{1,60}|Tests: \d+, Assertions: .{1,80}"  # phpunit
    r"|Ran \d+ tests? in .{1,20}|FAILED \((?:failures|errors)=.{1,40}"  # unittest
    r"|Tests run: \d+, Failures: \d+.{0,80}"  # JUnit
    r"|(?:Passed|Failed)!\s{1,3}- Failed:.{1,100}"  # dotnet
    r"|(?:ok|FAIL|---)\s{1,4}[\w./-]{1,120}\s{1,4}(?:\(cached\)|\d[\d.]{0,8}s).{0,60}"  # go
)
_FAILED_TEST = one_of(
    r"FAILED (\S{1,200}(?:::|/)\S{1,200})",
    r"\s{0,6}\d{1,4}\) (?:test )?(.{3,160})",
    r"--- FAIL: (\S{1,120})|test (\S{1,160}) \.\.\. FAILED",
    r"\s{0,4}[●✕×✗] (.{3,160})|rspec (\./\S{1,160})",
    r"(?:ERROR|FAIL): (test\w{1,120} \(.{1,120}\))|\s{0,4}FAIL\s{1,4}(\S{1,160})",
    flags=0,
)
_COVERAGE = re.compile(
    r"(?:TOTAL\s.{1,60}|All files\s{0,8}\|.{1,60}|(?:Total "
    r")?[Cc]overage:?.{0,20})\b\d{1,3}(?:\.\d{1,3})?\s?%?.{0,30}"
)
_COUNTS = re.compile(
    r"(\d{1,9}) (passed|failed|failures?|tests?|passing|failing|errors?|examples?|skipped|total)"
)
_BAD = one_of(
    r"\b[1-9]\d{0,8} (?:failed|failures?|failing|errors?)\b|Failures: [1-9]|Errors: [1-9]"
    r"|\(failures=|\(errors=",
    r"Failed: {1,6}[1-9]|^FAIL\b|FAILED",
    flags=0,
)
_HINTS = (
    "passed",
    "failed",
    "fail",
    "FAIL",
    "tests",
    "test result",
    "example",
    "passing",
    "Ran ",
    "Tests",
    "OK (",
    "ok ",
    "●",
    ")",
)


@dataclass(frozen=True, slots=True)
class TestRun:
    """What a test run reported. ``summary`` is the program's own line."""

    __test__ = False  # not a test, whatever its name says

    summary: str
    has_failures: bool
    failing: tuple[str, ...] = ()
    coverage: str = ""
    counts: tuple[tuple[str, int], ...] = ()


def test_run_in(lines: Iterable[str]) -> TestRun | None:
    """The test run that an output reports, or None."""
    summaries: list[str] = []
    failing: list[str] = []
    coverage = ""
    for line in lines:
        if "%" in line and (covered := _COVERAGE.search(line)):
            coverage = clip(covered[0], 80)
        if not any(map(line.__contains__, _HINTS)):
            continue
        stripped = line.strip(" =\t")
        if _SUMMARY.match(stripped):
            summaries.append(clip(stripped, 140))
        elif len(failing) < 12 and (failed := _FAILED_TEST.match(line)):
            failing.append(clip(next(group for group in failed.groups() if group), 140))
    if not summaries:
        return None
    bad = [summary for summary in summaries if _BAD.search(summary)]
    chosen = (bad or summaries)[-1]
    counts = tuple((name, int(number)) for number, name in _COUNTS.findall(chosen))
    return TestRun(
        chosen,
        bool(bad),
        tuple(dict.fromkeys(failing)) if bad else (),
        coverage=coverage,
        counts=counts,
    )


test_run_in.__test__ = False  # type: ignore[attr-defined]
