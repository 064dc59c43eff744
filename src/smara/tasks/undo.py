"""Taking back the newest change: its fields get their old values, its dependency or link goes or
comes back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from smara.errors import ConflictError
from smara.tasks.claims import refuse_others
from smara.tasks.store import Stored
from smara.tasks.turn import Turn
from smara.tasks.verbs import add_dependencies, remove_dependencies

_LASTING = ("created", "imported")


def undo(turn: Turn, stored: Stored, is_forced: bool) -> None:
    """Take back the newest change that was not taken back yet; on what another holds, only by
    force.
    """
    if not is_forced:
        refuse_others(turn, stored.task)
    row = turn.store.newest_change(turn.session, stored.no)
    if row is None or row[1] in _LASTING:
        hint = "Close it as wontfix if it should not be there."
        raise ConflictError(
            f"There is nothing to undo on task {stored.task.short_id}: it is as it was made. "
            f"{hint}",
            task_id=stored.task.short_id,
            brief="Nothing to undo",
            hint=hint,
        )
    event_no, kind, before, after = int(row[0]), row[1], json.loads(row[2]), json.loads(row[3])
    if kind in ("dependency_added", "dependency_removed"):
        _undo_dependency(turn, stored, before, after=after)
    elif kind in ("linked", "unlinked"):
        _undo_link(turn, stored, before, after=after)
    else:
        turn.change(stored, "undone", before)
    undone_by = turn.session.one(
        turn.store.sql(
            "SELECT max(no) FROM task_events WHERE project_no = :project AND task_no = ?"
        ),
        (stored.no,),
    )
    turn.store.mark_undone(turn.session, event_no, int(undone_by[0]) if undone_by else event_no)


def _undo_dependency(
    turn: Turn, stored: Stored, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    was_added = bool(after)
    change = after if was_added else before
    other = turn.store.find_no(turn.session, change["depends_on"])
    if other is not None:
        target = Stored(other, turn.store.by_number(turn.session, other))
        act = remove_dependencies if was_added else add_dependencies
        act(turn, stored, target, change["types"], "undone")


def _undo_link(
    turn: Turn, stored: Stored, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    message_no = (after or before)["message_no"]
    if before:
        turn.store.add_link(
            turn.session, (stored.no, message_no, before["relation"], turn.now_ms, turn.actor)
        )
    else:
        turn.store.remove_link(turn.session, stored.no, message_no)
    turn.event(stored.no, "undone", after, before)
