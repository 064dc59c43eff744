"""Rollouts of Codex CLI, in the three shapes they have had."""

from __future__ import annotations

from accounting import Account

from smara.adapters.readers.codex import output_of, read_rollout
from smara.adapters.records import Counted, Imported
from tests.unit.adapters.foreign import (
    CODEX,
    CODEX_AGENT,
    CODEX_ID,
    CODEX_OLD,
    CODEX_OLDEST,
    CODEX_SUB,
    reasons,
    told,
)

META = {
    "timestamp": "2026-03-02T09:00:00.000Z",
    "type": "session_meta",
    "payload": {"id": "t1", "cwd": "/app"},
}


def line(kind, payload, at="2026-03-02T09:00:05.000Z", **more):
    return {"timestamp": at, "type": kind, "payload": payload, **more}


def said(role, text, **more):
    block = "output_text" if role == "assistant" else "input_text"
    return line(
        "response_item",
        {"type": "message", "role": role, "content": [{"type": block, "text": text}], **more},
    )


def event(kind, **fields):
    return line("event_msg", {"type": kind, **fields})


def test_a_session_is_read_word_for_word_and_each_line_is_accounted_for():
    records = list(read_rollout(CODEX))
    spoken = told(records)
    assert [(role, kind) for role, kind, _ in spoken] == [
        ("system", "text"),
        ("system", "text+text"),
        ("user", "text"),
        ("assistant", "reasoning"),
        ("assistant", "tool_call"),
        ("tool", "tool_result"),
        ("assistant", "tool_call"),
        ("tool", "tool_result"),
        ("assistant", "tool_call"),
        ("tool", "tool_result"),
        ("assistant", "tool_call"),
        ("tool", "tool_result"),
        ("assistant", "tool_call"),
        ("assistant", "text"),
        ("system", "text"),
    ]
    assert spoken[2][2] == "Why is the total of the till off by a cent?"
    assert Account.of(records).lines == len(CODEX.read_text().splitlines()) == 25
    assert sorted(record.line for record in records) == list(range(1, 26))
    assert reasons(records)["invalid JSON"] == 1


def test_the_thread_knows_its_folder_its_branch_and_its_title():
    last = [record for record in read_rollout(CODEX) if isinstance(record, Imported)][-1].thread
    assert (last.id, last.kind, last.title) == (
        CODEX_ID,
        "conversation",
        "Why is the total of the till off by a cent?",
    )
    assert last.metadata["host"] == "codex"
    assert (last.metadata["cwd"], last.metadata["git_branch"]) == ("/home/me/shop", "main")


def test_calls_have_their_arguments_and_results_their_exit_code():
    parts = [
        part
        for record in read_rollout(CODEX)
        if isinstance(record, Imported)
        for part in record.message.content
    ]
    calls = {part.call_id: part for part in parts if part.type == "tool_call"}
    results = {part.call_id: part for part in parts if part.type == "tool_result"}
    assert calls["call_1"].arguments == {
        "cmd": "pytest tests/test_till.py",
        "workdir": "/home/me/shop",
    }
    assert calls["call_3"].arguments["input"].startswith("*** Begin Patch")
    assert [(name, results[name].is_error) for name in sorted(results)] == [
        ("call_1", True),
        ("call_2", True),
        ("call_3", False),
        ("call_4", False),
    ]
    assert results["call_3"].text == "Success. Updated the following files:\nM shop/till.py\n"
    assert {results[name].name for name in ("call_1", "call_2")} == {"exec_command"}


def test_a_sub_agent_is_a_thread_below_its_session_without_what_it_inherited():
    records = list(read_rollout(CODEX_SUB))
    thread = [record for record in records if isinstance(record, Imported)][-1].thread
    assert (thread.id, thread.kind, thread.parent_id) == (CODEX_AGENT, "subagent", CODEX_ID)
    assert (thread.metadata["agent_name"], thread.metadata["agent_type"]) == ("Finch", "explorer")
    assert reasons(records)["what a sub-agent was given of its parent, which has its own file"] == 1
    assert told(records)[0] == ("user", "text", "Find every place that adds prices.")


def test_the_first_versions_wrote_bare_items():
    records = list(read_rollout(CODEX_OLD))
    assert [words for _, _, words in told(records)][1:] == [
        "List the files",
        "shell",
        "shop\ntests\n",
        "There is shop and tests.",
    ]
    imported = [record for record in records if isinstance(record, Imported)]
    assert {record.message.created_at for record in imported} == {1749542400000}
    assert (
        imported[-1].thread.metadata["cwd"] == "/home/me/shop"
    )  # said nowhere but in the surroundings


def test_the_versions_before_those_wrote_one_document():
    records = list(read_rollout(CODEX_OLDEST))
    assert [words for _, _, words in told(records)] == ["Say hello", "shell", "hello\n", "hello"]
    assert Account.of(records).lines == 5


def test_an_event_whose_item_never_comes_is_kept_when_its_turn_has_ended(write):
    alone = event("agent_message", message="Only on the screen")
    done = event("task_complete", turn_id="1")
    assert told(read_rollout(write(META, said("user", "hi"), alone, done)))[-1] == (
        "assistant",
        "text",
        "Only on the screen",
    )
    begun = event("task_started", turn_id="1")
    waiting = list(read_rollout(write(META, begun, said("user", "hi"), alone)))
    assert ("assistant", "text", "Only on the screen") not in told(waiting)
    assert any("import again later" in reason for reason in reasons(waiting))
    both = list(read_rollout(write(META, alone, done, said("assistant", "Only on the screen"))))
    assert [words for _, _, words in told(both)] == ["Only on the screen"]


