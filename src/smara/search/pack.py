"""Pack an answer into a token budget, cited and without repetition.

Each phase of the work has a budget and a share for every memory type that helps there. What one
type does not use goes to the best of the rest. Entries about one file stand together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC

from smara.core.dates import local_time
from smara.core.escape import neutralize
from smara.core.extract import shorten
from smara.core.tokens import TokenCounter
from smara.errors import InvalidInputError
from smara.knowledge.kinds import KINDS
from smara.knowledge.statements import Statement, is_repeated_in, parse_statement
from smara.search.models import PHASES, Hit, PackedAnswer

BUDGETS: dict[str, int] = {
    "define": 2_500, "implement": 3_000, "validate": 2_500, "refine": 2_000, "explore": 2_000,
    "reflect": 1_500,
}  # fmt: skip
ALLOCATIONS: dict[str, dict[str, float]] = {
    phase: {kind.type: kind.share[phase] for kind in KINDS.values() if phase in kind.share}
    for phase in PHASES
}
"""The share of a phase's budget for each type; what is not given away is for everything else."""

DEFAULT_BUDGET_TOKENS = 2_000
SMALLEST_BUDGET_TOKENS = 100
_LONGEST_ENTRY_SHARE = 0.5
_BRIEF = 40


def pack(
    hits: Sequence[Hit],
    counter: TokenCounter,
    budget_tokens: int | None = None,
    phase: str | None = None,
    is_unasked: bool = False,
) -> PackedAnswer:
    """Pack the best hits within a budget.

    The given one, that of the phase, or 2,000 tokens.

    What is told unasked leaves out what is not trusted, however well it answers.
    """
    if phase is not None and phase not in PHASES:
        raise InvalidInputError(f"phase must be one of {', '.join(PHASES)}; got {phase!r}.")
    budget = (
        budget_tokens
        if budget_tokens is not None
        else BUDGETS.get(phase or "", DEFAULT_BUDGET_TOKENS)
    )
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < SMALLEST_BUDGET_TOKENS:
        raise InvalidInputError(
            f"budget_tokens must be a whole number from {SMALLEST_BUDGET_TOKENS}; got {budget!r}."
        )
    withheld = tuple(hit for hit in hits if is_unasked and not hit.is_trusted)
    distinct, repeated = _distinct(hit for hit in hits if not is_unasked or hit.is_trusted)
    entries = [
        (
            hit,
            entry := _entry(hit, counter, int(budget * _LONGEST_ENTRY_SHARE)),
            counter.count(entry).tokens + 1,
        )
        for hit in distinct
    ]
    chosen = _choose(entries, budget, ALLOCATIONS.get(phase or "", {}))
    shown = _by_file(
        [(hit, entry) for number, (hit, entry, _) in enumerate(entries) if number in chosen]
    )
    text = "\n".join(entry for _, entry in shown)
    return PackedAnswer(
        text,
        counter.count(text).tokens,
        tuple(hit for hit, _ in shown),
        left_out=tuple(hit for number, (hit, _, _) in enumerate(entries) if number not in chosen),
        repeated=tuple(repeated),
        budget_tokens=budget,
        withheld=withheld,
    )


def citation(hit: Hit) -> str:
    """Return the citation that names a hit in a text.

    >>> citation(Hit("0199-7", "memory", "Redis must run", 0, type="gotcha"))
    '[Memory #0199-7: Redis must run]'
    """
    if hit.source == "memory":
        named = shorten(_line(str(hit.metadata.get("citation") or hit.content)), _BRIEF)
        return f"[Memory #{hit.metadata.get('shortId', hit.id)}: {named}]"
    if hit.source == "code":
        return f"[Code {_line(str(hit.metadata.get('citation') or hit.id))}]"
    if hit.source == "task":
        return f"[Task {hit.metadata.get('shortId', hit.id)}]"
    kind = {"raw": "Message", "compacted": "Message", "working": "Working memory"}.get(
        hit.source, hit.source.title()
    )
    return f"[{kind} {hit.id}]"


def _entry(hit: Hit, counter: TokenCounter, most_tokens: int) -> str:
    """One hit as a line with its citation; a long one is cut around what answers best."""
    from smara.core.text import snippet

    files = [_line(path) for path in hit.files[:3]]
    day = str(local_time(UTC, hit.created_at).date())
    head = ", ".join((hit.type or hit.role or hit.source, day, *files))
    mark = "" if hit.is_confirmed else " (unconfirmed)"
    hedge = hit.metadata.get("hedge")
    mark += f" ({_line(str(hedge))})" if hedge else ""
    room = max(most_tokens - counter.count(head + mark).tokens - 30, 40)
    content = hit.content.strip()
    if counter.count(content).tokens > room:
        content = snippet(content, hit.terms, room * 3)
    # It can neither end its entry, nor begin another, nor cite what was not found.
    quoted = neutralize(content).replace("\n", "\n  ").replace("[Memory #", "(Memory #")
    return f"- ({head}){mark} {quoted} {citation(hit)}"


def _line(text: str) -> str:
    return " ".join(neutralize(text).split()).replace("[", "(").replace("]", ")")


def _choose(
    entries: Sequence[tuple[Hit, str, int]], budget: int, shares: Mapping[str, float]
) -> set[int]:
    """Which entries go in: first each type's share, by rank, then the best of what is left."""
    chosen: set[int] = set()
    left = budget
    for kind, share in shares.items():
        room = min(int(budget * share), left)
        for number, (hit, _, tokens) in enumerate(entries):
            if (
                hit.type == kind
                and hit.source == "memory"
                and number not in chosen
                and tokens <= room
            ):
                chosen.add(number)
                room -= tokens
                left -= tokens
    for number, (_, _, tokens) in enumerate(entries):
        if number not in chosen and tokens <= left:
            chosen.add(number)
            left -= tokens
    return chosen


def _by_file(entries: Sequence[tuple[Hit, str]]) -> list[tuple[Hit, str]]:
    """Entries in their order, those about the same file after the first of them."""
    places: dict[str, int] = {}
    for number, (hit, _) in enumerate(entries):
        if hit.files:
            places.setdefault(hit.files[0], number)

    def place(number: int) -> tuple[int, int]:
        files = entries[number][0].files
        return (places[files[0]] if files else number, number)

    return [entries[number] for number in sorted(range(len(entries)), key=place)]


def _distinct(hits: Iterable[Hit]) -> tuple[list[Hit], list[Hit]]:
    """The hits without those that add nothing to a better one, and the latter."""
    distinct: list[tuple[Hit, Statement]] = []
    repeated: list[Hit] = []
    for hit in hits:
        words = parse_statement(hit.content)
        if any(
            words.fingerprint == other.fingerprint or is_repeated_in(words, other)
            for _, other in distinct
        ):
            repeated.append(hit)
        else:
            distinct.append((hit, words))
    return [hit for hit, _ in distinct], repeated
