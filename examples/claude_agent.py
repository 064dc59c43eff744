"""A Claude Agent SDK agent that remembers: offline, with a Claude that follows a script."""

import asyncio

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

import smara
from smara.adapters.sdk.claude_agent import SmaraSessionStore, recall_hooks
from smara.adapters.sdk.scripted_claude import ScriptedClaude


async def main() -> None:
    with smara.open("memory.db") as memory:
        memory.memories.remember("Deploys go through the blue gate", type="decision")
        options = ClaudeAgentOptions(
            session_store=SmaraSessionStore(memory), hooks=recall_hooks(memory)
        )
        claude = ScriptedClaude(["The shop is deployed."])
        # Without transport=…, the real Claude Code is started.
        async for message in query(prompt="Deploy the shop", options=options, transport=claude):
            if isinstance(message, ResultMessage):
                print(message.result)
        print("knew the rule:", "blue gate" in claude.additions[0])
        for each in memory.messages.list(thread_id=claude.session_id):
            print(f"{each.role}: {each.raw_content}")


asyncio.run(main())
