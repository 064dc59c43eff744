"""Sessions of the Claude Agent SDK: kept as they are, and read as their transcripts are."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from claude_agent_sdk import (
    fold_session_summary,
    fork_session_via_store,
    get_session_messages_from_store,
)

from smara.adapters.hosts.drain import drain
from smara.adapters.hosts.spool import put
from smara.adapters.importer import Importer
from smara.adapters.sdk.claude_agent import SmaraSessionStore, recall_hooks
from smara.errors import InvalidInputError
from tests.contract.both import EACH_DATABASE
from tests.contract.sdk import watch_threads
from tests.unit.adapters.claude_records import (
    SESSION,
    assistant,
    call,
    output,
    queue,
    record,
    result,
    user,
)

pytestmark = EACH_DATABASE
KEY: Any = {"project_key": "-home-me-app", "session_id": SESSION}
AGENT: Any = {**KEY, "subpath": "subagents/agent-a1"}
OTHER = "5e551011-0000-4000-8000-000000000002"


@pytest.fixture
def store(memory):
    return SmaraSessionStore(memory)


def append(store: SmaraSessionStore, entries: list[Any], key: Any = KEY) -> None:
    asyncio.run(store.append(key, entries))


def load(store: SmaraSessionStore, key: Any = KEY) -> Any:
    return asyncio.run(store.load(key))


def said(memory, thread_id: str = SESSION):
    return [(each.role, each.raw_content) for each in memory.messages.list(thread_id=thread_id)]


def session() -> list[Any]:
    """Lines in which one depends on another: queued words, a running command, its tool."""
    return [
        queue("enqueue", "run the tests"),
        queue("dequeue"),
        user("run the tests"),
        call("Bash", command="pytest"),
        output("test_one"),
        output("test_one\ntest_two"),
        result("test_one\ntest_two\n2 passed"),
        assistant("Both pass."),
        record("custom-title", customTitle="The tests"),
        queue("enqueue", "and commit"),
        queue("remove", "and commit"),
        assistant("Committed."),
    ]


def test_a_live_session_has_the_messages_of_its_transcript(memory, store, tmp_path):
    lines = session()
    for number, line in enumerate(lines):
        # Every other line comes from a process that has not seen the ones before.
        append(SmaraSessionStore(memory) if number % 2 else store, [line])
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    other = memory.in_project("imported")
    Importer(other).import_file(path)
    live, imported = (each.messages.list(thread_id=SESSION) for each in (memory, other))
    assert [(m.client_id, m.role, m.parts) for m in live] == [
        (m.client_id, m.role, m.parts) for m in imported
    ]
    report = Importer(memory).import_file(path)
    assert (report.stored, report.repeated) == (0, len(imported))
    assert load(store) == lines


def test_a_subagent_is_a_thread_below_its_session(memory, store):
    append(store, [user("look around")])
    append(store, [user("find it"), assistant("found a heron")], AGENT)
    thread = memory.threads.get(f"{SESSION}/agent-a1")
    assert (thread.kind, thread.parent_id, thread.metadata["agent_id"]) == (
        "subagent", SESSION, "a1",
    )  # fmt: skip
    assert memory.search("heron").hits[0].thread_id == thread.id
    assert asyncio.run(store.list_subkeys(KEY)) == ["subagents/agent-a1"]


def test_a_session_of_a_chosen_name_belongs_to_its_project_key(memory, store):
    for tenant in ("a/b", "a%2Fb"):
        append(store, [user(f"I am {tenant}")], {"project_key": tenant, "session_id": "x/y"})
    assert [said(memory, each.id) for each in memory.threads.list()] == [
        [("user", "I am a%2Fb")],
        [("user", "I am a/b")],
    ]
    listed = asyncio.run(store.list_sessions("a/b"))
    assert [each["session_id"] for each in listed] == ["x/y"]
    with pytest.raises(InvalidInputError, match="subpath"):
        append(store, [user("hello")], {**KEY, "subpath": ""})


def test_two_processes_write_one_session_at_once(memory, store, open_again):
    lines = [user(f"line {number}") for number in range(12)]
    start = threading.Barrier(2)

    def write(own: Any) -> None:
        mirror = SmaraSessionStore(own)
        start.wait()
        for at in range(0, len(lines), 3):
            append(mirror, lines[at : at + 3])

    writers = [threading.Thread(target=write, args=(each,)) for each in (memory, open_again())]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert sorted(each["uuid"] for each in load(store)) == sorted(each["uuid"] for each in lines)
    assert sorted(said(memory)) == sorted(("user", f"line {number}") for number in range(12))


def test_a_summary_is_the_fold_of_all_batches_each_once(memory, store):
    first = [user("mend the door"), record("custom-title", customTitle="Doors")]
    later = [record("custom-title", customTitle="Windows"), user("now the window")]
    for batch in (first, later, first):
        append(store, batch)
    (summary,) = asyncio.run(store.list_session_summaries(KEY["project_key"]))
    (listed,) = asyncio.run(store.list_sessions(KEY["project_key"]))
    folded = fold_session_summary(fold_session_summary(None, KEY, first), KEY, later)
    assert (summary["data"], summary["mtime"]) == (folded["data"], listed["mtime"])


def test_an_entry_of_a_megabyte_and_one_of_an_unknown_kind_come_back(memory, store):
    lines = [
        user("a long way " * 100_000 + "to the ibis"),
        {"type": "from-the-future", "n": [1.5, None], "é\x00": "\ud800"},
    ]
    append(store, lines)
    assert load(store) == lines
    assert memory.search("ibis").hits[0].thread_id == SESSION


def test_secrets_are_redacted_unless_a_session_must_go_on_with_every_byte(memory):
    line = user("connect to postgres://ada:Tr0ub4dor3x@db/x")
    safe, raw = SmaraSessionStore(memory), SmaraSessionStore(memory, is_redacted=False)
    append(safe, [line])
    append(raw, [line], {**KEY, "session_id": OTHER})
    assert "Tr0ub4dor3x" not in json.dumps(load(safe))
    assert load(safe)[0]["uuid"] == line["uuid"]
    assert load(raw, {**KEY, "session_id": OTHER}) == [line]
    assert "Tr0ub4dor3x" not in json.dumps([*said(memory), *said(memory, OTHER)])
    summaries = asyncio.run(safe.list_session_summaries(KEY["project_key"]))
    assert "Tr0ub4dor3x" not in json.dumps(summaries[0])


def test_redaction_leaves_what_a_session_needs_to_go_on(store):
    signature = "EqQBCgIYAhIM" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9" * 8 + "=="
    thought = [{"type": "thinking", "thinking": "Hm.", "signature": signature}]
    lines = [assistant(thought), call("Bash", id="toolu_01A09q90qw90lq917835lq9", command="ls")]
    append(store, lines)
    assert load(store) == lines


def test_a_deleted_session_takes_its_conversations_along(memory, store):
    append(store, [user("the old door"), assistant("mended")])
    append(store, [user("a heron")], AGENT)
    append(store, [user("the new door")], {**KEY, "session_id": OTHER})
    asyncio.run(store.delete(KEY))
    assert (load(store), load(store, AGENT)) == (None, None)
    assert [each.id for each in memory.threads.list()] == [OTHER]
    append(store, [user("said before", timestamp="2020-01-01T00:00:00Z")])
    assert (len(load(store)), said(memory)) == (1, [])


def test_what_was_said_may_be_kept_when_a_session_is_deleted(memory):
    keeping = SmaraSessionStore(memory, keeps_messages=True)
    append(keeping, [user("the old door")])
    asyncio.run(keeping.delete(KEY))
    assert (load(keeping), said(memory)) == (None, [("user", "the old door")])


def test_a_session_that_another_project_key_has_too_stays_said(memory, store):
    for project in ("a", "b"):
        append(store, [user("the door")], {**KEY, "project_key": project})
    asyncio.run(store.delete({**KEY, "project_key": "a"}))
    assert len(said(memory)) == 2
    asyncio.run(store.delete({**KEY, "project_key": "b"}))
    assert memory.threads.list() == []


@pytest.mark.parametrize("way", ["messages", "text"])
def test_an_erased_message_leaves_the_session_and_what_repeats_it(memory, store, way):
    said_first = "we saw the first heron of the year"
    repeats = {"type": "last-prompt", "lastPrompt": said_first}
    append(store, [user(said_first), user("stays"), repeats])
    (message, _) = memory.messages.list(thread_id=SESSION)
    target = {"messages": [message.id]} if way == "messages" else {"text": "first heron"}
    assert memory.privacy.erase(**target).traces == ()
    assert [each["message"]["content"] for each in load(store)] == ["stays"]
    append(store, [user("goes on")])
    (summary,) = asyncio.run(store.list_session_summaries(KEY["project_key"]))
    assert summary["data"]["first_prompt"] == "stays"


def test_the_sdk_reads_and_forks_a_stored_session(memory, store, tmp_path):
    from claude_agent_sdk import project_key_for_directory

    first = user("mend the door")
    second = assistant("Done.", parentUuid=first["uuid"])
    key = {"project_key": project_key_for_directory(str(tmp_path)), "session_id": SESSION}
    append(store, [first, second], key)

    async def use() -> tuple[Any, Any]:
        messages = await get_session_messages_from_store(store, SESSION, str(tmp_path))
        fork = await fork_session_via_store(store, SESSION, str(tmp_path))
        return messages, fork

    messages, fork = asyncio.run(use())
    assert [each.type for each in messages] == ["user", "assistant"]
    assert said(memory, fork.session_id) == said(memory)


def test_what_hooks_told_of_the_same_session_is_stored_once(memory, store, tmp_path, clock):
    spool = str(tmp_path / "spool")

    def tell(event: str, **payload: Any) -> None:
        body = {"session_id": SESSION, "cwd": str(tmp_path), **payload}
        put(spool, "claude", event, json.dumps(body).encode(), cwd=str(tmp_path))
        clock.advance(1)

    here = memory.in_project(memory.project)
    tell("UserPromptSubmit", prompt="mend the door")
    drain(here, spool)
    append(store, [user("mend the door"), assistant("Which one?"), user("the red one")])
    tell("UserPromptSubmit", prompt="the red one")
    tell("Stop", last_assistant_message="Which one?")
    drain(here, spool)
    assert said(memory) == [
        ("user", "mend the door"),
        ("assistant", "Which one?"),
        ("user", "the red one"),
    ]


def test_what_hooks_of_ours_tell_is_not_stored_as_said(memory, store):
    memory.memories.remember("Redis must run before the tests", type="decision")
    (matcher,) = recall_hooks(memory)["UserPromptSubmit"]
    prompt: Any = {"session_id": SESSION, "prompt": "run the tests"}
    context: Any = None
    answer: Any = asyncio.run(matcher.hooks[0](prompt, None, context))
    told = answer["hookSpecificOutput"]["additionalContext"]
    assert "Redis must run" in told
    again: Any = asyncio.run(matcher.hooks[0](prompt, None, context))
    assert again == {}
    attachment = {"type": "hook_additional_context", "content": [told]}
    append(store, [user("run the tests"), record("attachment", attachment=attachment)])
    assert said(memory) == [("user", "run the tests")]
    assert len(load(store)) == 2


def test_no_call_touches_the_store_on_the_event_loop(memory, store, monkeypatch):
    seen = watch_threads(memory, monkeypatch)
    (matcher,) = recall_hooks(memory)["UserPromptSubmit"]
    prompt: Any = {"session_id": SESSION, "prompt": "run the tests"}
    context: Any = None

    async def use() -> None:
        await store.append(KEY, session())
        await store.load(KEY)
        await store.list_sessions("-home-me-app")
        await store.list_session_summaries("-home-me-app")
        await store.list_subkeys(KEY)
        await matcher.hooks[0](prompt, None, context)
        await store.delete(KEY)

    asyncio.run(use())
    assert seen
    assert threading.get_ident() not in seen


def test_an_erase_leaves_the_same_words_of_another_session(memory, store):
    lines = [
        user("we saw the first heron"),
        {"type": "last-prompt", "lastPrompt": "the first heron"},
    ]
    other = {**KEY, "session_id": OTHER}
    append(store, lines)
    append(store, lines, other)
    asyncio.run(store.delete(KEY))
    assert load(store, other) == lines
    (summary,) = asyncio.run(store.list_session_summaries(KEY["project_key"]))
    assert summary["data"]["first_prompt"] == "we saw the first heron"


def test_what_was_told_and_is_done_is_known_to_be_of_use(memory, store, clock):
    memory.memories.remember("Tables are made by `make tables ALL=1` alone", type="decision")
    (matcher,) = recall_hooks(memory)["UserPromptSubmit"]
    prompt: Any = {"session_id": SESSION, "prompt": "make the tables"}
    context: Any = None
    asyncio.run(matcher.hooks[0](prompt, None, context))
    clock.advance(5)
    at = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).isoformat()
    lines = [call("Bash", command="make tables ALL=1"), result("done")]
    append(store, [{**line, "timestamp": at} for line in lines])
    (receipt,) = memory.moments.receipts(SESSION)
    assert (receipt.used_how, receipt.is_used) == ("ran", True)
