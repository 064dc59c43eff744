"""Describe Aider, which has neither hooks nor MCP."""

from smara.adapters.host import Host, Instructions

HOST = Host(
    name="aider",
    title="Aider",
    instructions=Instructions(patterns=("CONVENTIONS.md",)),
)
