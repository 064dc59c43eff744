"""Read a commit message: its subject, and the prose of its body.

Trailers, code, quotations and the marks of trackers are left out, whatever the language.
"""

from __future__ import annotations

from typing import NamedTuple

from smara.core.startup.regex import re, regex

_TRAILER = regex(
    r"^(?:[A-Z][A-Za-z]*(?:-[A-Za-z]+)*-(?:[Bb]y|to|id|on|for|cc|from|reference)|Cc|Bug|Issue|Refs?"
    r"|Closes|Close|Fixes"
    r"|Fix|Resolves|See(?: also)?|Change-Id|Part-of|Link|Backport of|Cherry[- ]pick(?:ed)?"
    r"|Forwardport of|PR|Task"
    r"|Tracker|Ticket|BUG|URL|Merges?|Thanks)\b\s*[:#(]?.{0,200}$"
    r"|^(?:Generated with|🤖|\(cherry picked from|git-svn-id:|\* git-svn|---+$|https?://\S+$)"
)
_TICKET = r"(?:[\w./-]{0,40}#\d{1,9}|[A-Z]{2,10}-\d{1,9})"
"""What a tracker calls a ticket. The two parts have no character in common, so that no line takes
long to read.
"""
_PREFIX = regex(
    r"^(?:(?:feat|fix|refactor|perf|docs|tests?|build|ci|chore|style"
    r"|revert)(?:\([^)]{0,60}\))?!?:\s*|\[[^\]]{1,40}\]\s*"
    r"|(?:Fixed|Fixes|Fix|Refs?|Closes|Closed|Resolves|Issue|Bug|Ticket"
    r"|Addresses)\s+(?:CVE-[\d-]{4,20}|"
    rf"{_TICKET}(?:(?:,\s*|\s+)(?:and\s+|refs\s+)?{_TICKET}){{0,9}})\s*(?:--?|:|—|–)\s*"
    r"|(?:address(?:es)? )?PR #\d{1,9}(?: R\d{1,2})?\s*(?:--?|:|—|–)\s*"
    r"|(?:#\d{1,9}|[A-Z]{2,10}-\d{1,9})\s*(?:--?|:|—|–)\s*)",
    re.IGNORECASE,
)
_SUFFIX = regex(rf"\s*\({_TICKET}(?:[,;]\s*{_TICKET}){{0,9}}\)\.?\s*$")
_LONGEST_SUBJECT = 400
_ITEM = regex(r"^\s*(?:[-*+•]|\d{1,2}[.)])\s+")
_SENTENCE_END = regex(r"(?<=[.!?])[\"'”’)\]`]?\s+(?=[A-Z\"'“‘`(\[_*<]|\d+[.)] )")
_ABBREVIATION = regex(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|Mr|Dr|St|No|al)\.)$")
_BOLD = regex(r"\*\*([^*\n]{1,200})\*\*")
_HEADING = regex(
    r"^(?:Summary|Solution|Description|Motivation|Background|Why|Context|Rationale):\s+(?:\.\.\.)?",
    re.IGNORECASE,
)
_SEVERITY = regex(r"^(?:critical|high|medium|low|nit|p\d)\s*[:\-–—]\s*", re.IGNORECASE)
_ENDS = regex(r"[\w`)]$")
_CODE_MARKS = (">", "$ ", ">>> ", "# ", "## ", "### ", "|", "diff --git")
_WHY = regex(
    r"\b(?:because|since|so that|otherwise|must|never|always|should|requires?d?|needs?|avoids?"
    r"|prevents?|ensures?|only|instead|rather than|decided|decision|policy|not|cannot|\w+n't"
    r"|in order to|due to|breaks?|fails?)\b"
    r"|\b(?:weil|damit|sonst|muss|müssen|darf|nie|nicht|soll|nur|statt)\b"
    r"|\b(?:parce que|car|afin|sinon|doit|doivent|jamais|pas|toujours|éviter|seulement)\b"
    r"|\b(?:porque|para que|debe|deben|nunca|siempre|evitar|solo|si no)\b"
    r"|因为|必须|不能|不得|避免|否则|以免|ため|ので|必ず|べき|なければ|ないよう|避け",
    re.IGNORECASE,
)
"""The words by which a text gives a cause, or says what must be so."""
_WORD = regex(r"\w{2,}")
_MADE_BY_A_TOOL = regex(r"^\s*(?:bump|\[pre-commit|update dependenc|merge )", re.IGNORECASE)
_SPEAKS_TO_THE_READER = regex(
    r"\b(?:ignore|disregard|forget|override)\b.{0,60}\b(?:instruction|prompt|rule|guideline|above"
    r"|previous|earlier)|\b(?:as an?|dear|you are an?) (?:ai|llm|assistant|agent)\b|system prompt"
    r"|\|\s*(?:ba|z)?sh\b|\b(?:curl|wget) +\S|\brm -rf\b|\bbase64 -",
    re.IGNORECASE,
)
"""What is written to make a reader do something is not quoted unasked."""
_LEAST_OWN_WORDS = 6
_LONGEST_MESSAGE = 20_000
_LONGEST_LINE = 400
"""A longer line is a dump of something, unless it reads as prose."""


