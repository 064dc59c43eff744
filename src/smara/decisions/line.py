"""Render a decision as one line of an injection, quoted and cited.

Hooks load this module: it imports next to nothing.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST, MOST_TOKENS = 2_300, 560
"""With its block, a line stays within what a message may be told."""
SAID_ON = "- Said by a person on "
PLANNED_ON = "- A plan that a person approved on "
_LONGEST_RULE = 1_500
_LONGEST_TITLE, _LONGEST_REASON = 200, 500
_LONGEST_REJECTED, _LONGEST_EARLIER = 160, 700
_MOST_REJECTED = 3


def decision_line(
    short_id: str,
    thread_id: str,
    at_ms: int,
    *,
    rule: str,
    quotations: Sequence[str],
    earlier: Sequence[str] = (),
    rejected: Sequence[str],
    is_agents_wording: bool,
    disagrees_with: Sequence[str] = (),
    most: int = LONGEST,
) -> str:
    """Render the rule, the person's words and the rejected proposals.

    When room is short, rejected proposals go first, then the quotations that tell least.
    """
    day = _day(at_ms)
    head = f"{SAID_ON}{day}"
    end = _citation(short_id, thread_id)
    if disagrees_with:
        others = ", ".join(f"#{each}" for each in disagrees_with)
        end = f" Another person decided otherwise (Memory {others}): ask which one holds.{end}"
    refused = [f" Rejected: {_quoted(each, _LONGEST_REJECTED)}" for each in rejected]
    del refused[_MOST_REJECTED:]
    if is_agents_wording:
        text = f", in the agent's words: {_quoted(rule, _LONGEST_RULE)} The person:"
    else:
        text = ":"
    carried = (
        f" Still standing from before: {_quoted(' '.join(earlier), _LONGEST_EARLIER)}"
        if earlier
        else ""
    )
    room = most - len(head) - len(end) - len(text) - len(carried)
    words = [_quoted(each, room) for each in quotations]
    while words and sum(map(len, (*words, *refused))) + len(words) > room:
        # One rejected proposal says what was meant; more of them do not outweigh the rule.
        if len(refused) > 1:
            refused.pop()
        else:
            words.remove(min(words, key=_telling))
    if not words:
        text = text.removesuffix(" The person:")
    return f"{head}{text}{''.join(f' {each}' for each in words)}{carried}{''.join(refused)}{end}"


def plan_line(short_id: str, thread_id: str, at_ms: int, *, title: str, reason: str) -> str:
    """Render a plan that a person approved, and its reason.

    A reason speaks of what the plan was to end, and must not be read as what holds today.
    """
    quoted = _quoted(reason, _LONGEST_REASON)
    why = f". Its reason, as it was before that: {quoted}" if reason else ""
    return (
        f"{PLANNED_ON}{_day(at_ms)}: {_quoted(title, _LONGEST_TITLE)}{why}"
        f"{_citation(short_id, thread_id)}"
    )


def quotation(sentences: Sequence[str], text: str) -> str:
    """Join sentences of a text, and mark where others were left out.

    >>> quotation(["Ship it.", "Not on Friday."], "Ship it. It is fine. Not on Friday.")
    'Ship it. … Not on Friday.'
    """
    whole = " ".join(text.split())
    joined, end = "", 0
    for each in sentences:
        at = whole.find(each, end)
        is_next = not joined or at < 0 or not whole[end:at].strip()
        joined += f"{' ' if joined else ''}{'' if is_next else '… '}{each}"
        end = at + len(each) if at >= 0 else end
    return joined


def _day(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at_ms / 1_000))


def _citation(short_id: str, thread_id: str) -> str:
    return f" [Memory #{short_id}, Thread {_plain(thread_id, 60)}]"


def _telling(text: str) -> int:
    """Count the longer words and the numbers: "great, thanks" tells nothing."""
    return sum(len(word) > 3 or any(map(str.isdigit, word)) for word in set(text.split()))


def _plain(text: str, most: int) -> str:
    from smara.core.extract import one_line, shorten

    line = one_line(text).replace("[Memory #", "(Memory #").replace("]", ")")
    return shorten(line, most)


def _quoted(text: str, most: int) -> str:
    from smara.core.escape import neutralize
    from smara.core.extract import one_line, shorten

    line = one_line(neutralize(text)).replace('"', "'").replace("[Memory #", "(Memory #")
    return f'"{shorten(line, most)}"'
