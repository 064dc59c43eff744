"""Make anchors from the paths, lines and names in a statement.

A path must be a file of the tree. Lines stand for the smallest definition around them, or for
themselves. A name must mean exactly one definition.
"""

from __future__ import annotations

from collections.abc import Sequence

from smara.codegraph.anchors.disk import Disk, lines_between, marked, places_of, sample_of
from smara.codegraph.anchors.models import (
    NOT_KNOWN,
    AnchorTree,
    CodePlace,
    Named,
    NewAnchor,
    place_marks,
)
from smara.codegraph.anchors.store import AnchorStore
from smara.codegraph.git import GitFiles
from smara.codegraph.index.files import content_hash as digest
from smara.core.paths import PATH_IN_TEXT
from smara.core.startup.regex import regex
from smara.database.database import Session

MOST_NAMES = 24
_MOST_TEXT = 20_000
_NAME = r"[^\W\d]\w*"
_DOTTED = regex(rf"{_NAME}(?:(?:\.|::|#){_NAME})*")
_CODE = regex(r"`([^`\n]{1,200})`")
_WORD = regex(rf"(?<![\w./\\@-]){_NAME}(?:(?:\.|::){_NAME})*(?P<call>\(\))?")
_HUMP = regex(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")


def paths_in(text: str) -> list[Named]:
    """Return paths and places in files that a text names.

    ``src/auth.py``, ``src/auth.py:10-20``, ``src/auth.py:login``.
    """
    places: dict[Named, None] = {}
    for match in PATH_IN_TEXT.finditer(text[:_MOST_TEXT]):
        path = match["path"].removeprefix("./").rstrip(".")
        first = int(match["first"]) if match["first"] else None
        last = int(match["last"]) if match["last"] else first
        places[Named(path, match["symbol"] or "", first, last_line=last, named_by="text")] = None
    return list(places)[:MOST_NAMES]


def names_in(text: str) -> list[str]:
    """Find names of code in a text, those in backticks first.

    Paths are left out.

    >>> names_in("Call `Session.login` before refresh_token(); the loginForm and `run` are fine, e.g. here.")
    ['Session.login', 'run', 'refresh_token', 'loginForm']
    """  # noqa: E501
    cut = text[:_MOST_TEXT]
    names: dict[str, None] = {}
    for match in _CODE.finditer(cut):
        inside = match[1].strip().removesuffix("()").split("(")[0]
        if _DOTTED.fullmatch(inside):
            names[plain_name(inside)] = None
    plain = PATH_IN_TEXT.sub(
        lambda match: " " if "/" in match["path"] or match["first"] else match[0],
        _CODE.sub(" ", cut),
    )
    for match in _WORD.finditer(plain):
        word = plain_name(match[0].removesuffix("()"))
        parts = word.split(".")
        # ``Session.login``, but not ``e.g`` or a missing space.
        is_qualified = all(len(part) > 2 for part in parts) and any(
            part[0].isupper() for part in parts[:-1]
        )
        if match["call"] or "_" in word.strip("_") or _HUMP.search(word) or is_qualified:
            names[word] = None
    return list(names)[:MOST_NAMES]


def plain_name(name: str) -> str:
    """Return a name with dots between its parts, in any language."""
    return name.replace("::", ".").replace("#", ".")


MOST_ANCHORS = 12


class AnchorMaker:
    """Finds the code that statements name, in one tree.

    ``commit`` is where the code is read, when it is not the code of today.
    """

    def __init__(
        self,
        store: AnchorStore,
        session: Session,
        tree: AnchorTree,
        disk: Disk,
        past: GitFiles,
        commit: str | None = None,
    ) -> None:
        self._store, self._session, self._tree = store, session, tree
        self._disk, self._past, self._commit = disk, past, commit
        self._head = commit or past.head()

    def make(self, named: Sequence[Named], text: str) -> list[NewAnchor]:
        """Return the anchors of one statement.

        What it names by itself first, then what its words name.
        """
        placed = [self._place(each) for each in (*named, *paths_in(text))]
        paths = {anchor.path for anchor in placed if anchor is not None}
        named_in_text = [self._name(name, paths) for name in names_in(text)]
        # One anchor for a thing, however often it is named; overloads have one name and are
        # several things.
        anchors: dict[tuple[object, ...], NewAnchor] = {}
        for each in (*placed, *named_in_text):
            if each is not None:
                where = each.first_line if each.kind == "lines" else each.hash
                anchors.setdefault((each.kind, each.path, each.symbol, where), each)
        # A definition says more than the file around it, and lines more than a name.
        order = ("symbol", "lines", "file")
        return sorted(anchors.values(), key=lambda each: order.index(each.kind))[:MOST_ANCHORS]

    def _place(self, named: Named) -> NewAnchor | None:
        if (path := self._path(named.path)) is None:
            return None
        commit = self._past.commit(named.commit) or self._commit
        if (data := self._data(path, commit)) is None:
            return None
        head = commit or self._head
        if not named.symbol and named.first_line is None:
            return NewAnchor(
                "file",
                path,
                hash=digest(data),
                sketch=sample_of(marked(data)),
                commit=head,
                named_by=named.named_by,
            )
        places = self._places(path, data, commit)
        if named.symbol:
            fitting = [place for place in places if _means(named.symbol, place.symbol)]
            plain = plain_name(named.symbol)
            exact = [place for place in fitting if place.symbol == plain] or fitting
            is_one = len({_at(each) for each in exact}) == 1
            return self._symbol(exact[0], commit, named.named_by) if is_one else None
        # The smallest definition around some lines, or the lines themselves.
        first = named.first_line or 1
        last = named.last_line or first
        around = [each for each in places if each.first_line <= first and last <= each.last_line]
        if around:
            smallest = min(around, key=lambda each: each.last_line - each.first_line)
            return self._symbol(smallest, commit, named.named_by)
        if not (marks := lines_between(marked(data), first, last)):
            return None
        return NewAnchor(
            "lines",
            path,
            first_line=first,
            last_line=last,
            hash=digest(marks),
            sketch=marks,
            commit=head,
            named_by=named.named_by,
        )

    def _name(self, name: str, paths: set[str]) -> NewAnchor | None:
        """Return what a name means, if it can only mean one thing."""
        if not self._tree.has_index or self._tree.no is None:
            return None
        called = self._store.called(self._session, self._tree.no, [name.rpartition(".")[2]])
        fitting = [place for place in called if _means(name, place.symbol)]
        near = [place for place in fitting if place.path in paths]
        chosen = {_at(place): place for place in near or fitting}
        if len(chosen) != 1:
            return None
        place = next(iter(chosen.values()))
        data = self._data(place.path, self._commit)
        places = self._places(place.path, data, self._commit) if data is not None else ()
        now = next((each for each in places if each.symbol == place.symbol), None)
        return self._symbol(now, self._commit, "text") if now is not None else None

    def _symbol(self, place: CodePlace, commit: str | None, named_by: str) -> NewAnchor:
        twins = namesakes = NOT_KNOWN
        if commit is None and self._tree.no is not None:
            name = place.symbol.rpartition(".")[2]
            same = self._store.with_bodies(self._session, self._tree.no, [place.hash])
            called = self._store.called(self._session, self._tree.no, [name])
            twins, namesakes = (
                place_marks([_at(each) for each in others if _at(each) != _at(place)])
                for others in (same, [each for each in called if each.symbol == place.symbol])
            )
        return NewAnchor(
            "symbol",
            place.path,
            place.symbol,
            first_line=place.first_line,
            last_line=place.last_line,
            hash=place.hash,
            sketch=place.sketch,
            twins=twins,
            namesakes=namesakes,
            commit=commit or self._head,
            named_by=named_by,  # type: ignore[arg-type]  # one of the three
        )

    def _path(self, path: str | None) -> str | None:
        """Return a path as the tree has it: below the root.

        A bare end of a path when only one file has it.
        """
        if not path:
            return None
        root = self._tree.root.rstrip("/") + "/"
        plain = path.replace("\\", "/").removeprefix("./").removeprefix(root)
        if plain.startswith("/") or ".." in plain.split("/"):
            return None
        if self._disk.stat(plain) is not None or (
            self._commit and self._past.read(self._commit, plain) is not None
        ):
            return plain
        no = self._tree.no
        ends = self._store.ending(self._session, no, plain) if no is not None else []
        return ends[0] if len(ends) == 1 else None

    def _data(self, path: str, commit: str | None) -> bytes | None:
        if commit is not None:
            return self._past.read(commit, path)
        return self._disk.read(path) if self._disk.may_read(path) else None

    def _places(self, path: str, data: bytes, commit: str | None) -> Sequence[CodePlace]:
        return places_of(path, data) if commit is not None else self._disk.places(path)


def _means(name: str, symbol: str) -> bool:
    """Whether a name, perhaps with what stands before it, means a definition.

    >>> _means("login", "Session.login"), _means("Session.login", "Session.login"), _means("x.login", "Session.login")
    (True, True, False)
    """  # noqa: E501
    plain = plain_name(name)
    return (
        symbol == plain
        or symbol.endswith(f".{plain}")
        or (plain.endswith(f".{symbol}") and "." in symbol)
    )


def _at(place: CodePlace) -> tuple[str, str]:
    return place.path, place.symbol
