"""Read the report of a test run: verdict, counts, failed tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smara.actions.commands import CUES
from smara.actions.failures import REPORT, has_red_tests, is_environment, telling_line
from smara.actions.models import FailedTest, TestRun
from smara.core.extract import one_line
from smara.core.startup.regex import re, regex


def has_run_tests(output: str) -> bool:
    """Return True if a run counts passed or failed tests.

    Whatever else it prints, it could run. Errors alone are tests that could not be imported.
    """
    ends = output[-REPORT:]
    is_alone = CUES["errors alone"].search(ends) and not CUES["tests ran"].search(ends)
    has_report = CUES["red tests"].search(ends) or CUES["green tests"].search(ends)
    return bool(has_report and not is_alone)


def are_tests_green(output: str, failed: bool, *, is_hidden: bool = False) -> bool | None:
    """Return True if tests were green; ``None`` when no test has run.

    Args:
        is_hidden: Whether the exit code is that of another command: then the output must say it.
    """
    ends = output[-REPORT:]
    if CUES["no tests"].search(ends) and not CUES["tests ran"].search(ends):
        return None
    if failed:
        is_red = has_run_tests(ends) or not is_environment(telling_line(ends))
        return False if is_red else None
    if has_red_tests(ends):
        return False
    return True if (CUES["green tests"].search(ends) if is_hidden else ends.strip()) else None


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
        names = [
            match[match.lastgroup or 0].strip() for match in CUES["named test"].finditer(output)
        ]
        return [FailedTest(name) for name in dict.fromkeys(names)][:_MOST]
    if len(found) == 1 and (only := next(iter(found.values()))) and not only.reason:
        reason_line = CUES["reason of test"].search(output)
        return [replace(only, reason=reason_line["why"] if reason_line else "")]
    return list(found.values())[:_MOST]


def read_test_run(lines: Sequence[str]) -> TestRun | None:
    """Read the report of a test run, or return None."""
    stripped = (line.strip(" =\t\r") for line in lines)
    summaries = [one_line(each, 140) for each in filter(CUES["test summary"].match, stripped)]
    if not summaries:
        return None
    bad = [summary for summary in summaries if CUES["red tests"].search(summary)]
    chosen = (bad or summaries)[-1]
    failing = [one_line(each.name, 140) for each in failed_tests("\n".join(lines))] if bad else []
    covered = filter(None, (CUES["coverage"].search(line) for line in lines if "%" in line))
    return TestRun(
        chosen,
        bool(bad),
        tuple(failing),
        coverage=one_line(["", *(each[0] for each in covered)][-1], 80),
        counts=tuple((name, int(number)) for number, name in CUES["test counts"].findall(chosen)),
    )


def count_tests(output: str, is_green: bool) -> str:
    """Return the counts of a test run, or an empty text.

    Such as ``2 failed, 10 passed``.
    Numbers and the words of test programs only: nothing else that an output says.
    """
    report = read_test_run(output[-REPORT:].splitlines())
    counts = report.counts if report is not None else ()
    red = report is not None and report.has_failures
    # A report of another run, in a log that was shown with it, says nothing about this one.
    return "" if red == is_green else ", ".join(f"{number} {name}" for name, number in counts)
