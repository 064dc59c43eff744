"""Our plain JSONL format: read generously, written in one canonical form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from accounting import Account
from hypothesis import example, given, settings
from hypothesis import strategies as st

from smara.adapters.readers.plain import read_jsonl, render_line, render_thread
from smara.adapters.records import Counted, Imported, Record
from smara.messages.models import PART_TYPES, ROLES, NewMessage, NewThread, Part, ThreadKind

Write = Callable[..., Path]


def read_all(path: Path) -> list[Record]:
    return list(read_jsonl(path))


def the_only(path: Path) -> Imported:
    (item,) = read_all(path)
    assert isinstance(item, Imported), item
    return item


def test_a_full_line_becomes_a_message_with_all_its_fields(write: Write) -> None:
    line = {
        "thread": "t1",
        "role": "user",
        "content": "hello",
        "id": "m1",
        "created_at": "2026-02-11T20:16:53.366Z",
        "resource": "me",
        "title": "Greeting",
        "task": "task-1",
        "metadata": {"a": [1]},
    }
    item = the_only(write(line))
    assert item.thread == NewThread("t1", resource_id="me", title="Greeting")
    assert item.message == NewMessage(
        "user", "hello", "m1", created_at=1770841013366, task_id="task-1", metadata={"a": [1]}
    )


def test_a_line_without_a_thread_goes_to_the_thread_named_after_the_file(write: Write) -> None:
    assert (
        the_only(write({"role": "user", "content": "x"}, name="my.notes.jsonl")).thread.id
        == "my.notes"
    )


@pytest.mark.parametrize("key", ["thread", "thread_id", "threadId", "conversationId", "session_id"])
def test_the_thread_may_be_named_in_several_ways(write: Write, key: str) -> None:
    assert the_only(write({key: "t9", "role": "user", "content": "x"})).thread.id == "t9"


def test_camel_case_and_other_common_names_are_understood(write: Write) -> None:
    line = {
        "threadId": 7,
        "role": "Human",
        "text": "x",
        "createdAt": 5,
        "messageId": "m",
        "resourceId": "r",
        "taskId": "k",
    }
    item = the_only(write(line))
    assert item.thread == NewThread("7", resource_id="r")
    assert item.message == NewMessage("user", "x", "m", created_at=5, task_id="k")


@pytest.mark.parametrize(
    ("given_role", "role"),
    [("human", "user"), ("AI", "assistant"), ("developer", "system"), ("function", "tool")],
)
def test_roles_of_other_programs_are_understood(write: Write, given_role: str, role: str) -> None:
    assert the_only(write({"role": given_role, "content": "x"})).message.role == role


def test_a_message_in_an_envelope_is_unwrapped(write: Write) -> None:
    item = the_only(
        write({"thread": "t", "timestamp": 5, "message": {"role": "user", "content": "x"}})
    )
    assert (item.thread.id, item.message.created_at, item.message.content) == ("t", 5, "x")


def test_tool_calls_and_results_in_openai_shape_are_understood(write: Write) -> None:
    function = {"name": "ls", "arguments": '{"path": "."}'}
    asked = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    answered = {"role": "tool", "tool_call_id": "c1", "content": "a.py"}
    first, second = read_all(write(asked, answered))
    assert isinstance(first, Imported)
    assert isinstance(second, Imported)
    assert first.message.content == (
        Part("tool_call", name="ls", call_id="c1", arguments={"path": "."}),
    )
    assert second.message.content == (Part("tool_result", "a.py", call_id="c1"),)


def test_tool_arguments_that_are_no_json_stay_text(write: Write) -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": "{broken"}}
    item = the_only(write({"role": "assistant", "content": "so", "tool_calls": [call]}))
    assert item.message.content == (
        Part("text", "so"),
        Part("tool_call", name="f", call_id="c", arguments="{broken"),
    )


def test_anthropic_and_openai_blocks_are_understood(write: Write) -> None:
    blocks = [
        "plain",
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "id": "c", "name": "ls", "input": {"a": 1}},
        {
            "type": "tool_result",
            "tool_use_id": "c",
            "content": [{"type": "text", "text": "ok"}],
            "is_error": True,
        },
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "document", "source": {"type": "text", "data": "words"}, "title": "a.txt"},
    ]
    assert the_only(write({"role": "user", "content": blocks})).message.content == (
        Part("text", "plain"),
        Part("reasoning", "hm"),
        Part("tool_call", name="ls", call_id="c", arguments={"a": 1}),
        Part("tool_result", "ok", call_id="c", is_error=True),
        Part("image", media_type="image/png", size_bytes=5),
        Part("image", uri="https://example.org/a.png"),
        Part("file", "words", name="a.txt"),
    )


def test_thread_lines_describe_threads_and_are_counted(write: Write) -> None:
    line = {
        "type": "thread",
        "id": "t1",
        "resource": "me",
        "title": "T",
        "kind": "subagent",
        "parent": "t0",
        "metadata": {"a": 1},
        "createdAt": 5,
    }
    thread = NewThread(
        "t1", "me", "T", metadata={"a": 1}, kind="subagent", parent_id="t0", created_at=5
    )
    described, message = read_all(write(line, {"thread": "t1", "role": "user", "content": "x"}))
    assert described == Counted(1, "thread", "describes a thread", thread=thread)
    assert isinstance(message, Imported)
    assert message.thread == thread


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"content": "x"}, 'no role; give "role": user, assistant, system or tool'),
        ({"role": "boss", "content": "x"}, '"role" must be user, assistant, system or tool'),
        ({"role": ["user"], "content": "x"}, '"role" must be user, assistant, system or tool'),
        ({"role": "user"}, 'no content; give "content" as text or as a list of parts'),
        (
            {"role": "user", "content": ""},
            'no content; give "content" as text or as a list of parts',
        ),
        (
            {"role": "user", "content": []},
            'no content; give "content" as text or as a list of parts',
        ),
        (
            {"role": "user", "content": "x", "thread": {"a": 1}},
            '"thread" must be a text that is not empty',
        ),
        ({"messages": [{}]}, 'many messages in one line; write each of "messages" as its own line'),
        ({"type": "thread"}, 'a thread without an id; give it "id"'),
        (
            {"type": "thread", "id": "t", "kind": "odd"},
            '"kind" must be conversation, subagent or compaction',
        ),
    ],
)
def test_a_line_that_is_no_message_says_what_to_fix_and_where(
    write: Write, line: Any, reason: str
) -> None:
    counted = read_all(write({"role": "user", "content": "fine"}, line))[1]
    assert isinstance(counted, Counted)
    assert (counted.line, counted.reason) == (2, reason)


def test_a_time_that_cannot_be_read_is_left_out_and_named(write: Write) -> None:
    item = the_only(write({"role": "user", "content": "x", "created_at": "noon"}))
    assert item.message.created_at is None
    assert item.repairs == (
        '"created_at" is neither milliseconds nor ISO 8601; the time was left out',
    )
    assert item.message.metadata["repairs"] == list(item.repairs)


def test_fields_without_a_meaning_of_their_own_are_kept_as_metadata(write: Write) -> None:
    item = the_only(
        write({"role": "user", "content": "x", "model": "m", "score": 1, "metadata": {"score": 2}})
    )
    assert item.message.metadata == {"model": "m", "score": 2}


def test_metadata_that_is_no_object_is_kept_as_a_value(write: Write) -> None:
    assert (
        the_only(write({"role": "user", "content": "x", "metadata": "draft"})).message.metadata[
            "value"
        ]
        == "draft"
    )


def test_without_ids_identical_lines_are_two_messages_and_reading_again_gives_the_same_ids(
    write: Write,
) -> None:
    line = {"thread": "t", "role": "user", "content": "again"}
    ids = [
        item.message.client_id for item in read_all(write(line, line)) if isinstance(item, Imported)
    ]
    grown = [
        item.message.client_id
        for item in read_all(write(line, line, line))
        if isinstance(item, Imported)
    ]
    assert len(set(grown)) == 3
    assert grown[:2] == ids


def test_the_same_line_in_two_threads_has_two_ids(write: Write) -> None:
    line = {"role": "user", "content": "x"}
    one, two = (
        the_only(write(line, name=name)).message.client_id for name in ("a.jsonl", "b.jsonl")
    )
    assert one != two


def test_the_same_id_twice_is_a_repeat_or_loses_nothing(write: Write) -> None:
    line = {"id": "m", "role": "user", "content": "x"}
    first, repeat, clash = read_all(write(line, line, {**line, "content": "y"}))
    assert isinstance(first, Imported)
    assert isinstance(repeat, Counted)
    assert isinstance(clash, Imported)
    assert (first.message.client_id, repeat.kind) == ("m", "repeat")
    assert clash.message.client_id not in (None, "m")
    assert clash.repairs == ("its id belongs to another message",)


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ids = st.text("abcXYZ019-_/.:é字", min_size=1, max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
maybe = st.none() | words
worded = st.builds(
    Part, st.sampled_from(["text", "reasoning", "tool_result"]), words, name=maybe, call_id=maybe
)
calls = st.builds(Part, st.just("tool_call"), name=maybe, call_id=maybe, arguments=values)
files = st.builds(
    Part,
    st.sampled_from(["image", "file"]),
    words,
    name=maybe,
    media_type=maybe,
    uri=st.none() | words.map("https://".__add__),
    size_bytes=st.none() | st.integers(0, 2**40),
)
messages = st.builds(
    NewMessage,
    st.sampled_from(ROLES),
    words.filter(bool) | st.lists(worded | calls | files, min_size=1, max_size=4).map(tuple),
    client_id=ids,
    created_at=st.none() | st.integers(0, 253_402_300_799_999),
    task_id=st.none() | ids,
    metadata=st.dictionaries(words, values, max_size=3),
)
threads = st.builds(
    NewThread,
    ids,
    st.none() | ids,
    st.none() | words.filter(bool),
    st.dictionaries(words, values, max_size=3),
    st.sampled_from(get_args(ThreadKind)),
    st.none() | ids,
    st.none() | st.integers(1, 10**13),
)


@settings(max_examples=200)
@given(thread=threads, message=messages)
@example(
    NewThread("t"), NewMessage("tool", (Part("tool_result", "", call_id="", is_error=True),), "m")
)
@example(NewThread("t"), NewMessage("user", "line\nbreak \u2028 \x85 \x00 \r", "m"))
def test_what_is_rendered_is_read_back_the_same(
    write: Write, thread: NewThread, message: NewMessage
) -> None:
    path = write(render_thread(thread), render_line(thread.id, message))
    described, item = read_all(path)
    assert isinstance(described, Counted)
    assert isinstance(item, Imported)
    assert described.thread == thread
    assert item.thread == thread
    assert item.message == message


def test_a_rendered_line_is_short_where_nothing_is_special() -> None:
    message = NewMessage("user", (Part("text", "hé"),), client_id="m")
    assert render_line("t", message) == (
        '{"thread": "t", "role": "user", "content": [{"type": "text", "text": "hé"}], "id": "m"}'
    )


def test_lone_surrogates_are_rendered_as_text_that_can_be_encoded() -> None:
    assert "\ufffd" in render_line("t", NewMessage("user", "\ud800")).encode().decode()


@pytest.mark.parametrize("kind", PART_TYPES)
def test_every_type_of_part_is_read_back(write: Write, kind: Any) -> None:
    message = NewMessage("assistant", (Part(kind, "words", name="n"),), client_id="m")
    assert the_only(write(render_line("t", message))).message == message


def is_plain_line(data: bytes) -> bool:
    """Not the beginning of a compressed file, and one line only."""
    return b"\n" not in data and not data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
keys = st.sampled_from(
    [
        "thread",
        "role",
        "content",
        "id",
        "created_at",
        "resource",
        "title",
        "task",
        "metadata",
        "type",
        "tool_calls",
        "tool_call_id",
        "message",
        "messages",
        "reasoning",
        "kind",
        "parent",
        "x",
    ]
)
blocks = st.dictionaries(
    st.sampled_from(
        ["type", "text", "content", "source", "image_url", "id", "name", "input", "is_error", "uri"]
    ),
    junk | st.sampled_from([*PART_TYPES, "tool_use", "thinking", "image_url", "data:x"]),
)
near_lines = st.dictionaries(
    keys, junk | st.sampled_from(["user", "tool", "thread"]) | blocks | st.lists(blocks, max_size=3)
)


@settings(max_examples=150)
@given(lines=st.lists(near_lines | junk | st.binary(max_size=20).filter(is_plain_line), max_size=8))
def test_whatever_the_lines_hold_nothing_raises_and_every_line_is_accounted_for(
    write: Write, lines: list[Any]
) -> None:
    path = write(*lines)
    records = read_all(path)
    assert Account.of(records).lines == path.read_bytes().count(b"\n")
    assert [item.line for item in records] == list(range(1, len(records) + 1))
