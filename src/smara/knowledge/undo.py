"""Taking back the newest change of a memory, together with what it did to others: both halves of a
merge, for one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from smara.errors import ConflictError
from smara.knowledge.changing import remove_relation
from smara.knowledge.models import Relation
from smara.knowledge.store import Stored
from smara.knowledge.turn import Turn


def undo(turn: Turn, stored: Stored) -> Stored:
    """Take back the newest change that was not taken back yet; an agent cannot take back what a
    person did.
    """
    newest = turn.store.newest_change(turn.session, stored.no)
    if newest is None or newest[2] == "created":
        hint = "Forget it if it should not be there."
        raise ConflictError(
            f"There is nothing to undo on memory {stored.memory.short_id}: it is as it was made. "
            f"{hint}",
            memory_id=stored.memory.short_id,
            brief="Nothing to undo",
            hint=hint,
        )
    if newest[3] == "person":
        turn.refuse_others("undo what a person did")
    operation = newest[1]
    events = turn.store.operation(turn.session, operation)
    _refuse_newer(turn, operation, {int(event[1]) for event in events})
    turn.next_operation()
    for event_no, no, kind, before, after in reversed(events):
        _take_back(turn, int(no), kind, before=json.loads(before), after=json.loads(after))
        turn.store.mark_undone(turn.session, int(event_no), turn.last_event_no)
    return Stored(stored.no, turn.store.by_number(turn.session, stored.no))


def _refuse_newer(turn: Turn, operation: str, numbers: set[int]) -> None:
    """What one change did to several memories is taken back only while none of them was changed
    since.
    """
    for no in sorted(numbers):
        newest = turn.store.newest_change(turn.session, no)
        if newest is not None and newest[1] != operation:
            short_id = turn.store.by_number(turn.session, no).short_id
            hint = f"Undo that first: `smara memories review undo {short_id}`."
            raise ConflictError(
                f"Memory {short_id}, which the same change touched, was changed since. {hint}",
                memory_id=short_id,
                brief="A part of the change was changed since",
                hint=hint,
            )


def _take_back(
    turn: Turn, no: int, kind: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    stored = Stored(no, turn.store.by_number(turn.session, no))
    if kind == "related":
        remove_relation(turn, stored, Relation(**after["relation"]))
    elif kind == "unrelated":
        relation = Relation(**before["relation"])
        known = relation.memory_id is None or turn.store.numbers_of_ids(
            turn.session, [relation.memory_id]
        )
        if known:
            turn.put_relation(no, relation)
    else:
        turn.change(stored, "undone", before, {"undoes": kind})
        return
    turn.touch(stored)
    turn.event(no, "undone", after, {**before, "undoes": kind})
