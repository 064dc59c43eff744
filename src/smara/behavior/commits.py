"""Commits as memories (``commit_auto``): those that say why, and those that take another one back.

Most messages only say what the change shows anyway. A reason is worth keeping: a whole sentence of the message that
says *because*, *otherwise* or *to prevent*. That code is no longer there twice, or is read once, is a reason of
the moment and helps nobody later.
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
    r"\b(?:because|so that|to avoid|to prevent|due to|since .{3,60} (?:is|are|does|do|was|were|cannot|can't)"
    r"|otherwise(?=.{0,80}\b(?:fail|break|lost|lose|crash|leak|stay|filter|hang|corrupt|empty|wrong|never)\w*)"
    r"|decided (?:to|against|on)|breaks? (?:when|if|on)|must not|as .{3,40} (?:cannot|can't|doesn't|does not))\b",
    re.IGNORECASE,
)
_OF_THE_MOMENT = re.compile(
    r"duplicat|redundan|repeat|reus|consisten|readab|clean(?:er|up)?|clar|maintain|simplif|naming|rename|lint|golangci"
    r"|staticcheck|eslint|ruff|nolint|unused|import cycle|circular import|shadowing|extra |unnecessary|needless|churn"
    r"|DRY|refactor|review|noise|magic|typo|comment|doc(?:s|umentation)\b|false positive|backward|boilerplate|flak"
    r"|\b(?:currently|formaliz\w*|was|were|used to)\b.*\b(?:because|to prevent)\b",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"\b(?:doesn't|does not|don't|do not|cannot|can't|won't|must|never|always|otherwise|requires?|needs?|unreliable"
    r"|to prevent|to avoid|not available|unavailable|may not|decided|so that|breaks?|fails?|silently)\b",
    re.IGNORECASE,
)
"""What is still so after the change; a sentence in the past tense tells of a fault that is gone."""
_CONTINUES = re.compile(r"^(?:includes?|also|later|then|this|these|it|they|and|but|so|previously|now)\b", re.IGNORECASE)
_EMPTY_SUBJECT = re.compile(
    r"^(?:address|apply|fix|incorporate|handle|resolve)\b.{0,40}\b(?:review|feedback|comments?|suggestions?|findings)\b"
    r"|^(?:various|misc|more|small|minor|cleanup|clean up)\b",
    re.IGNORECASE,
)
_WRAPPED = re.compile(r"(?<=\S)\n(?=[^\W_]|[`(\"'/-]{1,2}[^\s-])(?!\w[\w ]{0,20}: )")
_ITEM = re.compile(r"^\s*[-*•] ")
_SENTENCE = re.compile(r"(?<=[.!;])\s+")
_LEAST_WORDS, _LONGEST = 9, 320
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
_SEVERITY = re.compile(r"^(?:critical|high|medium|low|nit|p\d)\s*[:\-–]\s*", re.IGNORECASE)
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
                yield Finding("commit", sha, (subject or why)[:160], entry["f"], data, is_proven=True)


def reason_of(message: str) -> tuple[str, str, str] | None:
    """(subject, the sentence that says why, ``decision``, ``gotcha`` or ``revert``) of a message, if it says why.

    >>> reason_of("fix: open the file in binary mode\\n\\nText mode breaks on Windows because of line ends.")[2]
    'gotcha'
    """
    lines = [line.rstrip() for line in message.strip().splitlines()]
    lines = [line for line in lines if not _TRAILER.match(line.strip())]
    if not lines or not lines[0] or _CHORE.match(lines[0]):
        return None
    subject = _PREFIX.sub("", lines[0].strip())
    # A body is wrapped at some width: what goes on in the next line is the same sentence.
    body = "\n".join(line if _ITEM.match(line) else line.strip() for line in lines[1:])
    whole = [lines[0].strip(), *(_WRAPPED.sub(" ", part) for part in re.split(r"\n\s*\n|\n(?=\s*[-*•] )", body))]
    sentences = [each.strip(" -*•\n") for part in whole for each in _SENTENCE.split(part) if each.strip()]
    reverted = _REVERT.match(lines[0])
    reasons = [each for each in sentences if _is_reason(each)]
    if reverted:
        why = next((each for each in reasons if not _REVERT.match(each)), "")
        return (f"“{reverted['what'].strip()}” was reverted", why, "revert") if why else None
    if not reasons:
        return None
    why = " ".join(_SEVERITY.sub("", _PREFIX.sub("", reasons[0])).split())
    is_trap = _TRAP.search(why) and not re.search(r"\bdecided|instead of|in favou?r\b", why)
    return "" if _EMPTY_SUBJECT.match(subject) else subject, why, "gotcha" if is_trap else "decision"


def _is_reason(sentence: str) -> bool:
    """Whether a sentence says why, of something that still matters when the change is forgotten."""
    is_whole = (
        len(sentence.split()) >= _LEAST_WORDS and len(sentence) <= _LONGEST and not sentence.endswith(("…", ":", ";"))
    )
    if sentence.count("(") != sentence.count(")") or sentence.count("`") % 2:
        return False  # an abbreviation or a wrapped line has cut it
    is_lasting = _LASTING.search(sentence) and not _OF_THE_MOMENT.search(sentence) and not _CONTINUES.match(sentence)
    return is_whole and bool(_REASON.search(sentence)) and bool(is_lasting)


def draft(finding: Finding, seen: Seen) -> Draft | None:
    data = finding.data
    return draft_of_commit(
        str(data["subject"]), str(data["why"]), str(data["kind"]), str(data["sha"]), list(data["files"])
    )


def draft_of_commit(subject: str, why: str, kind: str, sha: str, files: Sequence[str]) -> Draft:
    """The memory of a commit that says why."""
    told = (subject or why)[:1].upper() + (subject or why)[1:].rstrip(".")
    is_one = not subject or why.rstrip(".") in (subject, subject.rstrip("."))
    content = f"{told}." if is_one else f"{told}: {why.rstrip('.')}."
    near = tuple(files[:6])
    modules = tuple(dict.fromkeys(filter(None, map(module_of, near))))[:3]
    is_decision = kind == "decision"
    fields = {"rationale": quote(why, 400)} if is_decision else {"cause": quote(why, 400)}
    return Draft(
        "decision" if is_decision else "gotcha", content, (quote(f"{subject}\n{why}", 400),), near, modules, fields,
        ("commit",), "commit_auto", sha,
    )  # fmt: skip
