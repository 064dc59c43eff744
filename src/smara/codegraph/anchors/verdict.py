"""The verdict on one anchor: a pure function of what it was and of what is seen now.

    the same body at its place                       fresh
    the place is there, the body another             drifted, by as much as the two differ
    the place is gone, the body stands at a new one  moved: a file or a definition was renamed or
      carried elsewhere
    the place is gone, its name stands at a new one  drifted, and carried elsewhere
    none of these                                    orphaned

A *new* place is one that had not the same body (or name) when the anchor was made: of forty
functions that all say ``return None``, one that goes has not moved to the other thirty-nine.
Whatever was not read as it is now makes the verdict *unknown*, unless what was read settles it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smara.codegraph.anchors.models import NewAnchor, Place, Places
from smara.codegraph.anchors.texts import Line, find_run, share_gone
from smara.core.freshness import LITTLE_OF_A_FILE, AnchorVerdict, Verdict

Likeness = Callable[[bytes, bytes], float]
"""How alike two sketches are, from 0 to 1."""
BEING_READ = "the code has changed and is being read again"
NO_INDEX = "it is no longer in its file; `smara graph index` would tell whether it is elsewhere"


@dataclass(frozen=True, slots=True)
class Sight:
    """What is seen of the code now, as far as it concerns one anchor."""

    here: Sequence[Place] = ()
    """What stands under the anchor's name at the anchor's path."""
    same: Sequence[Place] = ()
    """Where the very same body stands, anywhere in the tree."""
    named: Sequence[Place] = ()
    """What has the same qualified name, anywhere in the tree."""
    is_read: bool = True
    """Whether the file of the anchor was read as it is now."""
    is_all_read: bool = True
    """Whether every file in which the body may stand was read as it is now."""
    why_not: str = BEING_READ


def judge(anchor: NewAnchor, sight: Sight, likeness: Likeness) -> AnchorVerdict:
    """What became of a definition."""
    if not sight.is_read:
        return _verdict(anchor, "unknown", why=BEING_READ)
    for place in sight.here:
        if place.hash == anchor.hash:
            return _verdict(anchor, "fresh", place)
    if sight.here:
        closest = max(sight.here, key=lambda each: likeness(anchor.sketch, each.sketch))
        return _verdict(anchor, "drifted", closest, changed=_differs(anchor, closest, likeness))
    moved = _new_home(anchor, sight.same)
    if moved is not None:
        return _verdict(anchor, "moved", moved)
    carried = _carried(anchor, sight.named, likeness)
    if carried is not None:
        return _verdict(anchor, "drifted", carried, changed=_differs(anchor, carried, likeness))
    if not sight.is_all_read:
        return _verdict(anchor, "unknown", why=sight.why_not)
    return _verdict(anchor, "orphaned")


def _new_home(anchor: NewAnchor, same: Sequence[Place]) -> Place | None:
    """The new place of a body: of several, the one that is most like the old place."""
    known = Places(anchor.twins)
    found = [each for each in same if not known.includes(each.path, each.symbol)]
    if (
        not known.are_all and len(same) > 1
    ):  # it stands in many places: only one of the same name can be it
        found = [each for each in found if each.symbol == anchor.symbol]
    return max(found, key=lambda each: _nearness(anchor, each), default=None)


def _carried(anchor: NewAnchor, named: Sequence[Place], likeness: Likeness) -> Place | None:
    """Where something of the same name stands that was not there before, the most alike of
    several.
    """
    known = Places(anchor.namesakes)
    found = [
        each
        for each in named
        if each.path != anchor.path
        and (known.are_all or len(named) == 1)
        and not known.includes(each.path, each.symbol)
    ]
    return max(found, key=lambda each: likeness(anchor.sketch, each.sketch), default=None)


def _nearness(anchor: NewAnchor, place: Place) -> tuple[bool, bool, bool, int]:
    """A renamed file keeps the names in it, a renamed function its file; of others, the first in
    the tree.
    """
    last = anchor.symbol.rpartition(".")[2]
    return (
        place.symbol == anchor.symbol,
        place.symbol.rpartition(".")[2] == last,
        place.path == anchor.path,
        -place.first_line,
    )


def _differs(anchor: NewAnchor, place: Place, likeness: Likeness) -> float:
    """The share that differs; what has changed at all differs by a little at least."""
    return round(min(1.0, max(0.01, 1 - likeness(anchor.sketch, place.sketch))), 4)


def _verdict(
    anchor: NewAnchor,
    verdict: Verdict,
    place: Place | None = None,
    changed: float | None = None,
    why: str = "",
) -> AnchorVerdict:
    if place is None:
        return AnchorVerdict(
            verdict,
            anchor.path,
            anchor.symbol,
            commit=anchor.commit,
            why=why,
            is_lines=anchor.kind == "lines",
        )
    return AnchorVerdict(
        verdict,
        anchor.path,
        anchor.symbol,
        now_path=place.path,
        now_symbol=place.symbol,
        first_line=place.first_line,
        last_line=place.last_line,
        changed=changed,
        commit=anchor.commit,
        why=why,
        is_lines=anchor.kind == "lines",
    )


def judge_lines(
    anchor: NewAnchor, lines: Sequence[Line] | None, is_read: bool = True
) -> AnchorVerdict:
    """What became of lines that stand in no definition: there as a whole, in part, or not at all.

    ``lines`` are those of the file now, ``None`` when it is gone.
    """
    if not is_read:
        return _verdict(anchor, "unknown", why=BEING_READ)
    if lines is None:
        return _verdict(anchor, "orphaned")
    found = find_run(anchor.sketch, lines, anchor.first_line or 1)
    if found is not None:
        return _verdict(anchor, "fresh", Place(anchor.path, "", *found, anchor.hash))
    gone = share_gone(anchor.sketch, lines)
    if gone >= 1:
        return _verdict(anchor, "orphaned", why="its lines are no longer in the file")
    place = Place(
        anchor.path, "", anchor.first_line or 1, last_line=anchor.last_line or 1, hash=b""
    )
    return _verdict(anchor, "drifted", place, changed=round(max(0.01, gone), 4))


def judge_file(
    anchor: NewAnchor,
    hash_now: bytes | None,
    lines: Sequence[Line] | None,
    moved_to: str | None,
    is_read: bool = True,
) -> AnchorVerdict:
    """What became of a file: ``hash_now`` and ``lines`` are ``None`` when it is gone from its
    place.
    """
    if not is_read:
        return _verdict(anchor, "unknown", why=BEING_READ)
    if hash_now == anchor.hash:
        verdict: Verdict = "fresh" if moved_to in (None, anchor.path) else "moved"
        return _verdict(
            anchor, verdict, Place(moved_to or anchor.path, "", 1, last_line=1, hash=anchor.hash)
        )
    if lines is None:
        return _verdict(anchor, "orphaned")
    place = Place(moved_to or anchor.path, "", 1, last_line=1, hash=hash_now or b"")
    changed = round(max(0.01, share_gone(anchor.sketch, lines)), 4)
    is_renamed = place.path != anchor.path and changed < LITTLE_OF_A_FILE
    return _verdict(anchor, "moved" if is_renamed else "drifted", place, changed=changed)
