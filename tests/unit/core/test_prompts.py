"""Prompts: a head, a text, and inputs that are put in once."""

from __future__ import annotations

from pathlib import Path

import pytest

import smara
from smara.core.prompts import load_prompt, parse_prompt

SHIPPED = sorted(Path(smara.__file__).parent.rglob("prompts/*.md"))
GREETING = "---\nname: greet\nversion: 2\ninputs: who, when\n---\nHello {{who}}, it is {{when}}.\n"


def test_prompt_has_a_name_a_version_and_inputs():
    prompt = parse_prompt(GREETING)
    assert (prompt.name, prompt.version, prompt.inputs) == ("greet", 2, ("who", "when"))
    assert prompt.render({"who": "Ada", "when": "late"}) == "Hello Ada, it is late."


def test_what_is_put_in_is_not_looked_at_again():
    assert (
        parse_prompt(GREETING).render({"who": "{{when}}", "when": "late"})
        == "Hello {{when}}, it is late."
    )


@pytest.mark.parametrize("values", [{}, {"who": "Ada"}, {"who": "Ada", "when": "now", "why": "so"}])
def test_missing_or_unknown_input_is_a_bug_and_told_so(values):
    with pytest.raises(ValueError, match="greet takes"):
        parse_prompt(GREETING).render(values)


@pytest.mark.parametrize(
    "content",
    [
        "no head",
        "---\nname: a\nversion: 1\n---\n{{x}}",
        "---\nname: a\nversion: 1\ninputs: x\n---\nnone",
    ],
)
def test_prompt_without_a_head_or_with_other_inputs_than_it_says_is_refused(content):
    with pytest.raises(ValueError):
        parse_prompt(content)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_prompt_is_named_like_its_file(path):
    prompt = load_prompt(path.parent, path.stem)
    assert prompt.name.endswith(path.stem)
    assert prompt.version >= 1


def test_no_two_shipped_prompts_have_one_name():
    names = [load_prompt(path.parent, path.stem).name for path in SHIPPED]
    assert len(set(names)) == len(names)
