"""``smara mcp``, driven by the official client, as a process of its own where it matters: tools,
resources, prompts.
"""

from __future__ import annotations

import json

import pytest
from mcp import MCPError

import smara
from smara.core.tokens import counter_for
from smara.testing import CountingIds, FakeClock
from smara.tools import instructions, schemas
from smara.tools.catalogue import EVERY_TOOL, TOOLS
from tests.surfaces.mcp_server import NEW, in_process, over_stdio

MODES = pytest.mark.parametrize("mode", ["auto", "legacy", NEW])
SAID = ("Implement the login with Zod", "export const LoginSchema = z.object({})", "42 passing")


@pytest.fixture
def conversation(db: str) -> str:
    """A store with one thread, ``login``, whose messages are ``id-000001`` and so on, and no
    tasks.
    """
    with smara.open(db, clock=FakeClock(), new_id=CountingIds()) as memory:
        memory.messages.add_many(
            thread_id="login", messages=[{"role": "user", "content": text} for text in SAID]
        )
        memory.threads.update("login", title="Login with Zod")
    return db


@MODES
def test_server_tells_who_it_is_and_lists_its_tools(db, mode):
    async def ask(client):
        return client.server_info, client.instructions, await client.list_tools()

    info, told, listed = over_stdio(ask, mode=mode)
    assert [tool.name for tool in listed.tools] == list(TOOLS)
    assert {tool.name: tool.input_schema for tool in listed.tools} == schemas("flat")
    if mode != NEW:  # who names the version does not ask who the server is
        assert (info.name, told) == ("smara", instructions())


def test_whole_list_with_instructions_stays_within_the_budget(db):
    async def ask(client):
        return await client.list_tools()

    listed = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True)
        for tool in in_process(ask, db).tools
    ]
    count = counter_for("o200k_base").count
    assert count(json.dumps(listed)).tokens + count(instructions()).tokens < 2_500


def test_coding_profile_lists_one_more_tool_and_its_whole_list_stays_within_the_budget(db):
    async def ask(client):
        return client.instructions, await client.list_tools()

    told, found = over_stdio(ask, "--profile", "coding")
    assert [tool.name for tool in found.tools] == list(EVERY_TOOL)
    assert told == instructions("coding")
    assert [tool.annotations.read_only_hint for tool in found.tools[-2:]] == [False, True]
    listed = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in found.tools
    ]
    count = counter_for("o200k_base").count
    assert count(json.dumps(listed)).tokens < 2_500
    on_the_wire = json.dumps(listed, separators=(",", ":"))
    assert count(on_the_wire).tokens + count(instructions("coding")).tokens < 2_500


def test_profile_may_come_from_the_settings(db):
    async def ask(client):
        return await client.list_tools()

    listed = over_stdio(ask, env={"SMARA_TOOL_PROFILE": "coding"})
    assert [tool.name for tool in listed.tools] == list(EVERY_TOOL)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_agent_records_what_it_learned_and_a_person_reviews_it(db, mode):
    """It notes, sees its note in its context, says that one helped; nothing of that confirms
    anything.
    """

    async def ask(client):
        async def call(**arguments):
            result = await client.call_tool("memory-record", arguments)
            assert not result.is_error, result.content[0].text
            assert result.structured_content["success"] is True
            return result.structured_content

        noted = await call(
            action="record",
            type="gotcha",
            content="The auth tests hang unless Redis runs",
            evidence=["tests/a.py:3"],
        )
        name = noted["memory"]["id"]
        await call(action="used", id=name, outcome="helped")
        context = await call(action="context")
        assert [each["id"] for each in context["memories"]] == [name]
        assert context["sessionId"] == "agent-1"
        refused = await client.call_tool(
            "memory-record", {"action": "record", "type": "gotcha", "content": "Done!"}
        )
        assert refused.is_error
        return name

    name = over_stdio(ask, "--profile", "coding", "--session", "agent-1", mode=mode)
    with smara.open(db) as memory:
        (waiting,) = memory.memories.to_review()
        assert (waiting.short_id, waiting.source, waiting.tier) == (
            name,
            "agent_explicit",
            "unconfirmed",
        )
        assert waiting.verified_uses == 1
        assert memory.memories.accept(waiting.id).is_verified


