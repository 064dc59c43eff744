"""One verdict from many: what counts, how much, and what is said beside a statement."""

from __future__ import annotations

import pytest

from smara.core.freshness import AnchorVerdict, Freshness, JudgedAnchor, Policy, combine_verdicts


def judged(verdict, path="a.py", symbol="f", changed=None, is_file=False, **more):
    return JudgedAnchor(
        AnchorVerdict(verdict, path, "" if is_file else symbol, changed=changed, **more), is_file
    )


def test_what_names_no_code_is_fresh_and_told():
    assert combine_verdicts([]) == Freshness("fresh")


def test_all_gone_is_orphaned_and_withheld():
    found = combine_verdicts([judged("orphaned"), judged("orphaned", "b.py")])
    assert (found.verdict, found.telling, found.changed) == ("orphaned", "withhold", 1.0)
    assert found.hedge == "the code it speaks of is gone: a.py:f, b.py:f"


def test_one_of_two_gone_is_drifted_by_half():
    found = combine_verdicts([judged("orphaned"), judged("fresh", "b.py")])
    assert (found.verdict, found.changed, found.telling) == ("drifted", 0.5, "hedge")


def test_drift_tells_how_much_differs_and_of_what():
    found = combine_verdicts([judged("drifted", changed=0.4)])
    assert found.hedge == "the code has changed since: 40 % of it differs (a.py:f)"
    assert found.needs_review


def test_more_than_the_policy_allows_is_withheld():
    assert combine_verdicts([judged("drifted", changed=0.6)]).is_withheld
    assert not combine_verdicts(
        [judged("drifted", changed=0.6)], Policy(withhold_fraction=0.7)
    ).is_withheld


@pytest.mark.parametrize("telling", ["tell", "hedge", "withhold"])
def test_the_policy_says_what_is_done_with_what_drifted(telling):
    assert (
        combine_verdicts([judged("drifted", changed=0.2)], Policy(drifted=telling)).telling
        == telling
    )
    assert combine_verdicts([judged("orphaned")], Policy(orphaned=telling)).telling == telling


def test_moved_code_is_told_with_its_new_place_and_asks_for_no_review():
    found = combine_verdicts([judged("moved", now_path="b.py", now_symbol="g")])
    assert (found.verdict, found.hedge, found.needs_review) == (
        "moved",
        "a.py:f is now b.py:g",
        False,
    )


def test_what_was_not_read_is_unknown_and_no_reason_for_a_review():
    found = combine_verdicts([judged("fresh"), judged("unknown", "b.py", why="being read")])
    assert (found.verdict, found.telling, found.needs_review) == ("unknown", "hedge", False)
    assert combine_verdicts([judged("orphaned"), judged("unknown", "b.py")]).verdict == "drifted"


def test_a_file_counts_only_where_nothing_in_it_is_named():
    found = combine_verdicts([judged("fresh"), judged("drifted", changed=0.9, is_file=True)])
    assert (found.verdict, len(found.anchors)) == ("fresh", 1)
    assert combine_verdicts([judged("drifted", changed=0.9, is_file=True)]).verdict == "drifted"


def test_a_little_change_of_a_file_is_no_drift():
    assert combine_verdicts([judged("drifted", changed=0.05, is_file=True)]).verdict == "fresh"
    assert combine_verdicts([judged("drifted", changed=0.05)]).verdict == "drifted"
