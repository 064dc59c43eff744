"""Schemas: what they refuse is explained, and none of them can fetch, hang or break anything."""

from __future__ import annotations

import socket
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.errors import InvalidInputError
from smara.working import schema as keywords
from smara.working.schema import check_value, read_schema


def refused(value, schema):
    with pytest.raises(InvalidInputError) as caught:
        check_value(value, read_schema(schema))
    return str(caught.value)


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"properties": {"n": {"type": "integer"}}}, {"n": "x"}, 'n must be integer, not "x"'),
        ({"properties": {"n": {"type": ["string", "null"]}}}, {"n": 1},
        "n must be string or null, not 1"),
        ({"properties": {"a": {"properties": {"b": {"enum": ["x", "y"]}}}}}, {"a": {"b": "z"}},
         'a.b must be one of ["x", "y"], not "z"'),
        ({"properties": {"l": {"items": {"const": 1}}}}, {"l": [1, 2]}, "l.1 must be 1, not 2"),
        ({"required": ["a", "b"]}, {"a": 1}, "the page must have 'b'"),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"c": 1},
        "may have only a; 'c' not allowed"),
        ({"patternProperties": {"^x": {}}, "additionalProperties": False}, {"x1": 1, "y": 1},
         "may have only ^x; 'y' not allowed"),
        ({"patternProperties": {"^x": {"type": "string"}}}, {"x1": 1}, "x1 must be string, not 1"),
        ({"additionalProperties": {"type": "string"}}, {"a": 1}, "a must be string, not 1"),
        ({"properties": {"n": {"minimum": 3}}}, {"n": 1}, "n must satisfy minimum 3"),
        ({"properties": {"s": {"pattern": "^a+$"}}}, {"s": "b"}, 's must satisfy pattern "^a+$"'),
        ({"properties": {"l": {"uniqueItems": True}}}, {"l": [{"a": 1}, {"a": 1.0}]},
        "elements that are equal"),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, "fits none of 2 alternatives"),
        ({"properties": {"a": False}}, {"a": 1}, "may not hold 1"),
    ],
)  # fmt: skip
def test_refusal_names_the_place_and_what_is_allowed(schema, value, words):
    assert words in refused(value, schema)


def test_only_the_first_few_of_many_failures_are_told():
    schema = {"additionalProperties": {"type": "string"}}
    assert "; and 7 more." in refused({f"k{number}": number for number in range(10)}, schema)


@pytest.mark.parametrize(
    "schema",
    [
        {}, {"type": "object"}, {"properties": {"$ref": {"type": "string"}}},
        {"$defs": {"word": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/word"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"w": {"type": "string"}},
         "properties": {"a": {"$ref": "#/definitions/w"}}},
        {"$schema": "http://json-schema.org/draft-04/schema#",
            "properties": {"a": {"type": "string"}}},
        {"properties": {"l": {"uniqueItems": True}}},
            {"properties": {"a": {"pattern": "é|wörd|word"}}},
        '{"properties": {"a": {"type": "string"}}}',
        {"properties": {"below": {"$ref": "#"}}, "unevaluatedProperties": True},
    ],
)  # fmt: skip
def test_value_that_fits_is_accepted(schema):
    check_value({"a": "word", "l": [1, True, "1", 2], "below": {"a": "b"}}, read_schema(schema))


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (3, "schema must be a JSON object"), ("{", "The schema is not valid JSON"), ("[]",
        "must be a JSON object"),
        ({"type": "nonsense"}, "The schema is not valid: type"), ({"minimum": "x"},
        "minimum must be number"),
        ({"$schema": "https://example.org/mine"}, "is not known"), ({"$schema": 3}, "is not known"),
        ({"allOf": [{"$schema": "http://json-schema.org/draft-07/schema#"}]},
        "Only the whole schema"),
        ({"pattern": "(?=x)"}, "Patterns are RE2"), ({"patternProperties": {r"(a)\1": {}}},
        "Patterns are RE2"),
        ({"pattern": "\ud800"}, "cannot be used"),
        ({"patternProperties": {"a": {}}, "unevaluatedProperties": False},
        "Use additionalProperties"),
        ({"description": "x" * 60_000}, "at most 50,000"), ({"a": float("inf")},
        "cannot be written as JSON"),
    ],
)  # fmt: skip
def test_schema_that_cannot_be_followed_is_refused(schema, words):
    with pytest.raises(InvalidInputError, match=words):
        read_schema(schema)


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$recursiveRef"])
@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:9/x",
        "file:///etc/passwd",
        "other.json",
        "https://json-schema.org/draft/2020-12/schema",
    ],
)
def test_nothing_is_fetched(monkeypatch, keyword, target):
    monkeypatch.setattr(socket, "socket", lambda *_: pytest.fail("a connection was opened"))
    with pytest.raises(InvalidInputError, match="nothing is fetched"):
        read_schema({"properties": {"a": {keyword: target}}})


