"""Patterns that are compiled at their first use."""

from __future__ import annotations

import re

import pytest

from smara.core.startup.regex import regex


def test_a_pattern_does_what_the_compiled_one_does():
    lazy, compiled = regex(r"(?P<first>a+)b", re.IGNORECASE), re.compile(r"(?P<first>a+)b", re.I)
    text = "xAAb ab c"
    assert lazy.sub("-", text) == compiled.sub("-", text)
    assert lazy.findall(text) == compiled.findall(text)
    assert [hit.span() for hit in lazy.finditer(text)] == [(1, 4), (5, 7)]
    assert lazy.split(text) == compiled.split(text)
    assert lazy.groupindex == {"first": 1}
    assert lazy.pattern == compiled.pattern


def test_a_wrong_pattern_is_told_when_it_is_used():
    broken = regex("(")
    with pytest.raises(re.error):
        broken.search("x")
