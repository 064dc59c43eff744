"""Define anchors, code places, and the tree they are judged in."""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple

from smara.core.startup.record import dataclass

Owner = Literal["memory", "observation"]
AnchorKind = Literal["file", "symbol", "lines"]
NamedBy = Literal["file", "evidence", "text"]
"""How a statement names the code: in its list of files, as lines it rests on, or in its words."""

MOST_PLACES = 32
NOT_KNOWN = b"?"
"""In the place of twins or namesakes that could not be looked up: the code was read as it was long
ago.
"""
_PLACE_BYTES = 6


class Named(NamedTuple):
    """Code that a statement names, not looked up yet."""

    path: str | None
    symbol: str = ""
    first_line: int | None = None
    last_line: int | None = None
    commit: str | None = None
    named_by: NamedBy = "file"


class CodePlace(NamedTuple):
    """A definition where it stands, as it is now or was once."""

    path: str
    symbol: str
    first_line: int
    last_line: int
    hash: bytes
    sketch: bytes = b""
    name: str = ""


@dataclass(frozen=True, slots=True)
class NewAnchor:
    """An anchor on its way in.

    ``hash`` and ``sketch`` are of the definition, of the lines or of the file.

    ``twins`` are the other places that had the very same body then, ``namesakes`` those of the same
    name: one that was there before is not where something moved to.
    """

    kind: AnchorKind
    path: str
    symbol: str = ""
    first_line: int | None = None
    last_line: int | None = None
    hash: bytes = b""
    sketch: bytes = b""
    twins: bytes = b""
    namesakes: bytes = b""
    commit: str | None = None
    named_by: NamedBy = "file"


@dataclass(frozen=True, slots=True)
class Anchor(NewAnchor):
    """An anchor as it is kept."""

    no: int = 0
    owner: Owner = "memory"
    repository: str = ""
    """The repository it was made in: trees of others say nothing about it."""


def place_mark(path: str, symbol: str) -> bytes:
    """Return a place in six bytes."""
    text = f"{path}\0{symbol}".encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=_PLACE_BYTES).digest()


def place_marks(places: list[tuple[str, str]]) -> bytes:
    """Places as they are kept with an anchor.

    Of a body that stands in very many places, the first ones.
    """
    return b"".join(sorted({place_mark(*each) for each in places})[:MOST_PLACES])


class Places:
    """Places that were known before.

    >>> known = Places(place_marks([("a.py", "f")]))
    >>> known.includes("a.py", "f"), known.includes("b.py", "f")
    (True, False)
    """

    def __init__(self, marks: bytes) -> None:
        self._marks = {marks[at : at + _PLACE_BYTES] for at in range(0, len(marks), _PLACE_BYTES)}

    @property
    def are_all(self) -> bool:
        """Return True if these are all there were."""
        return len(self._marks) < MOST_PLACES and NOT_KNOWN not in self._marks

    def includes(self, path: str, symbol: str) -> bool:
        return place_mark(path, symbol) in self._marks


@dataclass(frozen=True, slots=True)
class AnchorTree:
    """The tree that asks.

    The folder, the repository it belongs to, and its index, if it has one.
    """

    root: str
    repository: str
    no: int | None = None
    is_ready: bool = False
    """Whether its index was built to the end at least once."""

    @property
    def has_index(self) -> bool:
        return self.no is not None and self.is_ready