def test_reference_to_nowhere_or_to_itself_is_explained():
    assert 'refers to "#/$defs/none", which is not in it' in refused({}, {"$ref": "#/$defs/none"})
    assert "refers to itself without end" in refused({}, {"$ref": "#"})


def doubling(depth):
    """A small schema whose check takes two to the power of ``depth`` steps."""
    parts = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n - 1}"}] * 2} for n in range(1, depth + 1)}
    return {"$defs": {"d0": {}, **parts}, "$ref": f"#/$defs/d{depth}"}


def test_work_of_a_check_is_bounded():
    assert "more than 50,000 steps" in refused({}, doubling(64))
    check_value({}, read_schema(doubling(8)))


@pytest.mark.parametrize("draft", ["2020-12", "2019-09"])
def test_work_is_bounded_also_when_the_schema_names_its_draft(monkeypatch, draft):
    monkeypatch.setattr(keywords, "MAX_STEPS", 500)
    schema = {**doubling(64), "$schema": f"https://json-schema.org/draft/{draft}/schema"}
    assert "steps. Simplify the schema" in refused({}, schema)


def test_work_is_bounded_also_below_a_reference_to_the_whole(monkeypatch):
    monkeypatch.setattr(keywords, "MAX_STEPS", 500)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"a": {"$ref": "#"}},
        "pattern": "^(a|a)*$",
    }
    assert "a.a must satisfy pattern" in refused({"a": {"a": "a" * 5_000 + "!"}}, schema)
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": doubling(64)["$defs"],
        "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#/$defs/d64"}},
    }
    assert "steps. Simplify the schema" in refused({"a": {"a": {"b": {}}}}, whole)


@pytest.mark.parametrize("keyword", ["pattern", "patternProperties"])
def test_patterns_that_backtrack_elsewhere_run_in_linear_time(keyword):
    inner = (
        {"pattern": "^(a+)+$"}
        if keyword == "pattern"
        else {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}
    )
    value = "a" * 10_000 + "!" if keyword == "pattern" else {"a" * 10_000 + "!": 1}
    assert "v" in refused({"v": value}, {"properties": {"v": inner}})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": {"multipleOf": 0.1}}}, {"a": 10**400}),
        ({"$id": "http://[", "properties": {"a": {"$id": "http://]", "$ref": "#x"}}}, {"a": 1}),
    ],
)
def test_schema_that_breaks_its_checker_is_refused(schema, value):
    assert "cannot be applied" in refused(value, schema)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["#", "#/$defs/a", "string", "object", "a", "^a*$", "(a+)+"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "$ref",
                    "$defs",
                    "a",
                    "type",
                    "properties",
                    "items",
                    "allOf",
                    "anyOf",
                    "not",
                    "if",
                    "then",
                    "else",
                    "pattern",
                    "patternProperties",
                    "additionalProperties",
                    "enum",
                    "const",
                    "required",
                    "contains",
                    "minContains",
                    "dependentRequired",
                    "dependentSchemas",
                    "propertyNames",
                    "uniqueItems",
                    "multipleOf",
                    "prefixItems",
                    "$id",
                    "$anchor",
                    "$dynamicRef",
                    "$dynamicAnchor",
                    "unevaluatedProperties",
                    "unevaluatedItems",
                    "minimum",
                    "minLength",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(
    st.dictionaries(
        st.sampled_from(["properties", "allOf", "$defs", "a", "$ref", "patternProperties", "type"]),
        JSON,
    ),
    st.dictionaries(st.sampled_from("abc"), JSON),
)
def test_any_schema_accepts_refuses_or_is_refused(schema, value):
    with suppress(InvalidInputError):
        check_value(value, read_schema(schema))
