"""Describe Cline: the servers of its command line."""

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

HOME = HomeFolder("", ".cline")


def _targets(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    path = os.path.join(HOME.path, "data", "settings", "cline_mcp_settings.json")
    return [SetupTarget(path, "json", mcp_entry(program))]


HOST = Host(
    name="cline",
    title="Cline",
    setup=Setup(
        targets=_targets,
        programs=("cline",),
        home=HOME,
        advice={
            "global": "In an editor: MCP Servers, Configure, Configure MCP Servers; command "
            "`smara`, arguments `mcp`."
        },
        is_global=True,
    ),
    instructions=Instructions(
        patterns=(".clinerules", ".clinerules/**/*.md", ".clinerules/**/*.txt")
    ),
)
