"""Reject statements that are not worth remembering, with the reason.

Most automatic memories are junk: repeated boot files, injected memories learned again, plans,
questions, fragments. What a person teaches passes. Everything else must be a new statement with
evidence, within the limit of a session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from smara.core.escape import BLOCKS
from smara.core.paths import is_instruction_file
from smara.core.startup.regex import re, regex
from smara.knowledge.models import Evidence, MemorySource
from smara.knowledge.prepare import INFERRED
from smara.knowledge.statements import Statement, parse_statement

SessionType = Literal["build", "insights", "roadmap", "terminal", "changelog", "spec", "pr_review"]
SESSION_TYPES: tuple[SessionType, ...] = get_args(SessionType)
LEARNED_PER_SESSION: Mapping[SessionType, int] = {
    "build": 20, "insights": 5, "roadmap": 3, "terminal": 3, "changelog": 0, "spec": 3,
    "pr_review": 8,
}  # fmt: skip
"""The most that may be inferred in one session, by what the session is for."""
RECORDED_PER_SESSION = 20
"""The most that an agent may record itself in one session."""

_LONGEST_PARAGRAPH = 2_000
_LEAST_WORDS = 3
_LONGEST_INFERRED = 1_500
_ECHO_SHARE = 0.9
_NAMES = "|".join(sorted(BLOCKS, key=len, reverse=True))
_TAG = regex(rf"<(/?)({_NAMES})\b[^<>]{{0,200}}>", re.IGNORECASE)
_CITATION = regex(r"\[\^? ?memory(?: #[\w-]+)?:", re.IGNORECASE)
_JUNK: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (why, regex(pattern, re.IGNORECASE | re.DOTALL))
    for why, pattern in (
        (
            "it is a system prompt, not something learned",
            r"\s*you are (?:an? |the )?(?:\w+ ){0,3}(?:assistant|agent|ai\b)",
        ),
        ("it is a system prompt, not something learned", r".*\bas an ai (?:language )?model\b"),
        (
            "it is a plan for the next step, not something learned",
            r"\s*(?:i(?:'ll| will| am going to|'m going to)|let me|let's|next,? i|now i|first,? "
            r"i(?:'ll| will))\b",
        ),
        (
            "it tells what is happening at the moment",
            r"\s*(?:i am|i'm|we are|we're|the agent is|the assistant is|claude is) (?:now "
            r"|currently )?\w+ing\b",
        ),
        (
            "it only says that something was done",
            r"\s*(?:done|ok(?:ay)?|sure|thanks?|thank you|great|yes|no|all (?:tests )?pass(?:ed)?"
            r"|task (?:is )?completed?|success(?:fully)?(?: completed)?|fixed|works)[\s.!]*$",
        ),
        (
            "it says that nothing was found",
            r"\s*(?:(?:nothing|none|n/?a|unknown|not (?:applicable|available|specified))[\s.]*$"
            r"|(?:nothing|no \w+(?: \w+)?) (?:was |were |has been |have been )?(?:found"
            r"|identified|learned|extracted"
            r"|new|noted|notable|relevant|to (?:report|remember|note|record|add"
            r"|extract))\b[^.]{0,40}[\s.]*$)",
        ),
        (
            "it tells of the user without saying what to do",
            r"\s*(?:the )?user (?:asked|wants? to know|is asking|requested|said hello|greeted"
            r"|thanked)\b",
        ),
    )
)


def without_injected(text: str) -> str:
    """Return a text without the blocks that a memory put into it.

    >>> without_injected("before <observations>* (09:00) used pnpm</observations> after")
    'before  after'
    """
    pieces: list[str] = []
    at = 0
    ends: dict[str, int] = {}
    spans = []
    for tag in reversed(list(_TAG.finditer(text))):
        # A tag without its other half stands for itself.
        if tag[1]:
            ends[tag[2].lower()] = tag.end()
        end = tag.end() if tag[1] else ends.get(tag[2].lower(), tag.end())
        spans.append((tag.start(), end))
    for start, end in reversed(spans):
        if start >= at:
            pieces.append(text[at:start])
        at = max(at, end)
    return "".join((*pieces, text[at:]))


def holds_injected(text: str) -> bool:
    """Return True if a text has our blocks or citations in it."""
    return bool(_TAG.search(text) or _CITATION.search(text))


def reasons_against(
    content: str,
    source: MemorySource,
    evidence: Sequence[Evidence],
    files: Sequence[str],
    already_told: Sequence[str] = (),
    has_session: bool = True,
    has_origins: bool = False,
) -> tuple[str, ...]:
    """Return why a statement is not to be remembered, if anything.

    ``has_origins`` says that it was derived from other memories, which is evidence too.
    """
    if source == "user_taught":
        return ()
    statement = parse_statement(content)
    # A file and a person say what they say; only what agents work out has to earn its place.
    is_imported, is_inferred = source in ("imported", "said"), source in INFERRED
    stems = [word.stem for word in statement.words]
    texts = [content, *(each.quote for each in evidence if each.quote)]
    paths = [each.path for each in evidence if each.path]
    is_instructions = bool(paths) and all(map(is_instruction_file, paths))
    has_message = any(each.message_id for each in evidence)
    rests_on_something = bool(evidence) or has_origins
    if is_imported:
        found = [] if statement.content else ["it says nothing"]
    else:
        found = [why for why, pattern in _JUNK if pattern.match(content)]
    found += [
        why
        for is_so, why in (
            (
                not is_imported and len(stems) < _LEAST_WORDS and content.isascii(),
                "it is too short to say anything",
            ),
            (not is_imported and content.rstrip().endswith("?"), "it is a question"),
            (
                is_inferred and len(content) > _LONGEST_INFERRED,
                f"it has {len(content)} characters: what was learned fits into a sentence or two",
            ),
            (
                not is_imported and len(stems) >= 24 and len(set(stems)) / len(stems) < 0.25,
                "it repeats itself",
            ),
            (
                any(map(holds_injected, texts)),
                "it repeats what a memory had put into the conversation",
            ),
            (
                not is_imported and is_instructions and not has_message,
                f"it comes from {paths[0] if paths else ''}, which agents read anyway; import the "
                "file instead",
            ),
            (
                not is_imported and is_echo(statement, already_told),
                "the agent was told this already, by a file or by a memory",
            ),
            (
                is_inferred and not rests_on_something,
                "it has no evidence: name messages, lines of a file or a commit, or quote them",
            ),
            (
                source == "agent_explicit" and not (rests_on_something or files or has_session),
                "it has no evidence: name a file, a message or the session",
            ),
        )
        if is_so
    ]
    return tuple(found)


def is_echo(statement: Statement, already_told: Sequence[str]) -> bool:
    """Return True if a statement repeats a text told before."""
    if len(statement.content_set) < _LEAST_WORDS:
        return False
    for text in already_told:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        paragraphs = [block.strip() for block in re.split(r"\n\s*\n", text) if block.strip()]
        short = (block for block in paragraphs if len(block) <= _LONGEST_PARAGRAPH)
        for part in dict.fromkeys([*lines, *short]):
            other = parse_statement(part)
            words = len(statement.content_set & other.content_set) / len(statement.content_set)
            has_same_sign = statement.negations % 2 == other.negations % 2
            if words >= _ECHO_SHARE and has_same_sign and statement.protected <= other.stems:
                return True
    return False


def limit_for(source: MemorySource, session_type: SessionType) -> int | None:
    """Return how many memories of a source a session may bring."""
    if source in INFERRED:
        return LEARNED_PER_SESSION[session_type]
    return RECORDED_PER_SESSION if source == "agent_explicit" else None
