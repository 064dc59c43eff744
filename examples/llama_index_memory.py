"""LlamaIndex's memory with our block: what no longer fits is told by memory."""

import asyncio

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from sqlalchemy.ext.asyncio import create_async_engine

import smara
from smara.adapters.sdk.llama_index import SmaraMemoryBlock


async def main(store: smara.Memory) -> None:
    engine = create_async_engine("sqlite+aiosqlite://")  # the window is kept by LlamaIndex
    window = Memory.from_defaults(session_id="walls", token_limit=600, token_flush_size=60,
                                  chat_history_token_ratio=0.3, async_engine=engine,
                                  memory_blocks=[SmaraMemoryBlock(smara=store)])  # fmt: skip
    for number in range(10):
        await window.aput(ChatMessage(role="user", content=f"Wall {number} stands on rock. " * 4))
        await window.aput(ChatMessage(role="assistant", content=f"I see wall {number}."))
    system, *rest = await window.aget()
    print(f"{len(rest)} messages in the window")
    print("wall 0 is told by memory:", "Wall 0 stands" in str(system.content))
    await engine.dispose()


with smara.open("memory.db") as store:
    asyncio.run(main(store))
