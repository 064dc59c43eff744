"""Why a message is in the answer, in a few short phrases that a person reads."""

from __future__ import annotations

from smara.core.dates import Period
from smara.search.evidence import Context, Evidence, WeighedTerms

_MOST_MATCHES = 4
_MOST_NEAR = 2
_PLACES = (
    (-1, "in the message before"),
    (1, "in the message after"),
    (-2, "two messages before"),
    (2, "two messages after"),
)


def reasons(
    terms: WeighedTerms, each: Evidence, context: Context, period: Period | None, is_recent: bool
) -> tuple[str, ...]:
    """The most telling matches first, then what stands near, then what time adds."""
    told: set[int] = set()
    found = [*_matches(terms, each, told), *_near(terms, each, context, told=told)]
    found += [f"phrase '{needle.strip()}'" for needle in terms.phrases if each.row.holds(needle)]
    if period is not None and period.contains(each.row.created_at):
        found.append(f"from around {period.render()}")
    if is_recent:
        found.append("recent")
    return tuple(found)


def _matches(terms: WeighedTerms, each: Evidence, told: set[int]) -> list[str]:
    """One reason for each word of the query: a name rather than its parts."""
    found: list[str] = []
    for number in sorted(
        each.counts, key=lambda no: (terms.terms[no].kind == "part", -terms.worths[no], no)
    ):
        term = terms.terms[number]
        if term.group in told:
            continue
        told.add(term.group)
        part = f"{term.text} of " if term.kind == "part" else ""
        found.append(f"matches {part}{term.word}{' (name)' if number in each.in_code else ''}")
    return found[:_MOST_MATCHES]


def _near(terms: WeighedTerms, each: Evidence, context: Context, told: set[int]) -> list[str]:
    """Words of the query that only the surroundings have."""
    found: list[str] = []
    for step, place in _PLACES:
        beside = context.get(each.row.place + step)
        for number in sorted(beside.counts) if beside is not None else ():
            term = terms.terms[number]
            if term.group not in told:
                told.add(term.group)
                found.append(f"near: {term.word} {place}")
    return found[:_MOST_NEAR]
