"""Each rule of how a transcript of Claude Code becomes threads and messages."""

from __future__ import annotations

from typing import Any

import pytest

from smara.adapters.records import shorten_title
from smara.messages.models import Part
from tests.unit.adapters.claude_records import (
    SESSION,
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

# Threads


def test_a_session_is_a_conversation_named_by_its_first_prompt(write: Write) -> None:
    path = write(user("Fix the login\nplease"), assistant("Sure"), user("Thanks"))
    threads = [item.thread for item in imported(path)]
    assert [thread.title for thread in threads] == ["Fix the login"] * 3
    assert threads[0].id == SESSION
    assert threads[0].kind == "conversation"
    assert threads[0].resource_id is None
    assert threads[0].metadata == {
        "host": "claude-code",
        "cwd": "/home/me/app",
        "git_branch": "main",
        "version": "2.1.39",
    }


def test_the_thread_is_the_same_object_until_something_new_is_known(write: Write) -> None:
    first, second = imported(write(user("one"), user("two")))
    assert first.thread is second.thread


def test_a_title_chosen_by_a_person_beats_the_hosts_and_that_beats_the_prompt(write: Write) -> None:
    custom = {"type": "custom-title", "customTitle": "Mine", "sessionId": SESSION}
    ai = {"type": "ai-title", "aiTitle": "Login fix", "sessionId": SESSION}
    records = read_all(write(user("Fix it"), ai, user("more"), custom, ai))
    titles = [item.thread.title for item in records if item.thread is not None]
    assert titles == ["Fix it", "Login fix", "Login fix", "Mine", "Mine"]


def test_a_summary_names_the_thread_of_its_leaf_and_no_other(write: Write) -> None:
    leaf = user("a prompt")
    ours = {"type": "summary", "summary": "Login work", "leafUuid": leaf["uuid"]}
    foreign = {"type": "summary", "summary": "Another session", "leafUuid": "elsewhere"}
    records = read_all(write(foreign, ours, leaf))
    assert records[-1].thread is not None
    assert records[-1].thread.title == "Login work"


def test_a_sub_agent_file_is_a_thread_below_its_session(write: Write) -> None:
    item = the_only(
        write(user("Explore", isSidechain=True, agentId="a7be2f0"), name="agent-a7be2f0.jsonl")
    )
    assert (item.thread.id, item.thread.kind, item.thread.parent_id) == (
        f"{SESSION}/agent-a7be2f0",
        "subagent",
        SESSION,
    )
    assert item.message.role == "user"
    assert item.message.metadata["kind"] == "agent_prompt"


def test_a_compaction_agent_has_a_thread_of_kind_compaction_and_its_prompt_is_not_the_users(
    write: Write,
) -> None:
    item = the_only(
        write(user("Your task is to summarize", isSidechain=True, agentId="acompact-70d8e7"))
    )
    assert (item.thread.kind, item.thread.parent_id) == ("compaction", SESSION)
    assert (item.message.role, item.message.metadata["kind"]) == ("system", "compaction_prompt")


def test_side_chains_without_a_name_are_told_apart_by_their_first_record(write: Write) -> None:
    root = user("task one", isSidechain=True)
    reply = assistant("done", isSidechain=True, parentUuid=root["uuid"])
    other = user("task two", isSidechain=True)
    late = assistant("one more", isSidechain=True, parentUuid=reply["uuid"])
    items = imported(write(user("main"), root, reply, other, late))
    one, two = (f"{SESSION}/agent-{first['uuid']}" for first in (root, other))
    assert [item.thread.id for item in items] == [SESSION, one, one, two, one]


def test_agent_progress_becomes_messages_of_the_sub_agents_thread_under_their_own_uuid(
    write: Write,
) -> None:
    inner = {
        "type": "assistant",
        "uuid": "inner-1",
        "message": {"content": [{"type": "text", "text": "found it"}]},
    }
    item = the_only(write(progress({"type": "agent_progress", "agentId": "abc", "message": inner})))
    assert item.thread.id == f"{SESSION}/agent-abc"
    assert item.thread.metadata["call_id"] == "toolu_1"
    assert (item.message.client_id, item.message.role, texts(item)) == (
        "inner-1",
        "assistant",
        ["found it"],
    )


def test_agent_progress_and_the_agents_own_file_agree_on_thread_id_and_content(
    write: Write,
) -> None:
    inner = {
        "type": "user",
        "uuid": "inner-1",
        "message": {"content": [{"type": "text", "text": "Explore"}]},
    }
    by_progress = the_only(
        write(progress({"type": "agent_progress", "agentId": "abc", "message": inner}))
    )
    by_file = the_only(
        write(
            user("Explore", uuid="inner-1", isSidechain=True, agentId="abc"), name="agent-abc.jsonl"
        )
    )
    assert by_progress.thread.id == by_file.thread.id
    assert by_progress.message.client_id == by_file.message.client_id
    assert by_progress.message.content == by_file.message.content


def test_a_file_without_session_ids_is_a_thread_named_after_the_file(write: Write) -> None:
    item = the_only(write({"type": "user", "message": {"content": "hi"}}, name="abc.jsonl"))
    assert item.thread.id == "abc"


# Parts and roles


def test_string_content_and_text_blocks_are_text_parts(write: Write) -> None:
    both = imported(write(user("hi"), user([{"type": "text", "text": "hi"}])))
    assert [item.message.content for item in both] == [(Part("text", "hi"),)] * 2


def test_a_tool_call_keeps_name_id_and_arguments(write: Write) -> None:
    item = the_only(write(call("Bash", command="ls")))
    assert item.message.content == (
        Part("tool_call", name="Bash", call_id="toolu_1", arguments={"command": "ls"}),
    )


def test_a_tool_result_is_a_tool_message_that_knows_its_call_and_its_tool(write: Write) -> None:
    item = imported(write(call("Bash"), result("no such file", is_error=True)))[1]
    assert item.message.role == "tool"
    assert item.message.content == (
        Part("tool_result", "no such file", name="Bash", call_id="toolu_1", is_error=True),
    )


def test_a_record_with_a_result_and_a_persons_words_keeps_both_and_is_the_users(
    write: Write,
) -> None:
    blocks = [
        {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": [{"type": "text", "text": "ok"}],
        },
        {"type": "text", "text": "but use tabs"},
    ]
    item = the_only(write(user(blocks)))
    assert item.message.role == "user"
    assert [(part.type, part.text) for part in item.message.content if isinstance(part, Part)] == [
        ("tool_result", "ok"),
        ("text", "but use tabs"),
    ]


def test_thinking_is_a_reasoning_part_also_when_it_is_withheld(write: Write) -> None:
    blocks = [
        {"type": "thinking", "thinking": "Let me see", "signature": "abc"},
        {"type": "thinking", "thinking": "", "signature": "abc"},
        {"type": "redacted_thinking", "data": "AAAA"},
    ]
    item = the_only(write(assistant(blocks)))
    assert item.message.content == (
        Part("reasoning", "Let me see"),
        Part("reasoning"),
        Part("reasoning"),
    )
    assert item.message.metadata["reasoning"] == "withheld"


def test_images_and_documents_are_placeholders_without_their_bytes(write: Write) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}
    paper = {"type": "base64", "media_type": "application/pdf", "data": "aGVsbG8h"}
    blocks = [
        {"type": "image", "source": source},
        {"type": "document", "title": "spec.pdf", "source": paper},
        {
            "type": "tool_result",
            "tool_use_id": "t",
            "content": [{"type": "image", "source": source}],
        },
    ]
    item = the_only(write(user(blocks)))
    assert item.message.content == (
        Part("image", media_type="image/png", size_bytes=5),
        Part("file", name="spec.pdf", media_type="application/pdf", size_bytes=6),
        Part("tool_result", call_id="t"),
        Part("image", media_type="image/png", size_bytes=5),
    )
    assert "aGVsbG8" not in repr(item)


