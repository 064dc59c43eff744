"""Read the report of a test run: verdict, counts, failed tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smara.actions.failures import is_environment, telling_line
from smara.actions.models import FailedTest, TestRun
from smara.core.startup.regex import re, regex

_RED = regex(
    r"\b[1-9]\d* (?:failed|failing|failures?|errors?)\b|^FAIL(?:ED|:)?\b|--- FAIL|test result: "
    r"FAILED|Tests:.*\bfailed"
    r"|AssertionError|assertion .*failed|FAILED \(",
    re.MULTILINE | re.IGNORECASE,
)
_GREEN = regex(
    r"\b\d+ (?:passed|passing|tests?, 0 failures)\b|^OK\b|test result: ok|^ok\s+\S+|All tests "
    r"passed|\b0 fail(?:ed"
    r"|ures|ing)?\b",
    re.MULTILINE | re.IGNORECASE,
)
_ERRORS_ALONE = regex(r"\b[1-9]\d* errors? in [\d.]+s\b|errors? during collection")
_RAN = regex(r"\b\d+ (?:passed|failed)\b")
_NO_TESTS = regex(r"no tests (?:ran|found|collected)|collected 0 items", re.IGNORECASE)
_SUMMARY = 1_200
"""Where a test run says how it went: at its end."""


def has_run_tests(output: str) -> bool:
    """Return True if a run counts passed or failed tests.

    Whatever else it prints, it could run. Errors alone are tests that could not be imported.
    """
    ends = output[-_SUMMARY:]
    if _ERRORS_ALONE.search(ends) and not _RAN.search(ends):
        return False
    return bool(_RED.search(ends) or _GREEN.search(ends))


def are_tests_green(output: str, failed: bool) -> bool | None:
    """Return True if tests were green; ``None`` when no test has run."""
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
        is_red = has_run_tests(ends) or not is_environment(telling_line(ends))
        return False if is_red else None
    zero = re.sub(r"\b0 (?:failed|failing|failures?|errors?)\b", "", ends, flags=re.IGNORECASE)
    red = r"\b[1-9]\d* (?:failed|failing|failures)\b|test result: FAILED|^FAIL\b|--- FAIL"
    if re.search(red, zero, re.MULTILINE):
        return False
    return True if _GREEN.search(ends) or ends.strip() else None


_MOST = 12
_LINES: tuple[re.Pattern[str], ...] = (
    # pytest
    regex(r"^(?:FAILED|ERROR) (?P<name>[\w./\\-]+(?:::[^\s]+)+)(?: - (?P<why>.+))?$",
    re.MULTILINE),
    regex(r"^\s*--- FAIL: (?P<name>\S+)[^\n]*"
               r"(?:\n\s+(?P<path>[\w./-]+_test\.go):\d+:[ \t]*(?P<why>[^\n]{0,240})"
               # go, testify
               r"(?:\n\s+Error Trace:[^\n]*\n\s+Error:\s+(?P<wanted>[^\n]{3,240}))?)?",
                   re.MULTILINE),
    regex(r"^error: (?P<why>[^\n]{3,240})\n(?:[^\n]*\n){0,40}?"
               r"\(fail\) (?P<name>[^\n]{3,160}?)(?: \[[\d.]+m?s\])?$", re.MULTILINE),  # bun
    regex(r"^test (?P<name>[\w:]+) \.\.\. FAILED(?P<why>)", re.MULTILINE),  # cargo
    # jest
    regex(r"^\s*● (?P<name>[^\n]{3,160} › [^\n]{2,160})\n+\s*(?P<why>[^\n]{0,240})",
    re.MULTILINE),
    # vitest
    regex(r"^ (?:FAIL|×)\s+(?P<name>\S+ > [^\n]{2,160})\n+\s*(?P<why>[^\n]{0,240})",
    re.MULTILINE),
    regex(r"^(?:FAIL|ERROR): (?P<name>\w+ \([\w.]+\))(?P<why>)", re.MULTILINE),  # unittest
    regex(r"^\s*\d+\) test (?P<name>[^\n]{3,160} \([\w.]+\))"
               r"\n\s+(?P<path>\S+:\d+)\n\s+(?P<why>[^\n]{0,240})", re.MULTILINE),  # ExUnit
)  # fmt: skip
_LOOSE = regex(
    r"^\s{0,6}\d{1,4}\) (?:test )?(?P<mocha>[^\n]{3,160})|^\s{0,4}[●✕×✗] (?P<jest>[^\n]{3,160})"
    r"|^rspec (?P<rspec>\./\S{1,160})|^\s{0,4}FAIL\s{1,4}(?P<file>\S{1,160})"
    r"|^FAILED (?P<path>\S{1,200}/\S{1,200})",
    re.MULTILINE,
)
"""Lines that name a test or a file, read where no line gives a reason."""
_REASON = regex(r"^E\s+(?P<why>\w*(?:Error|Exception|assert)\b.{0,240})$", re.MULTILINE)


def failed_tests(output: str) -> list[FailedTest]:
    """List the failed tests of a run, at most a dozen."""
    found: dict[str, FailedTest] = {}
    for pattern in _LINES:
        for match in pattern.finditer(output):
            name, given = match["name"].strip(), match.groupdict()
            reason = (given.get("wanted") or given["why"] or "").strip()
            place = given.get("path") or (
                name.split("::", 1)[0] if "::" in name and "/" in name else ""
            )
            file = place.rsplit(":", 1)[0] if place.count(":") == 1 else place
            found.setdefault(name, FailedTest(name, reason, file))
    if not found:
        names = [match[match.lastgroup or 0].strip() for match in _LOOSE.finditer(output)]
        return [FailedTest(name) for name in dict.fromkeys(names)][:_MOST]
    if len(found) == 1 and (only := next(iter(found.values()))) and not only.reason:
        reason_line = _REASON.search(output)
        return [replace(only, reason=reason_line["why"] if reason_line else "")]
    return list(found.values())[:_MOST]


_SUMMARY_LINE = regex(
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
_COVERAGE = regex(
    r"(?:TOTAL\s.{1,60}|All files\s{0,8}\|.{1,60}|(?:Total "
    r")?[Cc]overage:?.{0,20})\b\d{1,3}(?:\.\d{1,3})?\s?%?.{0,30}"
)
_COUNTS = regex(
    r"(\d{1,9}) (passed|failed|failures?|tests?|passing|failing|errors?|examples?|skipped|total)"
)
_BAD = regex(
    r"\b[1-9]\d{0,8} (?:failed|failures?|failing|errors?)\b|Failures: [1-9]|Errors: [1-9]"
    r"|\(failures=|\(errors=|Failed: {1,6}[1-9]|^FAIL\b|FAILED"
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


def read_test_run(lines: Sequence[str]) -> TestRun | None:
    """Read the report of a test run, or return None."""
    summaries: list[str] = []
    coverage = ""
    for line in lines:
        if "%" in line and (covered := _COVERAGE.search(line)):
            coverage = _shown(covered[0], 80)
        if any(map(line.__contains__, _HINTS)):
            stripped = line.strip(" =\t")
            if _SUMMARY_LINE.match(stripped):
                summaries.append(_shown(stripped, 140))
    if not summaries:
        return None
    bad = [summary for summary in summaries if _BAD.search(summary)]
    chosen = (bad or summaries)[-1]
    failing = [_shown(each.name, 140) for each in failed_tests("\n".join(lines))] if bad else []
    return TestRun(
        chosen,
        bool(bad),
        tuple(failing),
        coverage=coverage,
        counts=tuple((name, int(number)) for number, name in _COUNTS.findall(chosen)),
    )


_RED_COUNT = regex(r"fail|error")


def count_tests(output: str, is_green: bool) -> str:
    """Return the counts of a test run, or an empty text.

    Such as ``2 failed, 10 passed``.
    Numbers and the words of test programs only: nothing else that an output says.
    """
    report = read_test_run(output[-_SUMMARY:].splitlines())
    counts = report.counts if report is not None else ()
    red = any(number and _RED_COUNT.match(name) for name, number in counts)
    # A report of another run, in a log that was shown with it, says nothing about this one.
    return "" if red == is_green else ", ".join(f"{number} {name}" for name, number in counts)


def _shown(text: str, longest: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip(" ,;:") + "…"