def test_versions_that_do_not_mark_turns_are_taken_as_ended(write):
    lines = (
        META,
        event("user_message", message="Only an event"),
        event("agent_message", message="So is this"),
    )
    assert told(read_rollout(write(*lines))) == [
        ("user", "text", "Only an event"),
        ("assistant", "text", "So is this"),
    ]


def test_a_thread_is_named_by_the_request_and_not_by_what_the_editor_adds(write):
    words = (
        "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for "
        "Codex:\nRename it\n"
    )
    (_, record) = read_rollout(write(META, said("user", words)))
    assert (record.thread.title, record.message.content[0].text) == ("Rename it", words)


def test_the_end_of_a_call_that_has_no_output_is_kept(write):
    ended = event(
        "exec_command_end", call_id="c9", aggregated_output="boom", exit_code=2, command=["make"]
    )
    call = line(
        "response_item",
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c9"},
    )
    lines = (META, call, ended, event("turn_aborted", reason="interrupted"))
    (part,) = [r for r in read_rollout(write(*lines)) if isinstance(r, Imported)][
        -1
    ].message.content
    assert (part.text, part.is_error, part.name) == ("boom", True, "shell")


def test_an_event_tells_that_a_patch_failed(write):
    call = line(
        "response_item",
        {"type": "custom_tool_call", "name": "apply_patch", "input": "x", "call_id": "c1"},
    )
    failed = event("patch_apply_end", call_id="c1", stdout="", stderr="no such line", success=False)
    output = line(
        "response_item",
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "no such line"},
    )
    (part,) = [
        r for r in read_rollout(write(META, call, failed, output)) if isinstance(r, Imported)
    ][-1].message.content
    assert part.is_error


def test_words_of_the_program_are_not_taken_for_a_persons(write):
    programs = [
        "<environment_context>x</environment_context>",
        "# AGENTS.md instructions\n\nx",
        "<turn_aborted>x</turn_aborted>",
        "<subagent_notification>x</subagent_notification>",
        "<external_memory>x</external_memory>",
    ]
    records = list(
        read_rollout(
            write(META, *(said("user", each) for each in programs), said("user", "<b>mine</b>"))
        )
    )
    assert [role for role, _, _ in told(records)] == ["system"] * 5 + ["user"]


def test_what_a_fork_copied_is_marked(write):
    meta = {
        **META,
        "payload": {**META["payload"], "timestamp": META["timestamp"], "forked_from_id": "t0"},
    }
    copied = {**said("user", "old"), "timestamp": "2026-03-02T09:00:00.500Z"}
    records = [
        r for r in read_rollout(write(meta, copied, said("user", "new"))) if isinstance(r, Imported)
    ]
    assert [record.message.metadata.get("inherited") for record in records] == [True, None]


def test_a_grown_file_gives_the_same_ids(write):
    lines = [META, said("user", "one"), said("user", "one"), said("assistant", "two")]
    before = [r.message.client_id for r in read_rollout(write(*lines)) if isinstance(r, Imported)]
    after = [
        r.message.client_id
        for r in read_rollout(write(*lines, said("user", "three")))
        if isinstance(r, Imported)
    ]
    assert after[: len(before)] == before
    assert len(set(after)) == 4


def test_reasoning_that_is_withheld_is_counted(write):
    hidden = line(
        "response_item", {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    )
    (_, record) = read_rollout(write(META, hidden))
    assert isinstance(record, Counted)
    assert record.reason == "reasoning that the host withholds"


def test_outputs_of_all_versions():
    assert (output_of("plain").text, output_of("plain").has_failed) == ("plain", False)
    inner = output_of('{"output": "no\\n", "metadata": {"exit_code": 2, "duration_seconds": 0.5}}')
    assert (inner.text, inner.has_failed, inner.facts["exit_code"]) == ("no\n", True, 2)
    headed = output_of("Exit code: 1\nWall time: 1 seconds\nOutput:\nbad")
    assert (headed.has_failed, headed.facts) == (True, {"exit_code": 1})
    quoted = output_of("Wall time: 1 seconds\nOutput:\nProcess exited with code 1")
    assert not quoted.has_failed  # that is what the command printed
    assert output_of({"content": "x", "success": False}).has_failed
    image = output_of(
        [
            {"type": "input_text", "text": "seen"},
            {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
        ]
    )
    assert (image.text, image.placeholders[0].size_bytes) == ("seen", 2)


def test_what_memory_told_itself_is_not_remembered_as_something_that_was_said(write):
    told_by_us = "<smara-memory>\n- Totals are in cents. [Memory #m-1]\n</smara-memory>"
    usage = line("token_usage_record", {"thread_id": "t1", "usage": {"input_tokens": 1}})
    records = list(
        read_rollout(
            write(META, said("developer", told_by_us), usage, said("user", f"Why {told_by_us}?"))
        )
    )
    assert [text for _, _, text in told(records)] == [f"Why {told_by_us}?"]
    assert reasons(records)["what memory told the agent itself"] == 1
    assert reasons(records)["how many tokens were used"] == 1