@pytest.mark.postgres
def test_agent_records_into_postgresql_too(postgres_url):
    async def ask(client):
        note = {
            "type": "decision",
            "content": "Events are append-only here",
            "evidence": ["a/b.md"],
        }
        return (
            await client.call_tool("memory-record", {"action": "record", **note})
        ).structured_content

    answer = over_stdio(ask, "--profile", "coding", "--db", postgres_url)
    assert answer["outcome"] == "added", answer
    with smara.open(postgres_url) as memory:
        assert [each.content for each in memory.memories.list()] == ["Events are append-only here"]


def test_tool_of_another_profile_is_not_served(db):
    async def ask(client):
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("code-query", {"action": "map"})

    in_process(ask, db)


def test_tools_say_what_they_do_to_the_world_and_lists_may_be_kept(db):
    async def ask(client):
        return await client.list_tools()

    listed = in_process(ask, db)
    hints = {
        tool.name: (tool.title, tool.annotations.read_only_hint, tool.annotations.destructive_hint)
        for tool in listed.tools
    }
    assert hints == {
        "task-query": ("Look at tasks", True, False),
        "task-mutate": ("Change tasks and working memory", False, False),
        "memory-search": ("Search past conversations", True, False),
        "memory-record": ("Record what was learned", False, False),
    }
    assert not any(tool.annotations.open_world_hint for tool in listed.tools)
    assert (listed.ttl_ms, listed.cache_scope) == (3_600_000, "public")


def test_union_is_served_to_those_who_ask_for_it(db):
    async def ask(client):
        return await client.list_tools()

    assert {
        tool.name: tool.input_schema for tool in over_stdio(ask, "--schemas", "union").tools
    } == schemas("union")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_action_works_through_the_client(conversation, mode):
    """An agent's day: it plans, claims, talks, searches, links, notes, hands over and closes."""

    async def ask(client):
        async def call(tool, **arguments):
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result.content[0].text
            assert result.content[0].text
            assert result.structured_content["success"] is True
            return result.structured_content

        first = (await call("task-mutate", action="create", title="Fix login redirect"))["task"][
            "id"
        ]
        second = (await call("task-mutate", action="create", title="Write notes", dependsOn=first))[
            "task"
        ]["id"]
        assert (await call("task-query", action="ready"))["blockedCount"] == 1
        assert (await call("task-mutate", action="claim", id=first))["task"][
            "sessionId"
        ] == "agent-1"
        await call("task-mutate", action="update", id=first, priority=1)
        found = await call("memory-search", action="search", query="LoginSchema")
        message = found["results"][0]["id"]
        await call("memory-search", action="read", id=message)
        await call("task-mutate", action="link", taskId=first, messageId=message)
        await call("task-mutate", action="dep", taskId=second, dependsOn=first, add=False)
        await call(
            "task-mutate", action="update_context", content="- Tests: Vitest", section="Tech Stack"
        )
        await call("task-mutate", action="release", id=first)
        await call("task-mutate", action="close", id=first, summary="redirects to /home")
        await call("task-mutate", action="reopen", id=first)
        assert (await call("task-query", action="show", id=first))["task"]["linkedMessageIds"] == [
            message
        ]
        assert (await call("task-query", action="search", query="redirect"))["totalHits"] == 1
        return await call("task-query", action="list")

    answer = over_stdio(ask, "--session", "agent-1", "--thread", "login", mode=mode)
    assert [task["title"] for task in answer["tasks"]] == ["Fix login redirect", "Write notes"]


def test_refusal_is_an_error_of_the_tool_that_a_model_can_read(db):
    async def ask(client):
        return await client.call_tool("task-query", {"action": "show", "id": "task-xyz"})

    result = in_process(ask, db)
    assert result.is_error
    assert result.structured_content["error"] == "Task not found: task-xyz"
    assert result.content[0].text.startswith("Task not found: task-xyz\n")


def test_unknown_tool_is_an_error_of_the_protocol(db):
    async def ask(client):
        with pytest.raises(MCPError, match="The tools are task-query, task-mutate, memory-search"):
            await client.call_tool("task-eat", {})

    in_process(ask, db)


