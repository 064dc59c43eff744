"""Detect memories that contradict each other, with the reason.

Four signs count: a negation of the same words; a changed number, version or name; an announced
change ("no longer", "moved from … to …"); two versions of one subject. Precision comes before
recall: a wrongly retired memory costs more than a missed contradiction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

from smara.core.startup.record import dataclass
from smara.core.startup.regex import re, regex
from smara.knowledge.kinds import KINDS, subject_key
from smara.knowledge.models import TypedMemory
from smara.knowledge.statements import CUES, WORDS, Statement, Word, overlap, parse_statement

_THING = r"[`\"']?([\w./@+#-]+)[`\"']?"
_CONTRAST = regex(
    rf"(?:,|\band|\bbut|\binstead of|\brather than)\s+(?:(?<=of )|(?<=than )|(?:not|never)\s+)"
    rf"(?:(?:to|the|an?|in|on|with|by|from|use|using)\s+)*{_THING}",
    re.IGNORECASE,
)
_OVER = regex(rf"\bover\s+(?:the\s+|an?\s+)?{_THING}", re.IGNORECASE)
_CHANGES = tuple(
    regex(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bno longer (?:uses?|using|needs?|requires?|on|in|an? |the )*\s*{_THING}",
        rf"\b(?:switched|migrated|moved|changed|converted|upgraded|went) (?:away )?from {_THING}",
        rf"\breplac(?:ed|es|ing) {_THING} (?:with|by)\b",
        rf"\brenamed (?:from )?{_THING} to\b",
        rf"\b(?:dropped|removed|abandoned|deprecated) {_THING}",
        rf"\binstead of {_THING}",
        rf"\brather than {_THING}",
    )
)
_OPPOSITES = frozenset(frozenset(pair.split("/")) for pair in WORDS["opposites"])

Sign = Literal["denied", "changed", "replaced", "version", "stated"]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """The reason why two statements cannot both be true.

    When it is not sure ("use pytest for tests", "use nose for tests"), both are kept, and a person
    is asked.
    """

    sign: Sign
    why: str
    old: str = ""
    new: str = ""
    is_sure: bool = True


def find_contradiction(new: TypedMemory, old: TypedMemory) -> Contradiction | None:
    """Return the sign that a newer memory contradicts an older one."""
    if new.type == old.type:
        key = subject_key(new.type, new.data)
        if key is not None and key == subject_key(old.type, old.data):
            return Contradiction(
                "version", f"both are about {key.partition(':')[2]}, and this one is newer"
            )
    rules = {KINDS[new.type].contradicts, KINDS[old.type].contradicts}
    if "nothing" in rules or (new.type != old.type and rules != {"claims"}):
        return None
    for mine, theirs in ((new.files, old.files), (new.modules, old.modules)):
        if mine and theirs and set(mine).isdisjoint(theirs):
            return None  # they are about different places
    return compare(
        parse_statement(new.content),
        parse_statement(old.content),
        bool(set(new.files) & set(old.files)),
    )


def compare(new: Statement, old: Statement, has_same_files: bool = False) -> Contradiction | None:
    """Return the sign that two statements contradict each other, by their words."""
    if "?" in new.text or "?" in old.text or not new.content or not old.content:
        return None
    return (
        _denied(new, old)
        or _changed(new, old, has_same_files)
        or _replaced(new, old, has_same_files)
    )


def tells_of_change(text: str) -> bool:
    """Return True if a text itself says that something is gone."""
    return any(pattern.search(text) for pattern in _CHANGES)


def _denied(new: Statement, old: Statement) -> Contradiction | None:
    """The same words, denied in one of the two; or a thing that one asserts and the other rules
    out.
    """
    common = overlap(new.content_set, old.content_set)
    (mine, my_lacks), (theirs, their_lacks) = _denials(new), _denials(old)
    has_same_order = overlap(new.pairs, old.pairs) >= 0.5 or len(new.content) < 3
    if common >= 0.8 and has_same_order and mine % 2 != theirs % 2 and my_lacks == their_lacks:
        return Contradiction("denied", "one says it, the other denies it", old.text, new=new.text)
    ruled_out, their_ruled_out = _ruled_out(new), _ruled_out(old)
    if common < 0.6:
        return None
    for one, other, things, others in (
        (new, old, ruled_out, their_ruled_out),
        (old, new, their_ruled_out, ruled_out),
    ):
        common_things = sorted((things - others) & other.content_set & one.content_set)
        is_plain = not _denials(other)[0]
        is_swapped = bool((others - things) & one.content_set)
        if common_things and (is_plain or is_swapped):
            why = f"one rules out {common_things[0]}, which the other says"
            return Contradiction("denied", why, old.text, new=new.text)
    return None


def _denials(statement: Statement) -> tuple[int, int]:
    """How often something is denied, and how often something is lacking: "without" states a
    condition.
    """
    lacks = sum(
        word.kind == "negation" and word.text.lower() == "without" for word in statement.words
    )
    return statement.negations - lacks, lacks


def _ruled_out(statement: Statement) -> frozenset[str]:
    """What is set against something else: in "use pnpm, not npm" and "prefer pnpm over npm" it is
    npm.
    """
    is_choice = not WORDS["choosing"].isdisjoint(statement.stems)
    return frozenset(
        stem
        for pattern in ((_CONTRAST, _OVER) if is_choice else (_CONTRAST,))
        for match in pattern.finditer(statement.text)
        for stem in parse_statement(match[1]).content_set
    )


def _changed(new: Statement, old: Statement, has_same_files: bool) -> Contradiction | None:
    """Everything the same but for one value, in a place where there can be only one."""
    if new.negations % 2 != old.negations % 2:
        return None
    mine = [word for word in new.words if word.kind != "small"]
    theirs = [word for word in old.words if word.kind != "small"]
    matcher = SequenceMatcher(
        None, [word.stem for word in theirs], [word.stem for word in mine], autojunk=False
    )
    edits = [edit for edit in matcher.get_opcodes() if edit[0] != "equal"]
    if len(edits) != 1 or edits[0][0] != "replace":
        return None
    _, start, end, begin, stop = edits[0]
    was, now = theirs[start:end], mine[begin:stop]
    if (
        len(was) > 3
        or len(now) > 3
        or (begin + len(mine) - stop) / max(len(mine), len(theirs)) < 0.5
    ):
        return None
    if not (_is_phrase(old, was) and _is_phrase(new, now)):
        return None  # two values have changed, so the subject may be another one
    around = (mine[:begin], mine[stop:])
    verdict = _holds_one(new, around, was, now=now, least_head=1 if has_same_files else 2)
    if verdict == "no":
        return None
    before, after = " ".join(word.text for word in was), " ".join(word.text for word in now)
    return Contradiction(
        "changed", f"{before} has become {after}", before, new=after, is_sure=verdict == "yes"
    )


def _is_phrase(statement: Statement, words: Sequence[Word]) -> bool:
    """Whether words stand side by side, with nothing between them."""
    ends = [word.at + len(word.text) for word in words]
    return all(
        not statement.text[end : word.at].strip()
        for end, word in zip(ends, words[1:], strict=False)
    )


def _holds_one(
    new: Statement,
    around: tuple[Sequence[Word], Sequence[Word]],
    was: Sequence[Word],
    *,
    now: Sequence[Word],
    least_head: int,
) -> Literal["yes", "perhaps", "no"]:
    """Decide if only one value can stand at a place of a sentence, between head and tail."""
    head, tail = around
    is_single = len(was) == len(now) == 1
    is_counted = is_single and was[0].kind == now[0].kind == "number"
    if is_single and frozenset((was[0].stem, now[0].stem)) in _OPPOSITES:
        return "yes" if len(head) + len(tail) >= 2 else "no"
    if head and head[-1].stem in WORDS["choosing"] and tail:
        # The value stands right behind a verb of choosing.
        last = head[-1]
        between = new.text[last.at + len(last.text) : now[0].at].strip(" `\"'").lower()
        if between in ("", "the", "a", "an") and not is_counted:
            return "perhaps"
    if len(head) < least_head or any(word.stem in WORDS["not alone"] for word in head[-3:]):
        return "no"
    if is_counted:
        return "no" if {head[-1].stem, head[-1].text.lower()} & WORDS["enumerators"] else "yes"
    before = new.text[max(0, now[0].at - 40) : now[0].at]
    are_names = all(word.kind in ("name", "number") or word.is_proper for word in (*was, *now))
    return (
        "yes"
        if CUES["placing"].search(before) or (are_names and CUES["being"].search(before))
        else "no"
    )


def _replaced(new: Statement, old: Statement, has_same_files: bool) -> Contradiction | None:
    """The newer one says itself that something has gone, and the older one still says it."""
    for match in _changes_in(new.text):
        gone = parse_statement(match[1]).content_set
        shared = (new.content_set & old.content_set) - gone
        if not gone or not gone <= old.content_set or len(shared) < (1 if has_same_files else 2):
            continue
        # The older one must assert it, and not itself tell of its end.
        ended = (parse_statement(end[1]).content_set for end in _changes_in(old.text))
        if not gone & _ruled_out(old) and not any(gone & each for each in ended):
            why = f"it says that {match[1]} has gone"
            return Contradiction("replaced", why, match[1], new=new.text)
    return None


def _changes_in(text: str) -> Iterator[re.Match[str]]:
    return (match for pattern in _CHANGES for match in pattern.finditer(text))
