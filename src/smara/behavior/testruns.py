"""The tests that a run names as failed, with what it says of why."""

from __future__ import annotations

import re

from smara.behavior.failures import ends_of

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
