"""Define a page: its address, its looks, what it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from smara.core.startup.record import dataclass
from smara.memory import Memory

Query: TypeAlias = Mapping[str, str]
Facts: TypeAlias = dict[str, Any]
ROWS = 50


@dataclass(frozen=True, slots=True)
class PageSpec:
    """Describes one page: where it is, how it looks, what it reads."""

    path: str
    """Its address, such as ``/memories/{id}``."""
    template: str
    read: Callable[[Memory, Query], Facts]
    title: str
    """Its heading in English; the catalogs translate it."""
    key: str = ""
    """The letter that leads to it after ``g``; a page without one is not in the navigation."""


def number(query: Query, name: str) -> int:
    """Return a number of the address; 0 for anything else."""
    given = query.get(name, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else 0
