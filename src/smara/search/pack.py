"""Pack an answer into a token budget, cited and without repetition.

Each phase of the work has a budget and a share for every memory type that helps there. What one
type does not use goes to the rest, by evidence per token: a hit counts by its rank, a message
beside one by how near it stands, those after it more, since conclusions and corrections come
later. Messages of one thread stand together in their order, entries about one file as well. The
number of a message stands at the first of a run; those that follow count on from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC
from typing import NamedTuple

from smara.core.dates import local_time
from smara.core.escape import neutralize
from smara.core.extract import shorten
from smara.core.ids import beginning_of
from smara.core.tokens import TokenCounter
from smara.core.validate import one_of
from smara.errors import InvalidInputError
from smara.knowledge.kinds import KINDS
from smara.knowledge.statements import Statement, is_repeated_in, parse_statement
from smara.search.models import PHASES, Hit, PackedAnswer
from smara.search.weights import WEIGHTS

BUDGETS: dict[str, int] = {
    "define": 2_500, "implement": 3_000, "validate": 2_500, "refine": 2_000, "explore": 2_000,
    "reflect": 1_500,
}  # fmt: skip
# The share of a phase's budget for each type; what is not given away is for everything else.
ALLOCATIONS: dict[str, dict[str, float]] = {
    phase: {kind.type: kind.share[phase] for kind in KINDS.values() if phase in kind.share}
    for phase in PHASES
}

DEFAULT_BUDGET_TOKENS = 2_000
SMALLEST_BUDGET_TOKENS = 100
_LONGEST_ENTRY_SHARE = 0.5
_BRIEF = 40
# Where nothing was found, a glance is enough.
_MOST_NEAREST = 600
NOTHING = "Nothing found. The nearest of what is here, which may be about something else:"
# Evidence per token as it counts among others: a long entry does not fall too far.
_USUAL_TOKENS = 30
_NUMBER_TOKENS = 4


class _Entry(NamedTuple):
    """One line of a pack, and what it is worth."""

    hit: Hit
    text: str
    tokens: int
    worth: float
    density: float
    is_beside: bool


def pack(
    hits: Sequence[Hit],
    counter: TokenCounter,
    budget_tokens: int | None = None,
    phase: str | None = None,
    is_unasked: bool = False,
    around: Callable[[Sequence[Hit]], Sequence[Hit]] = lambda hits: (),
    nearest: Sequence[Hit] = (),
) -> PackedAnswer:
    """Pack the best hits within a budget.

    The given one, that of the phase, or 2,000 tokens. ``around`` returns the messages that stand
    around hits. Without hits, ``nearest`` is packed under a line that says so.

    What is told unasked leaves out what is not trusted, however well it answers.
    """
    if phase is not None:
        one_of(phase, PHASES, "phase")
    budget = (
        budget_tokens
        if budget_tokens is not None
        else BUDGETS.get(phase or "", DEFAULT_BUDGET_TOKENS)
    )
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < SMALLEST_BUDGET_TOKENS:
        raise InvalidInputError(
            f"budget_tokens must be a whole number from {SMALLEST_BUDGET_TOKENS}; got {budget!r}."
        )
    is_found = bool(hits) or is_unasked or not nearest
    lines, hits = ([], hits) if is_found else ([NOTHING], nearest)
    room = budget if is_found else min(budget, _MOST_NEAREST) - counter.count(NOTHING).tokens - 1
    distinct, repeated = _distinct(hit for hit in hits if not is_unasked or hit.is_trusted)
    worths = {hit.id: 1 / rank for rank, hit in enumerate(distinct, 2)}
    shown = {hit.id for hit in (*hits, *repeated)}
    beside = [
        hit
        for hit in around(distinct)
        if hit.id not in shown and (hit.is_trusted or not is_unasked)
    ]
    worths |= {hit.id: _worth_beside(hit, distinct, worths) for hit in beside}
    entries = [
        _Entry(
            hit,
            text,
            tokens,
            worth,
            worth / math.sqrt(tokens + _USUAL_TOKENS),
            number >= len(distinct),
        )
        for number, hit in enumerate((*distinct, *beside))
        for text in (_entry(hit, counter, int(room * _LONGEST_ENTRY_SHARE)),)
        for tokens, worth in ((counter.count(text).tokens + 1, worths[hit.id]),)
    ]
    heads = {
        hit.thread_id: (head, counter.count(head).tokens + 1)
        for hit in distinct
        if hit.thread_id and hit.seq is not None
        for head in (_head(hit, distinct),)
    }
    chosen = _choose(
        entries,
        room,
        ALLOCATIONS.get(phase or "", {}),
        costs={thread_id: tokens for thread_id, (_, tokens) in heads.items()},
    )
    groups: dict[str, list[_Entry]] = {}
    for entry in sorted(chosen, key=lambda entry: -entry.worth):
        hit = entry.hit
        key = (hit.thread_id if hit.seq is not None else None) or (hit.files or (hit.id,))[0]
        groups.setdefault(key, []).append(entry)
    for key, group in groups.items():
        if key in heads and group[0].hit.seq is not None:
            group.sort(key=lambda entry: entry.hit.seq or 0)
            lines.append(heads[key][0])
        seqs = {entry.hit.seq for entry in group if key in heads}
        lines += [
            f"#{seq} {entry.text}" if seq in seqs and (seq or 0) - 1 not in seqs else entry.text
            for entry in group
            for seq in (entry.hit.seq,)
        ]
    text = "\n".join(lines) if chosen else ""
    return PackedAnswer(
        text,
        counter.count(text).tokens,
        tuple(entry.hit for group in groups.values() for entry in group if is_found),
        left_out=tuple(
            hit for hit in distinct if is_found and all(entry.hit.id != hit.id for entry in chosen)
        ),
        repeated=tuple(repeated),
        budget_tokens=budget,
        withheld=tuple(hit for hit in hits if is_unasked and not hit.is_trusted),
    )


def _worth_beside(hit: Hit, hits: Sequence[Hit], worths: Mapping[str, float]) -> float:
    """Return the evidence of a message that stands in the thread of a hit."""
    weights = WEIGHTS.pack
    return max(
        [
            worths[other.id] * (weights.after if steps > 0 else weights.before) ** abs(steps)
            for other in hits
            if other.thread_id == hit.thread_id and other.seq is not None
            for steps in ((hit.seq or 0) - other.seq,)
        ],
        default=0.0,
    )


def citation(hit: Hit) -> str:
    """Return the citation that names a hit in a text.

    >>> citation(Hit("0199-7", "memory", "Redis must run", 0, type="gotcha"))
    '[Memory #0199-7: Redis must run]'
    """
    match hit.source:
        case "memory":
            named = shorten(_line(str(hit.metadata.get("citation") or hit.content)), _BRIEF)
            return f"[Memory #{hit.metadata.get('shortId', hit.id)}: {named}]"
        case "code":
            return f"[Code {_line(str(hit.metadata.get('citation') or hit.id))}]"
        case "task":
            return f"[Task {hit.metadata.get('shortId', hit.id)}]"
        case "raw" | "compacted":
            return f"[Message {hit.id}]"
        case "working":
            return f"[Working memory {hit.id}]"
        case source:
            return f"[{source.title()} {hit.id}]"


def _entry(hit: Hit, counter: TokenCounter, most_tokens: int) -> str:
    """One hit as a line with its citation; a long one is cut around what answers best."""
    from smara.core.text import snippet

    files = [_line(path) for path in hit.files[:3]]
    day = str(local_time(UTC, hit.created_at).date())
    is_said = hit.seq is not None and hit.thread_id is not None
    head = hit.type or hit.role or hit.source
    head = f"{head}:" if is_said else f"- ({', '.join((head, day, *files))})"
    mark = "" if hit.is_confirmed else " (unconfirmed)"
    hedge = None if is_said else hit.metadata.get("hedge")
    mark += f" ({_line(str(hedge))})" if hedge else ""
    room = max(most_tokens - counter.count(head + mark).tokens - 30, 40)
    content = hit.content.strip()
    if counter.count(content).tokens > room:
        content = snippet(content, hit.terms, room * 3)
    # It can neither end its entry, nor begin another, nor cite what was not found.
    quoted = neutralize(content).replace("\n", "\n  ").replace("[Memory #", "(Memory #")
    quoted = quoted.replace("[Thread ", "(Thread ")
    return f"{head}{mark} {quoted}" + ("" if is_said else f" {citation(hit)}")


def _head(hit: Hit, hits: Sequence[Hit]) -> str:
    """Return the citation of a thread, with what was amended in it."""
    of_thread = [other for other in hits if other.thread_id == hit.thread_id]
    hedge = next(filter(None, [other.metadata.get("hedge") for other in of_thread]), None)
    day = local_time(UTC, hit.created_at).date()
    reserve = f"; {_line(str(hedge)).partition(' (')[0]}" if hedge else ""
    return f"[Thread {beginning_of(hit.thread_id or '')}, {day}{reserve}]"


def _line(text: str) -> str:
    return " ".join(neutralize(text).split()).replace("[", "(").replace("]", ")")


def _choose(
    entries: Sequence[_Entry],
    budget: int,
    shares: Mapping[str, float],
    costs: dict[str | None, int],
) -> list[_Entry]:
    """Return what goes in: each type's share by rank, then the most evidence per token.

    The first entry of a thread pays for its head, by ``costs``, and is a hit: what stands around
    one that is not shown says nothing. The first of a run pays for its number.
    """
    chosen: dict[str, _Entry] = {}
    left = budget
    for kind, share in shares.items():
        room = min(int(budget * share), left)
        for entry in entries:
            is_of_kind = entry.hit.type == kind and entry.hit.source == "memory"
            if is_of_kind and entry.hit.id not in chosen and entry.tokens <= room:
                chosen[entry.hit.id] = entry
                room -= entry.tokens
                left -= entry.tokens
    hits = sorted([each for each in entries if not each.is_beside], key=lambda each: each.density)
    densest = {entry.hit.thread_id: entry.density for entry in hits}
    places: set[tuple[str | None, int]] = set()
    for entry in sorted(
        entries, key=lambda entry: -min(entry.density, densest[entry.hit.thread_id])
    ):
        thread_id, seq = entry.hit.thread_id, entry.hit.seq
        head = costs.get(thread_id, 0) if seq is not None else 0
        number = 0 if seq is None or (thread_id, seq - 1) in places else _NUMBER_TOKENS
        tokens = entry.tokens + head + number
        if entry.hit.id not in chosen and tokens <= left and not (entry.is_beside and head):
            chosen[entry.hit.id] = entry
            left -= tokens
            if seq is not None:
                costs[thread_id] = 0
                places.add((thread_id, seq))
    return list(chosen.values())


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
