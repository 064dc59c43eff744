"""The async face says and does what the synchronous one does."""

from __future__ import annotations

import asyncio

import pytest

import smara
from smara.errors import ConflictError, NotFoundError
from tests.contract.both import ON_BOTH

pytestmark = ON_BOTH  # the model has no async face


@pytest.fixture
def run(place):
    """Runs a coroutine that takes an async memory."""

    def start(story):
        async def whole():
            async with smara.open_async(
                place.address, clock=place.clock, new_id=place.new_id, durability="normal"
            ) as memory:
                return await story(memory)

        return asyncio.run(whole())

    return start


def test_what_is_added_asynchronously_is_read_synchronously(run, open_again):
    async def story(memory):
        return await memory.messages.add(thread_id="t", role="user", content="the walrus")

    added = run(story)
    assert open_again().messages.get(added.id) == added


def test_every_room_is_awaited(run):
    async def story(memory):
        await memory.messages.add_many(
            thread_id="t", messages=[{"role": "user", "content": f"m{n}"} for n in range(12)]
        )
        await memory.threads.update("t", title="Twelve")
        done = await memory.compactions.compact("t", keep=2)
        window = await memory.history.window("t")
        return (
            (await memory.threads.get("t")).title,
            done.messages_compacted,
            len(window),
        )

    assert run(story) == ("Twelve", 10, 3)


def test_search_is_awaited_and_gives_the_same_answer(run, open_again):
    async def story(memory):
        await memory.messages.add(thread_id="t", role="user", content="the walrus sings")
        return (
            await memory.search("walrus"),
            await memory.search_threads("walrus"),
            await memory.complete("walr"),
        )

    hits, threads, words = run(story)
    memory = open_again()
    assert (list(hits), threads, words) == (
        list(memory.search("walrus")),
        memory.search_threads("walrus"),
        ["walrus"],
    )


def test_a_stream_is_an_async_iterator(run):
    async def story(memory):
        await memory.messages.add_many(
            thread_id="t", messages=[{"role": "user", "content": f"m{n}"} for n in range(7)]
        )
        return [message.seq async for message in memory.messages.stream(thread_id="t", after=4)]

    assert run(story) == [5, 6, 7]


def test_errors_are_the_same(run):
    async def story(memory):
        await memory.threads.add("t")
        with pytest.raises(ConflictError):
            await memory.threads.add("t")
        with pytest.raises(NotFoundError):
            await memory.messages.get("nothing")

    run(story)


def test_many_at_once_are_all_stored(run, open_again):
    async def story(memory):
        await asyncio.gather(
            *(memory.messages.add(thread_id="t", role="user", content=f"m{n}") for n in range(20))
        )

    run(story)
    assert [message.seq for message in open_again().messages.list(thread_id="t")] == list(
        range(1, 21)
    )


def test_plain_facts_are_not_awaited(run):
    async def story(memory):
        return memory.project, memory.warnings

    assert run(story) == ("default", [])


def test_the_questions_to_the_code_are_awaited(run, tmp_path):
    (tmp_path / "shop.py").write_text("def price(): ...\n", encoding="utf-8")

    async def story(memory):
        await memory.code.index(tmp_path)
        queries = await memory.code.asking(tmp_path)
        return await queries.find("price")

    assert [node.label for node in run(story)] == ["shop.py:price"]
