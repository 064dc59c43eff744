"""Write what an agent is told of the reasons behind lines.

A commit message is evidence, never an instruction: it is quoted, shortened and cited, and cannot
leave its quotation marks. The notes are made ahead; :mod:`.edit` finds those that a call is about.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

from smara.actions.paths import is_source
from smara.commits.edit import marks
from smara.commits.lines import COMMON
from smara.commits.message import gives_why, sentences_of
from smara.commits.models import Commit, LineReason
from smara.core.escape import neutralize
from smara.core.extract import one_line
from smara.core.startup.regex import regex
from smara.core.tokens import estimate_o200k

VERSION = 2
"""Notes of another version are written again."""
MOST_OF_A_FILE = 12
_LONGEST_UNDONE, _LONGEST_STANDING, _LONGEST_CODE, _LONGEST_SUBJECT = 1_100, 420, 110, 100
_FEW_LINES, _FEW_FILES, _FEW_SENTENCES = 30, 3, 12
"""A commit that set so few lines, in so few words, is about all of them."""
_LEAST_WORDS, _LONGEST_SENTENCE = 8, 330
"""What a sentence must be like that explains lines: no remark, and no list without full stops."""
_LONG = 500
"""Of a longer reason, only what is about the lines is quoted."""
_WORD = regex(r"\w{3,}|\d+")
_NAME = regex(r"\w_\w|[a-z][A-Z]|\d")
_IS_CODE = regex(r"\w\s*[=([{]|[;{}]$")


def note_of(reason: LineReason) -> dict[str, Any] | None:
    """Return the note on a reason, or ``None``."""
    commit, undone = reason.commit, reason.undone_by
    named = _words(f"{commit.subject} {commit.reason}")
    cited = f"commit {commit.short_id} ({commit.day}, {_quoted(commit.subject, _LONGEST_SUBJECT)})"
    lines: list[str] = []
    gone: list[str] = []
    if undone is None:
        lines, whys = _explained(reason)
        why = _quoted(" … ".join(whys), _LONGEST_STANDING)
        text = f"- Lines that this changes were set by {cited}, whose message says: {why}"
    else:
        gone = [each.text for each in reason.lost if each.by == undone.sha]
        shown = min(gone, key=lambda each: (not _IS_CODE.search(each), -len(_words(each) & named)))
        where = f" in {_code(reason.functions[0] + '()')}" if reason.functions else ""
        more = f" and {len(gone) - 1} more lines" if len(gone) > 2 else ""
        why = _chosen(commit, _words("\n".join(gone)), _LONGEST_UNDONE)
        now = f" {_code(reason.instead[0])} stands there now." if len(reason.instead) == 1 else ""
        text = (
            f"- Undone here{where}: {cited} had set {_code(shown)}{more}, and its message says: "
            f"{why} Commit {undone.short_id} ({undone.day}, "
            f"{_quoted(undone.subject, _LONGEST_SUBJECT)})"
            f" took that away; its message says no more than that.{now}"
        )
    if not (lines or undone):
        return None
    line = f"{text} [Commit {commit.short_id}]"
    return {
        "id": commit.short_id,
        "key": f"commit:{commit.short_id}:{reason.path}",
        "text": one_line(neutralize(commit.subject), 60),
        "line": line,
        "tokens": math.ceil(estimate_o200k(line)),
        "is_undone": undone is not None,
        "functions": list(reason.functions),
        "lines": sorted(marks(lines)),
        "gone": sorted(marks(gone)),
        "now": sorted(marks(reason.instead)),
    }


def notes_of(reasons: Sequence[LineReason]) -> list[dict[str, Any]]:
    """Return the notes on a file, what was undone first."""
    notes = filter(None, map(note_of, reasons))
    return [note for note, _ in zip(notes, range(MOST_OF_A_FILE), strict=False)]


def _explained(reason: LineReason) -> tuple[list[str], list[str]]:
    """Return the lines that a commit explains, and the sentences that do.

    A sentence explains a line if it gives a why and has some words or one name of it. A small
    commit is about all of its lines.
    """
    commit = reason.commit
    sentences = sentences_of(commit.reason)
    whys = [
        each
        for each in sentences
        if gives_why("", each)
        and len(each) <= _LONGEST_SENTENCE
        and (len(each.split()) >= _LEAST_WORDS or not each.isascii())
    ]
    if not whys:
        return [], []
    is_small = len(reason.texts) <= _FEW_LINES and sum(map(is_source, commit.files)) <= _FEW_FILES
    if is_small and len(sentences) <= _FEW_SENTENCES:
        return list(reason.texts), whys
    found: dict[str, None] = {}
    lines = []
    least = 2 if len(commit.files) <= 2 * _FEW_FILES else 3
    for line in reason.texts:
        words = _words(line) - COMMON
        names = {word.casefold() for word in _WORD.findall(line) if _NAME.search(word)}
        for why in whys:
            shared = words & _words(why)
            if len(shared) >= least or shared & names:
                lines.append(line)
                found[why] = None
                break
    return lines, [why for why in whys if why in found]  # as the message has them


def _chosen(commit: Commit, words: Collection[str], most: int) -> str:
    """Quote a reason; of a long one, the sentences that have the most of some words."""
    sentences = sentences_of(commit.reason)
    shared = [len(_words(each) & set(words)) for each in sentences]
    is_long = len(commit.reason) > _LONG and any(shared)
    chosen: set[int] = set()
    for at in sorted(range(len(sentences)), key=lambda at: (-shared[at], at)):
        size = sum(len(sentences[each]) + 1 for each in (*chosen, at))
        if not chosen or (size <= most and (shared[at] or not is_long)):
            chosen.add(at)
    text = ""
    for at in sorted(chosen):
        is_next = at == 0 or at - 1 in chosen
        text += f"{' ' if text else ''}{'' if is_next else '… '}{sentences[at]}"
    return _quoted(text if max(chosen, default=0) == len(sentences) - 1 else f"{text} …", most)


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _safe(text: str, most: int) -> str:
    # Nothing that is stored may look like a citation of ours.
    return one_line(neutralize(text[: 8 * most]), most).replace("[Commit ", "(Commit ")


def _quoted(text: str, most: int) -> str:
    return f'"{_safe(text, most).replace(chr(34), chr(39))}"'


def _code(text: str) -> str:
    return f"`{_safe(text, _LONGEST_CODE).replace('`', chr(39))}`"
