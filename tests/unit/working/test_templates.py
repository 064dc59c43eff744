"""Templates: two of ours by name, any other as text."""

from __future__ import annotations

import pytest

from smara.errors import InvalidInputError
from smara.working.drafts import template_text
from smara.working.models import TEMPLATE_NAMES
from smara.working.sanitize import for_injection


def headings(text):
    return [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]


def test_coding_template_has_the_headings_of_the_specification():
    assert headings(template_text("coding")) == [
        "Project Context",
        "Tech Stack",
        "Project Structure",
        "User Preferences",
        "Current Work",
    ]


def test_person_template_asks_for_a_person():
    text = template_text("person")
    assert headings(text) == ["User Information"]
    assert text.count("- **") == 9


@pytest.mark.parametrize("name", TEMPLATE_NAMES)
def test_template_of_ours_is_shown_to_a_model_as_it_is(name):
    assert for_injection(template_text(name)) == template_text(name).rstrip("\n")


def test_markdown_text_is_a_template_as_it_stands():
    assert template_text("# Mine\n- Field:") == "# Mine\n- Field:"
    assert template_text("two words") == "two words"


@pytest.mark.parametrize("bad", ["persn", "", "Coding", 3])
def test_name_that_is_no_template_is_refused(bad):
    with pytest.raises(InvalidInputError, match="template"):
        template_text(bad)
