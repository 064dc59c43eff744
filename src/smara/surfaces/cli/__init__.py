"""The command line."""

from __future__ import annotations

import sys


def main() -> None:
    """The ``smara`` command."""
    try:
        from smara.surfaces.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)  # interrupted before there was anything to say
