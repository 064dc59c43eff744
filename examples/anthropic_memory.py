"""Anthropic's memory tool over a memory: offline, with commands as a model gives them."""

from anthropic.lib.tools import ToolError

import smara
from smara.adapters.sdk.anthropic_memory import SmaraMemoryTool

COMMANDS = (
    {"command": "create", "path": "/memories/build.md", "file_text": "- Tests need Redis 7.\n"},
    {"command": "str_replace", "path": "/memories/build.md", "old_str": "7", "new_str": "8"},
    {"command": "view", "path": "/memories/from_people/decision.md"},
    {"command": "delete", "path": "/memories/from_people"},
)

with smara.open("memory.db") as memory:
    memory.memories.remember("We deploy on Mondays only", type="decision", citation="mondays")
    # With a real model: client.beta.messages.tool_runner(tools=[tool], …)
    tool = SmaraMemoryTool(memory)
    for command in COMMANDS:
        try:
            print(str(tool.call(command)).split("[")[0])
        except ToolError as error:
            print(f"error: {error}")
    for statement in memory.memories.to_review():
        print(f"to review: {statement.content}")
