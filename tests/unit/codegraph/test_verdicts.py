"""The verdict on one anchor, as a pure function: every row of the table, and what decides between
them.
"""

from __future__ import annotations

from smara.codegraph.anchors.disk import lines_between, marked, sample_of
from smara.codegraph.anchors.models import MOST_PLACES, NOT_KNOWN, CodePlace, NewAnchor, place_marks
from smara.codegraph.anchors.verdict import AnchorSight, judge, judge_file, judge_lines

BODY, OTHER = b"b" * 16, b"o" * 16


def anchor(twins=b"", namesakes=b"", **more):
    return NewAnchor(
        "symbol",
        "a.py",
        "C.f",
        first_line=3,
        last_line=9,
        hash=BODY,
        sketch=b"abcd",
        twins=twins,
        namesakes=namesakes,
        **more,
    )


def place(path="a.py", symbol="C.f", hash_=BODY, sketch=b"abcd"):
    return CodePlace(
        path, symbol, 5, last_line=11, hash=hash_, sketch=sketch, name=symbol.rpartition(".")[2]
    )


def alike(one, other):
    return len(set(one) & set(other)) / max(1, len(set(one) | set(other)))


def verdict_of(given=None, **sight):
    return judge(given or anchor(), AnchorSight(**sight), alike)


def test_the_same_body_at_its_place_is_fresh_wherever_its_lines_are_now():
    found = verdict_of(here=[place()])
    assert (found.verdict, found.first_line, found.last_line) == ("fresh", 5, 11)


def test_another_body_at_its_place_has_drifted_by_what_differs():
    found = verdict_of(here=[place(hash_=OTHER, sketch=b"abxy")])
    assert (found.verdict, found.changed, found.now) == ("drifted", 0.6667, "a.py:C.f")


def test_drift_is_never_nothing():
    assert verdict_of(here=[place(hash_=OTHER)]).changed == 0.01


def test_of_several_with_one_name_the_same_body_is_enough():
    assert verdict_of(here=[place(hash_=OTHER), place()]).verdict == "fresh"


def test_the_same_body_in_another_file_has_moved():
    found = verdict_of(same=[place("b.py")])
    assert (found.verdict, found.now) == ("moved", "b.py:C.f")


def test_the_same_body_under_another_name_has_moved():
    assert verdict_of(same=[place(symbol="C.g")]).now == "a.py:C.g"


def test_of_several_new_places_the_one_of_the_same_name_is_it():
    found = verdict_of(same=[place("a.py", "C.g"), place("b.py", "D.f"), place("z.py", "C.f")])
    assert found.now == "z.py:C.f"


def test_a_twin_that_was_there_before_is_not_where_it_moved_to():
    twins = place_marks([("b.py", "C.f")])
    assert verdict_of(anchor(twins), same=[place("b.py")]).verdict == "orphaned"
    assert verdict_of(anchor(twins), same=[place("b.py"), place("c.py")]).now == "c.py:C.f"


def test_a_body_that_stands_everywhere_moves_only_with_its_name():
    twins = place_marks([(f"x{number}.py", "f") for number in range(MOST_PLACES + 5)])
    assert (
        verdict_of(anchor(twins), same=[place("b.py", "g"), place("c.py", "h")]).verdict
        == "orphaned"
    )
    assert (
        verdict_of(anchor(twins), same=[place("b.py", "g"), place("c.py", "C.f")]).now == "c.py:C.f"
    )


def test_where_twins_were_not_looked_up_a_single_place_is_believed_and_several_by_name():
    assert verdict_of(anchor(NOT_KNOWN), same=[place("b.py", "g")]).verdict == "moved"
    assert (
        verdict_of(anchor(NOT_KNOWN), same=[place("b.py", "g"), place("c.py", "h")]).verdict
        == "orphaned"
    )


def test_the_same_name_at_a_new_place_has_drifted_and_been_carried():
    found = verdict_of(named=[place("b.py", hash_=OTHER, sketch=b"abcx")])
    assert (found.verdict, found.now, found.summary) == (
        "drifted",
        "b.py:C.f",
        "a.py:C.f, now b.py:C.f, has changed since: 40 % of it differs",
    )


def test_a_namesake_that_was_there_before_is_not_it():
    known = place_marks([("b.py", "C.f")])
    assert (
        verdict_of(anchor(namesakes=known), named=[place("b.py", hash_=OTHER)]).verdict
        == "orphaned"
    )


def test_what_is_nowhere_is_orphaned_only_when_everything_was_read():
    assert verdict_of().verdict == "orphaned"
    assert verdict_of(is_all_read=False).verdict == "unknown"
    assert verdict_of(here=[place()], is_read=False).verdict == "unknown"


# lines and files

TEXT = b"one = 1\ntwo = 2\n\nthree = 3\nfour = 4\n"


def lines_anchor(first=2, last=4):
    marks = lines_between(marked(TEXT), first, last)
    return NewAnchor(
        "lines", "a.toml", "", first_line=first, last_line=last, hash=b"h", sketch=marks
    )


def file_anchor():
    return NewAnchor("file", "a.toml", hash=BODY, sketch=sample_of(marked(TEXT)))


def test_lines_that_stand_together_somewhere_in_the_file_are_fresh():
    found = judge_lines(lines_anchor(), marked(b"new = 0\n" + TEXT))
    assert (found.verdict, found.first_line, found.last_line) == ("fresh", 3, 5)


def test_lines_of_which_one_was_changed_have_drifted_by_it():
    found = judge_lines(lines_anchor(), marked(TEXT.replace(b"two = 2", b"two = 22")))
    assert (found.verdict, found.changed) == ("drifted", 0.5)


def test_lines_that_are_nowhere_or_whose_file_is_gone_are_orphaned():
    assert judge_lines(lines_anchor(), marked(b"other = 1\n")).verdict == "orphaned"
    assert judge_lines(lines_anchor(), None).verdict == "orphaned"
    assert judge_lines(lines_anchor(), None, is_read=False).verdict == "unknown"


def test_a_file_is_fresh_by_its_content_and_drifts_by_its_lines():
    assert judge_file(file_anchor(), BODY, None, moved_to="a.toml").verdict == "fresh"
    changed = judge_file(
        file_anchor(), OTHER, marked(TEXT.replace(b"four", b"5")), moved_to="a.toml"
    )
    assert (changed.verdict, changed.changed) == ("drifted", 0.25)


def test_a_renamed_file_has_moved_also_when_a_little_was_changed_on_the_way():
    assert judge_file(file_anchor(), BODY, None, moved_to="b.toml").now == "b.toml"
    assert (
        judge_file(file_anchor(), OTHER, marked(TEXT + b"five = 5\n"), moved_to="b.toml").verdict
        == "moved"
    )
    assert judge_file(file_anchor(), OTHER, marked(b"x\n"), moved_to="b.toml").verdict == "drifted"
    assert judge_file(file_anchor(), None, None, moved_to=None).verdict == "orphaned"
