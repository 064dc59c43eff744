"""Probe whether any task changed since a brief was precomputed.

Hooks load this module: it imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from smara.database.probe import Probe

_LAST = "SELECT no FROM task_events WHERE +project_no = :project ORDER BY no DESC LIMIT 1"
_CHANGED = "SELECT EXISTS (SELECT 1 FROM task_events WHERE no > :mark AND +project_no = :project)"


def mark(look: Probe) -> int:
    """The number of the last event of the project's tasks."""
    return look.number(_LAST)


def has_changed(look: Probe, since: int) -> bool:
    """Return True if any task of the project changed since."""
    return bool(look.number(_CHANGED, mark=since))
