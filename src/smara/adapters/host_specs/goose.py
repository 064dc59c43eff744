"""Describe Goose, whose own command adds servers."""

from smara.adapters.host import HomeFolder, Host, Instructions, Setup

HOME = HomeFolder("XDG_CONFIG_HOME", ".config", "goose")

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
)
