"""Write each hook event to a small private file in the spool.

Every tool call of an agent passes here, so it needs ``os`` alone. A file is written under
another name and renamed: a reader never sees half a file, and many processes can write
without a lock. Names sort by time. A killed process loses nothing; a power cut may lose
the last seconds, which the host's transcript still has. A payload that may hold a secret
is redacted first (:mod:`.redact`), and again when the spool is drained.
"""

import os
from time import time_ns

from smara.core.secret_prefilter import may_hold_secret

FORMAT = b"smara1"
ENDING = ".event"
ASIDE = "unreadable"
"""The folder of files that cannot be taken in."""
UNKNOWN = "unknown"
"""The file with the name in a hook's command that no host has."""
MOST_BYTES = 1 << 20
"""A payload longer than this is shortened, value by value, before it is written."""
MOST_FILES = 20_000
"""About a week of a busy agent; past it the oldest tool calls are let go, and counted."""
_LOOK_EVERY = 64


def put(
    folder: str,
    agent: str,
    event: str,
    payload: bytes,
    project: str = "",
    cwd: str = "",
    is_clean: bool = False,
) -> str:
    """Write an event to the spool; return the path of its file.

    Raises ``OSError`` if that fails.

    ``is_clean`` says that the payload comes out of the store, into which no secret goes.
    """
    if not is_clean and (len(payload) > MOST_BYTES or may_hold_secret(payload)):
        from smara.adapters.hosts.redact import safe

        payload = safe(payload, MOST_BYTES)
    nanoseconds = time_ns()
    facts = (agent, event, str(nanoseconds // 1_000_000), project, cwd)
    head = b"\t".join(
        fact.replace("\t", " ").replace("\n", " ").encode("utf-8", "surrogateescape")
        for fact in (FORMAT.decode(), *facts)
    )
    if may_hold_secret(head):
        from smara.secrets import redact

        head = redact(head.decode("utf-8", "replace")).text.encode()
    name = f"{nanoseconds:020d}-{os.getpid()}"
    hidden, path = os.path.join(folder, f".{name}"), os.path.join(folder, name + ENDING)
    _write(folder, hidden, head + b"\n" + payload)
    os.rename(hidden, path)
    if os.getpid() % _LOOK_EVERY == 0:
        keep_bounded(folder)
    return path


def _write(folder: str, path: str, content: bytes) -> None:
    # Windows would write a line's end as two bytes, and the last fact would end in one of them.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        file = os.open(path, flags, 0o600)
    except FileNotFoundError:
        from smara.core.files import make_private

        make_private(folder)
        file = os.open(path, flags, 0o600)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file, rest) :]
    except BaseException:
        os.close(file)
        os.unlink(path)  # a full disk should not be filled further by halves
        raise
    os.close(file)


def names(folder: str) -> list[str]:
    """The names of the events that wait, oldest first."""
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(ENDING))
    except OSError:
        return []


def keep_bounded(folder: str, most: int = MOST_FILES) -> int:
    """Drop the oldest events above the limit; return how many.

    The number is also noted for the doctor.
    """
    waiting = names(folder)
    gone = 0
    for name in waiting[: max(0, len(waiting) - most)]:
        try:
            os.unlink(os.path.join(folder, name))
            gone += 1
        except OSError:
            continue
    if gone:
        append(os.path.join(folder, "lost"), f"{time_ns() // 1_000_000}\t{gone}\n")
    return gone


def append(path: str, line: str) -> None:
    """Add a line to a private file.

    In one write, so that no other process comes between.
    """
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(file, "ab", buffering=0) as stream:
        stream.write(line.encode("utf-8", "replace"))
