"""Sections of a reply, whatever stands around them."""

from __future__ import annotations

import pytest

from smara.observations.reply.sections import split_reply, unescaped, without_thinking


def observations(text):
    return split_reply(text).text("observations")


@pytest.mark.parametrize(
    "text",
    [
        "<observations>\n* a\n* b\n</observations>",
        "<observations>* a\n* b</observations>",
        "<Observations>\r\n* a\r\n* b\r\n</OBSERVATIONS>",
        "```xml\n<observations>\n* a\n* b\n</observations>\n```",
        "Sure! Here they are:\n\n<observations>\n* a\n* b\n</observations>\nLet me know!",
        "<observations>\n* a\n* b\n",
        "<observations>\n* a\n* b\n<current-task>x</current-task>",
        "  <observations>\n* a\n* b\n  </observations>",
        "<observation>\n* a\n* b\n</observation>",
        "< observations >\n* a\n* b\n</ observations >",
        "&lt;observations&gt;\n* a\n* b\n&lt;/observations&gt;",
        "**<observations>**\n* a\n* b\n**</observations>**",
        "## Observations\n* a\n* b\n## Current task\nPrimary: x",
        "**Observations:**\n* a\n* b",
        "<think>\n<observations>\n* no\n</observations>\n</think>\n<observations>\n* a\n* "
        "b\n</observations>",
        "hm, let me see <observations>\nstill thinking\n</think>\n<observations>\n* a\n* "
        "b\n</observations>",
        "<thinking>\nnever closed\n\n<observations>\n* a\n* b\n</observations>",
        "<observations>\n* a\n</observations>\n<observations>\n* b\n</observations>",
        "<observations>\n<observations>\n* a\n* b\n</observations>\n</observations>",
        '<observations>\n<thread id="7">\n* a\n* b\n</thread>\n</observations>',
        "<observations>\n* a\n```\n* b\n```\n</observations>",
    ],
)
def test_observations_are_found(text):
    lines = [line.strip() for line in (observations(text) or "").splitlines() if line.strip()]
    assert lines == ["* a", "* b"]


def test_tag_in_the_middle_of_a_line_opens_and_closes_nothing():
    text = (
        "<observations>\n* User asked why </observations> is missing in <current-task> "
        "blocks\n* b\n</observations>"
    )
    assert (observations(text) or "").splitlines()[1:] == ["* b"]
    assert split_reply(text).text("current-task") is None


def test_closing_tag_that_a_line_only_speaks_of_does_not_end_the_section():
    text = "<observations>\n* User asked to escape </observations>\n* b\n</observations>"
    assert (observations(text) or "").splitlines()[1:] == ["* b"]


def test_sections_on_one_line_are_told_apart():
    found = split_reply("<thread-title>One</thread-title><current-task>Two</current-task>")
    assert (found.text("thread-title"), found.text("current-task")) == ("One", "Two")


def test_section_that_was_never_closed_is_named():
    assert split_reply("<observations>\n* a").unclosed == "observations"
    assert (
        split_reply("<observations>\n* a\n</observations>\n<current-task>\nx").unclosed
        == "current-task"
    )
    assert split_reply("<observations>\n* a\n</observations>").unclosed is None


@pytest.mark.parametrize(
    "tag", ["current-task", "current_task", "currentTask", "Current-Task", "current task"]
)
def test_names_of_tags_are_read_in_any_case_and_joining(tag):
    assert split_reply(f"<{tag}>\nPrimary: x\n</{tag}>").text("current-task") == "Primary: x"


def test_tag_of_an_extractor_is_known_only_when_it_was_asked_for():
    text = '<observed-prices>\n["1"]\n</observed-prices>'
    assert split_reply(text, ["prices"]).text("observed-prices") == '["1"]'
    assert split_reply(text).text("observed-prices") is None


def test_what_is_outside_is_kept_apart():
    assert split_reply("before\n<observations>\n* a\n</observations>\nafter").outside == [
        "before",
        "after",
    ]


def test_thinking_that_leaves_nothing_leaves_nothing():
    assert without_thinking("<think>\nonly this").strip() == ""
    assert without_thinking("no thinking") == "no thinking"


def test_only_entities_that_models_write_are_put_back():
    assert unescaped(
        "&lt;a&gt; &amp;amp; &quot;x&quot; &#39; &#x41; ?a=1&copy=2 &#0; &#xD800;"
    ) == ('<a> &amp; "x" \' A ?a=1&copy=2 &#0; &#xD800;')
