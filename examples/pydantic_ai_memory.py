"""A pydantic-ai agent that remembers: offline, with a model that follows a script."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import smara
from smara.adapters.sdk.pydantic_ai import SmaraMemory


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Answer with what a real model would have been sent."""
    knows = "blue gate" in (info.instructions or "")
    return ModelResponse([TextPart(f"{len(messages)} message(s); knows the rule: {knows}")])


async def main() -> None:
    with smara.open("memory.db") as memory:
        memory.memories.remember("Deploys go through the blue gate", type="decision")
        agent = Agent(FunctionModel(model), capabilities=[SmaraMemory(memory)])
        for prompt in ("Deploy the shop", "And the blog?"):
            # The conversation is known by its id; its messages need not be given again.
            result = await agent.run(prompt, conversation_id="deploys")
            print(result.output)


asyncio.run(main())
