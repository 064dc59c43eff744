"""Receive a host's hook: `smara hook AGENT EVENT`.

Agents call this many times a minute, so it loads almost nothing. The event is written to
the spool before anything else happens. A hook always exits with 0 and stays silent on errors.
"""

import os
import sys

from smara.core.host_table import ANSWERABLE, DRAIN_EVENTS, RUNNERS, TRANSIENT
from smara.environment import is_internal, patience, spool_folder, variable

READ_SECONDS = 2.0
"""How long a host may take to hand over its payload."""

DRAIN = "drain"


def run(agent: str, event: str) -> None:
    """Receive the event on standard input, answer it, and exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        if not is_internal():
            _take(agent, event)
    except BaseException:  # noqa: S110, BLE001 - the agent must not notice; what could be kept was kept before this
        pass
    # Python's own way out would run for as long as the hook did.
    os._exit(0)


def _take(agent: str, event: str) -> None:
    folder = spool_folder()
    # Some hosts also run the hooks that another was set up with, and wait for every one of them.
    runners = [host for name, host in RUNNERS.get(agent, {}).items() if variable(name)]
    if runners:
        agent = runners[0]
    host = agent if agent in ANSWERABLE else "generic"
    if event == DRAIN:
        if not runners:
            from smara.adapters.hosts.hook_store import BACKGROUND_SECONDS, drain_in_background

            drain_in_background(folder, BACKGROUND_SECONDS)
        return
    payload = read_input(0)
    name = ""
    if event not in TRANSIENT[host] and payload.strip():
        from smara.adapters.hosts.spool import MOST_BYTES, UNKNOWN, put

        try:
            path = put(
                folder,
                agent,
                event,
                payload=payload,
                project=variable("SMARA_PROJECT"),
                cwd=os.getcwd(),
            )
            name = os.path.basename(path)
            if agent not in ANSWERABLE:
                # Refusing it would break the agent that calls; the doctor says it to a person.
                with open(os.path.join(folder, UNKNOWN), "wb") as note:
                    note.write(agent[:80].encode("utf-8", "replace"))
            if len(payload) > MOST_BYTES:
                # What was kept of a large output is enough to answer it, and is read sooner.
                with open(path, "rb") as file:
                    payload = file.read().partition(b"\n")[2]
        except OSError:
            pass  # a full disk or a folder that cannot be written; the answer may still be given
    is_behind = False
    if event in DRAIN_EVENTS[host]:
        from smara.adapters.hosts.spool import names

        # Events wait that are older than this one.
        is_behind = any(each < name for each in names(folder)[:1])
    if event in ANSWERABLE[host]:
        from smara.adapters.hosts.reply import answer

        reply = answer(agent, event, payload, folder=folder, is_behind=is_behind)
        if reply:
            write_output(1, reply)
    if is_behind:
        from smara.adapters.hosts.hook_store import WAITED_SECONDS, drain_in_background

        drain_in_background(folder, WAITED_SECONDS)


def read_input(file: int) -> bytes:
    """Read a stream to its end, or until the time is over."""
    content = bytearray()  # grown in place: adding up bytes would copy all of them each time
    while len(content) < 64 << 20:
        # On Windows only sockets can be waited for; the host's own timeout has to do there.
        if sys.platform != "win32":
            from select import select

            if not select([file], [], [], READ_SECONDS * patience())[0]:
                break
        piece = os.read(file, 1 << 16)
        if not piece:
            break
        content += piece
    return bytes(content)


def write_output(file: int, content: bytes) -> None:
    """Write all of it; a reader that has left is no trouble."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]
