"""Google ADK with sessions and memory in one store: offline, an agent without a model."""

import asyncio
from collections.abc import AsyncGenerator

from google.adk.agents import BaseAgent, InvocationContext
from google.adk.events import Event
from google.adk.runners import Runner
from google.genai.types import Content, Part

import smara
from smara.adapters.sdk.google_adk import SmaraMemoryService, SmaraSessionService


class Guide(BaseAgent):
    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        found = await memories.search_memory(app_name="shop", user_id="ann", query="geranium key")
        text = f"{len(ctx.session.events)} event(s), {len(found.memories)} found"
        yield Event(author=self.name, content=Content(role="model", parts=[Part(text=text)]))


with smara.open("memory.db") as memory:
    memories, sessions = SmaraMemoryService(memory), SmaraSessionService(memory)
    runner = Runner(app_name="shop", agent=Guide(name="guide"), session_service=sessions,
                    memory_service=memories, auto_create_session=True)  # fmt: skip
    for text in ("The key is under the geranium.", "Where is it?"):
        message = Content(role="user", parts=[Part(text=text)])
        for event in runner.run(user_id="ann", session_id="visit", new_message=message):
            print(event.content.parts[0].text if event.content and event.content.parts else "")
    print(len(asyncio.run(sessions.list_sessions(app_name="shop")).sessions), "session")
