"""The content of messages of Mastra in all its formats."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smara.adapters.mastra.rows import content_of
from smara.messages.models import Part

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "text",
                    "parts",
                    "format",
                    "toolInvocation",
                    "state",
                    "result",
                    "toolCallId",
                    "content",
                    "details",
                    "data",
                    "url",
                    "toolInvocations",
                    "reasoning",
                    "experimental_attachments",
                    "createdAt",
                    "source",
                ]
            ),
            inner
            | st.sampled_from(
                [
                    "text",
                    "tool-invocation",
                    "result",
                    "reasoning",
                    "file",
                    "source",
                    "data-x",
                    "call",
                ]
            ),
            max_size=5,
        )
    ),
    max_leaves=12,
)


def parts(value: object) -> list[tuple[str, str]]:
    return [(part.type, part.text) for part in content_of(json.dumps(value)).parts]


@settings(max_examples=300)
@given(anything)
def test_whatever_stands_there_gives_parts(value):
    for content in (content_of(value), content_of(json.dumps(value))):
        assert all(isinstance(part, Part) for part in content.parts)


@pytest.mark.parametrize("text", ["plain words", "{not json", "[also not", '{"a": '])
def test_text_that_is_no_json_stays_as_it_is(text):
    assert [part.text for part in content_of(text).parts] == [text]


def test_calls_that_stand_beside_the_parts_are_taken_once():
    call = {"state": "result", "toolCallId": "c", "toolName": "grep", "args": {}, "result": "found"}
    both = {
        "format": 2,
        "parts": [{"type": "tool-invocation", "toolInvocation": call}],
        "toolInvocations": [call],
    }
    beside = {"format": 2, "parts": [], "toolInvocations": [call], "content": "Look:"}
    assert parts(both) == [("tool_call", ""), ("tool_result", "found")]
    assert parts(beside) == [("tool_call", ""), ("tool_result", "found"), ("text", "Look:")]


def test_parts_of_the_newer_interface_are_calls_and_results_too():
    newer = {
        "type": "tool-search",
        "toolCallId": "c",
        "state": "output-available",
        "input": {"q": "x"},
        "output": {"hits": 3},
    }
    assert parts({"format": 2, "parts": [newer]}) == [
        ("tool_call", ""),
        ("tool_result", '{"hits": 3}'),
    ]


def test_bytes_never_come_through():
    image = {"type": "file", "mimeType": "image/png", "data": "data:image/png;base64," + "A" * 4000}
    (part,) = content_of({"format": 2, "parts": [image]}).parts
    assert (part.type, part.media_type, part.size_bytes, part.text) == (
        "image",
        "image/png",
        3000,
        "",
    )


def test_data_of_the_app_keeps_its_words():
    assert parts({"format": 2, "parts": [{"type": "data-weather", "data": {"city": "Oslo"}}]}) == [
        ("text", '[data-weather] {"city": "Oslo"}')
    ]
