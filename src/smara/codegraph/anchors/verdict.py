"""Judge whether anchored code is fresh, drifted, moved or gone.

The verdict on one anchor is a pure function of what it was and what is there now. `AnchorJudge`
collects the second part for many anchors together: one look at the index and one ``stat`` per file;
only a file that differs from the index is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any

from smara.codegraph.anchors.disk import Disk, LineMark, find_run, share_gone
from smara.codegraph.anchors.models import Anchor, AnchorTree, CodePlace, NewAnchor, Places
from smara.codegraph.anchors.store import AnchorStore
from smara.codegraph.git import GitFiles
from smara.codegraph.index.files import content_hash as digest
from smara.core.freshness import LITTLE_OF_A_FILE, AnchorVerdict, JudgedAnchor, Verdict
from smara.core.items import grouped
from smara.core.startup.record import dataclass
from smara.database.database import Row, Session

Likeness = Callable[[bytes, bytes], float]
"""How alike two sketches are, from 0 to 1."""
BEING_READ = "the code has changed and is being read again"
NO_INDEX = "it is no longer in its file; `smara code index` would tell whether it is elsewhere"


@dataclass(frozen=True, slots=True)
class AnchorSight:
    """The code now, as far as it concerns one anchor."""

    here: Sequence[CodePlace] = ()
    """What stands under the anchor's name at the anchor's path."""
    same: Sequence[CodePlace] = ()
    """Where the very same body stands, anywhere in the tree."""
    named: Sequence[CodePlace] = ()
    """What has the same qualified name, anywhere in the tree."""
    is_read: bool = True
    """Whether the file of the anchor was read as it is now."""
    is_all_read: bool = True
    """Whether every file in which the body may stand was read as it is now."""
    why_not: str = BEING_READ


def judge(anchor: NewAnchor, sight: AnchorSight, likeness: Likeness) -> AnchorVerdict:
    """Return what became of a definition."""
    if not sight.is_read:
        return _verdict(anchor, "unknown", why=BEING_READ)
    if place := next((each for each in sight.here if each.hash == anchor.hash), None):
        return _verdict(anchor, "fresh", place)
    if sight.here:
        closest = max(sight.here, key=lambda each: likeness(anchor.sketch, each.sketch))
        return _verdict(anchor, "drifted", closest, changed=_differs(anchor, closest, likeness))
    if (moved := _new_home(anchor, sight.same)) is not None:
        return _verdict(anchor, "moved", moved)
    # Something of the same name that was not there before, the most alike of several.
    before = Places(anchor.namesakes)
    carried = max(
        (
            each
            for each in sight.named
            if each.path != anchor.path
            and (before.are_all or len(sight.named) == 1)
            and not before.includes(each.path, each.symbol)
        ),
        key=lambda each: likeness(anchor.sketch, each.sketch),
        default=None,
    )
    if carried is not None:
        return _verdict(anchor, "drifted", carried, changed=_differs(anchor, carried, likeness))
    if sight.is_all_read:
        return _verdict(anchor, "orphaned")
    return _verdict(anchor, "unknown", why=sight.why_not)


def _new_home(anchor: NewAnchor, same: Sequence[CodePlace]) -> CodePlace | None:
    """Return the new place of a body.

    Of several, the one that is most like the old place.
    """
    before = Places(anchor.twins)
    new = [each for each in same if not before.includes(each.path, each.symbol)]
    if not before.are_all and len(same) > 1:
        # It stands in many places: only one of the same name can be it.
        new = [each for each in new if each.symbol == anchor.symbol]
    last = anchor.symbol.rpartition(".")[2]
    # A renamed file keeps the names in it, a renamed function its file; else the first in the tree.
    return max(
        new,
        key=lambda each: (
            each.symbol == anchor.symbol,
            each.symbol.rpartition(".")[2] == last,
            each.path == anchor.path,
            -each.first_line,
        ),
        default=None,
    )


def _differs(anchor: NewAnchor, place: CodePlace, likeness: Likeness) -> float:
    """Return the share that differs.

    What has changed at all differs by a little at least.
    """
    return round(min(1.0, max(0.01, 1 - likeness(anchor.sketch, place.sketch))), 4)


def _verdict(
    anchor: NewAnchor,
    verdict: Verdict,
    place: CodePlace | None = None,
    changed: float | None = None,
    why: str = "",
) -> AnchorVerdict:
    now: dict[str, Any] = {}
    if place is not None:
        now = {"now_path": place.path, "now_symbol": place.symbol, "changed": changed}
        now |= {"first_line": place.first_line, "last_line": place.last_line}
    return AnchorVerdict(
        verdict,
        anchor.path,
        anchor.symbol,
        commit=anchor.commit,
        why=why,
        is_lines=anchor.kind == "lines",
        **now,
    )


def judge_lines(
    anchor: NewAnchor, lines: Sequence[LineMark] | None, is_read: bool = True
) -> AnchorVerdict:
    """Return what became of lines that stand in no definition.

    There as a whole, in part, or not at all.

    ``lines`` are those of the file now, ``None`` when it is gone.
    """
    if not is_read:
        return _verdict(anchor, "unknown", why=BEING_READ)
    if lines is None:
        return _verdict(anchor, "orphaned")
    if (run := find_run(anchor.sketch, lines, anchor.first_line or 1)) is not None:
        return _verdict(anchor, "fresh", CodePlace(anchor.path, "", *run, anchor.hash))
    gone = share_gone(anchor.sketch, lines)
    if gone >= 1:
        return _verdict(anchor, "orphaned", why="its lines are no longer in the file")
    place = CodePlace(
        anchor.path, "", anchor.first_line or 1, last_line=anchor.last_line or 1, hash=b""
    )
    return _verdict(anchor, "drifted", place, changed=round(max(0.01, gone), 4))


def judge_file(
    anchor: NewAnchor,
    hash_now: bytes | None,
    lines: Sequence[LineMark] | None,
    moved_to: str | None,
    is_read: bool = True,
) -> AnchorVerdict:
    """Return what became of a file.

    ``hash_now`` and ``lines`` are ``None`` when it is gone from its place.
    """
    if not is_read:
        return _verdict(anchor, "unknown", why=BEING_READ)
    place = CodePlace(moved_to or anchor.path, "", 1, last_line=1, hash=hash_now or b"")
    if hash_now == anchor.hash:
        return _verdict(anchor, "fresh" if place.path == anchor.path else "moved", place)
    if lines is None:
        return _verdict(anchor, "orphaned")
    changed = round(max(0.01, share_gone(anchor.sketch, lines)), 4)
    is_renamed = place.path != anchor.path and changed < LITTLE_OF_A_FILE
    return _verdict(anchor, "moved" if is_renamed else "drifted", place, changed=changed)


_NOT_PARSED = frozenset({"unknown", "unread"})


class AnchorJudge:
    """Judges anchors for one tree, within one question.

    ``unseen`` gives the files that differ from the index or are not in it; ``None`` when that
    cannot be said.
    """

    def __init__(
        self,
        store: AnchorStore,
        session: Session,
        tree: AnchorTree,
        disk: Disk,
        past: GitFiles,
        unseen: Callable[[], Collection[str] | None],
        likeness: Likeness,
    ) -> None:
        self._store, self._session, self._tree = store, session, tree
        self._disk, self._past = disk, past
        self._unseen, self._likeness = unseen, likeness
        self._rows: dict[str, Row] = {}
        self._states: dict[str, str] = {}

    def judge(self, anchors: Sequence[Anchor]) -> dict[int, JudgedAnchor]:
        """Return the verdicts, by the number of the anchor."""
        self._look({each.path for each in anchors})
        symbols = [each for each in anchors if each.kind == "symbol"]
        judged = {anchor.no: JudgedAnchor(verdict) for anchor, verdict in self._symbols(symbols)}
        for anchor in anchors:
            if anchor.kind == "file":
                judged[anchor.no] = JudgedAnchor(self._file(anchor), is_file=True)
            elif anchor.kind == "lines":
                is_gone = self._states[anchor.path] == "gone"
                may_read = not is_gone and self._disk.may_read(anchor.path)
                lines = self._disk.lines(anchor.path) if may_read else None
                is_read = is_gone or lines is not None
                judged[anchor.no] = JudgedAnchor(judge_lines(anchor, lines, is_read))
        return judged

    # files: as indexed, gone, to be taken apart, read but over the bound of that, or not read

    def _look(self, paths: Collection[str]) -> None:
        new = [path for path in paths if path not in self._states]
        if self._tree.no is not None:
            self._rows |= self._store.files(self._session, self._tree.no, new)
        self._states.update((path, self._state(path)) for path in new)

    def _state(self, path: str) -> str:
        there, row = self._disk.stat(path), self._rows.get(path)
        if there is None:
            return "gone"
        is_current = row is not None and row[4] is None
        if is_current and row is not None and (row[2], row[3]) == there:
            return "indexed"
        if not self._disk.may_read(path):
            return "unknown"
        if (data := self._disk.read(path)) is None:
            return "unreadable"
        if is_current and row is not None and bytes(row[1]) == digest(data):
            return "indexed"
        return "read" if self._disk.may_parse(path) else "unread"

    # definitions

    def _symbols(self, anchors: Sequence[Anchor]) -> list[tuple[Anchor, AnchorVerdict]]:
        # What stands at the places of anchors now.
        paths = [each.path for each in anchors]
        indexed = [self._rows[path][0] for path in paths if self._states[path] == "indexed"]
        symbols = [each.symbol for each in anchors]
        places = self._store.in_files(self._session, indexed, symbols) if indexed else []
        for path in {path for path in paths if self._states[path] == "read"}:
            places += self._disk.places(path)
        here = grouped(((place.path, place.symbol), place) for place in places)
        judged, lost = [], []
        for anchor in anchors:
            there = here.get((anchor.path, anchor.symbol), ())
            is_read = self._states[anchor.path] not in (*_NOT_PARSED, "unreadable")
            if there or not is_read:
                sight = AnchorSight(there, is_read=is_read)
                judged.append((anchor, judge(anchor, sight, self._likeness)))
            else:
                lost.append(anchor)
        return judged + self._lost(lost)

    def _lost(self, anchors: Sequence[Anchor]) -> list[tuple[Anchor, AnchorVerdict]]:
        """Return those that have gone from their place.

        Looked for in the index, then in what the index has not seen.
        """
        if not anchors:
            return []
        elsewhere = self._elsewhere(anchors)
        sights = [(anchor, self._sight(anchor, elsewhere, is_all=True)) for anchor in anchors]
        judged = [(anchor, judge(anchor, sight, self._likeness)) for anchor, sight in sights]
        if all(verdict.verdict == "moved" for _, verdict in judged):
            return judged
        for path in self._new_paths or ():
            if self._disk.may_parse(path):
                elsewhere += self._disk.places(path)
            else:
                self._states[path] = "unread"
        # Only now, after the new places were looked at, nothing may be left to look at.
        is_all = self._new_paths is not None and _NOT_PARSED.isdisjoint(self._states.values())
        return [
            (
                anchor,
                verdict
                if verdict.verdict == "moved"
                else judge(anchor, self._sight(anchor, elsewhere, is_all), self._likeness),
            )
            for anchor, verdict in judged
        ]

    def _sight(self, anchor: Anchor, elsewhere: Sequence[CodePlace], is_all: bool) -> AnchorSight:
        return AnchorSight(
            (),
            [place for place in elsewhere if place.hash == anchor.hash],
            [place for place in elsewhere if place.symbol == anchor.symbol],
            is_all_read=is_all,
            why_not=BEING_READ if self._tree.has_index else NO_INDEX,
        )

    def _elsewhere(self, anchors: Sequence[Anchor]) -> list[CodePlace]:
        """Return where their bodies and names stand by the index, each seen to be there
        still; and in their own files.
        """
        places: list[CodePlace] = []
        if self._tree.no is not None:
            hashes = [each.hash for each in anchors]
            places += self._store.with_bodies(self._session, self._tree.no, hashes)
            names = [each.symbol.rpartition(".")[2] for each in anchors]
            symbols = {each.symbol for each in anchors}
            called = self._store.called(self._session, self._tree.no, names)
            places += [place for place in called if place.symbol in symbols]
        paths = {place.path for place in places}
        self._look(paths)
        current = [place for place in places if self._states[place.path] == "indexed"]
        for path in paths | {each.path for each in anchors}:
            if self._states[path] == "read":
                current += self._disk.places(path)
        return list(dict.fromkeys(current))

    @cached_property
    def _new_paths(self) -> list[str] | None:
        """Return files that the index has not seen as they are.

        ``None`` when that cannot be said.
        """
        paths = self._unseen() if self._tree.has_index else None
        if paths is None:
            return None
        self._look(paths)
        return sorted(path for path in paths if self._states[path] == "read")

    # files and lines

    def _file(self, anchor: Anchor) -> AnchorVerdict:
        state, path, no = self._states[anchor.path], anchor.path, self._tree.no
        if state == "gone":
            # The same file may lie elsewhere, or git may have seen it renamed.
            same = self._store.paths_with_hash(self._session, no, anchor.hash) if no else []
            if there := next((each for each in same if self._disk.stat(each) is not None), None):
                return judge_file(anchor, anchor.hash, None, moved_to=there)
            commit = self._past.commit(anchor.commit)
            path = (self._past.renamed_to(commit, path) if commit is not None else None) or ""
            if not path or self._disk.stat(path) is None:
                return judge_file(anchor, None, None, moved_to=None)
        elif state == "indexed" and bytes(self._rows[path][1]) == anchor.hash:
            return judge_file(anchor, anchor.hash, None, moved_to=path)
        may_read = state not in ("unknown", "unreadable") and self._disk.may_read(path)
        if (data := self._disk.read(path) if may_read else None) is None:
            return judge_file(anchor, None, None, moved_to=None, is_read=False)
        hash_now = digest(data)
        # Lines tell how much of a file has changed; of one that has not, none is marked.
        lines = None if hash_now == anchor.hash else self._disk.lines(path)
        return judge_file(anchor, hash_now, lines, moved_to=path)