class CommitText(NamedTuple):
    """A message as it can be read."""

    subject: str
    """Its first line, without the marks of a tracker."""
    first_line: str
    """Its first line as it stands."""
    sentences: tuple[str, ...]
    """The sentences of its body, each whole."""
    body: str
    """All of its body that is prose."""


def read_commit(message: str) -> CommitText:
    """The subject and the sentences of a message.

    >>> read_commit("Fixed #7 -- Kept the lock.\\n\\nReleasing it early lets a second\\nwriter in.").sentences
    ('Releasing it early lets a second writer in.',)
    """  # noqa: E501
    # A shell that did not expand it has left the line ends as they were typed.
    lines = message[:_LONGEST_MESSAGE].replace("\\n\\n", "\n\n").strip().splitlines()
    if not lines:
        return CommitText("", "", (), body="")
    first = lines[0][:_LONGEST_SUBJECT].strip()
    paragraphs = _paragraphs(lines[1:], is_squashed=_SUFFIX.search(first) is not None)
    sentences = [each for paragraph in paragraphs for each in sentences_of(paragraph)]
    return CommitText(subject_of(first), first, tuple(sentences), body="\n".join(paragraphs))


def sentences_of(paragraph: str) -> list[str]:
    """Return the sentences of a paragraph, each whole.

    >>> sentences_of("Some do, e.g. The first. Others do not.")
    ['Some do, e.g. The first.', 'Others do not.']
    """
    sentences: list[str] = []
    is_going_on = False
    for piece in filter(str.strip, _SENTENCE_END.split(paragraph)):
        if is_going_on:
            sentences[-1] = f"{sentences[-1]} {piece}"
        else:
            sentences.append(piece.strip())
        is_going_on = bool(_ABBREVIATION.search(sentences[-1]))
    return sentences


def gives_why(subject: str, reason: str) -> bool:
    """Return True if the prose of a body tells why.

    >>> gives_why("fix: retry 7 times", "The provider needs up to six tries at night.")
    True
    >>> gives_why("Drop sync (#12)", "Drop the sync client"), gives_why("Bump a to 2", "It must be so.")
    (False, False)
    """  # noqa: E501
    own = {word.casefold() for word in _WORD.findall(reason)}
    own -= {word.casefold() for word in _WORD.findall(subject)}
    return (
        (len(own) >= _LEAST_OWN_WORDS or not reason.isascii())
        and _WHY.search(reason) is not None
        and not _MADE_BY_A_TOOL.match(subject)
        and not _SPEAKS_TO_THE_READER.search(f"{subject}\n{reason}")
    )


def subject_of(first_line: str) -> str:
    """A first line without what only a tracker needs.

    >>> subject_of("fix(db): keep the lock (#12)")
    'keep the lock'
    """
    text, before = first_line[:_LONGEST_SUBJECT].strip(), ""
    while text != before:
        text, before = _SUFFIX.sub("", _PREFIX.sub("", text, count=1)).strip(), text
    return text


def _paragraphs(lines: list[str], is_squashed: bool) -> list[str]:
    """The paragraphs of a body. In a squashed branch, items of lists are the first lines of its
    commits.
    """
    found: list[list[str]] = [[]]
    items: set[int] = set()
    is_fenced = is_trailing = is_quoted = False
    for line in lines:
        bare = line.strip()
        # A line of a list may be set in, too, and goes on what was begun.
        is_set_in = line.startswith(("    ", "\t")) and not _ITEM.match(line) and not found[-1]
        is_quoted = bare.startswith(">") or (is_quoted and bool(bare))
        if bare.startswith(("```", "~~~")):
            is_fenced = not is_fenced
            found.append([])
        elif (
            is_fenced
            or not bare
            or is_set_in
            or line.lstrip().startswith(_CODE_MARKS)
            or (len(bare) > _LONGEST_LINE and not _is_prose(bare))
        ):
            # What is quoted goes on to the end of its paragraph, with a mark before every line or
            # without.
            is_trailing = is_quoted
            found.append([])
        elif _TRAILER.match(bare):
            # A trailer may go on in the next line, as "Thanks to A, B\nand C." does.
            is_trailing = not bare.endswith(".")
            found.append([])
        elif is_trailing:
            is_trailing = is_quoted or not bare.endswith(".")
        elif is_squashed and line.startswith("* "):
            is_trailing = True
            found.append([])
        elif _ITEM.match(line):
            found.append([_SEVERITY.sub("", _ITEM.sub("", line).strip())])
            items.add(len(found) - 1)
        else:
            found[-1].append(bare if found[-1] else _HEADING.sub("", bare))
    # An item of a list is whole without a full stop.
    joined = [
        (at in items, _BOLD.sub(r"\1", " ".join(each))) for at, each in enumerate(found) if each
    ]
    return [f"{each}." if is_item and _ENDS.search(each) else each for is_item, each in joined]


def _is_prose(line: str) -> bool:
    """Return True if a long line is an unwrapped paragraph and no dump."""
    words = line.split()
    letters = sum(character.isalpha() or character == " " for character in line)
    return len(line) <= 12 * len(words) and letters >= 0.75 * len(line)
