"""The result of a test run, as its program prints it: the line of counts, the names of what failed,
the coverage.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from smara.observations.offline.wording import clip, one_of

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
