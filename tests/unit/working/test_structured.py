"""JSON pages: what is read is what was written, or it is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.errors import InvalidInputError
from smara.working.schema import (
    MAX_DEPTH,
    dump,
    merge_patch,
    parse_object,
    plain_object,
    with_field,
)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=3), VALUES, max_size=4)


@given(OBJECTS)
def test_object_is_read_back_as_it_was_written(value):
    assert parse_object(dump(value)) == plain_object(value) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not valid JSON"), ("{", "not valid JSON"), ("[1]", "must be a JSON object"), ("3",
        "a JSON object"),
        ('{"a": NaN}', "NaN is not a JSON number"), ('{"a": -Infinity}', "-Infinity"),
        ('{"a": 1e999}', "too large"),
        ('{"a": 1, "a": 2}', "'a' is there twice"), ('{"a": ' + "9" * 5_000 + "}",
        "not valid JSON"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested deeper"),
        ('{"a":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}", "nested deeper"),
    ],
)  # fmt: skip
def test_text_that_is_no_plain_object_is_refused(text, reason):
    with pytest.raises(InvalidInputError, match=reason):
        parse_object(text)


def test_deep_but_bounded_nesting_is_read():
    assert parse_object('{"a":' + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + "}")


@pytest.mark.parametrize(
    "value", [{"a": object()}, {"a": float("nan")}, {"a": {1, 2}}, {(1, 2): 3}]
)
def test_value_that_json_does_not_know_is_refused(value):
    with pytest.raises(InvalidInputError, match="cannot be written as JSON"):
        plain_object(value)


def test_value_that_contains_itself_is_refused():
    value: dict[str, object] = {}
    value["self"] = value
    with pytest.raises(InvalidInputError):
        plain_object(value)


# The examples of RFC 7396, appendix A, that begin with an object or a list.
@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}), ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}), ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}), ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}},
        {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}), (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}), ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)  # fmt: skip
def test_merge_patch_does_what_its_standard_says(target, patch, result):
    before = json.dumps(target)
    assert merge_patch(target, patch) == result
    assert json.dumps(target) == before


@given(OBJECTS, OBJECTS)
def test_merging_twice_is_the_same_as_once(value, patch):
    once = merge_patch(value, patch)
    assert merge_patch(once, patch) == once


def test_field_is_set_made_and_taken_out_by_its_path():
    value = {"a": {"b": 1}, "l": [1]}
    assert with_field(value, "a.b", [2]) == {"a": {"b": [2]}, "l": [1]}
    assert with_field(value, "x.y.z", 3) == {**value, "x": {"y": {"z": 3}}}
    assert with_field(value, "a.b", None) == {"a": {}, "l": [1]}
    assert with_field(value, "x.y", None) == value
    assert value == {"a": {"b": 1}, "l": [1]}


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b"])
def test_path_with_an_empty_name_is_refused(path):
    with pytest.raises(InvalidInputError, match="is not a path"):
        with_field({}, path, 1)


def test_path_through_something_that_is_no_object_is_refused():
    for path in ("l.0", "s.x"):
        with pytest.raises(InvalidInputError, match="is no object"):
            with_field({"l": [1], "s": "text"}, path, 2)
