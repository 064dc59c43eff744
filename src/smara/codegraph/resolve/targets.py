"""What a name may stand for while it is being followed."""

from __future__ import annotations

from typing import NamedTuple

from smara.codegraph.resolve.outline import Outline


class Package(NamedTuple):
    """A folder that is named like a module and is no file: a Go or Java package, a Python namespace
    package.
    """

    folder: str


class Target(NamedTuple):
    """A file (``place`` -1), a definition in it, or an instance of the class that stands there."""

    where: Outline | Package
    place: int
    is_instance: bool = False
