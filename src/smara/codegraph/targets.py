"""What somebody means by ``auth.py``, ``src/auth.py:Session.login``, ``login``, ``auth.py:42`` or
``src/auth/``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from smara.codegraph.lookup import CodeLookup
from smara.codegraph.models import Node
from smara.database.database import Session
from smara.errors import InvalidInputError, NotFoundError

MOST_NAMED = 8
_LONGEST = 1_000
_LINE = re.compile(r"[Ll]?(\d{1,9})(?:[-:][Ll]?\d*)?")
_SPLIT = re.compile(r"::|[:#]")
_CLOSE = 0.6


@dataclass(frozen=True, slots=True)
class Target:
    """The nodes that are meant. Several only for a folder, which means all of its files."""

    nodes: tuple[Node, ...]
    is_folder: bool = False


class Paths:
    """The paths of a tree, to be found by their ends."""

    def __init__(self, paths: Iterable[str]) -> None:
        listed = tuple(paths)
        self.places = {path: place for place, path in enumerate(listed)}
        self.all = tuple(sorted(listed))
        self._by_name: dict[str, list[str]] = {}
        for path in self.all:
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)

    def called(self, wanted: str) -> list[str]:
        """The file of that path, or those whose path ends with it."""
        alike = self._by_name.get(wanted.rpartition("/")[2], [])
        if wanted in alike:
            return [wanted]
        return [path for path in alike if path.endswith(f"/{wanted}")]

    def inside(self, wanted: str) -> list[str]:
        """The files of a folder; ``.`` is the root."""
        start = f"{wanted.rstrip('/')}/"
        return [path for path in self.all if path.startswith(start) or wanted in (".", "/")]


class Targets:
    """Finds nodes by what people and agents call them."""

    def __init__(
        self,
        lookup: CodeLookup,
        root: str,
        find_paths: Callable[[], Paths],
        at_line: Callable[[str, int], int | None],
    ) -> None:
        self._lookup = lookup
        self._root = root.rstrip("/\\")
        self._find_paths = find_paths
        self._at_line = at_line

    def find(self, session: Session, text: str) -> list[Node]:
        """Every node that may be meant, the likeliest first; none when nothing is."""
        wanted = self._plain(text)
        paths = self._find_paths()
        files = paths.called(wanted)
        if files:
            # A word may name a file without a suffix (``run``) and a function: then both may be
            # meant.
            named = self._symbols(session, wanted) if wanted.isidentifier() else []
            return [*named, *self._file_nodes(session, files)]
        path, rest = _split(wanted)
        if path and (files := paths.called(path)):
            return [node for each in files for node in self._in_file(session, each, rest)]
        return self._symbols(session, wanted)

    def only(self, session: Session, text: str) -> Target:
        """The one node that is meant, or the files of a folder.

        ``NotFoundError`` names what is close, ``InvalidInputError`` what else it may mean.
        """
        found = self.find(session, text)
        if not found:
            inside = self._folder(session, self._plain(text))
            if inside:
                return Target(tuple(inside), is_folder=True)
            raise self._unknown(session, text)
        best = _likeliest(found, self._plain(text))
        if len(best) == 1:
            return Target((best[0],))
        named = ", ".join(f"{node.label} (line {node.first_line})" for node in best[:MOST_NAMED])
        more = f" and {len(best) - MOST_NAMED} more" if len(best) > MOST_NAMED else ""
        raise InvalidInputError(
            f"{text!r} may mean {len(best)} things: {named}{more}. Name one as PATH:NAME or "
            "PATH:LINE.",
            candidates=[node.label for node in best],
        )

    def files(self, session: Session, given: Iterable[str]) -> tuple[list[str], list[str]]:
        """The paths that some names of files and folders mean, and the names that mean none."""
        paths = self._find_paths()
        known, unknown = [], []
        for each in given:
            wanted = self._plain(each)
            found = paths.called(wanted) or paths.inside(wanted)
            known += found
            unknown += [] if found else [each]
        return known, unknown

    def _plain(self, text: str) -> str:
        wanted = text.strip()
        if not wanted or len(wanted) > _LONGEST:
            raise InvalidInputError(
                "Name a file, a folder or a symbol: src/auth.py, Session.login, src/auth.py:42."
            )
        if "\\" in wanted and "/" not in wanted:
            wanted = wanted.replace("\\", "/")
        if wanted.startswith("../"):
            wanted = os.path.normpath(os.path.join(os.getcwd(), wanted)).replace(os.sep, "/")
        if self._root and wanted.startswith(f"{self._root}/"):
            wanted = wanted[len(self._root) + 1 :]
        return wanted.removeprefix("./").removesuffix("()")

    def _file_nodes(self, session: Session, paths: Sequence[str]) -> list[Node]:
        return self._lookup.file_nodes(session, paths)

    def _folder(self, session: Session, wanted: str) -> list[Node]:
        return self._file_nodes(session, self._find_paths().inside(wanted))

    def _in_file(self, session: Session, path: str, rest: str) -> list[Node]:
        if line := _LINE.fullmatch(rest):
            no = self._at_line(path, int(line[1]))
            return list(self._lookup.nodes(session, [no]).values()) if no is not None else []
        wanted = _dotted(rest)
        named = self._lookup.in_file(session, path, wanted.rpartition(".")[2])
        return [node for node in named if _is_called(node, wanted)]

    def _symbols(self, session: Session, wanted: str) -> list[Node]:
        dotted = _dotted(wanted)
        name = dotted.rpartition(".")[2]
        if not name:
            return []
        found = [node for node in self._lookup.named(session, [name]) if node.kind != "file"]
        exact = [node for node in found if _is_called(node, dotted)]
        if exact or "." not in dotted:
            return exact
        return [node for node in found if _is_in_module(node, dotted)]

    def _unknown(self, session: Session, text: str) -> NotFoundError:
        path, rest = _split(self._plain(text))
        near = _near(rest or path, self._lookup.distinct_names(session), self._find_paths().all)
        hint = (
            f" Did you mean {', '.join(near)}?"
            if near
            else " `smara graph map` shows what there is."
        )
        if self._lookup.is_building(session):
            hint += " The code is being indexed: it may not have been read yet."
        return NotFoundError(f"There is no file or symbol {text!r} in the index.{hint}", near=near)


def _split(wanted: str) -> tuple[str, str]:
    path, *rest = _SPLIT.split(wanted, maxsplit=1)
    return path, rest[0] if rest else ""


def _dotted(name: str) -> str:
    """A qualified name as it is stored, whatever its language writes between the parts."""
    return re.sub(r"::|#|->|/", ".", name).strip(".").removesuffix("()")


def _is_called(node: Node, dotted: str) -> bool:
    return node.kind != "file" and (node.qualname == dotted or node.qualname.endswith(f".{dotted}"))


def _is_in_module(node: Node, dotted: str) -> bool:
    """Whether ``smara.codegraph.models.Node`` may name a node: its path without the suffix, then
    its qualified name.
    """
    module = re.sub(r"(/__init__|/mod|/index)?\.\w+$", "", node.path).replace("/", ".")
    whole = f".{module}.{node.qualname}"
    return whole.endswith(f".{dotted}")


def _likeliest(found: Sequence[Node], wanted: str) -> list[Node]:
    """Of several, those whose whole name was given; of these the ones outside of tests, where there
    are any.
    """
    dotted = _dotted(wanted)
    whole = [node for node in found if node.qualname == dotted] or list(found)
    plain = [
        node
        for node in whole
        if node.kind != "test" and not re.search(r"(^|/)tests?/|(^|/)test_", node.path)
    ]
    return plain or whole


def _near(wanted: str, names: Iterable[str], paths: Iterable[str]) -> list[str]:
    """What looks like it, the likest first."""
    last = wanted.rpartition("." if "/" not in wanted else "/")[2].casefold()
    by_end: dict[str, str] = {}
    for each in (*names, *paths):
        end = each.rpartition("/")[2].casefold()
        if (
            end
            and abs(len(end) - len(last)) <= max(3, len(last) // 2)
            and (end[0] == last[:1] or last in end)
        ):
            by_end.setdefault(end, each)
    return [by_end[end] for end in get_close_matches(last, list(by_end)[:20_000], 3, _CLOSE)]
