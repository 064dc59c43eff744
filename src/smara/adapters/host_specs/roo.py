"""Describe Roo Code, which reads the servers of a repository."""

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

HOME = HomeFolder("", ".roo")


def _targets(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    path = os.path.join(root, ".roo", "mcp.json")
    return [SetupTarget(path, "json", mcp_entry(program))] if reach == "project" else []


HOST = Host(
    name="roo",
    title="Roo Code",
    setup=Setup(
        targets=_targets,
        home=HOME,
        by_hand="The servers of all repositories lie in the storage of the editor: add `smara mcp` "
        "in Roo Code's MCP settings (Edit Global MCP), or leave --global out.",
    ),
    instructions=Instructions(
        patterns=(".roorules", ".roo/rules*/**/*.md", ".roo/rules*/**/*.txt")
    ),
)
