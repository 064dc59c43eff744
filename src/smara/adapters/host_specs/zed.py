"""Describe Zed, which calls an MCP server a context server."""

from __future__ import annotations

import os

from smara.adapters.host import (
    HomeFolder,
    Host,
    Instructions,
    Reach,
    Setup,
    SetupTarget,
    mcp_entry,
)

HOME = HomeFolder("XDG_CONFIG_HOME", ".config", "zed")


def _targets(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    servers = mcp_entry(program).get("mcpServers")
    added = {"context_servers": servers} if servers else {}
    return [SetupTarget(os.path.join(HOME.path, "settings.json"), "json", added)]


HOST = Host(
    name="zed",
    title="Zed",
    setup=Setup(targets=_targets, programs=("zed", "zeditor"), home=HOME, is_global=True),
    instructions=Instructions(patterns=(".rules",)),
)