def test_a_block_of_unknown_type_keeps_its_words(write: Write) -> None:
    item = the_only(write(assistant([{"type": "poem", "text": "roses"}, {"type": "sparkle"}])))
    assert texts(item) == ["roses", "[sparkle block]"]


@pytest.mark.parametrize(
    ("text", "fields", "kind"),
    [
        ("This session is being continued", {"isCompactSummary": True}, "compaction_summary"),
        ("Skill instructions", {"isMeta": True}, "meta"),
        ("only shown", {"isVisibleInTranscriptOnly": True}, "transcript_only"),
        ("<system-reminder>\nmind the hook\n</system-reminder>", {}, "system_reminder"),
        (
            "<task-notification><task-id>b1</task-id></task-notification>\nRead it",
            {},
            "task_notification",
        ),
        ("<command-name>/mcp</command-name>\n<command-args></command-args>", {}, "local_command"),
        ("<local-command-stdout>done</local-command-stdout>", {}, "local_command_output"),
        (
            "<local-command-caveat>Caveat: …</local-command-caveat>",
            {"isMeta": True},
            "local_command_caveat",
        ),
        ("<bash-stdout>x</bash-stdout><bash-stderr></bash-stderr>", {}, "shell_output"),
        ("[Request interrupted by user for tool use]", {}, "interruption"),
    ],
)
def test_what_the_program_writes_in_the_users_place_is_system(
    write: Write, text: str, fields: dict[str, Any], kind: str
) -> None:
    item = the_only(write(user(text, **fields)))
    assert (item.message.role, item.message.metadata["kind"]) == ("system", kind)
    assert item.thread.title is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<command-name>/fix</command-name><command-args>the login</command-args>", "command"),
        ("<bash-input>ls</bash-input>", "shell_input"),
        ("<system-reminder>x</system-reminder> what does this mean?", None),
    ],
)
def test_what_a_person_typed_is_the_users(write: Write, text: str, kind: str | None) -> None:
    item = the_only(write(user(text)))
    assert (item.message.role, item.message.metadata.get("kind")) == ("user", kind)


