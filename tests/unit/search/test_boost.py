"""What raises or lowers a score."""

from __future__ import annotations

import pytest

from smara.search.boost import PHASE_WEIGHTS, Boost
from smara.search.models import Hit, SearchCandidate
from smara.search.query import Hints, understand
from smara.search.weights import WEIGHTS

DAY = 86_400_000
NOW = 100 * DAY


def rated(source="memory", kind="gotcha", hints=None, created_at=0, **more):
    hit = Hit(
        "m",
        source,
        "text",
        rank=0,
        score=0.0,
        why=(),
        thread_id=None,
        resource_id=None,
        role=None,
        seq=None,
        created_at=created_at,
        type=kind,
        **more,
    )
    found = SearchCandidate("memory" if source == "memory" else "task", 1, hit, fused=1.0)
    Boost(understand("anything", hints), NOW).apply(found)
    return found


@pytest.mark.parametrize("phase", PHASE_WEIGHTS)
def test_phase_weighs_the_types_that_help_in_it(phase):
    for kind, weight in PHASE_WEIGHTS[phase].items():
        found = rated(kind=kind, hints=Hints(phase=phase))
        assert (f"{kind} while {phase}", weight) in found.factors


def test_what_a_person_taught_counts_more_than_what_was_inferred():
    scores = [rated(metadata={"source": source}).score for source in WEIGHTS.boost.source_trust]
    assert scores == sorted(scores, reverse=True)


def test_taint_and_doubt_lower_a_score_and_say_so():
    assert ("unconfirmed", 0.85) in rated(is_confirmed=False).factors
    tainted = rated(is_confirmed=False, metadata={"isTainted": True})
    assert tainted.score < rated(is_confirmed=False).score
    assert any("not confirmed by a person" in name for name, _ in tainted.factors)


def test_file_in_play_is_known_by_any_form_of_its_path():
    hints = Hints(files=("/home/me/app/src/auth.py",))
    assert ("about a file in play", 1.2) in rated(files=("src/auth.py",), hints=hints).factors
    assert ("about a file in play", 1.2) in rated(files=("src\\auth.py",), hints=hints).factors
    assert ("about a file in play", 1.2) not in rated(files=("h.py",), hints=hints).factors


def test_age_is_a_small_bounded_bonus():
    new, old = rated("task", created_at=NOW).score, rated("task", created_at=0).score
    assert 1.0 < old < new <= 1.03


def test_factors_explain_the_score_exactly():
    found = rated(
        hints=Hints(phase="implement"), metadata={"source": "user_taught", "confidence": 0.5}
    )
    product = 1.0
    for _, factor in found.factors:
        product *= factor
    assert found.score == pytest.approx(product)
