"""The tests that a run names as failed, with what it says of why."""

from __future__ import annotations

import re

from smara.behavior.failures import ends_of

_MOST = 12
_LINES: tuple[re.Pattern[str], ...] = (
    re.compile(r"^(?:FAILED|ERROR) (?P<name>[\w./\\-]+(?:::[^\s]+)+)(?: - (?P<why>.+))?$", re.MULTILINE),  # pytest
    re.compile(r"^\s*--- FAIL: (?P<name>\S+)(?P<why>)", re.MULTILINE),  # go
    re.compile(r"^test (?P<name>[\w:]+) \.\.\. FAILED(?P<why>)", re.MULTILINE),  # cargo
    re.compile(r"^\s*● (?P<name>[^\n]{3,160} › [^\n]{2,160})\n+\s*(?P<why>[^\n]{0,240})", re.MULTILINE),  # jest
    re.compile(r"^ (?:FAIL|×)\s+(?P<name>\S+ > [^\n]{2,160})\n+\s*(?P<why>[^\n]{0,240})", re.MULTILINE),  # vitest
    re.compile(r"^(?:FAIL|ERROR): (?P<name>\w+ \([\w.]+\))(?P<why>)", re.MULTILINE),  # unittest
    re.compile(r"^\s*\d+\) test (?P<name>[^\n]{3,160} \([\w.]+\))"
               r"\n\s+(?P<path>\S+:\d+)\n\s+(?P<why>[^\n]{0,240})", re.MULTILINE),  # ExUnit
)  # fmt: skip
_REASON = re.compile(r"^E\s+(?P<why>\w*(?:Error|Exception|assert)\b.{0,240})$", re.MULTILINE)


def failed_tests(output: str) -> list[tuple[str, str, str]]:
    """(name, why, file) of the failed tests, at most a dozen; the file is empty where a run does not name it."""
    ends = ends_of(output)
    found: dict[str, str] = {}
    files: dict[str, str] = {}
    for pattern in _LINES:
        for match in pattern.finditer(ends):
            name = match["name"].strip()
            found.setdefault(name, (match["why"] or "").strip())
            place = match.groupdict().get("path") or (name.split("::", 1)[0] if "::" in name and "/" in name else "")
            files.setdefault(name, place.rsplit(":", 1)[0] if place.count(":") == 1 else place)
    if len(found) == 1:
        reason = _REASON.search(ends)
        name = next(iter(found))
        found[name] = found[name] or (reason["why"] if reason else "")
    return [(name, why, files[name]) for name, why in list(found.items())[:_MOST]]
