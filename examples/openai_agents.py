"""An OpenAI Agents SDK agent that remembers: offline, with a model that follows a script."""

import asyncio

from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message

import smara
from smara.adapters.sdk.openai_agents import SmaraSession


async def main() -> None:
    async with smara.open_async("memory.db") as memory:
        await memory.memories.remember("Deploys go through the blue gate", type="decision")
        session = SmaraSession("deploys", memory)
        model = ScriptedModel([[assistant_message("Done.")], [assistant_message("Done, too.")]])
        agent = Agent("deployer", instructions=session.instructions("Be brief."), model=model)
        for prompt in ("Deploy the shop", "And the blog"):
            config = RunConfig(tracing_disabled=True)
            result = await Runner.run(agent, prompt, session=session, run_config=config)
            knows = "blue gate" in (model.calls[-1].system_instructions or "")
            print(f"{result.final_output} Knew the rule: {knows}")
        print(len(await session.get_items()), "items, none of them by memory")


asyncio.run(main())
