"""Check for changed memories without opening the room, for hooks.

A mark is the number of the last event. Every change of a memory writes an event, and removing one
for good leaves a tombstone.
"""

from __future__ import annotations

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smara.database.probe import Probe

# A plus keeps the planner at the end of the table, where the newest stand, away from sorting a
# whole history.
_LAST = "SELECT no FROM memory_events WHERE +project_no = :project ORDER BY no DESC LIMIT 1"
_LAST_GONE = (
    "SELECT no FROM memory_tombstones WHERE +project_no = :project ORDER BY no DESC LIMIT 1"
)
_LAST_TRUST = (
    "SELECT no FROM memory_trust_events WHERE +project_no = :project ORDER BY no DESC LIMIT 1"
)
_CHANGED = (
    "SELECT EXISTS (SELECT 1 FROM memory_events WHERE no > :mark AND +project_no = :project)"
    " OR EXISTS (SELECT 1 FROM memory_tombstones WHERE no > :gone AND +project_no = :project)"
    " OR EXISTS (SELECT 1 FROM memory_trust_events WHERE no > :trust AND +project_no = :project)"
)
_UNCHANGED = (
    "SELECT count(*) FROM memories m WHERE m.project_no = :project AND m.id IN (SELECT value FROM "
    "json_each(:ids))"
    " AND m.deprecated_at IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM memory_events e WHERE e.memory_no = m.no AND e.no > :mark)"
    " AND NOT EXISTS (SELECT 1 FROM memory_trust_events WHERE no > :trust AND +project_no = "
    ":project)"
)


def marks(look: Probe) -> list[int]:
    """Return the present marks of a project's memory history."""
    return [look.number(_LAST), look.number(_LAST_GONE), look.number(_LAST_TRUST)]


def has_changed(look: Probe, since: Sequence[int]) -> bool:
    """Return True if memories or what may be told changed since."""
    return bool(look.number(_CHANGED, mark=since[0], gone=since[1], trust=since[2]))


def are_as_they_were(look: Probe, ids: Sequence[str], since: Sequence[int]) -> bool:
    """Return True if these memories are in force and untouched."""
    if not ids:
        return True
    from json import dumps

    return look.number(_UNCHANGED, ids=dumps(ids), mark=since[0], trust=since[2]) == len(set(ids))