def test_an_api_error_shown_as_an_answer_is_not_the_models(write: Write) -> None:
    stand_in = assistant("No response requested.")
    stand_in["message"]["model"] = "<synthetic>"
    items = imported(
        write(assistant("API Error: 529", isApiErrorMessage=True), stand_in, assistant("Hello"))
    )
    assert [(item.message.role, item.message.metadata.get("kind")) for item in items] == [
        ("system", "api_error"),
        ("system", "synthetic"),
        ("assistant", None),
    ]


def test_a_compaction_is_a_system_message_with_its_trigger_and_size(write: Write) -> None:
    facts = {"trigger": "auto", "preTokens": 167094}
    boundary = record(
        "system",
        subtype="compact_boundary",
        content="Conversation compacted",
        compactMetadata=facts,
        logicalParentUuid="before",
    )
    item = the_only(write(boundary))
    assert (item.message.role, texts(item)) == ("system", ["Conversation compacted"])
    assert item.message.metadata == {
        "kind": "compaction",
        "trigger": "auto",
        "pre_tokens": 167094,
        "parent": "before",
    }


def test_system_notices_are_kept_when_they_have_words_and_counted_when_not(write: Write) -> None:
    local = record("system", subtype="local_command", content="<command-name>/mcp</command-name>")
    quiet = record("system", subtype="stop_hook_summary", hookErrors=[], stopReason="")
    loud = record("system", subtype="stop_hook_summary", hookErrors=["lint failed"])
    path = write(local, record("system", subtype="turn_duration", durationMs=5), quiet, loud)
    assert [
        (item.message.role, item.message.metadata["kind"], texts(item)) for item in imported(path)
    ] == [
        ("system", "local_command", ["<command-name>/mcp</command-name>"]),
        ("system", "stop_hook_summary", ["lint failed"]),
    ]
    assert counted(path) == [
        ("system/turn_duration", "a notice of the program without words"),
        ("system/stop_hook_summary", "a notice of the program without words"),
    ]


# Metadata, ids, times


def test_records_of_one_streamed_answer_are_messages_of_their_own_and_usage_is_told_when_it_changes(
    write: Write,
) -> None:
    usage = {"input_tokens": 3, "output_tokens": 10, "cache_read_input_tokens": 0}
    path = write(
        assistant("a", usage=usage),
        assistant("b", usage=usage),
        assistant("c", usage={**usage, "output_tokens": 441}),
        assistant("d", id="msg_2", usage=usage),
    )
    told = [item.message.metadata.get("usage") for item in imported(path)]
    assert told == [
        {"input_tokens": 3, "output_tokens": 10},
        None,
        {"input_tokens": 3, "output_tokens": 441},
        {"input_tokens": 3, "output_tokens": 10},
    ]
    assert [item.message.metadata["message_id"] for item in imported(path)] == [
        "msg_1",
        "msg_1",
        "msg_1",
        "msg_2",
    ]
    assert imported(path)[0].message.metadata["model"] == "claude-x"
    assert imported(path)[0].message.metadata["request_id"] == "req_1"


def test_the_branch_is_told_only_when_it_changes(write: Write) -> None:
    path = write(
        user("a"), user("b", gitBranch="fix"), user("c", gitBranch="fix"), user("d"), user("e")
    )
    assert [item.message.metadata.get("git_branch") for item in imported(path)] == [
        None,
        "fix",
        None,
        "main",
        None,
    ]


def test_the_client_id_is_the_uuid_and_the_parent_is_kept(write: Write) -> None:
    item = the_only(write(user("a", uuid="u-1", parentUuid="u-0")))
    assert (item.message.client_id, item.message.metadata["parent"]) == ("u-1", "u-0")


def test_without_a_uuid_identical_lines_get_distinct_ids_that_do_not_change(write: Write) -> None:
    line = {"type": "user", "sessionId": SESSION, "message": {"content": "again"}}
    ids = [item.message.client_id for item in imported(write(line, line))]
    more = [item.message.client_id for item in imported(write(line, line, user("new"), line))]
    assert len(set(ids)) == 2
    assert more[:2] == ids
    assert len(set(more)) == 4


