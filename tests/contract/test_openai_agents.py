"""Sessions of the OpenAI Agents SDK: items as they are, and what was said and done in them."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from smara.adapters.sdk.openai_agents import SmaraSession
from smara.core.memory_block import OPENING
from tests.contract.both import EACH_DATABASE
from tests.contract.sdk import watch_threads

pytestmark = EACH_DATABASE
QUIET = RunConfig(tracing_disabled=True)
ITEMS: list[Any] = [
    {"role": "user", "content": "What is in the shed?"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "I look."}]},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"place":"shed"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "a wheelbarrow"},
    {"type": "mcp_call", "id": "m1", "name": "count", "server_label": "s", "arguments": "{}",
     "output": "one"},
    {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
     "content": [{"type": "output_text", "text": "A wheelbarrow.", "annotations": []}]},
]  # fmt: skip


@pytest.fixture
def session(memory):
    return SmaraSession("s", memory)


def add(session: SmaraSession, *items: Any) -> None:
    asyncio.run(session.add_items(list(items)))


def items(session: SmaraSession) -> Any:
    return asyncio.run(session.get_items())


def said(memory, session: SmaraSession):
    messages = memory.messages.list(thread_id=session.thread_id)
    return [(each.role, [part.type for part in each.parts], each.raw_content) for each in messages]


def test_items_come_back_and_are_messages_with_calls_and_results(memory, session):
    add(session, *ITEMS)
    assert items(session) == ITEMS
    assert said(memory, session) == [
        ("user", ["text"], "What is in the shed?"),
        ("assistant", ["reasoning"], "I look."),
        ("assistant", ["tool_call"], "[tool: look]\nplace: shed"),
        ("tool", ["tool_result"], "a wheelbarrow"),
        ("assistant", ["tool_call", "tool_result"], "[tool: count]\n\none"),
        ("assistant", ["text"], "A wheelbarrow."),
    ]
    found = memory.messages.list(thread_id=session.thread_id)
    assert [(found[at].parts[0].name, found[at].parts[0].call_id) for at in (2, 3)] == [
        ("look", "c1"),
        ("look", "c1"),
    ]
    assert memory.search("wheelbarrow").hits[0].thread_id == session.thread_id


def test_a_result_knows_its_call_of_an_earlier_process(memory, session, open_again):
    add(session, *ITEMS[:3])
    add(SmaraSession("s", open_again()), ITEMS[3])
    assert memory.messages.list(thread_id=session.thread_id)[-1].parts[0].name == "look"


def test_an_item_that_a_run_takes_back_and_repeats_is_said_once(memory, session):
    add(session, *ITEMS[:1])
    assert asyncio.run(session.pop_item()) == ITEMS[0]
    assert asyncio.run(session.pop_item()) is None
    add(session, *ITEMS[:1])
    add(session, *ITEMS[:1])
    assert items(session) == [ITEMS[0], ITEMS[0]]
    assert [words for _, _, words in said(memory, session)] == ["What is in the shed?"] * 2


def test_a_cleared_session_takes_its_conversation_along(memory, session):
    add(session, *ITEMS)
    asyncio.run(session.clear_session())
    asyncio.run(session.clear_session())
    assert (items(session), memory.threads.list()) == ([], [])
    add(session, {"role": "user", "content": "again"})
    assert [words for _, _, words in said(memory, session)] == ["again"]


def test_what_was_said_may_be_kept_when_a_session_is_cleared(memory):
    keeping = SmaraSession("s", memory, keeps_messages=True)
    add(keeping, *ITEMS)
    asyncio.run(keeping.clear_session())
    assert items(keeping) == []
    assert len(said(memory, keeping)) == len(ITEMS)


def test_a_cancellation_is_raised_when_it_is_clear_what_was_stored(memory, session):
    begun, go_on = threading.Event(), threading.Event()
    append = session._streams.append

    def slow(*args: Any, **named: Any) -> Any:
        stored = append(*args, **named)
        begun.set()
        go_on.wait(60)
        return stored

    session._streams.append = slow

    async def cancel_twice() -> None:
        task = asyncio.ensure_future(session.add_items(ITEMS[:1]))
        await asyncio.to_thread(begun.wait, 60)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_twice())
    assert items(session) == ITEMS[:1]


def test_secrets_are_redacted_unless_that_is_turned_off(memory, session):
    item: Any = {"role": "user", "content": "use postgres://ada:Tr0ub4dor3x@db/x"}
    raw = SmaraSession("raw", memory, is_redacted=False)
    add(session, item)
    add(raw, item)
    assert "Tr0ub4dor3x" not in json.dumps(items(session))
    assert items(raw) == [item]
    assert "Tr0ub4dor3x" not in json.dumps([said(memory, session), said(memory, raw)])


def test_a_run_is_told_what_is_known_in_its_instructions_alone(memory, session):
    memory.memories.remember("The shed door sticks in winter", type="decision")

    @function_tool
    def look(place: str) -> str:
        return f"The {place} is locked."

    model = ScriptedModel([
        [function_call("look", {"place": "shed"}, call_id="c1")],
        [assistant_message("It is locked.")],
        [assistant_message("Still locked.")],
    ])  # fmt: skip
    agent = Agent(
        "keeper", instructions=session.instructions("Be brief."), model=model, tools=[look]
    )

    async def talk() -> None:
        await Runner.run(agent, "Is the shed open?", session=session, run_config=QUIET)
        await Runner.run(agent, "And now?", session=session, run_config=QUIET)

    asyncio.run(talk())
    told = [call.system_instructions for call in model.calls]
    assert all(text.startswith("Be brief.") and "door sticks" in text for text in told)
    assert OPENING not in json.dumps(items(session)) + json.dumps(said(memory, session))
    assert [words for role, _, words in said(memory, session) if role == "user"] == [
        "Is the shed open?",
        "And now?",
    ]
    assert len(memory.moments.receipts(session_id=session.thread_id)) == 1


def test_own_instructions_may_be_a_function(memory, session):
    async def own(wrapper: Any, agent: Any) -> str:
        return f"I am {agent.name}."

    model = ScriptedModel([[assistant_message("Hello.")]])
    agent = Agent("Ada", instructions=session.instructions(own), model=model)
    asyncio.run(Runner.run(agent, "Hi", session=session, run_config=QUIET))
    assert model.calls[0].system_instructions == "I am Ada."


def test_no_call_touches_the_store_on_the_event_loop(memory, session, monkeypatch):
    seen = watch_threads(memory, monkeypatch)

    async def use() -> None:
        await session.add_items(ITEMS)
        await session.get_items()
        await session.pop_item()
        model = ScriptedModel([[assistant_message("Hello.")]])
        agent = Agent("Ada", instructions=session.instructions("Hi."), model=model)
        await Runner.run(agent, "Hello", session=session, run_config=QUIET)
        await session.clear_session()

    asyncio.run(use())
    assert seen
    assert threading.get_ident() not in seen
