"""Commits as memories (``commit_auto``): those that say why, and those that take another one back.

Most messages only say what the change shows anyway. A reason is worth keeping: a sentence
of the message that says *because*, *so that* or *to avoid*; *instead of* alone only says what was done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from smara.behavior.models import Draft, Finding, Seen, Signal
from smara.behavior.pad import Pad
from smara.behavior.paths import module_of
from smara.behavior.quoting import quote

SIGNAL = Signal(0, "commit", 0.70, 0.75, 0.30, ("decision", "gotcha"), 1)
_REASON = re.compile(
    r"\b(?:because|so that|to avoid|to prevent|due to|otherwise|since .{3,60} (?:is|are|does|do|was|were|cannot|can't)"
    r"|decided (?:to|against|on)|breaks? (?:when|if|on)|must not|as .{3,40} (?:cannot|can't|doesn't|does not))\b",
    re.IGNORECASE,
)
_TRAP = re.compile(
    r"\b(?:breaks?|crash\w*|fails?|deadlock|race|leak|hang|corrupt\w*|silently|must not|never)\b", re.IGNORECASE
)
_CHORE = re.compile(
    r"^(?:merge|bump|release|wip|fixup|squash|chore\(deps|update (?:dependencies|lock)|version|initial commit|v?\d)",
    re.IGNORECASE,
)
_TRAILER = re.compile(r"^(?:[A-Z][\w-]+-by|Generated with|🤖|Refs?|Closes|Fixes|See|Signed-off|Change-Id)\b.{0,200}$")
_REVERT = re.compile(r"^(?:Revert|revert)[: ]+[\"“]?(?P<what>[^\"”]{6,160})")
_PREFIX = re.compile(r"^(?:feat|fix|refactor|perf|docs|test|build|ci|chore|style)(?:\([^)]*\))?!?:\s*", re.IGNORECASE)
_MOST = 3


def detect(pads: Sequence[Pad]) -> Iterator[Finding]:
    for pad in pads:
        found = 0
        for sha, entry in pad["commits"]:
            made = reason_of(str(entry["message"]).replace("¶", "\n"))
            if made is not None and found < _MOST:
                found += 1
                subject, why, kind = made
                data = {"sha": sha, "subject": subject, "why": why, "kind": kind, "files": list(entry.get("files", ()))}
                yield Finding("commit", sha, subject[:160], entry["f"], data, is_proven=True)


def reason_of(message: str) -> tuple[str, str, str] | None:
    """(subject, the sentence that says why, ``decision``, ``gotcha`` or ``revert``) of a message, if it says why.

    >>> reason_of("fix: open the file in binary mode\\n\\nText mode breaks on Windows because of line ends.")[2]
    'gotcha'
    """
    lines = [line.strip() for line in message.strip().splitlines()]
    lines = [line for line in lines if line and not _TRAILER.match(line)]
    if not lines or _CHORE.match(lines[0]):
        return None
    subject = _PREFIX.sub("", lines[0])
    sentences = [each.strip(" -*") for each in re.split(r"(?<=[.!])\s+|\n", "\n".join(lines)) if each.strip()]
    reverted = _REVERT.match(lines[0])
    reasons = [each for each in sentences if _REASON.search(each) and len(each) >= 25]
    if reverted:
        why = next((each for each in reasons if not _REVERT.match(each)), "")
        return (f"“{reverted['what'].strip()}” was reverted", why, "revert") if why else None
    if not reasons:
        return None
    why = _PREFIX.sub("", reasons[0])
    return (
        subject,
        why,
        "gotcha" if _TRAP.search(why) and not re.search(r"\bdecided|instead of|in favou?r\b", why) else "decision",
    )


def draft(finding: Finding, seen: Seen) -> Draft | None:
    data = finding.data
    return draft_of_commit(
        str(data["subject"]), str(data["why"]), str(data["kind"]), str(data["sha"]), list(data["files"])
    )


def draft_of_commit(subject: str, why: str, kind: str, sha: str, files: Sequence[str]) -> Draft:
    """The memory of a commit that says why."""
    told = subject[:1].upper() + subject[1:].rstrip(".")
    content = f"{told}." if why.rstrip(".") in (subject, subject.rstrip(".")) else f"{told}: {why.rstrip('.')}."
    near = tuple(files[:6])
    modules = tuple(dict.fromkeys(filter(None, map(module_of, near))))[:3]
    is_decision = kind == "decision"
    fields = {"rationale": quote(why, 400)} if is_decision else {"cause": quote(why, 400)}
    return Draft(
        "decision" if is_decision else "gotcha", content, (quote(f"{subject}\n{why}", 400),), near, modules, fields,
        ("commit",), "commit_auto", sha,
    )  # fmt: skip