def test_a_repeated_record_is_counted_and_a_clash_of_uuids_loses_nothing(write: Write) -> None:
    first = user("one", uuid="same")
    path = write(first, first, user("two", uuid="same"))
    assert [texts(item) for item in imported(path)] == [["one"], ["two"]]
    assert len({item.message.client_id for item in imported(path)}) == 2
    assert imported(path)[1].repairs == ("its id belongs to another message",)
    assert counted(path) == [("repeat", "repeats an earlier record with the same id")]


def test_times_are_milliseconds_and_a_missing_one_is_that_of_the_record_before(
    write: Write,
) -> None:
    items = imported(write(user("a"), user("b", timestamp=None), user("c", timestamp="soon")))
    assert [item.message.created_at for item in items] == [1770841013366] * 3
    assert items[0].thread.created_at == 1770841013366


def test_reading_twice_gives_the_same_records(write: Write) -> None:
    path = write(
        user("a"), queue("enqueue", "b"), call(), output("x1"), result("x1"), b"broken", user("c")
    )
    assert read_all(path) == read_all(path)


# The structured twin of tool results


def test_the_twin_of_a_result_is_not_stored_again_but_its_small_facts_are(write: Write) -> None:
    patch = [{"lines": ["-old", "+new", "+newer", " same"]}]
    twin = {
        "filePath": "/a/b.py",
        "oldString": "x" * 500,
        "originalFile": "y" * 5000,
        "structuredPatch": patch,
        "userModified": False,
        "replaceAll": True,
    }
    item = the_only(write(result("The file was updated", toolUseResult=twin)))
    assert item.message.metadata["tool_result"] == {
        "file_path": "/a/b.py",
        "old_string_chars": 500,
        "original_file_chars": 5000,
        "patch": {"hunks": 1, "added": 2, "removed": 1},
        "replace_all": True,
    }
    assert len(item.message.content) == 1


def test_facts_of_a_command_are_kept_and_empty_ones_are_not(write: Write) -> None:
    twin = {"stdout": "hello", "stderr": "", "interrupted": True, "exitCode": 3, "isImage": False}
    item = the_only(write(result("hello", toolUseResult=twin)))
    assert item.message.metadata["tool_result"] == {"interrupted": True, "exit_code": 3}


def test_output_that_the_result_was_cut_from_is_kept_whole_as_a_part(write: Write) -> None:
    full = "\n".join(f"test {number} passed" for number in range(1000))
    item = the_only(write(result("<persisted-output>too large", toolUseResult={"stdout": full})))
    assert item.message.content[1] == Part("tool_result", full, name="stdout", call_id="toolu_1")


def test_a_result_that_only_differs_in_white_space_is_the_same_words(write: Write) -> None:
    full = "\n\n" + "\n".join(f"line {number}" for number in range(100)) + "\n"
    item = the_only(
        write(result(full.strip().replace("\n", "\r\n"), toolUseResult={"stdout": full}))
    )
    assert len(item.message.content) == 1


def test_an_error_twin_is_kept_only_where_it_says_something_else(write: Write) -> None:
    path = write(
        result("Exit code 1", toolUseResult="Error: Exit code 1"),
        result("The user refused", toolUseResult="User rejected tool use"),
    )
    assert [item.message.metadata.get("tool_result") for item in imported(path)] == [
        None,
        {"message": "User rejected tool use"},
    ]


def test_the_result_of_a_sub_agent_names_its_thread(write: Write) -> None:
    twin = {
        "agentId": "abc",
        "status": "completed",
        "totalTokens": 9,
        "usage": {"output_tokens": 5, "x": {}},
    }
    item = the_only(write(result("done", toolUseResult=twin)))
    assert item.message.metadata["agent_thread"] == f"{SESSION}/agent-abc"
    assert item.message.metadata["tool_result"]["usage"] == {"output_tokens": 5}


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("Fix the login\nIt fails at noon.", "Fix the login"),
        (
            "Implement the following plan:\n\n# Plan: Cap the fee\n\n## Context\n",
            "Plan: Cap the fee",
        ),
        (
            "<system_instruction>\nYou work in\n\na folder.\n</system_instruction>\n\nAdd jq",
            "Add jq",
        ),
        ("<a>\nx\n</a>\n<b>\ny\n</b>\nDo these:\n- one", "Do these:"),
        ("<system_instruction>\nYou work in a folder.\n</system_instruction>\n", ""),
        ("<b>Bold</b> is ignored", "<b>Bold</b> is ignored"),
        ("#12 is still open", "#12 is still open"),
    ],
)
def test_title_is_the_first_line_of_what_a_person_wants(words: str, title: str) -> None:
    assert shorten_title(words) == title
