"""Find the agents on this machine and whether they are set up."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass

from smara.adapters.host import Host, Reach, SetupTarget
from smara.adapters.host_specs import HOSTS, host_named
from smara.adapters.hosts.setup.plan import Journal, state_of
from smara.errors import InvalidInputError, SmaraError


@dataclass(frozen=True, slots=True)
class FoundHost:
    """An agent on this machine."""

    agent: str
    name: str
    program: str | None
    """Where its program is; ``None`` when only its folder was found."""
    folder: str
    set_up: tuple[Reach, ...]
    """Where it is set up already."""
    has_plugin: bool = False
    """Whether it has our plug-in switched on, which does the same."""

    @property
    def is_set_up(self) -> bool:
        """Whether it tells and hears us, by its settings or by the plug-in."""
        return bool(self.set_up) or self.has_plugin


def find_hosts(root: str, journal: Journal) -> list[FoundHost]:
    """Find the agents of this machine: by a program on the path, or a folder of the user."""
    hosts = []
    for host in HOSTS:
        if host.setup is None or host.setup.home is None:
            continue
        path = next(filter(None, map(shutil.which, host.setup.programs)), None)
        folder = host.setup.home.path
        if path or os.path.isdir(folder):
            reaches: tuple[Reach, ...] = ("project", "global")
            hosts.append(
                FoundHost(
                    host.name,
                    host.title,
                    path,
                    folder=folder,
                    set_up=tuple(each for each in reaches if _is_set_up(host, each, root, journal)),
                    has_plugin=host.setup.has_plugin(folder, root),
                )
            )
    return hosts


def targets_of(agent: str, reach: Reach, root: str, program: str = "smara") -> list[SetupTarget]:
    """Return the files that make a host call us, in a repository or for all of a user's.

    Raises:
        InvalidInputError: The host has nothing to set up, or not with this reach.
    """
    host = host_named(agent)
    if host.setup is None:
        raise InvalidInputError(f"{host.title or host.name} runs no hooks: nothing to set up.")
    return host.setup.targets(reach, root, program)


def _is_set_up(host: Host, reach: Reach, root: str, journal: Journal) -> bool:
    try:
        return state_of(targets_of(host.name, reach, root, program())[0], journal) != "absent"
    except (SmaraError, OSError):
        return False  # a file that cannot be read is for `smara setup --check` to speak of


def program() -> str:
    """What hosts are told to call: our name where a shell finds it, otherwise the whole path.

    A name outlives an upgrade that moves the program, and a path outlives a shell without our
    folder.
    """
    if shutil.which("smara"):
        return "smara"
    beside = os.path.join(
        os.path.dirname(sys.executable), "smara.exe" if sys.platform == "win32" else "smara"
    )
    return beside if os.path.exists(beside) else "smara"
