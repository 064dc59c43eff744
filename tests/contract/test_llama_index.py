"""LlamaIndex's memory with our block: what leaves the window is told by memory."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory as TheirMemory
from sqlalchemy.ext.asyncio import create_async_engine

from smara.adapters.sdk.llama_index import SmaraMemoryBlock
from tests.contract.both import EACH_DATABASE
from tests.contract.observing import SMALL
from tests.contract.sdk import stored_words, watch_threads

pytestmark = EACH_DATABASE
THREAD = "llama-index:s"


def talk(block: SmaraMemoryBlock, turns: int, words: str = "stands on rock") -> list[ChatMessage]:
    async def act() -> list[ChatMessage]:
        engine = create_async_engine("sqlite+aiosqlite://")
        memory = TheirMemory.from_defaults(
            session_id="s",
            async_engine=engine,
            token_limit=600,
            chat_history_token_ratio=0.3,
            token_flush_size=60,
            memory_blocks=[block],
        )
        for number in range(turns):
            await memory.aput(ChatMessage(role="user", content=f"Wall {number} {words}. " * 4))
            await memory.aput(ChatMessage(role="assistant", content=f"I see wall {number}."))
        messages = await memory.aget()
        await engine.dispose()
        return messages

    return asyncio.run(act())


def test_every_message_is_in_the_window_or_told_by_the_block(memory: Any) -> None:
    memory.memories.remember("Deploys go through the blue gate", type="decision")
    messages = talk(SmaraMemoryBlock(smara=memory), 10)
    assert messages[0].role == "system"
    assert "Deploys go through the blue gate" in str(messages[0].content)
    words = "\n".join(str(each.content) for each in messages)
    for number in range(10):
        assert f"Wall {number} stands" in words
    stored = memory.messages.list(thread_id=THREAD)
    assert [each.role for each in stored[:2]] == ["user", "assistant"]
    assert len(stored) + len(messages) - 1 == 20


def test_observed_messages_are_told_by_observations(open_again: Callable[..., Any]) -> None:
    memory = open_again(**{**SMALL, "reflect_after_tokens": 100_000})
    block = SmaraMemoryBlock(smara=memory)
    given = [ChatMessage(role="user", content=f"Wall {n} stands on rock. " * 20) for n in range(30)]

    async def act() -> str:
        for each in given:
            await block.aput([each], session_id="s")
            await asyncio.to_thread(memory.observations.observe, THREAD)
        return await block.aget(session_id="s")

    text = asyncio.run(act())
    assert "<observations>" in text
    for number in range(30):
        assert f"Wall {number} " in text
    assert text.count("\nuser: ") < 30


def test_what_the_block_tells_is_never_stored(memory: Any) -> None:
    memory.memories.remember("Deploys go through the blue gate", type="decision")
    block = SmaraMemoryBlock(smara=memory)
    told = talk(block, 10)
    asyncio.run(block.aput(told, session_id="s"))
    assert "blue gate" not in stored_words(memory)


def test_a_text_is_cut_from_its_oldest_messages(memory: Any) -> None:
    memory.memories.remember("Deploys go through the blue gate", type="decision")
    block = SmaraMemoryBlock(smara=memory)
    said = [ChatMessage(role="user", content=f"message {number}") for number in range(9)]

    async def act() -> list[str | None]:
        await block.aput(said, session_id="s")
        text = await block.aget(session_id="s")
        earlier = "".join(f"user: message {number}\n" for number in range(9))
        most = memory.internals.project.counter.count(earlier).tokens + 12
        return [await block.atruncate(text, tokens) for tokens in (0, 10, most, 100_000)]

    whole, less, least, nothing = asyncio.run(act())
    assert "message 0" in str(whole)
    assert "message 0" not in str(less)
    assert "message 8" in str(less)
    assert "message" not in str(least).replace("smara-memory", "")
    assert str(least).count("<smara-memory>") == str(least).count("</smara-memory>") == 1
    assert nothing is None


def test_sessions_are_kept_apart(memory: Any) -> None:
    block = SmaraMemoryBlock(smara=memory, has_moments=False)

    async def act() -> tuple[str, str]:
        for name in ("ann", "bob"):
            await block.aput([ChatMessage(role="user", content=f"I am {name}")], session_id=name)
        return await block.aget(session_id="ann"), await block.aget(session_id="bob")

    ann, bob = asyncio.run(act())
    assert ("I am ann" in ann, "I am bob" in ann) == (True, False)
    assert ("I am bob" in bob, "I am ann" in bob) == (True, False)


def test_a_broken_store_never_breaks_the_agent(
    memory: Any, caplog: pytest.LogCaptureFixture
) -> None:
    block = SmaraMemoryBlock(smara=memory)
    memory.close()
    with caplog.at_level(logging.WARNING, "smara"):
        messages = talk(block, 10)
    assert messages[-1].content == "I see wall 9."
    assert "adapter.failed" in caplog.text


def test_the_event_loop_never_touches_the_store(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = watch_threads(memory, monkeypatch)
    talk(SmaraMemoryBlock(smara=memory), 10)
    assert threads
    assert threading.get_ident() not in threads
