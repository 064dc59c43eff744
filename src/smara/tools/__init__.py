"""The agent tools as plain functions: ``task-query``, ``task-mutate``, ``memory-search``; two more
for coding.

A :class:`Toolbox` answers calls as a model makes them, and never raises: what went wrong is
part of the answer, with what would be right. The schemas come in Anthropic's and OpenAI's
shape; `smara mcp` serves the same tools to any host that speaks MCP.
"""

from smara.tools.catalogue import Profile, Tool, ToolContext, ToolResult
from smara.tools.schemas import (
    anthropic_tools,
    description,
    instructions,
    openai_tools,
    schemas,
    system_prompt,
)
from smara.tools.toolbox import (
    Toolbox,
    code_query,
    memory_record,
    memory_search,
    task_mutate,
    task_query,
)

__all__ = [
    "Profile",
    "Tool",
    "ToolContext",
    "ToolResult",
    "Toolbox",
    "anthropic_tools",
    "code_query",
    "description",
    "instructions",
    "memory_record",
    "memory_search",
    "openai_tools",
    "schemas",
    "system_prompt",
    "task_mutate",
    "task_query",
]
