"""What of a transcript of Claude Code is held back until it is settled, and that every line is
accounted for.
"""

from __future__ import annotations

import json
from typing import Any

from accounting import Account
from hypothesis import given, settings
from hypothesis import strategies as st

from smara.adapters.readers.claude_code import join_windows
from smara.adapters.records import Counted, Imported
from smara.messages.models import Part
from tests.unit.adapters.claude_records import (
    Write,
    assistant,
    call,
    counted,
    imported,
    output,
    progress,
    queue,
    read_all,
    record,
    result,
    texts,
    the_only,
    user,
)

# What is held back


def test_a_queued_prompt_that_is_sent_later_is_kept_once(write: Write) -> None:
    path = write(queue("enqueue", "check again"), queue("dequeue"), user("check again"))
    assert [(item.line, texts(item)) for item in imported(path)] == [(3, ["check again"])]
    assert ("queue-operation/enqueue", "queued words, kept where they were sent") in counted(path)


def test_a_queued_prompt_taken_up_in_mid_turn_is_kept_before_the_answer(write: Write) -> None:
    notice = "<task-notification>b1 is done</task-notification>"
    path = write(
        call(),
        queue("enqueue", notice),
        queue("enqueue", "use tabs"),
        queue("remove"),
        result("ok"),
        assistant("Yes"),
        user(notice),
    )
    spoken = [(item.message.role, item.message.metadata.get("kind")) for item in imported(path)]
    assert spoken == [
        ("assistant", None),
        ("tool", None),
        ("user", "queued_prompt"),
        ("assistant", None),
        ("system", "task_notification"),
    ]


def test_a_queued_command_is_kept_where_it_was_sent_and_not_again_at_the_end(write: Write) -> None:
    tagged = (
        "<command-message>plan</command-message>\n<command-name>/plan</command-name>\n"
        "<command-args>the cart  first</command-args>"
    )
    path = write(
        queue("enqueue", "/plan the cart first"),
        queue("dequeue"),
        user(tagged),
        assistant("Planned"),
        user("now the mail"),
    )
    spoken = [texts(item) for item in imported(path)]
    assert spoken == [[tagged], ["Planned"], ["now the mail"]]


def test_a_queued_notice_of_a_task_is_the_words_of_the_program(write: Write) -> None:
    notice = (
        '{"task_id":"b1","tool_use_id":"toolu_1","description":"Push","task_type":"local_bash"}'
    )
    pasted = '{"task_id": 7, "level": "WARN"}'
    path = write(
        queue("enqueue", "use tabs"),
        queue("enqueue", notice),
        queue("remove"),
        assistant("Yes"),
        user(pasted),
    )
    spoken = [(item.message.role, texts(item)) for item in imported(path)]
    assert spoken == [
        ("user", ["use tabs"]),
        ("assistant", ["Yes"]),
        ("user", [pasted]),
        ("system", [notice]),
    ]


def test_a_queued_prompt_that_comes_as_an_attachment_is_kept_once(write: Write) -> None:
    attached = record("attachment", attachment={"type": "queued_command", "prompt": "use tabs"})
    path = write(queue("enqueue", "use tabs"), queue("remove"), attached, assistant("Yes"))
    assert [(item.message.role, texts(item)) for item in imported(path)] == [
        ("user", ["use tabs"]),
        ("assistant", ["Yes"]),
    ]


def hook(kind: str, **fields: Any) -> dict[str, Any]:
    name = {
        "hookName": "SessionStart:startup",
        "hookEvent": "SessionStart",
        "toolUseID": "SessionStart",
    }
    return record("attachment", attachment={"type": kind, **name, **fields})


