"""Trust: tiers by provenance, what may be told unasked, and the four levels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.knowledge.models import TIERS, Evidence, TypedMemory, rank_of, tier_of_taint
from smara.knowledge.trust import (
    LEVELS,
    TrustRecord,
    is_earned,
    level_of,
    lowest_taint,
    may_inject,
    missing_for_next,
    trust_report,
)

TAINTS = st.lists(
    st.sampled_from(["web", "mcp", "imported", "other", "tool", "file", "martian"]), unique=True
)


def memory(**fields):
    made = TypedMemory(
        "id",
        "m-1",
        "preference",
        content="x",
        confidence=0.99,
        tags=(),
        files=(),
        modules=(),
        scope="module",
        source="agent_explicit",
        visibility="project",
        created_at=0,
        created_by="ann",
        updated_at=0,
        version=1,
    )
    return replace(
        made,
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in fields.items()
        },
    )


@pytest.mark.parametrize(
    ("taint", "tier"),
    [
        ((), "unconfirmed"), (("tool",), "observed"), (("file", "tool"), "observed"), (("web",),
        "quarantined"),
        (("tool", "web"), "quarantined"), (("imported",), "quarantined"), (("mcp",), "quarantined"),
        (("other",), "quarantined"), (("something_new",), "quarantined"),
    ],
)  # fmt: skip
def test_the_tier_follows_where_it_comes_from_and_the_unknown_is_from_outside(taint, tier):
    assert tier_of_taint(taint) == tier
    assert memory(taint=taint).tier == tier
    assert memory(taint=taint, is_verified=True).tier == "confirmed"


@given(st.lists(TAINTS, min_size=1, max_size=6), st.lists(st.booleans(), min_size=6, max_size=6))
def test_what_is_made_from_several_has_the_lowest_trust_of_them(taints, verified):
    inputs = [
        memory(taint=taint, is_verified=verified[number]) for number, taint in enumerate(taints)
    ]
    made = memory(taint=list(lowest_taint(inputs)))
    lowest = min(rank_of(each.tier) for each in inputs)
    assert rank_of(made.tier) == min(lowest, rank_of("unconfirmed"))


@given(TAINTS.filter(bool), st.integers(1, 4), st.floats(0, 1), st.booleans())
def test_what_is_tainted_is_never_an_instruction_and_what_is_from_outside_never_told_unasked(
    taint, level, confidence, quoted
):
    evidence = (Evidence(quote="it said so"),) if quoted else ()
    for type_ in ("gotcha", "preference", "decision", "error_pattern"):
        verdict = may_inject(memory(taint=taint, evidence=evidence, type=type_), confidence, level)
        assert not verdict.as_instruction
        if tier_of_taint(tuple(taint)) == "quarantined":
            assert not verdict.allowed


@pytest.mark.parametrize(("level", "above"), [(1, 0.80), (2, 0.65), (3, 0.55), (4, 0.45)])
def test_every_level_has_its_threshold(level, above):
    fact = memory(type="error_pattern", evidence=[Evidence(quote="EADDRINUSE")], taint=("tool",))
    assert level_of(level).inject_above == above
    assert not may_inject(fact, above, level).allowed
    assert may_inject(fact, above + 0.01, level).allowed
    assert may_inject(memory(is_verified=True), 0.01, level).as_instruction


def test_the_cautious_level_tells_only_what_is_confirmed_and_facts_with_their_evidence():
    assert not may_inject(memory(), 0.99, 1).allowed
    assert may_inject(memory(), 0.99, 2).allowed
    assert not may_inject(memory(needs_review=True), 0.99, 3).allowed
    failed = memory(
        type="error_pattern",
        evidence=[Evidence(quote="EADDRINUSE")],
        taint=("tool",),
        needs_review=True,
    )
    assert may_inject(failed, 0.99, 1).allowed
    assert not may_inject(failed, 0.99, 1).as_instruction
    assert not may_inject(replace(failed, type="preference"), 0.99, 4).allowed


def test_what_is_stale_or_put_aside_is_not_told():
    for gone in (memory(is_verified=True, stale_at=1), memory(is_verified=True, deprecated_at=1)):
        assert not may_inject(gone, 0.99, 4).allowed
    assert not may_inject(memory(is_verified=True), 0.99, 4, is_gone=True).allowed


def test_the_second_level_takes_three_sessions_and_half_of_it_confirmed():
    level = LEVELS[0]
    assert not is_earned(level, TrustRecord(sessions=2, learned=4, confirmed=4))
    assert not is_earned(level, TrustRecord(sessions=3, learned=4, confirmed=1))
    assert not is_earned(level, TrustRecord(sessions=3))
    assert is_earned(level, TrustRecord(sessions=3, learned=4, confirmed=2))


def test_the_third_level_takes_ten_sessions_and_few_corrections():
    level = LEVELS[1]
    assert not is_earned(level, TrustRecord(sessions=9, used=100))
    assert not is_earned(level, TrustRecord(sessions=10, used=100, flagged=5))
    assert not is_earned(level, TrustRecord(sessions=10))
    assert is_earned(level, TrustRecord(sessions=10, used=100, flagged=4))


@pytest.mark.parametrize("level", LEVELS[2:])
def test_nothing_earns_the_fourth_level(level):
    assert not is_earned(level, TrustRecord(sessions=9_999, learned=9, confirmed=9, used=999))
    assert missing_for_next(level, TrustRecord()) == ()


@pytest.mark.parametrize("tier", TIERS)
def test_every_tier_is_explained(tier):
    taint = {"quarantined": ("web",), "observed": ("tool",)}.get(tier, ())
    told = trust_report(memory(taint=taint, is_verified=tier == "confirmed", verified_by="ann"))
    assert told.tier == tier
    assert told.reasons
