"""Hits that show the same words are one hit."""

from __future__ import annotations

import pytest

from smara.search import copies
from smara.search.models import Hit

FILE = [f"    step_{number} = plan.next({number})" for number in range(60)]
FILE[17] = "    rollback = plan.next(17)"


def message(number: int, content: str, role: str = "tool", terms=("rollback",), **more) -> Hit:
    return Hit(
        f"id-{number}", "raw", content, 0, rank=number, role=role, seq=1, terms=terms, **more
    )


def fold_copies(hits: list[Hit], limit: int = 10) -> tuple[Hit, ...]:
    return copies.fold_copies(hits, limit)


def listing(form: str, lines: list[str], first: int = 1) -> str:
    return "\n".join(form.format(no, line) for no, line in enumerate(lines, first))


@pytest.mark.parametrize("form", ["{}\t{}", "  {}→{}", "{}: {}", "{} | {}", "src/plan.py-{}-{}"])
def test_one_file_with_other_line_numbers_is_one_hit(form):
    moved = listing(form, ["# a note", "# another", *FILE])
    hits = fold_copies([message(1, listing(form, FILE)), message(2, moved)])
    assert [(each.id, each.rank, each.copies) for each in hits] == [("id-1", 1, ("id-2",))]


def test_a_part_of_the_file_that_shows_the_same_stretch_is_a_copy():
    part = listing("{}\t{}", FILE[5:40], 6)
    assert len(fold_copies([message(1, listing("{}\t{}", FILE)), message(2, part)])) == 1


def test_a_file_that_was_changed_where_it_answers_is_shown_again():
    changed = [line.replace("plan.next(18)", "plan.leave(18)") for line in FILE]
    hits = [message(1, listing("{}\t{}", FILE)), message(2, listing("{}\t{}", changed))]
    assert len(fold_copies(hits)) == 2


def test_short_statements_that_differ_in_one_number_both_stand():
    hits = [message(number, f"Use pnpm {number} in this repository") for number in (8, 9)]
    assert len(fold_copies(hits)) == 2
    assert len(fold_copies([hits[0], message(3, "use pnpm 8, in this repository.")])) == 1


@pytest.mark.parametrize(
    "other",
    [{"role": "user"}, {"is_trusted": False}, {"metadata": {"hedge": "amended on 2026-03-01"}}],
)
def test_what_counts_differently_is_no_copy(other):
    text = listing("{}\t{}", FILE)
    assert len(fold_copies([message(1, text), message(2, text, **other)])) == 2


def test_ranks_have_no_gaps_where_copies_were():
    hits = [message(1, "one thing"), message(2, "one thing"), message(3, "another thing")]
    assert [(each.id, each.rank) for each in fold_copies(hits)] == [("id-1", 1), ("id-3", 2)]


def test_texts_without_words_are_not_folded():
    assert len(fold_copies([message(1, "!!!"), message(2, "???")])) == 2


def test_copies_of_a_shown_hit_are_counted_behind_the_limit():
    text = listing("{}\t{}", FILE)
    hits = [message(1, text), message(2, "another thing"), message(3, "a third"), message(4, text)]
    assert [(each.id, each.copies) for each in fold_copies(hits, 2)] == [
        ("id-1", ("id-4",)),
        ("id-2", ()),
    ]


def test_a_long_paragraph_that_stands_in_another_text_is_a_copy():
    plan = "The plan: " + " ".join(
        f"part {number} comes before the rollback," for number in "abcdefgh"
    )
    hits = [message(1, plan, "assistant"), message(2, f"# Kept\n\n{plan}\n\nEnd", "assistant")]
    assert len(fold_copies(hits)) == 1