def test_what_memory_told_itself_is_not_remembered_as_something_that_was_said(write: Write) -> None:
    told = "<smara-memory>\n- Totals are in cents. [Memory #m-1]\n</smara-memory>"
    answered = json.dumps(
        {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": told}}
    )
    path = write(
        hook(
            "hook_success",
            content="",
            stdout=answered,
            stderr="",
            exitCode=0,
            command="smara hook claude x",
        ),
        hook("hook_additional_context", content=[told]),
        hook("hook_additional_context", content=[told, "The build is red."]),
        hook(
            "hook_success", content="", stdout="Use make.", stderr="", exitCode=0, command="notes"
        ),
        user(f"What does this mean? {told}"),
    )
    assert [texts(item)[0] for item in imported(path)] == [
        "The build is red.",
        "Use make.",
        f"What does this mean? {told}",
    ]
    assert [reason for _, reason in counted(path)] == ["what memory told the agent itself"] * 2


def test_a_prompt_still_queued_when_the_file_ends_is_kept(write: Write) -> None:
    assert texts(the_only(write(queue("enqueue", "and then?")))) == ["and then?"]


def test_output_of_a_running_command_is_counted_when_the_result_has_it(write: Write) -> None:
    path = write(call(), output("one\n"), output("one\ntwo\n"), result("one\ntwo\nthree"))
    assert len(imported(path)) == 2
    assert [reason for _, reason in counted(path)] == [
        "output of a running command, continued by a later record",
        "output of a running command, contained in its result",
    ]


def test_output_of_a_command_sent_to_the_background_is_kept_whole(write: Write) -> None:
    path = write(
        call(),
        output("one\ntwo\nthr"),
        output("two\nthree\nfour"),
        result("Command running in background"),
    )
    kept = imported(path)[1]
    assert (kept.line, kept.message.role, kept.message.metadata["kind"]) == (
        3,
        "tool",
        "running_output",
    )
    assert kept.message.content == (
        Part("tool_result", "one\ntwo\nthr\ntwo\nthree\nfour", name="Bash", call_id="toolu_1"),
    )


def test_output_of_a_command_that_never_ended_is_kept(write: Write) -> None:
    items = imported(write(call(), output("half of it")))
    assert texts(items[1]) == ["half of it"]


def test_views_of_a_scrolling_output_are_joined_where_they_overlap() -> None:
    lines = [f"line number {number}\n" for number in range(100)]
    assert join_windows("".join(lines[:60]), "".join(lines[40:])) == "".join(lines)


# Accounting


def test_bookkeeping_is_counted_with_a_reason_in_plain_words(write: Write) -> None:
    path = write(
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        progress({"type": "hook_progress", "command": "lint"}),
        progress({"type": "mcp_progress"}),
        {"type": "last-prompt", "lastPrompt": "x"},
    )
    assert counted(path) == [
        ("file-history-snapshot", "which files can be restored; no words"),
        ("progress/hook_progress", "a hook was started; no words"),
        ("progress/mcp_progress", "the progress of a tool; its result is a record of its own"),
        ("last-prompt", "repeats the last prompt"),
    ]


def test_an_unknown_record_keeps_its_words_and_is_counted_when_it_has_none(write: Write) -> None:
    path = write(record("dream", content="of sheep"), record("void"), {"no": "type"})
    assert [
        (item.message.role, item.message.metadata["kind"], texts(item)) for item in imported(path)
    ] == [("system", "dream", ["of sheep"])]
    assert counted(path) == [
        ("unknown", "unknown record type: void"),
        ("unknown", "unknown record type: without a type"),
    ]


def test_records_in_which_nothing_is_said_are_counted(write: Write) -> None:
    path = write(assistant("\n\n"), user(""), user([]), record("user"))
    assert counted(path) == [
        ("assistant", "only white space"),
        ("user", "nothing was said"),
        ("user", "nothing was said"),
        ("user", "nothing was said"),
    ]


def test_an_empty_tool_result_is_still_a_message(write: Write) -> None:
    assert the_only(write(result(""))).message.content == (
        Part("tool_result", "", call_id="toolu_1"),
    )


def test_broken_lines_are_counted_and_the_rest_is_read(write: Write) -> None:
    path = write(
        b"{",
        user("a"),
        b"",
        b"\0\0",
        b"[]",
        b'{"a":' * 100_000,
        user("b"),
        b'{"type": "us',
        end=b"",
    )
    assert [texts(item) for item in imported(path)] == [["a"], ["b"]]
    assert [reason for _, reason in counted(path)] == [
        "invalid JSON",
        "a blank line",
        "only NUL bytes (the file was cut off by a crash)",
        "not a JSON object",
        "nested too deeply to be read",
        "incomplete last line (the file may still be written)",
    ]


def test_a_mended_line_says_so_in_the_messages_metadata(write: Write) -> None:
    item = the_only(write(b'{"type": "user", "message": {"content": "caf\xe9 \\ud800"}}'))
    assert texts(item) == ["caf\ufffd \ufffd"]
    assert item.message.metadata["repairs"] == [
        "invalid UTF-8 was replaced",
        "lone surrogates were replaced",
    ]


def test_an_overlong_line_is_counted(write: Write) -> None:
    path = write(user("x" * 5000), user("short"))
    first, second = read_all(path, max_line_bytes=3000)
    assert isinstance(first, Counted)
    assert first.reason == "the line is longer than 3000 bytes"
    assert isinstance(second, Imported)


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
EXAMPLES = [
    user("hello"),
    assistant("hi", usage={"input_tokens": 1}),
    call("Bash", command="ls"),
    result(
        [{"type": "text", "text": "ok"}],
        toolUseResult={"stdout": "x" * 300, "structuredPatch": [{"lines": [""]}]},
    ),
    user(
        [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]
    ),
    output("some output"),
    progress({"type": "agent_progress", "agentId": "a", "message": user("inner")}),
    queue("enqueue", "later"),
    queue("remove"),
    record("attachment", attachment={"type": "queued_command", "prompt": "x"}),
    record("system", subtype="compact_boundary", content="c", compactMetadata={"preTokens": 1}),
    {"type": "summary", "summary": "s", "leafUuid": "l"},
    {"type": "custom-title", "customTitle": "t"},
    record("dream", message={"content": "x"}),
]


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A real-looking record in which one value, somewhere, is something else or gone."""
    value: Any = draw(st.sampled_from(EXAMPLES))

    def mutate(node: Any, depth: int) -> Any:
        if depth == 0 or not isinstance(node, (dict, list)) or not node:
            return draw(junk)
        if isinstance(node, list):
            return [mutate(node[0], depth - 1), *node[1:]]
        key = draw(st.sampled_from(sorted(node)))
        if draw(st.booleans()):
            return {**node, key: mutate(node[key], depth - 1)}
        return {name: inner for name, inner in node.items() if name != key}

    return mutate(value, draw(st.integers(1, 5)))


lines = st.lists(
    mutated() | st.sampled_from(EXAMPLES) | st.binary(max_size=20).filter(is_plain_line)
)


@settings(max_examples=200)
@given(lines=lines, end=st.sampled_from([b"", b"\n", b'\n{"type":']))
def test_whatever_the_lines_hold_nothing_raises_and_every_line_is_accounted_for(
    write: Write, lines: list[Any], end: bytes
) -> None:
    path = write(*lines, end=end)
    records = read_all(path)
    data = path.read_bytes()
    assert Account.of(records).lines == data.count(b"\n") + bool(data and not data.endswith(b"\n"))
    assert len({item.line for item in records}) == len(records)
    keys = [
        (item.thread.id, item.message.client_id) for item in records if isinstance(item, Imported)
    ]
    assert len(set(keys)) == len(keys)


@settings(max_examples=200)
@given(cut=st.integers(0, 10**6), flip=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_a_file_cut_anywhere_with_a_byte_changed_is_read_to_its_end(
    write: Write, cut: int, flip: int, byte: int
) -> None:
    path = write(*EXAMPLES)
    data = bytearray(path.read_bytes())
    data[flip % len(data)] = byte
    del data[cut % len(data) :]
    path.write_bytes(data)
    assert Account.of(read_all(path)).lines == data.count(b"\n") + bool(
        data and not data.endswith(b"\n")
    )
