"""Describe Windsurf, which takes servers for all repositories alone."""

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

HOME = HomeFolder("", ".codeium/windsurf")


def _targets(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    path = os.path.join(HOME.path, "mcp_config.json")
    return [SetupTarget(path, "json", mcp_entry(program))]


HOST = Host(
    name="windsurf",
    title="Windsurf",
    setup=Setup(targets=_targets, programs=("windsurf",), home=HOME, is_global=True),
    instructions=Instructions(patterns=(".windsurfrules", ".windsurf/rules/**/*.md")),
)
