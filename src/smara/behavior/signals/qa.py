"""Turn failed tests and QA reports into memories (``qa_auto``)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from smara.actions.error_quote import (
    UNQUOTED,
    error_quote,
    evidence_words,
    failed_words,
    words_of_test,
)
from smara.actions.failures import constant_part, ends_of
from smara.actions.paths import is_test, is_test_of, modules_of
from smara.actions.reports import failed_tests
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding
from smara.behavior.scratchpad import Pad, code, quote

SIGNAL = Signal(
    0,
    "qa_report",
    0.80,
    relevance=0.70,
    false_positives=0.25,
    targets=("error_pattern",),
    least_sessions=2,
)
_MOST = 3
_MOST_ISSUES = 10
_ISSUE = re.compile(
    r"^\s*(?:[-*]|\d+[.)]|#{2,4})\s*(?:\[(?: |x|critical|major|minor|high|medium"
    r"|low)\]\s*)?(?:\*\*)?"
    r"(?:issue|bug|fail(?:ed|ure)?|error|critical|major|blocker|✗|❌"
    r"|FAIL)\b[^:\n]{0,40}:(?:\*\*)?\s*(?P<text>[^\n]{12,300})",
    re.IGNORECASE | re.MULTILINE,
)
_PLACE = re.compile(
    r"`?(?P<path>[\w./@+-]+/[\w.@+-]+\.\w{1,5}|[\w@+-]+\.(?:py|[jt]sx?|go|rs|exs?|java|rb|php|sql"
    r"|css|html))`?(?::\d+)?"
)


def detect(pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """Detect tests that turned red and green by small changes."""
    for pad in pads:
        found: set[str] = set()
        for name, entry in pad.tests:
            changed = [path for path in entry.files if not is_test(path)]
            if entry.file and all(is_test_of(entry.file, path) for path in changed):
                continue  # that a file's own test guards it is no news
            is_mended = entry.green_step and entry.reason and not entry.is_own
            if not is_mended or not 1 <= len(changed) <= 2:
                continue
            why = constant_part(entry.reason)
            if why in found or len(found) >= _MOST:
                continue  # many tests that fail for one reason are one failure
            found.add(why)
            data = {"test": name, "why": entry.reason, "files": changed}
            key = f"{name}|{why}"[:280]
            yield SignalFinding(
                "qa_report",
                key,
                f"{name}: {entry.reason}"[:160],
                step=entry.red_step,
                data=data,
                is_proven=True,
            )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft a test mended by a change, or a reported issue."""
    data = finding.data
    why = str(data["why"])
    if data.get("issue"):
        path = str(data.get("path") or str(data.get("test", "")).split("::", 1)[0])
        name, files = str(data.get("test", path)), (path,) if "/" in path or "." in path else ()
        content = f"Found by quality assurance: {data['issue'].rstrip('.')}."
        fields, evidence = {"error": why, "tool": "qa"}, str(data["issue"])
    else:
        name, files = data["test"], tuple(data["files"])
        content = (
            f"{words_of_test(name)} {failed_words(why)}; it passed again after"
            f" {' and '.join(map(code, files))} changed."
        )
        fix = f"a change of {' and '.join(files)}"
        fields = {"error": error_quote(why) or UNQUOTED, "fix": fix, "tool": "tests"}
        evidence = evidence_words(words_of_test(name), why)
    digest = hashlib.sha256(f"{name}\0{constant_part(why)}".encode("utf-8", "replace"))
    return MemoryDraft(
        "error_pattern",
        content,
        (evidence,),
        files=files,
        modules=modules_of(files),
        data={**fields, "fingerprint": digest.hexdigest()[:16]},
        tags=("qa",),
        source="qa_auto",
    )


def read_report(text: str) -> list[SignalFinding]:
    """Read a report's issues: failed tests, and named places."""
    found = [
        SignalFinding(
            "qa_report",
            f"{test.name}|{constant_part(test.reason)}"[:280],
            f"{test.name}: {test.reason}"[:160],
            step=0,
            data={
                "issue": quote(f"{words_of_test(test.name)} {failed_words(test.reason)}", 300),
                "test": quote(test.name, 200),
                "why": quote(test.reason, 240),
            },
            is_proven=True,
        )
        for test in failed_tests(ends_of(text))
        if test.reason
    ]
    for match in _ISSUE.finditer(text[:40_000]):
        issue = quote(match["text"].strip("* "), 300)
        place = _PLACE.search(issue)
        if place is not None:
            data = {"issue": issue, "path": place["path"], "why": issue}
            found.append(
                SignalFinding(
                    "qa_report",
                    constant_part(issue),
                    issue[:160],
                    step=0,
                    data=data,
                    is_proven=True,
                )
            )
    return found[:_MOST_ISSUES]
