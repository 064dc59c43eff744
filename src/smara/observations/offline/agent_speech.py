"""What an agent's sentence is: an announcement, an explanation, a choice, a report that something
is done or blocked.

Most of what a coding agent says between its calls announces the next call. By the telling
words of this file the few sentences are found that a person would note down.
"""

from __future__ import annotations

import re

from smara.observations.offline.acts import VERBS
from smara.observations.offline.wording import one_of, outline

FINDING = one_of(
    r"\broot cause\b|\bturns? out\b|\bcaused by\b|\bbecause\b|\bdue to\b|\bthe reason\b|\breal "
    r"bug\b",
    r"\b(?:issue|problem|bug|cause|reason|culprit|error|failure|fix|difference|catch|trick) "
    r"(?:here |now )?"
    r"(?:is|was|are|were|comes|seems|lies)\b",
    r"\bi (?:found|discovered|noticed|see that|see the)\b|^found\b",
    r"\bknown (?:\w{1,20} )?(?:issue|bug|problem|conflict|limitation)\b",
    r"\b(?:does|do|did|is|are|was|were|has|have|can|will|wo|could|should)(?: not|n't) (?:support"
    r"|supported|exist|work"
    r"|include|included|configured|needed|set|defined|match|available|handle|have|contain"
    r"|installed|exported|being)\b",
    r"\b(?:is|are|was|were) (?:missing|lost|unused|deprecated|dropped|ignored|overwritten|stale"
    r"|wrong|incompatible"
    r"|pre-existing|required)\b",
    r"\bpre-existing\b|\bwhich means\b|\bthis means\b|\bmeans that\b|\bcannot be\b|\bnot a "
    r"valid\b|\bdepends? on\b",
    r"\bconflicts? (?:with|when|between)\b|\bonly (?:works|happens|when|if)\b|\bfails? (?:because"
    r"|since|when|on|if)\b",
    r"\bneeds? .{1,60} (?:imported|installed|enabled|set)\b",
    r"\bno \w{1,30} (?:module|file|helper|table|column|config)",
    r"\bwithout (?:a|an|the) (?:default|key|index|lock)\b",
)
CHOICE = one_of(
    r"\b(?:i(?:'ll| will|'ve| have)?|we(?:'ll| will)?|let me|let's|i'm going to) (?:just |instead "
    r"|simply )?"
    r"(?:use|go with|choose|chose|chosen|decided|keep|skip|suppress|opt|switch|stick|avoid|prefer"
    r"|adopt|rewrite"
    r"|work around)\b.{0,160}\b(?:because|instead|rather than|since|so that|to avoid|to keep"
    r"|for)\b",
    r"\bdecided to\b|\bgoing with\b|\brecommend(?:ation|ed)?:? ",
    r"\bthe (?:best|simplest|safest|right) (?:approach|option|way|choice|fix) is\b",
)
COMPLETION = one_of(
    r"^(?:all (?:done|set|green|pushed|committed)|done\b|pushed\b|committed\b|✅|fixed\b"
    r"|implemented\b|completed\b)",
    r"^(?:added|created|updated|removed|deleted|renamed|moved|refactored|replaced|extracted"
    r"|converted|migrated|deployed"
    r"|installed|configured|merged|upgraded|reverted|rewrote|wrote|switched)\b",
    r"^everything\b.{0,60}\b(?:pushed|done|pass\w{0,4}|complete|working|clean)",
    r"\b(?:is|are|has been|have been|now) (?:(?:now|fully|all|both|successfully) "
    r"){0,3}(?:complete|completed|done"
    r"|finished|fixed|implemented|pushed|merged|deployed|resolved|closed|working|in place"
    r"|migrated)\b",
    r"^(?:i(?:'ve| have) |successfully |the \w{1,30} (?:is|was) )(?:(?:now|just|successfully) "
    r"){0,2}(?:added|created"
    r"|implemented|fixed|updated|removed|refactored|moved|renamed|written|built|set up|completed"
    r"|finished|resolved"
    r"|migrated|configured|installed|deployed)\b",
    r"\ball (?:\d{1,6} |the |of the )?(?:\w{1,20} ){0,3}(?:tests?|checks|tasks|subtasks)(?: now)? "
    r"(?:are |is )?"
    r"(?:pass|green|done|complete|succeed)",
    r"\bcomplete[.!]?$",
)
MILESTONE = re.compile(
    r"\b(?:task|epic|feature|issue|ticket|bead|story|milestone|phase|step|migration"
    r"|refactor\w{0,5}|part) "
    r"[^().;,]{0,40}"
    r"\b(?:(?:is|are|now|all) ){0,3}(?:complete|completed|done|finished)\b",
    re.IGNORECASE,
)
BLOCKED = one_of(
    r"\b(?:i(?:'m| am)|we(?:'re| are)|this is|it is|work is|still) blocked\b|\bblocked (?:by|on"
    r"|until)\b",
    r"\b(?:i|we) can(?:no|')t (?:proceed|continue|go on|access|push|commit|install)\b|\bhook "
    r"won't let me\b",
    r"\bwaiting (?:for|on) (?:you|your|the user|approval|review|access)",
    r"\bneeds? your (?:input|approval|decision|help|confirmation)",
)
_CONTRAST = one_of(
    r"\b(?:but|however|although|never|only|already|actually|instead|unless|not)\b|n't\b",
    r"\b(?:has|have|returns?|takes|expects|contains) \d{1,9}\b",
)
_OPENERS = re.compile(
    r"(?:(?:good|great|perfect|right|ok(?:ay)?|excellent|now|next|first|then|also|finally|alright"
    r"|so|nice|both|expected"
    r"|i see|yes|sure)\b[,.!:;—– -]{0,4}){1,4}",
    re.IGNORECASE,
)
_ANNOUNCES = one_of(
    r"(?:let me|let's|i'll|i will|i need|i'm going to|i should|i can(?!')|i now have|i understand"
    r"|starting|time to)\b",
    r"i have (?:a|the|full|all|everything|enough|complete)\b",
    r"(?:moving on|going to|here's|here is|here are|running|checking|reading|adding|writing"
    r"|creating|updating)\b",
    r"(?:closing|committing|pushing|fixing|looking)\b",
)
ROOT_CAUSE = one_of(
    r"\broot cause\b|\bcaused by\b|\bbecause\b|\bdue to\b|\b(?:issue|problem|bug|cause) (?:here "
    r")?(?:is|was)\b",
)
SURE = re.compile(r"\broot cause\b|\bturns out\b", re.IGNORECASE)

