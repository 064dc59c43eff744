"""List the hosts: one file of this folder each, found by looking.

A file defines ``HOST``; :mod:`.generic` stands for any other agent and for those of which only
the instruction files are read. A new file is a new host; nothing else lists them by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules

from smara.adapters.host import Here, Hooks, Host, NotesFolder, Transcripts
from smara.adapters.host_specs.generic import GENERIC, INSTRUCTION_HOSTS, SHARED

_NAMES = sorted(module.name for module in iter_modules(__path__) if module.name != "generic")
_SPECS: tuple[Host, ...] = tuple(import_module(f"{__name__}.{name}").HOST for name in _NAMES)
# Every host by name; around them those of which only instruction files are read.
HOSTS: tuple[Host, ...] = (SHARED, *_SPECS, GENERIC, *INSTRUCTION_HOSTS)
_BY_NAME = {host.name: host for host in HOSTS}
# The hooks of every host that has them.
HOOKS: dict[str, Hooks] = {host.name: host.hooks for host in HOSTS if host.hooks is not None}
# The transcripts of every host that keeps them, by their format.
TRANSCRIPTS: dict[str, Transcripts] = {
    host.transcripts.format: host.transcripts for host in HOSTS if host.transcripts is not None
}
# The notes of every host that keeps some by itself.
NOTES: dict[str, Callable[[Here], Iterator[NotesFolder]]] = {
    host.name: host.notes for host in HOSTS if host.notes is not None
}


def host_named(name: str) -> Host:
    """Return the host of a name; `GENERIC` for an unknown one.

    Recorded events may name an agent that this release does not know. A name that a person types is
    checked where it is read: `smara setup` refuses an unknown one, the doctor names it in a hook.
    """
    return _BY_NAME.get(name, GENERIC)


def host_of_format(format: str) -> Host:
    """Return the host of a transcript format; `GENERIC` without hooks."""
    found = (
        host
        for host in HOSTS
        if host.transcripts is not None and host.transcripts.format == format and host.hooks
    )
    return next(found, GENERIC)
