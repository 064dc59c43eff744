"""The command line."""

from __future__ import annotations


def main() -> None:
    """The ``smara`` command."""
    from smara.surfaces.cli.app import run

    run()
