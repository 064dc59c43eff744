"""Parts to text and back: nothing is stored twice, and every part comes back exactly."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.errors import InvalidInputError
from smara.messages.models import Part
from smara.messages.parts import pack, parts_of, unpack
from smara.secrets.redact import dump

TEXT = st.text(st.characters(exclude_categories=()), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
NAMES = st.none() | TEXT
PARTS = st.one_of(
    st.builds(Part, st.just("text"), TEXT),
    st.builds(Part, st.just("reasoning"), TEXT),
    st.builds(
        Part, st.just("tool_result"), TEXT, name=NAMES, call_id=NAMES, is_error=st.booleans()
    ),
    st.builds(Part, st.just("tool_call"), name=NAMES, call_id=NAMES, arguments=JSON),
    st.builds(
        Part,
        st.sampled_from(["image", "file"]),
        TEXT,
        name=NAMES,
        media_type=NAMES,
        uri=NAMES,
        size_bytes=st.none() | st.integers(0),
    ),
)


@given(st.lists(PARTS, max_size=5).map(tuple))
def test_parts_come_back_as_they_were(parts):
    assert unpack(*pack(parts)) == parts


@given(st.lists(PARTS, max_size=5))
def test_the_layout_is_plain_ascii_json(parts):
    _, layout = pack(parts)
    assert layout is None or (layout.isascii() and isinstance(json.loads(layout), list))


@given(TEXT)
def test_a_plain_text_needs_no_layout(text):
    assert pack(parts_of(text)) == (text, None)


def test_the_text_of_a_tool_call_is_its_name_and_a_line_for_each_argument():
    text, _ = pack([Part("tool_call", name="Bash", arguments={"command": "ls", "timeout": 5})])
    assert text == "[tool: Bash]\ncommand: ls\ntimeout: 5"


def test_arguments_are_not_stored_twice():
    _, layout = pack([Part("tool_call", name="Write", arguments={"content": "walrus" * 1_000})])
    assert len(layout) < 200


def test_a_text_part_with_more_than_text_keeps_it():
    part = Part("text", "hello", name="note", call_id="c1", is_error=True)
    assert unpack(*pack([part])) == (part,)


def test_the_words_of_a_tool_call_are_kept():
    part = Part("tool_call", "why I call it", name="Bash", arguments={"command": "ls"})
    assert unpack(*pack([part])) == (part,)


@pytest.mark.parametrize("key", [1, None, True])
def test_argument_names_that_are_no_texts_become_texts(key):
    text, layout = pack([Part("tool_call", name="X", arguments={key: "value"})])
    assert list(unpack(text, layout)[0].arguments.values()) == ["value"]


@pytest.mark.parametrize(
    "content",
    [
        7,
        None,
        [7],
        ["text"],
        [{"type": "video"}],
        [{}],
        [{"type": "text", "text": 7}],
        {"type": "text"},
        b"bytes",
    ],
)
def test_what_is_no_content_is_refused(content):
    with pytest.raises(InvalidInputError):
        parts_of(content)


def test_an_unknown_field_of_a_part_is_refused_not_dropped():
    with pytest.raises(InvalidInputError, match="texxt"):
        parts_of([{"type": "text", "texxt": "lost"}])


@pytest.mark.parametrize(
    "value", [{"x": object()}, {"x": float("nan")}, {"x": {1}}, {"x": b"bytes"}]
)
def test_metadata_that_json_cannot_hold_is_refused_by_name(value):
    with pytest.raises(InvalidInputError, match="metadata"):
        dump(value, "metadata")
