"""Any Python text is made fit for a database and comes back unchanged."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from smara.core.escape import from_storable, to_storable

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(ANY_TEXT)
@example("\ufdd0")
@example("\ufdd00000")
@example("\ufdd0\x00\ud800\udfff\ufdd0fdd0")
def test_any_text_comes_back_unchanged(text):
    assert from_storable(to_storable(text)) == text


@given(ANY_TEXT)
def test_what_is_stored_can_be_written_as_utf_8_and_holds_no_nul(text):
    stored = to_storable(text)
    assert "\x00" not in stored
    assert stored.encode("utf-8").decode("utf-8") == stored


@given(ANY_TEXT, ANY_TEXT)
def test_different_texts_stay_different(left, right):
    assert (to_storable(left) == to_storable(right)) == (left == right)


@pytest.mark.parametrize("text", ["", "plain", "héllo 会话 👩‍👧", "tab\tnewline\n"])
def test_an_ordinary_text_is_stored_as_it_is(text):
    assert to_storable(text) == text
