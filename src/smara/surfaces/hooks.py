"""Receive a host's hook: `smara hook AGENT EVENT`.

Agents call this many times a minute, so it loads almost nothing. The event is written to
the spool before anything else happens. A hook always exits with 0 and stays silent on errors.
"""

import os
import sys

from smara.core.host_table import ANSWERABLE, DRAIN_EVENTS, RUNNERS, TRANSIENT
from smara.environment import is_internal, is_set, named_project, patience, spool_folder

READ_SECONDS = 2.0
"""How long a host may take to hand over its payload."""

DRAIN = "drain"


def run(agent: str, event: str) -> None:
    """Receive the event on standard input, answer it, and exit."""
    try:
        _silence_stderr()
        if not is_internal():
            _take(agent, event)
    except BaseException:  # noqa: S110, BLE001 - the agent must not notice; what could be kept was kept before this
        pass
    # Python's own way out would run for as long as the hook did.
    os._exit(0)


def _take(agent: str, event: str) -> None:
    folder = spool_folder()
    # Some hosts also run the hooks that another was set up with, and wait for every one of them.
    runners = [host for name, host in RUNNERS.get(agent, {}).items() if is_set(name)]
    if runners:
        agent = runners[0]
    host = agent if agent in ANSWERABLE else "generic"
    if event == DRAIN:
        if not runners:
            from smara.adapters.hosts.hook_store import BACKGROUND_SECONDS, drain_in_background

            drain_in_background(folder, BACKGROUND_SECONDS)
        return
    payload = read_input(0)
    path = (
        _keep(folder, agent, event, payload=payload)
        if event not in TRANSIENT[host] and payload.strip()
        else ""
    )
    is_behind = event in DRAIN_EVENTS[host] and _is_behind(folder, path)
    if event in ANSWERABLE[host]:
        from smara.adapters.hosts.reply import answer

        said = answer(agent, event, payload, folder=folder, is_behind=is_behind)
        if said:
            write_output(1, said)
    if is_behind:
        from smara.adapters.hosts.hook_store import WAITED_SECONDS, drain_in_background

        drain_in_background(folder, WAITED_SECONDS)


def _keep(folder: str, agent: str, event: str, payload: bytes) -> str:
    from smara.adapters.hosts.spool import put

    try:
        return put(folder, agent, event, payload=payload, project=named_project(), cwd=os.getcwd())
    except OSError:
        return ""  # a full disk or a folder that cannot be written; the answer may still be given


def _is_behind(folder: str, path: str) -> bool:
    """Whether events wait that are older than the one at this path."""
    from smara.adapters.hosts.spool import names

    return any(name < os.path.basename(path) for name in names(folder)[:1])


def read_input(file: int) -> bytes:
    """Read a stream to its end, or until the time is over."""
    pieces = []
    size = 0
    while size < 64 << 20:
        if not _is_ready(file):
            break
        piece = os.read(file, 1 << 16)
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def _is_ready(file: int) -> bool:
    if sys.platform == "win32":
        return True  # only sockets can be waited for there; the host's own timeout has to do
    from select import select

    return bool(select([file], [], [], READ_SECONDS * patience())[0])


def write_output(file: int, content: bytes) -> None:
    """Write all of it; a reader that has left is no trouble."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def _silence_stderr() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
