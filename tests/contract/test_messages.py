"""Messages: what goes in comes out, in order, exactly."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smara import NewMessage, Part
from smara.errors import ConflictError, InvalidInputError, NotFoundError, UsageError

EVERY_PART = [
    Part("text", "What I did:"),
    Part("reasoning", "First look, then leap."),
    Part(
        "tool_call",
        name="Bash",
        call_id="c1",
        arguments={"command": "ls -la", "timeout": 5, "env": {"A": ["b", None]}},
    ),
    Part("tool_result", "total 0\n", name="Bash", call_id="c1", is_error=True),
    Part("image", "a login form", name="shot.png", media_type="image/png", size_bytes=12_345),
    Part("file", uri="file:///tmp/report.pdf", media_type="application/pdf"),
    Part("text", "Done."),
]
ODD_TEXTS = [
    "", " ", "\n\n\n", "\t tab", "nul\x00inside", "lone \ud800 surrogate \udfff",
    "\ufdd0 and \ufdd00000", "e\u0301 é",
    "重跑测试", "👩‍👩‍👧‍👦 🏳️‍🌈", "\u202e right to left", "\ufeffbom", "'; DROP TABLE messages; --",
    "%s ? :project $1",
    "a\r\nb\rc",     "\u2028line\u2029", "spam " * 20_000,
]  # fmt: skip


def test_add_gives_back_the_message_as_it_is_kept(memory, clock):
    added = memory.messages.add(
        thread_id="t",
        role="user",
        content="hello",
        client_id="c1",
        task_id="T1",
        metadata={"k": "v"},
        resource_id="ann",
    )
    assert added == memory.messages.get(added.id) == memory.messages.find(added.id)
    assert (added.thread_id, added.resource_id, added.seq, added.role) == ("t", "ann", 1, "user")
    assert (added.client_id, added.task_id, added.metadata) == ("c1", "T1", {"k": "v"})
    assert (added.raw_content, added.content, added.parts) == (
        "hello",
        "hello",
        (Part("text", "hello"),),
    )
    assert (added.created_at, added.is_sealed, added.compaction_level) == (clock.now_ms(), False, 0)


def test_a_message_that_is_not_there_is_not_found(memory):
    assert memory.messages.find("nothing") is None
    with pytest.raises(NotFoundError, match="nothing"):
        memory.messages.get("nothing")


def test_an_id_that_no_message_can_have_is_told_so_and_nothing_worse(memory, say):
    say()
    for odd in ("", "\x00", "lone \ud800", "x" * 10_000, "'", "%"):
        for read in (
            memory.messages.find,
            memory.messages.get,
            memory.messages.around,
            memory.compactions.undo,
            memory.threads.find,
        ):
            with suppress(UsageError):
                assert read(odd) is None


def test_each_role_is_kept(memory, say):
    for role in ("user", "assistant", "system", "tool"):
        assert memory.messages.get(say(role=role).id).role == role


def test_an_unknown_role_is_refused_with_the_known_ones(memory, say):
    for role in ("robot", "", None, "USER"):
        with pytest.raises(InvalidInputError, match="user, assistant, system, tool"):
            say(role=role)
    assert memory.messages.list(thread_id="t") == []


def test_any_text_comes_back_unchanged(memory, say):
    for text in ODD_TEXTS:
        added = say(text)
        assert memory.messages.get(added.id).raw_content == added.raw_content == text


def test_any_text_comes_back_unchanged_inside_parts(memory, say):
    for text in ODD_TEXTS:
        parts = (
            Part("tool_call", name="Write", arguments={"path": text, "n": [text]}),
            Part("tool_result", text),
        )
        assert memory.messages.get(say(parts).id).parts == parts


def test_every_kind_of_part_comes_back_unchanged(memory, say):
    added = say(EVERY_PART, role="assistant")
    assert added.parts == memory.messages.get(added.id).parts == tuple(EVERY_PART)


def test_the_raw_content_holds_the_words_of_every_part(memory, say):
    raw = say(EVERY_PART, role="assistant").raw_content
    for word in (
        "What I did:",
        "leap",
        "Bash",
        "ls -la",
        "total 0",
        "shot.png",
        "a login form",
        "report.pdf",
        "Done.",
    ):
        assert word in raw


def test_parts_may_be_given_as_dicts(memory, say):
    added = say(
        [
            {"type": "text", "text": "see"},
            {"type": "tool_call", "name": "Read", "arguments": {"path": "a.py"}},
        ]
    )
    assert added.parts == (
        Part("text", "see"),
        Part("tool_call", name="Read", arguments={"path": "a.py"}),
    )


def test_tool_arguments_of_any_shape_come_back_unchanged(memory, say):
    shapes = [
        None,
        {},
        "ls -la",
        7,
        True,
        [1, "two", None],
        {"": ""},
        {"a: b": "c: d\n"},
        {"deep": {"x": [{"y": 10**40}]}},
    ]
    for arguments in shapes:
        part = Part("tool_call", name="Tool", arguments=arguments)
        assert memory.messages.get(say([part]).id).parts == (part,)


def test_a_message_without_parts_is_kept_as_an_empty_one(memory, say):
    added = say([])
    assert (added.raw_content, added.parts, memory.messages.get(added.id)) == ("", (), added)


def test_a_content_that_is_no_content_is_refused_and_says_why(memory, say):
    refused = [
        (None, "NoneType"),
        (7, "int"),
        ([7], "part"),
        ([{"text": "x"}], "text, tool_call, tool_result"),
        ([{"type": "video"}], "video"),
        ([{"type": "text", "text": 5}], "text"),
    ]
    for content, told in refused:
        with pytest.raises(InvalidInputError, match=told):
            say(content)
    assert memory.threads.find("t") is None


def test_a_part_given_as_an_object_is_checked_like_one_given_as_a_dict(say):
    with pytest.raises(InvalidInputError, match="video"):
        say([Part("video", "x")])


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.lists(st.text(st.characters(exclude_categories=())), max_size=4))
def test_any_number_of_text_parts_comes_back_unchanged(say, texts):
    parts = [Part("reasoning", text) for text in texts]
    assert say(parts).parts == tuple(parts)


def test_metadata_comes_back_unchanged(memory, say):
    metadata = {
        "big": 2**200,
        "float": 1e-300,
        "text": "nul\x00 \ud800 é",
        "nested": {"list": [1, [2, {"x": None}], True]},
    }
    assert memory.messages.get(say(metadata=metadata).id).metadata == metadata


def test_metadata_that_json_cannot_hold_is_refused_before_anything_is_stored(memory, say):
    for bad in ({"x": {1, 2}}, {"x": float("inf")}, "text"):
        with pytest.raises(InvalidInputError, match="metadata"):
            say(metadata=bad)
    assert memory.threads.find("t") is None


def test_sequence_numbers_count_from_one_in_each_thread(memory, say):
    for thread_id in ("a", "b", "a", "a", "b"):
        say(thread_id=thread_id)
    assert [m.seq for m in memory.messages.list(thread_id="a")] == [1, 2, 3]
    assert [m.seq for m in memory.messages.list(thread_id="b")] == [1, 2]


def test_sequence_numbers_follow_the_order_of_arrival_not_the_clock(memory, say, clock):
    say("first")
    clock.set(clock.now_ms() - 3_600_000)
    say("second")
    assert [m.raw_content for m in memory.messages.list(thread_id="t")] == ["first", "second"]


def test_sequence_numbers_go_on_after_reopening(memory, say, open_again):
    say()
    memory.close()
    assert open_again().messages.add(thread_id="t", role="user", content="again").seq == 2


def test_a_refused_message_leaves_no_gap(memory, say):
    say("one")
    with pytest.raises(InvalidInputError):
        say("bad", role="robot")
    assert say("two").seq == 2


def test_a_given_time_is_kept(memory, say):
    for at in (0, -1, 1_700_000_000_000, 253_402_300_799_999):
        assert memory.messages.get(say(created_at=at).id).created_at == at


def test_a_time_that_is_not_milliseconds_is_refused(say):
    for at in (1.5, "2026-01-01", True, 10**18):
        with pytest.raises(InvalidInputError, match="created_at"):
            say(created_at=at)


def test_the_token_count_says_how_it_was_counted(open_again):
    for model, expected in (("o200k_base", (2, "o200k_base")), ("estimate", (3, "estimate"))):
        added = open_again(token_model=model).messages.add(
            thread_id=model, role="user", content="hello world"
        )
        assert (added.token_count, added.token_method) == expected


def test_an_empty_message_costs_nothing(say):
    assert say("").token_count == 0


def test_a_message_over_the_limit_is_refused_with_the_limit(open_again):
    memory = open_again(max_message_bytes=100)
    memory.messages.add(thread_id="t", role="user", content="é" * 50)
    with pytest.raises(InvalidInputError, match="100"):
        memory.messages.add(thread_id="t", role="user", content="é" * 51)
    assert memory.threads.get("t").message_count == 1


def test_a_message_of_a_megabyte_comes_back_whole(memory, say):
    text = "".join(f"line {number} of the log\n" for number in range(50_000))
    assert memory.messages.get(say(text).id).raw_content == text


def test_deeply_nested_arguments_are_refused_or_kept_never_dropped(memory, say):
    deep = current = []
    for _ in range(30_000):
        current.append([])
        current = current[0]
    try:
        added = say([Part("tool_call", name="Tool", arguments={"deep": deep})])
    except InvalidInputError:
        assert memory.threads.find("t") is None
    else:
        assert memory.messages.get(added.id).raw_content == added.raw_content


def test_a_message_to_a_thread_of_another_resource_is_a_conflict(memory, say):
    say(resource_id="ann")
    with pytest.raises(ConflictError, match="ann"):
        say(resource_id="bob")
    assert memory.threads.get("t").message_count == 1


def test_the_search_text_holds_identifiers_whole_and_in_parts(say):
    found = say("call refreshTokens()").search_text.split()
    assert {"refreshtoken", "refresh", "token"} <= set(found)


def test_the_injection_text_of_a_whole_message_is_its_raw_content(say):
    assert say("hello").injection_text == "hello"


# many at a time


def test_add_many_keeps_the_order_given(memory):
    given = [
        {"role": "user", "content": "one"},
        NewMessage("assistant", "two"),
        NewMessage("tool", [Part("text", "three")]),
    ]
    added = memory.messages.add_many(thread_id="t", messages=given)
    assert added == memory.messages.list(thread_id="t")
    assert [(m.seq, m.role, m.raw_content) for m in added] == [
        (1, "user", "one"),
        (2, "assistant", "two"),
        (3, "tool", "three"),
    ]


def test_add_many_takes_a_generator_of_more_than_one_batch(memory):
    added = memory.messages.add_many(
        thread_id="t", messages=(NewMessage("user", f"{n}") for n in range(1_201))
    )
    assert [m.seq for m in added] == list(range(1, 1_202))
    assert memory.threads.get("t").message_count == 1_201


def test_add_many_of_nothing_makes_no_thread(memory):
    assert memory.messages.add_many(thread_id="t", messages=[]) == []
    assert memory.threads.find("t") is None


def test_add_many_with_one_bad_message_stores_none_and_says_which(memory):
    given = [{"role": "user", "content": "fine"}, {"role": "robot", "content": "not fine"}]
    with pytest.raises(InvalidInputError, match=r"Message 1.*robot"):
        memory.messages.add_many(thread_id="t", messages=given)
    assert memory.messages.list(thread_id="t") == []


def test_add_many_refuses_what_is_no_message_and_says_why(memory):
    refused = [
        ({"role": "user"}, "content"),
        ({"role": "user", "content": "x", "shade": "red"}, "shade"),
        ("text", "str"),
    ]
    for bad, told in refused:
        with pytest.raises(InvalidInputError, match=told):
            memory.messages.add_many(thread_id="t", messages=[bad])
