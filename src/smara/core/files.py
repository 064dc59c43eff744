"""Open files that strangers may have placed, and make folders private.

In a repository any name may stand for a pipe that never ends or for a device. All files that
come from one are opened here. Hooks load this module: keep its imports few.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from errno import EINVAL

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from typing import BinaryIO

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOCTTY", 0)
    # A pipe without a writer would keep the opener waiting for ever.
    | getattr(os, "O_NONBLOCK", 0)
)


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file to read its bytes.

    Raises ``OSError`` for a pipe, a device, a socket or a folder, without opening it.
    """
    # Looked at before it is opened: opening a device may already do something.
    _require_regular(os.stat(path), path)
    file = os.fdopen(os.open(path, _FLAGS), "rb")
    try:
        _require_regular(os.fstat(file.fileno()), path)
    except OSError:
        file.close()
        raise
    return file


def read_regular(path: str | os.PathLike[str], most: int = -1) -> bytes:
    """Return the first bytes of a regular file; see `open_regular`."""
    with open_regular(path) as file:
        return file.read(most)


def _require_regular(facts: os.stat_result, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise OSError(EINVAL, "It is not a regular file", os.fspath(path))


def make_private(folder: str) -> None:
    """Make a folder that only its owner can enter, whatever the umask.

    Folders above it that are missing are made the same way; a folder of ours that others could
    enter is closed. Safe to repeat. Raises ``OSError`` if it cannot be made.
    """
    try:
        facts = os.stat(folder)
    except FileNotFoundError:
        above = os.path.dirname(os.path.abspath(folder))
        if not os.path.isdir(above):
            make_private(above)
        with suppress(FileExistsError):  # another process was quicker
            os.mkdir(folder, 0o700)
        facts = os.stat(folder)
    if stat.S_IMODE(facts.st_mode) != 0o700 and is_ours(facts):
        os.chmod(folder, 0o700)


def is_ours(facts: os.stat_result) -> bool:
    """Return True if a file belongs to the user of this process."""
    return not hasattr(os, "geteuid") or facts.st_uid == os.geteuid()
