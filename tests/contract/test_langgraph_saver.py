"""LangGraph's checkpoints in a memory, beyond what its conformance package asks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, MessagesState, StateGraph

from smara.adapters.sdk.langgraph import SmaraSaver
from smara.testing import FakeClock
from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def config(thread_id: str = "one") -> Any:
    return {"configurable": {"thread_id": thread_id}}


def answer(state: MessagesState) -> Any:
    """A scripted agent that calls a tool, hears of it, and answers."""
    count = len(state["messages"])
    call = {"name": "look", "args": {"where": "harbor"}, "id": f"c{count}"}
    return {
        "messages": [
            AIMessage("", tool_calls=[call], id=f"call-{count}"),
            ToolMessage("three walruses", tool_call_id=call["id"], id=f"result-{count}"),
            AIMessage(f"There are three walruses, {count}", id=f"answer-{count}"),
        ]
    }


def agent(memory: Any, **given: Any) -> Any:
    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    return graph.compile(checkpointer=SmaraSaver(memory, **given))


def ask(memory: Any, text: str, thread_id: str = "one") -> Any:
    return agent(memory).invoke({"messages": [("user", text)]}, config(thread_id))


def said(memory: Any, thread_id: str = "one") -> list[tuple[str, str]]:
    found = memory.messages.list(thread_id=f"langgraph:{thread_id}")
    return [(each.role, each.raw_content) for each in found]


def states(memory: Any, thread_id: str = "one") -> list[Any]:
    with memory.frameworks.states("langgraph").read() as batch:
        return batch.list(key=thread_id)


def test_a_conversation_goes_on_in_another_process(memory: Any, place: Any) -> None:
    ask(memory, "How many walruses are there?")

    state = ask(place.open(), "And seals?")

    assert len(state["messages"]) == 8
    assert state["messages"][4].content == "And seals?"


def test_what_was_said_is_read_into_a_thread_once(memory: Any, place: Any) -> None:
    ask(memory, "How many walruses are there?")
    ask(place.open(), "And seals?")

    roles = [role for role, _ in said(memory)]
    assert roles == ["user", "assistant", "tool", "assistant"] * 2
    assert memory.search("walruses").hits[0].thread_id == "langgraph:one"
    message = memory.messages.list(thread_id="langgraph:one")[2]
    assert (message.parts[0].type, message.parts[0].text) == ("tool_result", "three walruses")


def test_instructions_of_the_program_are_not_said(memory: Any) -> None:
    saver, checkpoint = SmaraSaver(memory), empty_checkpoint()
    checkpoint["channel_values"] = {
        "messages": [
            SystemMessage("Be brief."),
            HumanMessage(
                [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {}}]
            ),
        ]
    }
    checkpoint["channel_versions"] = {"messages": "1"}

    for _ in range(2):  # a step that is stored again adds nothing
        saver.put(config(), checkpoint, {}, {"messages": "1"})

    (message,) = memory.messages.list(thread_id="langgraph:one")
    assert [part.type for part in message.parts] == ["text", "image"]


def test_erasing_a_thread_reaches_its_checkpoints(memory: Any) -> None:
    ask(memory, "How many walruses are there?")
    ask(memory, "Hello", "two")

    memory.privacy.erase(threads=["langgraph:one"])

    assert states(memory) == []
    assert SmaraSaver(memory).get_tuple(config()) is None
    assert len(agent(memory).get_state(config("two")).values["messages"]) == 4


def test_erasing_a_message_takes_the_state_of_its_run_along(memory: Any) -> None:
    ask(memory, "How many walruses are there?")
    first = memory.messages.list(thread_id="langgraph:one")[0]

    memory.privacy.erase(messages=[first.id])

    assert states(memory) == []


def test_a_run_goes_on_after_its_thread_was_erased(memory: Any, clock: FakeClock) -> None:
    graph = agent(memory)
    graph.invoke({"messages": [("user", "one")]}, config())
    memory.privacy.erase(threads=["langgraph:one"])
    clock.advance(1)

    state = graph.invoke({"messages": [("user", "two")]}, config())

    assert len(state["messages"]) == 4
    assert ("user", "two") in said(memory)


@pytest.mark.parametrize("is_redacted", [True, False])
def test_secrets_in_a_state_are_redacted_unless_it_is_set(memory: Any, is_redacted: bool) -> None:
    graph = agent(memory, is_redacted=is_redacted)

    graph.invoke({"messages": [HumanMessage(f"The token is {SECRET}", id="h")]}, config())

    kept = graph.get_state(config()).values["messages"][0].content
    assert (SECRET in kept) is not is_redacted
    assert SECRET not in str(said(memory))


def put_chain(saver: SmaraSaver, count: int, **metadata: Any) -> list[Any]:
    """Put checkpoints, one after the other, each with a new value; return their configs."""
    configs, version = [config()], None
    for number in range(count):
        checkpoint, version = empty_checkpoint(), saver.get_next_version(version, None)
        checkpoint["channel_values"] = {"n": number}
        checkpoint["channel_versions"] = {"n": version}
        facts = {"run_id": f"run-{number}", **metadata}
        configs.append(saver.put(configs[-1], checkpoint, facts, {"n": version}))
    return configs[1:]


def test_pruning_leaves_the_newest_and_no_value_of_the_others(memory: Any) -> None:
    saver = SmaraSaver(memory)
    last = put_chain(saver, 4)[-1]

    saver.prune(["one"])

    assert [each.config for each in saver.list(config())] == [last]
    assert saver.get_tuple(last).checkpoint["channel_values"] == {"n": 3}  # type: ignore[union-attr]
    assert sorted(each.kind for each in states(memory)) == ["channel", "checkpoint", "run"]


def test_pruning_leaves_what_a_channel_of_differences_is_rebuilt_from(memory: Any) -> None:
    saver = SmaraSaver(memory)
    configs = put_chain(saver, 3)
    checkpoint = empty_checkpoint()
    checkpoint["channel_versions"] = {"n": "9"}
    facts: Any = {"counters_since_delta_snapshot": {"n": (1, 1)}}
    newest = saver.put(configs[-1], checkpoint, facts, {"n": "9"})

    saver.prune(["one"])

    assert [each.config for each in saver.list(config())] == [newest, configs[-1]]
    history = saver.get_delta_channel_history(config=newest, channels=["n"])
    assert history["n"]["seed"] == 2


def test_deleting_a_run_leaves_the_values_that_others_share(memory: Any) -> None:
    saver = SmaraSaver(memory)
    configs = put_chain(saver, 2)
    shared = saver.get_tuple(configs[1]).checkpoint  # type: ignore[union-attr]
    again: Any = {**shared, "id": empty_checkpoint()["id"]}
    third = saver.put(configs[1], again, {"run_id": "run-9"}, {})  # type: ignore[typeddict-unknown-key]

    saver.delete_for_runs(["run-0", "run-1"])

    assert [each.config for each in saver.list(None)] == [third]
    assert saver.get_tuple(third).checkpoint["channel_values"] == {"n": 1}  # type: ignore[union-attr]


def test_writes_of_many_tasks_at_once_are_all_there(memory: Any) -> None:
    saver = SmaraSaver(memory)
    (place,) = put_chain(saver, 1)

    async def write() -> None:
        await asyncio.gather(
            *(saver.aput_writes(place, [("n", number)], f"task-{number}") for number in range(8))
        )

    asyncio.run(write())

    found = saver.get_tuple(place)
    assert found is not None
    assert sorted(value for _, _, value in found.pending_writes or ()) == list(range(8))


def test_a_checkpoint_that_comes_from_elsewhere_keeps_all_its_values(memory: Any) -> None:
    saver, checkpoint = SmaraSaver(memory), empty_checkpoint()
    checkpoint["channel_values"] = {"old": "a value", "bare": "without a version"}
    checkpoint["channel_versions"] = {"old": 7}

    place = saver.put(config(), checkpoint, {}, {})

    found = saver.get_tuple(place)
    assert found is not None
    assert found.checkpoint["channel_values"] == checkpoint["channel_values"]


def test_a_step_stores_only_what_it_changed(memory: Any) -> None:
    saver, place = SmaraSaver(memory), config()
    for number in range(3):
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"log": "long", "n": number}
        checkpoint["channel_versions"] = {"log": "1", "n": str(number)}
        changed = {"n": str(number)} if number else {"log": "1", "n": "0"}
        place = saver.put(place, checkpoint, {}, changed)

    stored = [(each.name, each.part) for each in states(memory) if each.kind == "channel"]
    assert stored.count(("log", "'1'")) == 1
    assert len(stored) == 4
