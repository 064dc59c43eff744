"""Read what hooks need of the environment without loading settings.

Loading :mod:`smara.config` costs more than starting Python, and a hook that only captures
may hardly be slower than that. So the two questions it has are answered here, with ``os``
and ``sys`` alone.
"""

import os
import sys
from zlib import crc32

INTERNAL = "SMARA_INTERNAL"
"""Set for every agent that Smara itself starts: hooks of such an agent return at once."""


def is_internal() -> bool:
    """Return True if Smara started this process.

    Nothing it does is to be remembered.
    """
    return os.environ.get(INTERNAL, "") not in ("", "0")


def variable(name: str) -> str:
    """Return a variable of the environment; empty if it is not set."""
    return os.environ.get(name, "")


def spool_folder() -> str:
    """Return the spool folder beside the store of this environment.

    Two environments that name different stores have different spools, so that no event
    goes into a store it was not meant for.
    """
    home, store = os.environ.get("SMARA_HOME"), os.environ.get("SMARA_DB")
    if store:
        file = store_file(store)
        if file is not None:
            return os.path.abspath(file) + "-spool"
        # The address may hold a password.
        return os.path.join(
            home or data_folder(), f"spool-{crc32(store.encode('utf-8', 'replace')):08x}"
        )
    return os.path.join(home or data_folder(), "spool")


SERVERS = ("postgresql://", "postgres://")
"""The beginnings of a server's address."""
_NEVER_FILES = ("file", "sqlite", "postgres", "postgresql")


def store_file(address: str) -> str | None:
    """Return the file that a store's address names; ``None`` for a URL.

    A single letter before a colon is a drive of Windows; ``./a:/b`` is a path that would look
    like a URL.

    >>> [store_file(each) for each in ("a.db", "sqlite:///a.db", "C:/a.db", "mysql://x")]
    ['a.db', 'a.db', 'C:/a.db', None]
    """
    if address.startswith("sqlite:///"):
        return os.path.expanduser(address.removeprefix("sqlite:///"))
    scheme, colon, rest = address.partition(":")
    is_scheme = len(scheme) > 1 and scheme.translate({43: "", 45: "", 46: ""}).isalnum()
    if colon and is_scheme and (rest[:1] in ("/", "\\") or scheme.lower() in _NEVER_FILES):
        return None
    return os.path.expanduser(address)


def data_folder() -> str:
    """The folder of the per-user store on this platform."""
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        return os.path.join(
            os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local"), "smara"
        )
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support", "smara")
    return os.path.join(
        os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share"), "smara"
    )


def patience() -> float:
    """Return the factor for short timeouts: ``SMARA_PATIENCE``, 1 or more.

    For machines on which a fast answer is not to be had, and for tests, which must not depend on
    how busy theirs is.
    """
    try:
        return max(1.0, min(float(os.environ.get("SMARA_PATIENCE", "1")), 1_000.0))
    except ValueError:
        return 1.0


def moment_variables() -> list[str]:
    """Return what decides in the environment what is told unasked.

    They are only compared, and what is written to disk must hold no name with a secret in it.
    """
    names = ("SMARA_MOMENT", "SMARA_CONFIG", "SMARA_PROJECT", "SMARA_ACTOR", "SMARA_SESSION")
    user = f"user={os.getuid() if hasattr(os, 'getuid') else ''}"  # it may hold words for one alone
    values = (
        f"{name}={crc32(os.fsencode(value)):08x}"
        for name, value in os.environ.items()
        if name.startswith(names)
    )
    return [user, *sorted(values)]


def home_of(variable: str, otherwise: str) -> str:
    """Return a host's home: its variable, or a folder in home."""
    return os.environ.get(variable) or os.path.join(os.path.expanduser("~"), *otherwise.split("/"))


def serve_folder() -> str:
    """Return the folder of the access keys of HTTP servers."""
    return os.path.join(os.environ.get("SMARA_HOME") or data_folder(), "serve")


def fleet_sign() -> str:
    """Return the file that living workers of a fleet touch."""
    return os.path.join(os.environ.get("SMARA_HOME") or data_folder(), "fleet", "alive")


def setup_folder() -> str:
    """Return the folder of the original configurations."""
    return os.path.join(os.environ.get("SMARA_HOME") or data_folder(), "setup")


def exchange(variables: dict[str, str | None]) -> dict[str, str | None]:
    """Set variables in place of all of Smara's; return what they were.

    None unsets one. Exchanging them back restores the environment.
    """
    ours = [name for name in os.environ if name.startswith("SMARA_")]
    before = {name: os.environ.get(name) for name in (*ours, *variables)}
    for name in before:
        os.environ.pop(name, None)
    os.environ.update({name: value for name, value in variables.items() if value is not None})
    return before
