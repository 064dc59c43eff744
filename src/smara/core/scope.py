"""Isolate each project: every statement names the project it reads.

A statement without `:project` would read other projects; `scoped_sql` refuses it.
"""

from __future__ import annotations

from collections.abc import Callable

from smara.core.startup.record import dataclass
from smara.errors import InvalidInputError

DEFAULT_PROJECT = "default"
MAX_ID_LENGTH = 512
AGENT = "agent"
"""How the actor of an agent's tools is called, or begins: ``agent:ada``."""
WRITTEN_BY = {
    "person": "a person",
    "agent": "an agent, not confirmed by a person",
    "import": "an import of unknown origin, not confirmed by a person",
}


def author_of(actor: str | None) -> str:
    """Return who wrote by the actor's name: a key of `WRITTEN_BY`.

    Every door names its kind of author: tools begin with ``agent``, importers with ``import``.

    >>> author_of("agent:ada"), author_of("mastra"), author_of("ada")
    ('agent', 'import', 'person')
    """
    kind = (actor or "").partition(":")[0]
    return AGENT if kind == AGENT else "import" if kind in ("import", "mastra") else "person"


@dataclass(frozen=True, slots=True)
class Scope:
    """A caller's project, by number and name."""

    project_no: int
    project_id: str


def scoped_sql(scope: Scope, sql: str) -> str:
    """The statement with its wall put in.

    Raises ``AssertionError`` for a statement without ``:project``: it would see through
    the wall, which is a bug in a store and never in a caller.
    """
    if ":project" not in sql:
        raise AssertionError(f"statement without a wall: {sql}")
    return sql.replace(":project", str(int(scope.project_no)))


def is_id(value: object) -> bool:
    """Return True if a value could be an id at all.

    What cannot be one is not found, whatever it is.
    """
    return (
        isinstance(value, str)
        and 0 < len(value) <= MAX_ID_LENGTH
        and value.isprintable()
        and _is_encodable(value)
    )


_clean: Callable[[str], str] = str


def set_id_cleaner(clean: Callable[[str], str]) -> None:
    """Set the function that takes secrets out of ids."""
    global _clean
    _clean = clean


def require_id(value: str, what: str) -> str:
    """Check an id given by a caller; return it without secrets.

    Ids may hold any printable text of at most 512 characters.
    """
    if not isinstance(value, str) or not value.strip():
        raise InvalidInputError(f"{what} must not be empty. Give a non-empty text.", what=what)
    if len(value) > MAX_ID_LENGTH:
        raise InvalidInputError(
            f"{what} has {len(value)} characters; at most {MAX_ID_LENGTH} are allowed. Use a "
            "shorter one.",
            what=what,
        )
    if not value.isprintable() or not _is_encodable(value):
        raise InvalidInputError(
            f"{what} holds characters that cannot be printed. Use letters, digits and punctuation.",
            what=what,
        )
    return _clean(value)


def lookup_id(value: str | None) -> str | None:
    """Return an id as it is stored; another text is unchanged."""
    return _clean(value) if value is not None and is_id(value) else value


def _is_encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
