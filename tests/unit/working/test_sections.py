"""One section or field of a Markdown page is changed, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from smara.errors import InvalidInputError
from smara.working.drafts import template_text
from smara.working.markdown import fields, open_fence, replace_section, sections

PAGE = """\
intro

# Project

## Stack
- Language: Python
- **Tests:** pytest
  with xdist

  and hypothesis
- plain bullet

### Old
below

## Notes ##
```
# not a heading
- Field: in code
```
last
"""


def test_body_of_a_section_is_replaced_with_its_sub_sections():
    assert replace_section(PAGE, "stack", "new") == PAGE.replace(
        PAGE[PAGE.index("- Lang") : PAGE.index("\n\n## No")], "new"
    )


@pytest.mark.parametrize(
    "name", ["Notes", "notes", "## Notes", "# NOTES", "**Notes**", "Project/Notes", " notes: "]
)
def test_section_is_found_by_any_spelling_of_its_name(name):
    assert replace_section(PAGE, name, "gone").endswith("\n## Notes ##\ngone\n")


def test_heading_in_code_is_no_heading():
    assert replace_section(PAGE, "not a heading", "x") == PAGE + "\n## not a heading\nx\n"


def test_field_in_code_is_no_field():
    assert replace_section(PAGE, "Field", "x").endswith("last\n\n## Field\nx\n")


def test_value_of_a_field_is_set_behind_its_label():
    assert replace_section(PAGE, "Stack/Language", "Rust") == PAGE.replace(
        "Language: Python", "Language: Rust"
    )
    assert replace_section(PAGE, "language", "") == PAGE.replace("Language: Python", "Language:")


def test_value_of_several_lines_is_indented_under_its_label():
    changed = replace_section(PAGE, "Language", "Python\n\nand Rust")
    assert "- Language: Python\n\n  and Rust\n- **Tests:**" in changed
    assert replace_section(changed, "Language", "Python") == PAGE
    assert "- Language:\n  - Python\n  - Rust\n- **Tests:**" in replace_section(
        PAGE, "Language", "- Python\n- Rust"
    )


def test_lines_under_a_field_go_with_it():
    assert "- **Tests:** none\n- plain bullet\n" in replace_section(PAGE, "Tests", "none")
    assert "- Language: Python\n- plain bullet\n" in replace_section(PAGE, "Tests", None)


def test_field_that_is_missing_is_added_to_its_section():
    assert "- plain bullet\n- Cache: Redis\n\n### Old\n" in replace_section(
        PAGE, "Stack/Cache", "Redis"
    )
    assert "below\n- Cache: Redis\n" not in replace_section(PAGE, "Stack/Old/Cache", "Redis")
    assert "below\n\n- Cache: Redis\n" in replace_section(PAGE, "Stack/Old/Cache", "Redis")


def test_section_that_is_missing_is_added_below_its_parent_when_it_has_several_lines():
    assert "### Old\nbelow\n\n### Plan\none\ntwo\n\n## Notes" in replace_section(
        PAGE, "Stack/Plan", "one\ntwo"
    )


def test_section_that_is_missing_is_added_at_the_end():
    assert replace_section("words", "New", "body") == "words\n\n## New\nbody\n"
    assert replace_section("", "#### New", "body") == "#### New\nbody\n"
    assert replace_section("words\n\n\n", "CI/CD", "") == "words\n\n## CI/CD\n"


def test_hash_marks_mean_a_heading_and_not_a_field():
    assert replace_section(PAGE, "## Language", "x").endswith("\n## Language\nx\n")
    assert "- Language: Python" in replace_section(PAGE, "## Language", "x")


def test_heading_repeated_in_the_content_is_not_doubled():
    assert replace_section("# A\n\n## B\nold\n", "B", "## b\n\nnew") == "# A\n\n## B\nnew\n"
    assert replace_section("# A\n", "B", "## B\nnew") == "# A\n\n## B\nnew\n"


def test_section_or_field_is_taken_out():
    assert replace_section(PAGE, "Old", None) == PAGE.replace("### Old\nbelow\n\n", "")
    assert replace_section(PAGE, "nowhere", None) == PAGE


def test_name_of_several_places_is_refused_with_the_way_to_each():
    page = "# A\n## Notes\n# B\n## Notes\n"
    with pytest.raises(InvalidInputError, match="'A/Notes', 'B/Notes'"):
        replace_section(page, "Notes", "x")
    assert replace_section(page, "b/notes", "x") == "# A\n## Notes\n# B\n## Notes\nx\n"


def test_way_from_the_top_wins_over_the_end_of_a_longer_one():
    assert (
        replace_section("# A\n## Notes\n# Notes\n", "Notes", "x") == "# A\n## Notes\n# Notes\nx\n"
    )


def test_content_that_would_end_its_section_is_refused():
    with pytest.raises(
        InvalidInputError, match=r"'## Other', which would end the section.* Use ### or deeper"
    ):
        replace_section(PAGE, "Stack", "x\n## Other\ny")
    assert "### Other" in replace_section(PAGE, "Stack", "x\n### Other\ny")
    with pytest.raises(InvalidInputError, match="cannot hold the heading"):
        replace_section(PAGE, "Language", "x\n# Other")


def test_content_that_would_swallow_what_follows_is_refused():
    with pytest.raises(InvalidInputError, match="does not close it"):
        replace_section(PAGE, "Stack", "```\ncode")
    with pytest.raises(InvalidInputError, match="does not close it"):
        replace_section(PAGE, "Language", "```\ncode\n   ```")


def test_fence_left_open_by_the_page_is_closed_before_something_is_added():
    assert replace_section("~~~\ncode", "New", "x") == "~~~\ncode\n~~~\n\n## New\nx\n"


@pytest.mark.parametrize("bad", ["", "  ", "##", "# #", "**", "a\nb", "x" * 600])
def test_name_that_names_nothing_is_refused(bad):
    with pytest.raises(InvalidInputError, match="section"):
        replace_section(PAGE, bad, "x")


def test_every_field_of_our_templates_can_be_set():
    for template in ("coding", "person"):
        page = template_text(template)
        names = [
            "/".join(field.path) for field in fields(page.split("\n"), sections(page.split("\n")))
        ]
        for name in names:
            page = replace_section(page, name, f"the {name}")
        assert len(names) >= 9
        assert all(f": the {name}\n" in page for name in names)


TITLES = st.sampled_from(["A", "Bee", "c d", "*E*", "F/G", "C#", "h:", "Ä"])
LINES = st.one_of(
    st.builds(
        lambda level, title, end: f"{'#' * level} {title}{end}",
        st.integers(1, 6),
        TITLES,
        st.sampled_from(["", " ##", "\r"]),
    ),
    st.builds(
        lambda indent, title, value: f"{indent}- {title}:{value}",
        st.sampled_from(["", "  ", "\t"]),
        TITLES,
        st.sampled_from(["", " x", " y z"]),
    ),
    st.sampled_from(
        [
            "",
            "words",
            "  deep",
            "    # code",
            "```",
            "~~~~",
            "```py",
            "- bullet",
            "#tag",
            "> quote",
            " \t",
        ]
    ),
)
PAGES = st.lists(LINES, max_size=14).map("\n".join)
NAMES = st.one_of(
    TITLES, st.builds("{} / {}".format, TITLES, TITLES), st.builds("### {}".format, TITLES)
)


def changed(page, name, body):
    try:
        return replace_section(page, name, body)
    except InvalidInputError:
        assume(False)


@given(PAGES, NAMES, PAGES)
def test_twice_is_the_same_as_once(page, name, body):
    once = changed(page, name, body)
    assert replace_section(once, name, body) == once


BODIES = st.lists(
    st.sampled_from(
        ["words", "", "- Field: x", "  deep", "```\n# A\n```", "### Below", "~~~\n- Field: x\n~~~"]
    ),
    max_size=5,
).map("\n".join)
PARTED = st.dictionaries(st.sampled_from("ABCDEF"), BODIES, min_size=2)


def page_of(parts):
    return "preface\n\n" + "\n".join(f"## {title}\n{body}\n" for title, body in parts.items())


def parts_of(page):
    lines = page.split("\n")
    return {
        each.path[0]: lines[each.line : each.end] for each in sections(lines) if each.level == 2
    }


@given(PARTED, BODIES, st.data())
def test_every_other_section_stays_to_the_last_character(parts, body, data):
    title = data.draw(st.sampled_from(sorted(parts)))
    page = page_of(parts)
    new = replace_section(page, f"## {title}", body)
    assert new.startswith("preface\n\n## ")
    before, after = parts_of(page), parts_of(new)
    assert list(after) == list(before)
    assert {**after, title: None} == {**before, title: None}
    assert "\n".join(after[title][1:]).strip() == body.strip()


@given(PARTED, BODIES, BODIES, st.data())
def test_whichever_of_two_changes_is_first_the_page_ends_the_same(parts, body, other_body, data):
    one, other = data.draw(
        st.lists(st.sampled_from(sorted(parts)), min_size=2, max_size=2, unique=True)
    )
    page = page_of(parts)
    first = replace_section(replace_section(page, one, body), other, other_body)
    assert first == replace_section(replace_section(page, other, other_body), one, body)


@given(PAGES)
def test_outline_of_any_page_is_nested_and_within_it(page):
    lines = page.split("\n")
    found = sections(lines)
    assert all(section.line < section.end <= len(lines) for section in found)
    assert all(field.line < field.end <= len(lines) for field in fields(lines, found))
    assert [each.line for each in found] == sorted(each.line for each in found)


@given(PAGES)
def test_missing_fence_closes_the_page(page):
    fence = open_fence(page.split("\n"))
    assert open_fence([*page.split("\n"), *([fence] if fence else [])]) is None
