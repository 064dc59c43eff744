"""Judging anchors at read time: a few look-ups for all of them together, and no more reading than
is needed.

Most anchors are settled by one look at the index and one ``stat`` of each file. A file that
differs from the index is read then and there, within the bound of the question. Only for what
has gone from its place is the rest of the tree asked: where its body stands, what has its
name, and whether there are files that the index has not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property

from smara.codegraph.anchors.disk import Disk
from smara.codegraph.anchors.models import Anchor, Place, Tree
from smara.codegraph.anchors.past import Past
from smara.codegraph.anchors.store import AnchorStore
from smara.codegraph.anchors.verdict import (
    BEING_READ,
    NO_INDEX,
    Likeness,
    Sight,
    judge,
    judge_file,
    judge_lines,
)
from smara.codegraph.work import content_hash as digest
from smara.core.freshness import AnchorVerdict, Judged
from smara.database.database import Row, Session

_NOT_PARSED = frozenset({"unknown", "unread"})
Unseen = Callable[[], Collection[str] | None]
"""The files that differ from the index or are not in it; ``None`` when that cannot be said."""


class Judging:
    """Judges anchors for one tree, within one question."""

    def __init__(
        self,
        store: AnchorStore,
        session: Session,
        tree: Tree,
        disk: Disk,
        past: Past,
        unseen: Unseen,
        likeness: Likeness,
    ) -> None:
        self._store = store
        self._session = session
        self._tree = tree
        self._disk = disk
        self._past = past
        self._unseen = unseen
        self._likeness = likeness
        self._rows: dict[str, Row] = {}
        self._states: dict[str, str] = {}

    def judge(self, anchors: Sequence[Anchor]) -> dict[int, Judged]:
        """The verdicts, by the number of the anchor."""
        self._know({each.path for each in anchors})
        found: dict[int, Judged] = {}
        symbols = [each for each in anchors if each.kind == "symbol"]
        for anchor, verdict in self._symbols(symbols):
            found[anchor.no] = Judged(verdict)
        for anchor in anchors:
            if anchor.kind == "file":
                found[anchor.no] = Judged(self._file(anchor), is_file=True)
            elif anchor.kind == "lines":
                found[anchor.no] = Judged(self._lines(anchor))
        return found

    # files: as indexed, gone, to be taken apart, read but over the bound of that, or not read

    def _know(self, paths: Collection[str]) -> None:
        """Look files up in the index, all at once."""
        wanted = [path for path in paths if path not in self._states]
        if self._tree.no is not None:
            self._rows |= self._store.files(self._session, self._tree.no, wanted)
        for path in wanted:
            self._states[path] = self._look(path)

    def _look(self, path: str) -> str:
        there, row = self._disk.stat(path), self._rows.get(path)
        if there is None:
            return "gone"
        if row is not None and row[4] is None and (row[2], row[3]) == there:
            return "indexed"
        if not self._disk.may_read(path):
            return "unknown"
        data = self._disk.read(path)
        if data is None:
            return "unreadable"
        if row is not None and row[4] is None and bytes(row[1]) == digest(data):
            return "indexed"
        return "read" if self._disk.may_parse(path) else "unread"

    # definitions

    def _symbols(self, anchors: Sequence[Anchor]) -> list[tuple[Anchor, AnchorVerdict]]:
        here = self._here(anchors)
        judged, lost = [], []
        for anchor in anchors:
            there = here.get((anchor.path, anchor.symbol), ())
            sight = Sight(
                there, is_read=self._states[anchor.path] not in (*_NOT_PARSED, "unreadable")
            )
            if there or not sight.is_read:
                judged.append((anchor, judge(anchor, sight, self._likeness)))
            else:
                lost.append(anchor)
        return judged + self._lost(lost)

    def _here(self, anchors: Sequence[Anchor]) -> dict[tuple[str, str], list[Place]]:
        """What stands at the places of anchors now."""
        indexed = [
            self._rows[each.path][0] for each in anchors if self._states[each.path] == "indexed"
        ]
        found = (
            self._store.in_files(self._session, indexed, [each.symbol for each in anchors])
            if indexed
            else []
        )
        for path in {each.path for each in anchors if self._states[each.path] == "read"}:
            found += self._disk.places(path)
        here: dict[tuple[str, str], list[Place]] = {}
        for place in found:
            here.setdefault((place.path, place.symbol), []).append(place)
        return here

    def _lost(self, anchors: Sequence[Anchor]) -> list[tuple[Anchor, AnchorVerdict]]:
        """Those that have gone from their place: looked for in the index, then in what the index
        has not seen.
        """
        if not anchors:
            return []
        elsewhere = self._elsewhere(anchors)
        sights = [(anchor, self._sight(anchor, elsewhere, is_all=True)) for anchor in anchors]
        judged = [(anchor, judge(anchor, sight, self._likeness)) for anchor, sight in sights]
        if all(verdict.verdict == "moved" for _, verdict in judged):
            return judged
        elsewhere += self._new_places
        is_all = self._is_all_read
        return [
            (
                anchor,
                verdict
                if verdict.verdict == "moved"
                else judge(anchor, self._sight(anchor, elsewhere, is_all), self._likeness),
            )
            for anchor, verdict in judged
        ]

    def _sight(self, anchor: Anchor, elsewhere: Sequence[Place], is_all: bool) -> Sight:
        same = [place for place in elsewhere if place.hash == anchor.hash]
        named = [place for place in elsewhere if place.symbol == anchor.symbol]
        return Sight(
            (),
            same,
            named,
            is_all_read=is_all,
            why_not=BEING_READ if self._tree.has_index else NO_INDEX,
        )

    def _elsewhere(self, anchors: Sequence[Anchor]) -> list[Place]:
        """Where their bodies and names stand by the index, each seen to be there still; and in
        their own files.
        """
        found: list[Place] = []
        if self._tree.no is not None:
            found += self._store.with_bodies(
                self._session, self._tree.no, [each.hash for each in anchors]
            )
            names = [each.symbol.rpartition(".")[2] for each in anchors]
            symbols = {each.symbol for each in anchors}
            called = self._store.called(self._session, self._tree.no, names)
            found += [place for place in called if place.symbol in symbols]
        self._know({place.path for place in found})
        kept = [place for place in found if self._states[place.path] == "indexed"]
        again = {place.path for place in found} | {each.path for each in anchors}
        for path in again:
            if self._states[path] == "read":
                kept += self._disk.places(path)
        return list(dict.fromkeys(kept))

    @cached_property
    def _new_paths(self) -> list[str] | None:
        """Files that the index has not seen as they are; ``None`` when that is not known."""
        if not self._tree.has_index:
            return None
        found = self._unseen()
        if found is None:
            return None
        self._know(found)
        return sorted(path for path in found if self._states[path] == "read")

    @cached_property
    def _new_places(self) -> list[Place]:
        found: list[Place] = []
        for path in self._new_paths or ():
            if self._disk.may_parse(path):
                found += self._disk.places(path)
            else:
                self._states[path] = "unread"
        return found

    @property
    def _is_all_read(self) -> bool:
        """Whether nothing is left in which a body may stand; asked after the new places were looked
        at.
        """
        return self._new_paths is not None and _NOT_PARSED.isdisjoint(self._states.values())

    # files and lines

    def _file(self, anchor: Anchor) -> AnchorVerdict:
        state = self._states[anchor.path]
        if state in ("unknown", "unreadable"):
            return judge_file(anchor, None, None, moved_to=None, is_read=False)
        if state == "gone":
            return self._gone_file(anchor)
        if state == "indexed" and bytes(self._rows[anchor.path][1]) == anchor.hash:
            return judge_file(anchor, anchor.hash, None, moved_to=anchor.path)
        return self._read_file(anchor, anchor.path)

    def _read_file(self, anchor: Anchor, path: str) -> AnchorVerdict:
        data = self._disk.read(path) if self._disk.may_read(path) else None
        if data is None:
            return judge_file(anchor, None, None, moved_to=None, is_read=False)
        return judge_file(anchor, digest(data), self._disk.lines(path), moved_to=path)

    def _gone_file(self, anchor: Anchor) -> AnchorVerdict:
        """A file that is not in its place: the same elsewhere, renamed by git's account, or
        gone.
        """
        if self._tree.no is not None:
            for path, _ in self._store.files_with_hash(self._session, self._tree.no, [anchor.hash]):
                if self._disk.stat(path) is not None:
                    return judge_file(anchor, anchor.hash, None, moved_to=path)
        commit = self._past.commit(anchor.commit)
        renamed = self._past.renamed_to(commit, anchor.path) if commit is not None else None
        if renamed is not None and self._disk.stat(renamed) is not None:
            return self._read_file(anchor, renamed)
        return judge_file(anchor, None, None, moved_to=None)

    def _lines(self, anchor: Anchor) -> AnchorVerdict:
        if self._states[anchor.path] == "gone":
            return judge_lines(anchor, None)
        if not self._disk.may_read(anchor.path):
            return judge_lines(anchor, None, is_read=False)
        lines = self._disk.lines(anchor.path)
        return judge_lines(anchor, lines, is_read=lines is not None)
