"""Describe Goose, whose own command adds servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from smara.adapters.host import Here, HomeFolder, Host, Instructions, NotesFolder, Setup

HOME = HomeFolder("XDG_CONFIG_HOME", ".config", "goose")


def _find_notes(here: Here) -> Iterator[NotesFolder]:
    yield NotesFolder.of(Path(here.root, ".goose", "memory"), pattern="*.txt")


HOST = Host(
    name="goose",
    title="Goose",
    setup=Setup(
        targets=lambda reach, root, program: [],
        programs=("goose",),
        home=HOME,
        by_hand="Goose adds a server by its own command: `goose configure`, Add Extension, "
        "Command-line Extension, `smara mcp`; for one session: "
        'goose session --with-extension "smara mcp"',
    ),
    instructions=Instructions(patterns=(".goosehints",)),
    notes=_find_notes,
)
