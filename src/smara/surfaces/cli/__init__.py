"""The command line."""

import os
import sys


def main() -> None:
    """The ``smara`` command.

    A hook of a host is told apart first: it must not pay for a command line. Nor do the
    version, and the list of commands, which is the same for terminals of 80 columns and more.
    """
    if len(sys.argv) > 3 and sys.argv[1] == "hook" and not sys.argv[3].startswith("-"):
        from smara.surfaces.hooks import run as run_hook

        run_hook(sys.argv[2], sys.argv[3])
    try:
        if sys.argv[1:] in (["--help"], ["-h"]) and _print_help():
            return
        if sys.argv[1:] == ["--version"]:
            from smara import __version__

            print(f"smara, version {__version__}")
            return
        from smara.surfaces.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)  # interrupted before there was anything to say


def _print_help() -> bool:
    """Print the help of the command line from a file; return False on a narrow terminal.

    A test holds both equal.
    """
    from shutil import get_terminal_size

    if get_terminal_size().columns < 80:
        return False
    with open(os.path.join(os.path.dirname(__file__), "help.txt"), encoding="ascii") as file:
        text = file.read()
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return True
