"""Turn failed tests and QA reports into memories (``qa_auto``)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from smara.actions.error_quote import (
    UNQUOTED,
    error_quote,
    evidence_words,
    failed_words,
    words_of_test,
)
from smara.actions.failures import constant_part
from smara.actions.issues import QaIssues, read_issues
from smara.actions.paths import is_test, is_test_of
from smara.behavior.models import (
    FindingVerdict,
    MemoryDraft,
    Seen,
    Signal,
    SignalFinding,
    non_empty,
)
from smara.behavior.scratchpad import Pad, code, quote

SIGNAL = Signal(
    0,
    "qa_report",
    0.80,
    relevance=0.70,
    false_positives=0.25,
    targets=("error_pattern",),
    least_sessions=2,
    quotes=("agent", "tool"),
    learned_in=("build", "pr_review"),
)
_MOST = 3


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    """Detect tests that turned red and green by small changes."""
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
        yield SignalFinding(
            "qa_report",
            f"{name}|{why}"[:280],
            f"{name}: {entry.reason}"[:160],
            step=entry.red_step,
            data={"test": name, "why": entry.reason, "files": changed},
            is_proven=True,
        )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """Draft a test mended by a change, or a reported issue."""
    data = finding.data
    why = str(data["why"])
    if data.get("issue"):
        path = str(data["path"])
        name, files = str(data.get("test", path)), (path,) if path else ()
        content = f"Found by quality assurance: {data['issue'].rstrip('.')}."
        fields, evidence = non_empty(error=why, fix=data.get("fix"), tool="qa"), str(data["issue"])
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
        data={**fields, "fingerprint": digest.hexdigest()[:16]},
        tags=("qa",),
        source="qa_auto",
    )


def read_report(text: str) -> tuple[list[FindingVerdict], QaIssues]:
    """Draft a report's issues, and say what was not understood."""
    read = read_issues(text)
    found = []
    for issue in read.issues:
        place = issue.test or f"{issue.path}:{issue.line}" * bool(issue.line) or issue.path
        words = issue.text
        if issue.test:
            words = f"{words_of_test(issue.test)} {failed_words(issue.text)}"
        elif issue.path not in words:
            words = f"{words.rstrip('.')} ({code(place)})"
        why = quote(issue.text, 240)
        data = {
            "issue": quote(f"{words.rstrip('.')}. Fix: {issue.fix}" if issue.fix else words, 300),
            "path": issue.path,
            "why": why,
            "fix": quote(issue.fix, 240),
        }
        if issue.test:
            data["test"] = quote(issue.test, 200)
        finding = SignalFinding(
            "qa_report",
            f"{issue.test or issue.path}|{constant_part(why)}"[:280],
            words[:160],
            0,
            data,
            is_proven=True,
        )
        verdict = FindingVerdict(finding, "promoted", "it was reported", draft(finding, Seen()))
        found.append(replace(verdict, confidence=SIGNAL.value, taint=("tool",)))
    return found, read