_SHORTEST_EXPLANATION, _SHORTEST_CHOICE = 25, 60


def explains(words: str) -> bool:
    """Whether a sentence tells a cause, a choice, a hindrance, or that something in the code is
    otherwise.
    """
    if len(words) < _SHORTEST_EXPLANATION or words.rstrip().endswith(":"):
        return False
    if announces(words):
        return bool(CHOICE.search(words)) and len(words) > _SHORTEST_CHOICE
    if FINDING.search(words) or CHOICE.search(words) or BLOCKED.search(words):
        return True
    return "`" in words and bool(_CONTRAST.search(words))


def announces(words: str) -> bool:
    """Whether a sentence only says what comes next: "Now add the route", "Let me check"."""
    opener = _OPENERS.match(words)
    rest = words[opener.end() :] if opener else words
    return (
        not rest
        or bool(_ANNOUNCES.match(rest))
        or rest.split(" ", 1)[0].lower().strip("`") in VERBS
    )


def only_announces(text: str) -> bool:
    """Whether words only say what comes next, so that the turn goes on behind them."""
    found = outline(text)
    return not found.items and all(map(announces, [*found.prose, *found.closing]))


def telling_sentences(told: list[str]) -> list[str]:
    """The sentences without those that only announce, unless there are no others."""
    return [words for words in told if len(words) > 12 and not announces(words)] or told


def is_telling_item(item: str) -> bool:
    """Whether an item of a list says something; short headings do not."""
    return len(item) > 2 and not (item.endswith(":") and item.count(" ") < 3)