def test_resources_are_pages_of_markdown(conversation):
    async def ask(client):
        task = await client.call_tool(
            "task-mutate", {"action": "create", "title": "Form", "description": "Zod"}
        )
        name = task.structured_content["task"]["id"]
        listed = [str(each.uri) for each in (await client.list_resources()).resources]
        templates = [
            each.uri_template
            for each in (await client.list_resource_templates()).resource_templates
        ]
        pages = {}
        for uri in [
            *listed,
            f"smara://tasks/{name}",
            "smara://threads/login",
            "smara://messages/id-000002",
        ]:
            (content,) = (await client.read_resource(uri)).contents
            assert content.mime_type == "text/markdown"
            pages[uri.rpartition("//")[2].replace(name, "ID")] = content.text
        return listed, templates, pages

    listed, templates, pages = in_process(ask, conversation)
    assert listed == ["smara://tasks/ready", "smara://working"]
    assert templates == [
        f"smara://{kind}/{{id}}{{?page}}" for kind in ("tasks", "threads", "messages")
    ]
    assert "P2 task open  Form" in pages["tasks/ready"]
    assert "## Description\n\nZod" in pages["tasks/ID"]
    assert pages["threads/login"].startswith("# Login with Zod")
    assert "LoginSchema" in pages["threads/login"]
    assert "LoginSchema" in pages["messages/id-000002"]


def test_long_thread_is_paged_and_odd_ids_are_addressed(db):
    with smara.open(db) as memory:
        memory.messages.add_many(
            thread_id="a/b ?#é",
            messages=[{"role": "user", "content": f"word {number}"} for number in range(45)],
        )

    async def ask(client):
        uri, words = "smara://threads/a%2Fb%20%3F%23%C3%A9", []
        while uri:
            text = (await client.read_resource(uri)).contents[0].text
            words += [line for line in text.split("\n") if line.startswith("word ")]
            uri = text.rpartition("More: ")[2] if "More: " in text else ""
        return words

    assert in_process(ask, db) == [f"word {number}" for number in range(45)]


NO_RESOURCES = {
    "smara://tasks/nope": "Task not found: nope",
    "smara://threads/nope": "nope",
    "smara://messages/nope": "nope",
    "smara://walrus/1": "There is no resource",
    "smara://tasks/": "There is no resource",
    "file:///etc/passwd": "There is no resource",
    "smara://threads/login?page=x": "page must be a number",
    "smara://threads/login?page=0": "page must be a number",
}


def test_unknown_resource_is_refused_in_words(conversation):
    async def ask(client):
        for uri, told in NO_RESOURCES.items():
            with pytest.raises(MCPError, match=told):
                await client.read_resource(uri)

    in_process(ask, conversation)


def test_prompt_to_resume_work_gathers_what_is_known(conversation):
    async def ask(client):
        for title in ("Fix login redirect", "Write notes"):
            await client.call_tool("task-mutate", {"action": "create", "title": title})
        await client.call_tool("task-mutate", {"action": "claim", "id": "next"})
        await client.call_tool(
            "task-mutate", {"action": "update_context", "content": "- Tests: Vitest"}
        )
        listed = (await client.list_prompts()).prompts
        found = await client.get_prompt("resume-work", {"thread": "login"})
        return [prompt.name for prompt in listed], found.messages[0].content.text

    names, text = in_process(ask, conversation, session_id="agent-1")
    assert names == ["resume-work", "hand-over"]
    assert "in_progress  Fix login redirect  (held by agent-1)" in text
    assert "open  Write notes" in text
    assert "- Tests: Vitest" in text
    assert "42 passing" in text


def test_prompt_to_hand_over_tells_the_task_its_history_and_what_was_said(conversation):
    async def ask(client):
        made = await client.call_tool(
            "task-mutate", {"action": "create", "title": "Form", "description": "with Zod"}
        )
        name = made.structured_content["task"]["id"]
        await client.call_tool(
            "task-mutate", {"action": "link", "taskId": name, "messageId": "id-000002"}
        )
        with pytest.raises(MCPError, match="needs the argument task"):
            await client.get_prompt("hand-over", {})
        with pytest.raises(MCPError, match="The prompts are resume-work, hand-over"):
            await client.get_prompt("walrus", {})
        return (await client.get_prompt("hand-over", {"task": name})).messages[0].content.text

    text = in_process(ask, conversation, actor="ada")
    assert "with Zod" in text
    assert "created by agent:ada" in text
    assert "LoginSchema" in text
