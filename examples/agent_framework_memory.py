"""An agent of the Microsoft Agent Framework that remembers: offline, with a scripted client."""

import asyncio
from typing import Any

import agent_framework as af

import smara
from smara.adapters.sdk.agent_framework import SmaraContextProvider, SmaraHistoryProvider


class Client(af.FunctionInvocationLayer[Any], af.ChatMiddlewareLayer[Any], af.BaseChatClient[Any]):
    def _inner_get_response(self, *, messages: Any, options: Any, **given: Any) -> Any:
        knows = "blue gate" in (options.get("instructions") or "")
        text = f"{len(messages)} message(s); knows the rule: {knows}"
        return asyncio.sleep(0, af.ChatResponse(messages=[af.Message("assistant", [text])]))


async def main(memory: smara.Memory) -> None:
    providers = [SmaraHistoryProvider(memory), SmaraContextProvider(memory)]
    agent = af.Agent(client=Client(), context_providers=providers)
    for prompt in ("Deploy the shop", "And the blog?"):
        session = agent.create_session(session_id="deploys")  # known by its id
        print((await agent.run(prompt, session=session)).text)


with smara.open("memory.db") as memory:
    memory.memories.remember("Deploys go through the blue gate", type="decision")
    asyncio.run(main(memory))
