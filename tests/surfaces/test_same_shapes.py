"""A memory, task, hit and observation is the same object at every door.

A door may leave fields out; it may not name them otherwise nor give them other values.
"""

from __future__ import annotations

from typing import Any

import pytest

import smara as library
from smara.tools import Toolbox
from tests.surfaces.mcp_server import in_process
from tests.surfaces.shell import smara


def tool(db: str, name: str, **arguments: Any) -> dict[str, Any]:
    with library.open(db) as memory:
        answer = Toolbox(memory).call(name, arguments).structured
    assert answer["success"], answer
    return answer


def mcp(db: str, name: str, **arguments: Any) -> dict[str, Any]:
    async def ask(client: Any) -> dict[str, Any]:
        result = await client.call_tool(name, arguments)
        assert not result.is_error, result.content
        return result.structured_content  # type: ignore[no-any-return]

    return in_process(ask, db)


def assert_same(part: dict[str, Any], whole: dict[str, Any], *added: str) -> None:
    """Every field of the part is in the whole, with the same value."""
    assert len(part) > len(added) + 2
    assert set(part) - {*added} <= set(whole)
    assert {name: part[name] for name in part if name not in added} == {
        name: whole[name] for name in part if name not in added
    }


@pytest.mark.parametrize("door", [tool, mcp])
def test_a_memory_is_the_same_at_every_door(store, door):
    added = smara(
        *("memories", "add", "The parser reads tabs in all of its files", "--type", "gotcha"),
        *("-e", "src/parse.py:3", "--taint", "web", "--file", "src/parse.py", "--json"),
    ).data["memory"]
    smara("memories", "forget", added["id"], "--why", "it was rewritten")
    shown = smara("memories", "show", added["id"], "--json").data
    record = door(store, "memory-search", action="read", id=added["id"])["record"]
    assert_same(record, shown, "source", "content")
    assert record["content"] == shown["content"]
    assert record["trust"] == "quarantined"
    assert record["deprecatedBecause"]
    assert record["evidence"] == [{"path": "src/parse.py", "firstLine": 3, "lastLine": 3}]


@pytest.mark.parametrize("door", [tool, mcp])
def test_a_task_is_the_same_at_every_door(store, door):
    shown = smara("tasks", "show", "t-docs", "--json").data
    answer = door(store, "task-query", action="show", id="t-docs")
    assert_same(answer["task"], shown["task"])
    assert answer["task"]["dependencies"] == shown["task"]["dependencies"] != []
    assert answer["isBlocked"] is shown["isBlocked"] is True
    for brief, whole in zip(answer["blockingTasks"], shown["blockingTasks"], strict=True):
        assert_same(brief, whole)
    epic = smara("tasks", "show", "t-hooks", "--json").data
    assert door(store, "task-query", action="show", id="t-hooks")["progress"] == epic["progress"]


@pytest.mark.parametrize("door", [tool, mcp])
def test_a_listed_task_is_the_same_at_every_door(store, door):
    listed = {each["id"]: each for each in smara("tasks", "list", "--json").data["tasks"]}
    for task in door(store, "task-query", action="list", status="open")["tasks"]:
        assert_same(task, listed[task["id"]], "blockedBy")


@pytest.mark.parametrize("door", [tool, mcp])
def test_a_hit_is_the_same_at_every_door(store, door):
    smara("messages", "add", "--thread", "deploy", "--role", "user", "--content",
          "Sign the webhooks with HMAC, please", "--task", "t-sign")  # fmt: skip
    whole = {
        each["id"]: each
        for each in smara("search", "Sign the webhooks with HMAC", "--json").data["results"]
    }
    query = {"action": "search", "query": "Sign the webhooks with HMAC", "limit": 10}
    hits = door(store, "memory-search", **query)
    assert {"t-sign"} == {each["taskId"] for each in hits["results"] if each["source"] == "raw"}
    for hit in hits["results"]:
        assert_same(hit, whole[hit["id"]])


@pytest.mark.parametrize("door", [tool, mcp])
def test_an_observation_is_the_same_at_every_door(store, door):
    smara("observe", "login")
    for shown in smara("observations", "list", "--json").data["observations"]:
        record = door(store, "memory-search", action="read", id=shown["id"])["record"]
        assert_same(record, shown, "source", "content", "messageIds")
        assert record["source"] == shown["kind"]
        assert record["content"] == "\n".join([shown["text"], *shown["details"]])


def test_an_unconfirmed_hit_says_so_at_every_door(store):
    smara("memories", "add", "The parser reads tabs in all of its files", "--type", "gotcha",
          "-e", "src/parse.py:3")  # fmt: skip
    [whole] = smara("search", "parser tabs", "--source", "memories", "--json").data["results"]
    hits = tool(store, "memory-search", action="search", query="parser tabs")["results"]
    [hit] = [each for each in hits if each["id"] == whole["id"]]
    assert hit["isConfirmed"] is whole["isConfirmed"] is False
