"""The command line."""

import sys


def main() -> None:
    """The ``smara`` command.

    A hook of a host is told apart first: it must not pay for a command line.
    """
    if len(sys.argv) > 3 and sys.argv[1] == "hook" and not sys.argv[3].startswith("-"):
        from smara.surfaces.hooks import run as run_hook

        run_hook(sys.argv[2], sys.argv[3])
    try:
        from smara.surfaces.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)  # interrupted before there was anything to say
